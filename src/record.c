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
 * locks.  The unique indexes are the last line of defence.
 *
 * The same holds for guards: every writer of a row that holds one, before or
 * after, has the guard's lock as well.  So whoever has that lock finds the row
 * by its guard, even while its address is locked by somebody else.
 *
 * Memory: the values of a probed record point into the row's buffer, which
 * stays pinned until the next probe by the same index, record_let_go() or
 * record_close().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/skey.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
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
	table->rel = catalog_open(&catalog_get()->record, mode);
	table->mode = mode;
	table->snapshot = snapshot;
}

/*
 * The index is asked for at each call, so that REINDEX CONCURRENTLY is safe.
 */
static void
open_probe(IdemTable *table, IdemProbe *probe, Relation index)
{
	probe->index = index;
	probe->scan = compat_index_beginscan(table->rel, probe->index,
										 table->snapshot, 3);
	probe->found = table_slot_create(table->rel, NULL);
}

static void
close_probe(IdemProbe *probe)
{
	if (probe->scan == NULL)
		return;
	ExecDropSingleTupleTableSlot(probe->found);
	index_endscan(probe->scan);
	index_close(probe->index, NoLock);
	probe->scan = NULL;
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

static void
take(const IdemProbe *probe, IdemRecord *record)
{
	slot_getallattrs(probe->found);
	record_from_row(record, probe->found->tts_values,
					probe->found->tts_isnull);
	record->tid = probe->found->tts_tid;
	record->ours = is_ours(probe->found);
}

/*
 * Finds the row with these three in the index.  False, and a record of
 * STATE_NONE, when there is none.
 */
static bool
ask(IdemProbe *probe, const IdemAddress *address, IdemRecord *record)
{
	ScanKeyData keys[3];

	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->tenant));
	ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[2], 3, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->key));
	index_rescan(probe->scan, keys, 3, NULL, 0);
	if (!index_getnext_slot(probe->scan, ForwardScanDirection, probe->found))
	{
		record_clear(record);
		return false;
	}
	take(probe, record);
	return true;
}

/*
 * Finds the row of an address.
 */
bool
record_probe(IdemTable *table, const IdemAddress *address,
			 IdemRecord *record)
{
	if (table->by_address.scan == NULL)
		open_probe(table, &table->by_address,
				   catalog_open_key(table->rel, table->mode));
	return ask(&table->by_address, address, record);
}

/*
 * As record_probe(), under the key lock of a row that a scan has found, and
 * cheaper: looks where the row was.  False when it is there no more; the
 * address may have another one then.  The scan's slot has the page pinned, so
 * the place was not given to another row.
 */
bool
record_probe_again(IdemTable *table, TupleTableSlot *seen,
				   IdemRecord *record)
{
	IdemProbe  *probe = &table->by_address;
	ItemPointerData tid = seen->tts_tid;

	if (probe->scan == NULL)
		open_probe(table, probe, catalog_open_key(table->rel, table->mode));
	if (!table_tuple_fetch_row_version(table->rel, &tid, table->snapshot,
									   probe->found))
	{
		record_clear(record);
		return false;
	}
	take(probe, record);
	return true;
}

/*
 * Finds the row that holds a guard, and its key.
 */
bool
record_probe_guard(IdemTable *table, const IdemAddress *lock,
				   IdemRecord *record, text **key)
{
	IdemProbe  *probe = &table->by_guard;

	if (probe->scan == NULL)
		open_probe(table, probe,
				   catalog_open_index(record_guard, table->mode));
	if (!ask(probe, lock, record))
		return false;
	*key = record_row_key(probe->found->tts_values);
	return true;
}

/*
 * Gives up the pins of the last probes; before any wait, so that vacuum is not
 * held up.  The scans end, since a new start keeps the row's page pinned from
 * 19 on.
 */
void
record_let_go(IdemTable *table)
{
	close_probe(&table->by_address);
	close_probe(&table->by_guard);
}

static void
fill_new_row(IdemTable *table, const IdemAddress *address,
			 const IdemRecord *record)
{
	const IdemCatalog *catalog = catalog_get();
	bool		terminal = state_is_terminal(record->state);
	bool		payload = record_has_payload(record);
	TupleTableSlot *slot;

	writer_open(&table->writer, table->rel);
	writer_skip(&table->writer, catalog->record_open, terminal);
	writer_skip(&table->writer, catalog->record_expiring,
				!terminal || !payload);
	writer_skip(&table->writer, catalog->record_tombstone,
				!terminal || payload);
	writer_skip(&table->writer, catalog->record_guard,
				!guard_is_held_by(record));
	slot = table->writer.slot;
	ExecClearTuple(slot);
	record_to_row(address, record, slot->tts_values, slot->tts_isnull);
}

/*
 * Is the error that of one of our own unique indexes?
 */
static bool
is_own_violation(void)
{
	const char *constraint = NULL;

	if (geterrcode() == ERRCODE_UNIQUE_VIOLATION)
		constraint = CopyErrorData()->constraint_name;
	return constraint != NULL &&
		(strcmp(constraint, "idem_record_pkey") == 0 ||
		 strcmp(constraint, "idem_record_guard") == 0);
}

/*
 * A violation of our unique indexes means that somebody writes without the key
 * lock, by hand for instance: an internal error, and never a 23505.  What
 * another index refuses, or comes after the row is there, of a trigger, is
 * passed on.
 */
static void
write_row(IdemTable *table, const IdemAddress *address,
		  const IdemRecord *record, bool insert)
{
	MemoryContext context = CurrentMemoryContext;

	fill_new_row(table, address, record);
	PG_TRY();
	{
		if (insert)
			writer_insert(&table->writer);
		else
			writer_update(&table->writer, record->tid);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		if (table->writer.written || !is_own_violation())
			PG_RE_THROW();
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
 * The caller has the lock of the record's guard, too.
 */
void
record_insert(IdemTable *table, const IdemAddress *address,
			  const IdemRecord *record)
{
	write_row(table, address, record, true);
}

/*
 * Updates the row that the last probe found.
 */
void
record_update(IdemTable *table, const IdemAddress *address,
			  const IdemRecord *record)
{
	guard_lock_to_write(address, record);
	write_row(table, address, record, false);
}

/*
 * Deletes the row that the last probe found.
 */
void
record_delete(IdemTable *table, const IdemRecord *record)
{
	writer_delete(table->rel, record->tid, SnapshotSelf);
}

/*
 * The locks on the relations stay until the transaction ends, as usual.
 */
void
record_close(IdemTable *table)
{
	writer_close(&table->writer);
	record_let_go(table);
	table_close(table->rel, NoLock);
}
