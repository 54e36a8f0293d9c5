/*-------------------------------------------------------------------------
 *
 * intent.c
 *		The table idem_intent: finding, inserting and updating rows.  Its
 *		columns are known to intent_row.c alone.
 *
 * Rows are read and written directly, with the extension's right: callers
 * have none on the table.
 *
 * Locking: whoever changes an intent takes the key lock of its command first,
 * then the row.  Only the relays (dispatch.c) take rows alone; they skip what
 * is locked, so they never wait, and may hold rows of many commands.  The key
 * lock therefore does not keep a row as it is: a scan without a snapshot could
 * miss one that a relay is moving, so rows are found with a snapshot of now,
 * which is right in every isolation level; and an update succeeds only where
 * the row is still the version that was read, else it is read and judged
 * again.  That update is the only wait for a row, and comes last.
 *
 * The index is scanned with SnapshotAny, and the snapshot is applied to what it
 * finds: so a serializable transaction takes no predicate locks, by which
 * different commands would conflict.
 *
 * Memory: the values of an intent that was found point into the row's buffer,
 * which stays pinned until the next search or intents_close().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "compat.h"
#include "intent.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

void
intents_open(IdemIntentTable *table)
{
	memset(table, 0, sizeof(*table));
	table->rel = catalog_open(&catalog_get()->intent, RowExclusiveLock);
	table->found = table_slot_create(table->rel, NULL);
}

static bool
next_visible(IdemIntentTable *table, IndexScanDesc scan, Snapshot snapshot)
{
	while (index_getnext_slot(scan, ForwardScanDirection, table->found))
	{
		if (table_tuple_satisfies_snapshot(table->rel, table->found,
										   snapshot))
			return true;
	}
	return false;
}

/*
 * The intent with that operation id, as it is now.
 */
bool
intents_find(IdemIntentTable *table, Datum id, IdemIntent *intent)
{
	Relation	pkey;
	Snapshot	snapshot;
	IndexScanDesc scan;
	ScanKeyData key;
	bool		found;

	/* what this very command wrote counts as well */
	CommandCounterIncrement();
	/* asked for at each call, so that REINDEX CONCURRENTLY is safe */
	pkey = catalog_open_key(table->rel, RowExclusiveLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_UUID_EQ, id);
	scan = compat_index_beginscan(table->rel, pkey, SnapshotAny, 1);
	index_rescan(scan, &key, 1, NULL, 0);
	found = next_visible(table, scan, snapshot);
	index_endscan(scan);
	UnregisterSnapshot(snapshot);
	index_close(pkey, NoLock);
	if (found)
		intent_from_row(intent, table->found);
	return found;
}

/*
 * Is what was found still there, as far as anybody has committed?
 */
bool
intents_is_current(IdemIntentTable *table)
{
	return table_tuple_satisfies_snapshot(table->rel, table->found,
										  SnapshotSelf);
}

/*
 * Gives up the pin, before any wait.
 */
void
intents_let_go(IdemIntentTable *table)
{
	ExecClearTuple(table->found);
}

/*
 * The predicates of the partial indexes, in C.
 */
static void
fill_new_row(IdemIntentTable *table, const IdemIntent *intent)
{
	const IdemCatalog *catalog = catalog_get();
	bool		is_open = intent->state == INTENT_IN_FLIGHT ||
	intent->state == INTENT_UNKNOWN;
	TupleTableSlot *slot;

	writer_open(&table->writer, table->rel);
	writer_skip(&table->writer, catalog->intent_due,
				intent->state != INTENT_PENDING || !intent->send);
	writer_skip(&table->writer, catalog->intent_open, !is_open);
	writer_skip(&table->writer, catalog->intent_resend,
				!is_open || !intent->send || intent->resend_us == 0);
	slot = table->writer.slot;
	ExecClearTuple(slot);
	intent_to_row(intent, slot->tts_values, slot->tts_isnull);
}

void
intents_insert(IdemIntentTable *table, const IdemIntent *intent)
{
	fill_new_row(table, intent);
	writer_insert(&table->writer);
}

/*
 * Replaces the row that was found; false when it has changed since.
 */
bool
intents_update(IdemIntentTable *table, const IdemIntent *intent)
{
	fill_new_row(table, intent);
	return writer_try_update(&table->writer, intent->tid);
}

HeapTuple
intents_form(IdemIntentTable *table, const IdemIntent *intent)
{
	Datum		values[INTENT_COLUMNS];
	bool		isnull[INTENT_COLUMNS];

	intent_to_row(intent, values, isnull);
	return heap_form_tuple(RelationGetDescr(table->rel), values, isnull);
}

/*
 * The lock on the relation stays until the transaction ends, as usual.
 */
void
intents_close(IdemIntentTable *table)
{
	writer_close(&table->writer);
	ExecDropSingleTupleTableSlot(table->found);
	table_close(table->rel, NoLock);
}

static bool
counts(const IdemIntent *intent, IdemIntents which, TimestampTz doubt_until)
{
	switch (intent->state)
	{
		case INTENT_REJECTED:
			return false;
		case INTENT_CONFIRMED:
			return which == INTENTS_NOT_REJECTED;
		case INTENT_PENDING:
			return which != INTENTS_IN_QUESTION;
		default:
			return which == INTENTS_NOT_REJECTED ||
				intent->doubt_since <= doubt_until;
	}
}

/*
 * Has the command such an intent, in question since "doubt_until" or earlier
 * if it is in flight or unknown?
 */
bool
intent_exists(const IdemAddress *address, IdemIntents which,
			  TimestampTz doubt_until)
{
	IdemIntentTable table;
	Relation	index;
	Snapshot	snapshot;
	IndexScanDesc scan;
	ScanKeyData keys[3];
	IdemIntent	intent;
	bool		found = false;

	CommandCounterIncrement();
	intents_open(&table);
	index = catalog_open_index(intent_address, AccessShareLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->tenant));
	ScanKeyInit(&keys[1], 2, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[2], 3, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->key));
	scan = compat_index_beginscan(table.rel, index, SnapshotAny, 3);
	index_rescan(scan, keys, 3, NULL, 0);
	while (!found && next_visible(&table, scan, snapshot))
	{
		intent_from_row(&intent, table.found);
		found = counts(&intent, which, doubt_until);
	}
	index_endscan(scan);
	UnregisterSnapshot(snapshot);
	index_close(index, NoLock);
	intents_close(&table);
	return found;
}
