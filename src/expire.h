/*-------------------------------------------------------------------------
 *
 * expire.h
 *		A pass over expired records; for maintain.c, which calls it.  And what
 *		a purge needs beside the record.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_EXPIRE_H
#define IDEM_EXPIRE_H

#include "idempotency.h"

typedef struct IdemExpiry
{
	MemoryContext context;
	TimestampTz now;			/* of the whole pass */
	TimestampTz swept_to;		/* where it is in the one index */
	text	   *operation;		/* and in the other; NULL: at its start */
	TimestampTz purged_to;
} IdemExpiry;

extern void expire_begin(IdemExpiry *pass);
extern int	expire_sweep(IdemExpiry *pass, int limit);
extern int	expire_purge(IdemExpiry *pass, int limit);
extern int64 expire_backlog(int64 limit);

/*
 * purge.c
 */
extern bool purge_must_wait(IdemTable *table, const IdemAddress *address,
							TupleTableSlot *row);
extern void purge_rows(const IdemAddress *address);

#endif							/* IDEM_EXPIRE_H */
