/*-------------------------------------------------------------------------
 *
 * stat_shmem.h
 *		The counters themselves, for stat.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_STAT_SHMEM_H
#define IDEM_STAT_SHMEM_H

#include "idempotency.h"
#include "mb/pg_wchar.h"
#include "port/atomics.h"

typedef struct StatKey
{
	Oid			database;
	char		operation[IDEM_OPERATION_SIZE];
} StatKey;

typedef struct StatEntry
{
	StatKey		key;			/* must be first */
	pg_atomic_uint64 reset_at;	/* a TimestampTz: counted since then */
	pg_atomic_uint64 counters[STAT_COUNT];
} StatEntry;

typedef void (*StatVisitor) (StatEntry *entry, void *arg);

extern void stat_shmem_init(void);
extern bool stat_shmem_exists(void);
extern StatEntry *stat_shmem_entry(text *operation);
extern void stat_shmem_visit(StatVisitor visit, void *arg);
extern void stat_shmem_clear(StatEntry *entry);

#endif							/* IDEM_STAT_SHMEM_H */
