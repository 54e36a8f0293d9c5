/*-------------------------------------------------------------------------
 *
 * expire.c
 *		Drops what expired records need not keep, and in the end the records.
 *
 * A sweep drops the payload of an expired record (response, headers, body,
 * request) and leaves a tombstone, the proof that its address was used.  A
 * purge removes a tombstone when its tombstone_retention is over, together
 * with what else there is of the command (purge.c).  From then on its address
 * is new.
 *
 * Invariants:
 *	1. Only terminal records that have expired are touched.
 *	2. Nothing is purged that somebody needs.
 *
 * Locking: candidates are found in two partial indexes, without lock.  Each is
 * written under its key lock, after it was read again under it.  The
 * lock is asked for without waiting: what somebody holds is left for the next
 * pass.  The locks stay until the transaction ends, so one call takes no more
 * than a share of the lock table.
 *
 * A pass remembers where it is in the indexes.  The next batch begins there,
 * instead of walking again over entries of rows that are dead, but kept for
 * somebody's old snapshot.
 *
 * Memory: a call leaves some in its caller's context, in proportion to its
 * limit.  The operation that a pass has got to is kept in the context that the
 * pass began in.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "compat.h"
#include "expire.h"
#include "intent.h"
#include "miscadmin.h"
#include "record_row.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* A range of one of the two indexes. */
typedef struct Range
{
	Relation	index;
	IndexScanDesc scan;
	TupleTableSlot *slot;
} Range;

/*
 * A pass that is about to begin.  What expires later is left for the next one.
 */
void
expire_begin(IdemExpiry *pass)
{
	pass->context = CurrentMemoryContext;
	pass->now = GetCurrentTimestamp();
	pass->swept_to = DT_NOBEGIN;
	pass->operation = NULL;		/* before every operation */
	pass->purged_to = DT_NOBEGIN;
}

static void
range_open(Range *range, IdemTable *table, Relation index, int nkeys)
{
	range->index = index;
	range->scan = compat_index_beginscan(table->rel, range->index,
										 SnapshotSelf, nkeys);
	range->slot = table_slot_create(table->rel, NULL);
}

static void
range_close(Range *range)
{
	ExecDropSingleTupleTableSlot(range->slot);
	index_endscan(range->scan);
	index_close(range->index, NoLock);
}

static bool
range_next(Range *range)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_slot(range->scan, ForwardScanDirection, range->slot);
}

static int64
range_count(Range *range, int64 limit)
{
	int64		found = 0;

	while (found < limit &&
		   index_getnext_tid(range->scan, ForwardScanDirection) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		found++;
	}
	return found;
}

/*
 * What has expired, from where the pass is.
 */
static void
range_to_sweep(Range *range, const IdemExpiry *pass)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], 1, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE,
				TimestampTzGetDatum(pass->swept_to));
	ScanKeyInit(&keys[1], 1, BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE,
				TimestampTzGetDatum(pass->now));
	index_rescan(range->scan, keys, 2, NULL, 0);
}

/*
 * Moves the pass to the next operation that has tombstones; false behind the
 * last one.
 */
static bool
next_operation(Range *operations, IdemExpiry *pass)
{
	text	   *last = pass->operation;
	IdemAddress address;
	IdemRecord	record;
	ScanKeyData key;

	if (last == NULL)
		last = cstring_to_text("");
	ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_TEXT_GT,
				PointerGetDatum(last));
	index_rescan(operations->scan, &key, 1, NULL, 0);
	if (!range_next(operations))
		return false;
	record_from_slot(&record, &address, operations->slot);
	pass->operation = MemoryContextAlloc(pass->context,
										 VARSIZE_ANY(address.operation));
	memcpy(pass->operation, address.operation,
		   VARSIZE_ANY(address.operation));
	pass->purged_to = DT_NOBEGIN;
	return true;
}

/*
 * Sets the range to the tombstones of the pass's operation that may be purged,
 * from where the pass is; false where there is none.
 */
static bool
range_to_purge(Range *range, const IdemExpiry *pass, TimestampTz *until)
{
	int64		retention_us;
	IdemPolicy	policy;
	ScanKeyData keys[3];

	if (pass->operation == NULL)
		return false;
	policy_get(pass->operation, &policy);
	retention_us = policy_retention_us(&policy);
	if (retention_us < 0)
		return false;
	*until = pass->now - retention_us;
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(pass->operation));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE,
				TimestampTzGetDatum(pass->purged_to));
	ScanKeyInit(&keys[2], 2, BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE,
				TimestampTzGetDatum(*until));
	index_rescan(range->scan, keys, 3, NULL, 0);
	return true;
}

/*
 * Locks a candidate, and reads what stands there now.  What this transaction
 * wrote itself is left: a savepoint may take it back.
 */
static bool
lock_expired(IdemTable *table, const IdemAddress *address,
			 TupleTableSlot *seen, TimestampTz until, IdemRecord *record)
{
	if (!address_try_lock(address))
		return false;
	if (record_probe_again(table, seen, record) && !record->ours &&
		state_is_terminal(record->state) && record->expires_at <= until)
		return true;
	address_unlock(address);
	return false;
}

static bool
sweep_one(IdemTable *table, const IdemAddress *address, TupleTableSlot *seen,
		  TimestampTz until)
{
	IdemRecord	record;

	if (!lock_expired(table, address, seen, until, &record))
		return false;
	record_drop_payload(&record);
	record_update(table, address, &record);
	stat_count(address->operation, STAT_SWEPT);
	return true;
}

/*
 * Sweeps up to "limit" records, and says how many.
 */
int
expire_sweep(IdemExpiry *pass, int limit)
{
	int			swept = 0;
	IdemTable	table;
	Range		range;

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	range_open(&range, &table,
			   catalog_open_index(record_expiring, AccessShareLock), 2);
	range_to_sweep(&range, pass);
	while (swept < limit && range_next(&range))
	{
		IdemAddress address;
		IdemRecord	record;

		record_from_slot(&record, &address, range.slot);
		pass->swept_to = record.expires_at;
		if (sweep_one(&table, &address, range.slot, pass->now))
			swept++;
	}
	range_close(&range);
	record_close(&table);
	return swept;
}

static bool
purge_one(IdemTable *table, const IdemAddress *address, TupleTableSlot *seen,
		  TimestampTz until)
{
	IdemRecord	record;

	if (!lock_expired(table, address, seen, until, &record))
		return false;
	if (purge_must_wait(table, address, seen))
	{
		address_unlock(address);
		return false;
	}
	purge_rows(address);
	record_delete(table, &record);
	stat_count(address->operation, STAT_PURGED);
	return true;
}

/*
 * Purges tombstones of the pass's operation until "limit" is reached.
 */
static int
purge_operation(IdemExpiry *pass, IdemTable *table, Range *range, int limit)
{
	int			purged = 0;
	TimestampTz until;

	if (!range_to_purge(range, pass, &until))
		return 0;
	while (purged < limit && range_next(range))
	{
		IdemAddress address;
		IdemRecord	record;

		record_from_slot(&record, &address, range->slot);
		pass->purged_to = record.expires_at;
		if (purge_one(table, &address, range->slot, until))
			purged++;
	}
	return purged;
}

/*
 * Purges up to "limit" tombstones, and says how many.
 */
int
expire_purge(IdemExpiry *pass, int limit)
{
	int			purged = 0;
	IdemTable	table;
	Range		operations;
	Range		range;

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	range_open(&operations, &table,
			   catalog_open_index(record_tombstone, AccessShareLock), 1);
	range_open(&range, &table,
			   catalog_open_index(record_tombstone, AccessShareLock), 3);
	do
	{
		purged += purge_operation(pass, &table, &range, limit - purged);
	} while (purged < limit && next_operation(&operations, pass));
	range_close(&range);
	range_close(&operations);
	record_close(&table);
	return purged;
}

/*
 * How much there is to do now, counted up to "limit".  Entries of rows that
 * are dead count as well: it is an estimate.
 */
int64
expire_backlog(int64 limit)
{
	int64		found;
	IdemExpiry	pass;
	IdemTable	table;
	Range		operations;
	Range		range;
	TimestampTz until;

	expire_begin(&pass);
	record_open(&table, AccessShareLock, SnapshotSelf);
	range_open(&range, &table,
			   catalog_open_index(record_expiring, AccessShareLock), 2);
	range_to_sweep(&range, &pass);
	found = range_count(&range, limit);
	range_close(&range);

	range_open(&operations, &table,
			   catalog_open_index(record_tombstone, AccessShareLock), 1);
	range_open(&range, &table,
			   catalog_open_index(record_tombstone, AccessShareLock), 3);
	while (found < limit && next_operation(&operations, &pass))
	{
		if (range_to_purge(&range, &pass, &until))
			found += range_count(&range, limit - found);
	}
	range_close(&range);
	range_close(&operations);
	record_close(&table);
	return found;
}
