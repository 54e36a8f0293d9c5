/*-------------------------------------------------------------------------
 *
 * record.c
 *		The table idem_record: probes, inserts and updates. Its columns are
 *		known to record_row.c alone.
 *
 * Rows are read and written directly, with the extension's right: callers
 * have none on the table.
 *
 * Locking: every writer of a row holds its key lock (address.c).  Therefore a
 * scan with SnapshotSelf, made under the key lock, finds the row that is
 * current now; without the lock it can miss a row that is being moved by an
 * update, so a miss proves nothing.  SnapshotSelf is used because it sees
 * what is committed now in every isolation level, and takes no predicate
 * locks.  The unique index is the last line of defence.
 *
 * Memory: the values of a probed record point into the row's buffer, which
 * stays pinned until the next probe, record_let_go() or record_close().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/skey.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "compat.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "record_row.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

void
record_open(IdemTable *table, LOCKMODE mode, Snapshot snapshot)
{
	memset(table, 0, sizeof(*table));
	table->rel = table_open(catalog_get()->record, mode);
	table->mode = mode;
	table->snapshot = snapshot;
}

static void
open_for_probe(IdemTable *table)
{
	if (table->scan != NULL)
		return;
	/* asked for at each call, so that REINDEX CONCURRENTLY is safe */
	table->pkey = index_open(compat_primary_key(table->rel), table->mode);
	table->scan = compat_index_beginscan(table->rel, table->pkey,
										 table->snapshot, 3);
	table->found = table_slot_create(table->rel, NULL);
}

/*
 * Was the row written by this transaction?
 */
static bool
is_ours(TupleTableSlot *slot)
{
	bool		isnull;
	Datum		xmin = slot_getsysattr(slot, MinTransactionIdAttributeNumber,
									   &isnull);

	return TransactionIdIsCurrentTransactionId(DatumGetTransactionId(xmin));
}

/*
 * Finds the row of an address.  False, and a record of STATE_NONE, when there
 * is none.
 */
bool
record_probe(IdemTable *table, const IdemAddress *address,
			 IdemRecord *record)
{
	ScanKeyData keys[3];

	open_for_probe(table);
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->tenant));
	ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[2], 3, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->key));
	index_rescan(table->scan, keys, 3, NULL, 0);
	if (!index_getnext_slot(table->scan, ForwardScanDirection, table->found))
	{
		record_clear(record);
		return false;
	}
	slot_getallattrs(table->found);
	record_from_row(record, table->found->tts_values,
					table->found->tts_isnull);
	record->tid = table->found->tts_tid;
	record->ours = is_ours(table->found);
	return true;
}

/*
 * Gives up the pins of the last probe; before any wait, so that vacuum is not
 * held up.
 */
void
record_let_go(IdemTable *table)
{
	if (table->scan == NULL)
		return;
	ExecClearTuple(table->found);
	index_rescan(table->scan, NULL, 0, NULL, 0);
}

static void
fill_new_row(IdemTable *table, const IdemAddress *address,
			 const IdemRecord *record)
{
	TupleTableSlot *slot;

	writer_open(&table->writer, table->rel);
	writer_skip(&table->writer, catalog_get()->record_open,
				state_is_terminal(record->state));
	slot = table->writer.slot;
	ExecClearTuple(slot);
	record_to_row(address, record, slot->tts_values, slot->tts_isnull);
}

/*
 * A violation of the unique index means that somebody writes without the key
 * lock, by hand for instance: an internal error, and never a 23505.
 */
void
record_insert(IdemTable *table, const IdemAddress *address,
			  const IdemRecord *record)
{
	MemoryContext context = CurrentMemoryContext;

	fill_new_row(table, address, record);
	PG_TRY();
	{
		writer_insert(&table->writer);
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_UNIQUE_VIOLATION)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("record was written by somebody else without its key lock"),
				 address_errdetail(address),
				 errhint("Write idem_record through the idem_ functions only.")));
	}
	PG_END_TRY();
}

/*
 * Updates the row that the last probe found.
 */
void
record_update(IdemTable *table, const IdemAddress *address,
			  const IdemRecord *record)
{
	fill_new_row(table, address, record);
	writer_update(&table->writer, record->tid);
}

/*
 * The locks on the relations stay until the transaction ends, as usual.
 */
void
record_close(IdemTable *table)
{
	writer_close(&table->writer);
	if (table->scan != NULL)
	{
		ExecDropSingleTupleTableSlot(table->found);
		index_endscan(table->scan);
		index_close(table->pkey, NoLock);
	}
	table_close(table->rel, NoLock);
}
