/*-------------------------------------------------------------------------
 *
 * purge.c
 *		What there is of a command beside its record: its steps, intents and
 *		trail.  Does somebody need it, and away with it.
 *
 * A command is kept while it has an unsettled intent, and while a foreign key
 * of the application refers to any row of it.
 *
 * Locking: the caller has the command's key lock, under which nobody else
 * changes these rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "compat.h"
#include "expire.h"
#include "intent.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* The rows of a command in one of the tables. */
typedef struct Rows
{
	Relation	rel;
	Snapshot	snapshot;
	SysScanDesc scan;
} Rows;

/*
 * The tables name a command by columns called tenant, operation and key.
 */
static void
rows_open(Rows *rows, const Oid *table, const Oid *by_address,
		  const IdemAddress *address)
{
	Oid			relid;
	Oid			index;
	ScanKeyData keys[3];

	rows->rel = catalog_open(table, RowExclusiveLock);
	relid = RelationGetRelid(rows->rel);
	/* the lock may have brought the news of another index */
	catalog_get();
	index = by_address != NULL ? *by_address : compat_primary_key(rows->rel);
	ScanKeyInit(&keys[0], get_attnum(relid, "tenant"),
				BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->tenant));
	ScanKeyInit(&keys[1], get_attnum(relid, "operation"),
				BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[2], get_attnum(relid, "key"),
				BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->key));
	rows->snapshot = RegisterSnapshot(GetLatestSnapshot());
	rows->scan = systable_beginscan(rows->rel, index, true, rows->snapshot, 3,
									keys);
}

static void
rows_close(Rows *rows)
{
	systable_endscan(rows->scan);
	UnregisterSnapshot(rows->snapshot);
	table_close(rows->rel, NoLock);
}

/*
 * Does the application refer to one of them?
 */
static bool
rows_needed(const Oid *table, const Oid *by_address,
			const IdemAddress *address)
{
	Relation	rel = catalog_open(table, RowExclusiveLock);
	bool		needed = false;
	Rows		rows;

	if (may_be_referred_to(rel))
	{
		rows_open(&rows, table, by_address, address);
		while (!needed && HeapTupleIsValid(systable_getnext(rows.scan)))
			needed = is_referred_to(rel, rows.scan->slot);
		rows_close(&rows);
	}
	table_close(rel, NoLock);
	return needed;
}

/*
 * Does somebody need the command whose record is in "row"?
 */
bool
purge_must_wait(IdemTable *table, const IdemAddress *address,
				TupleTableSlot *row)
{
	const IdemCatalog *catalog = catalog_get();

	return intent_exists(address, INTENTS_UNSETTLED, INTENT_EVER) ||
		is_referred_to(table->rel, row) ||
		rows_needed(&catalog->step, NULL, address) ||
		rows_needed(&catalog->intent, &catalog->intent_address, address) ||
		rows_needed(&catalog->event, &catalog->event_address, address);
}

static void
delete_rows(const Oid *table, const Oid *by_address, const IdemAddress *address)
{
	Rows		rows;
	HeapTuple	tuple;

	rows_open(&rows, table, by_address, address);
	while (HeapTupleIsValid(tuple = systable_getnext(rows.scan)))
		writer_delete(rows.rel, tuple->t_self, rows.snapshot);
	rows_close(&rows);
}

/*
 * Deletes all but the record.
 */
void
purge_rows(const IdemAddress *address)
{
	const IdemCatalog *catalog = catalog_get();

	delete_rows(&catalog->step, NULL, address);
	delete_rows(&catalog->intent, &catalog->intent_address, address);
	delete_rows(&catalog->event, &catalog->event_address, address);
}
