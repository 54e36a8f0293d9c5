/*-------------------------------------------------------------------------
 *
 * record.h
 *		Direct writes to the tables, and the rows of idem_record.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_RECORD_H
#define IDEM_RECORD_H

#include "fmgr.h"
#include "access/genam.h"
#include "datatype/timestamp.h"
#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "address.h"
#include "state.h"

/*
 * writer.c: direct writes to the extension's own tables.
 */
typedef struct IdemWriter
{
	Relation	rel;			/* NULL: not open */
	MemoryContext context;		/* it was opened in */
	TupleTableSlot *slot;		/* the row to write */
	struct IdemIndex *indexes;
	int			nindexes;
	ResultRelInfo *rri;			/* this and the next are seldom needed */
	EState	   *estate;
	bool		written;		/* the row is there; now its triggers fire */
} IdemWriter;

extern void writer_open(IdemWriter *writer, Relation rel);
extern void writer_skip(IdemWriter *writer, Oid index, bool skip);
extern void writer_insert(IdemWriter *writer);
extern void writer_update(IdemWriter *writer, ItemPointerData tid);
extern bool writer_try_update(IdemWriter *writer, ItemPointerData tid);
extern void writer_delete(Relation rel, ItemPointerData tid,
						  Snapshot snapshot);
extern void writer_close(IdemWriter *writer);

/*
 * triggers.c: the AFTER triggers that somebody has added to them.
 */
extern void triggers_after_insert(Relation rel, TupleTableSlot *slot,
								  List *recheck);
extern void triggers_after_update(Relation rel, ItemPointer old,
								  TupleTableSlot *slot, List *recheck);
extern void triggers_after_delete(Relation rel, ItemPointer old);

/*
 * referred.c: the foreign keys that refer to them.
 */
extern bool may_be_referred_to(Relation rel);
extern bool is_referred_to(Relation rel, TupleTableSlot *row);

/*
 * record.c: the table idem_record.
 */
#define IDEM_NO_TIME	DT_NOBEGIN	/* NULL in a timestamp column */

/* What a command answers, as its owner stores it. */
typedef struct IdemResult
{
	NullableDatum code;
	NullableDatum resource;
	NullableDatum response;
	NullableDatum headers;
	NullableDatum body;
} IdemResult;

/* A row; STATE_NONE stands for "no row". */
typedef struct IdemRecord
{
	ItemPointerData tid;
	bool		ours;			/* written by this transaction? */
	IdemState	state;
	bool		held_guard;		/* did the row that was found? */
	int32		attempt;
	int32		policy_version; /* 0: NULL */
	int64		token;
	TimestampTz created_at;
	TimestampTz completed_at;
	TimestampTz expires_at;
	TimestampTz lease_until;
	TimestampTz unknown_at;
	int64		ttl_us;			/* 0: NULL */
	bool		once_more;		/* whatever max_attempts says */
	bool		swept;			/* its payload was dropped */
	IdemResult	result;
	NullableDatum fingerprint;
	NullableDatum request;
	NullableDatum owner;
	NullableDatum reason;
	text	   *guard;			/* NULL: none */
} IdemRecord;

/* One of its unique indexes, open once it is asked. */
typedef struct IdemProbe
{
	Relation	index;
	IndexScanDesc scan;			/* NULL: not open */
	TupleTableSlot *found;		/* the row the last probe found */
} IdemProbe;

/* idem_record, open for probing and writing. */
typedef struct IdemTable
{
	Relation	rel;
	LOCKMODE	mode;			/* of the locks on it and its indexes */
	Snapshot	snapshot;
	IdemProbe	by_address;
	IdemProbe	by_guard;
	IdemWriter	writer;
} IdemTable;

extern const int record_columns;
extern const Oid record_types[];

extern bool record_has_expired(const IdemRecord *record, TimestampTz now);
extern void record_open(IdemTable *table, LOCKMODE mode, Snapshot snapshot);
extern bool record_probe(IdemTable *table, const IdemAddress *address,
						 IdemRecord *record);
extern bool record_probe_again(IdemTable *table, TupleTableSlot *seen,
							   IdemRecord *record);
extern bool record_probe_guard(IdemTable *table, const IdemAddress *lock,
							   IdemRecord *record, text **key);
extern void record_let_go(IdemTable *table);
extern void record_insert(IdemTable *table, const IdemAddress *address,
						  const IdemRecord *record);
extern void record_update(IdemTable *table, const IdemAddress *address,
						  const IdemRecord *record);
extern void record_delete(IdemTable *table, const IdemRecord *record);
extern void record_close(IdemTable *table);
extern void record_clear(IdemRecord *record);
extern bool record_same_result(const IdemResult *a, const IdemResult *b);
extern NullableDatum null_datum(void);
extern NullableDatum text_or_null(text *value);

#endif							/* IDEM_RECORD_H */
