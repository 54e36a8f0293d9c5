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

typedef enum Part
{
	STEPS,
	INTENTS,
	EVENTS
} Part;

/* The rows of a command in one of the tables. */
typedef struct Rows
{
	Relation	rel;
	Relation	index;
	Snapshot	snapshot;
	SysScanDesc scan;
} Rows;

static void
open_relations(Rows *rows, Part part)
{
	const IdemCatalog *catalog = catalog_get();

	switch (part)
	{
		case STEPS:
			rows->rel = catalog_open(&catalog->step, RowExclusiveLock);
			rows->index = catalog_open_key(rows->rel, AccessShareLock);
			break;
		case INTENTS:
			rows->rel = catalog_open(&catalog->intent, RowExclusiveLock);
			rows->index = catalog_open_index(intent_address, AccessShareLock);
			break;
		case EVENTS:
			rows->rel = catalog_open(&catalog->event, RowExclusiveLock);
			rows->index = catalog_open_index(event_address, AccessShareLock);
			break;
	}
}

/*
 * The tables name a command by columns called tenant, operation and key.
 */
static void
rows_open(Rows *rows, Part part, const IdemAddress *address)
{
	Oid			relid;
	ScanKeyData keys[3];

	open_relations(rows, part);
	relid = RelationGetRelid(rows->rel);
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
	rows->scan = systable_beginscan_ordered(rows->rel, rows->index,
											rows->snapshot, 3, keys);
}

static void
rows_close(Rows *rows)
{
	systable_endscan_ordered(rows->scan);
	UnregisterSnapshot(rows->snapshot);
	index_close(rows->index, NoLock);
	table_close(rows->rel, NoLock);
}

static HeapTuple
rows_next(Rows *rows)
{
	return systable_getnext_ordered(rows->scan, ForwardScanDirection);
}

/*
 * Does the application refer to one of them?
 */
static bool
rows_needed(Part part, const IdemAddress *address)
{
	bool		needed = false;
	Rows		rows;

	rows_open(&rows, part, address);
	if (may_be_referred_to(rows.rel))
	{
		while (!needed && rows_next(&rows) != NULL)
			needed = is_referred_to(rows.rel, rows.scan->slot);
	}
	rows_close(&rows);
	return needed;
}

/*
 * Does somebody need the command whose record is in "row"?
 */
bool
purge_must_wait(IdemTable *table, const IdemAddress *address,
				TupleTableSlot *row)
{
	return intent_exists(address, INTENTS_UNSETTLED, INTENT_EVER) ||
		is_referred_to(table->rel, row) || rows_needed(STEPS, address) ||
		rows_needed(INTENTS, address) || rows_needed(EVENTS, address);
}

static void
delete_rows(Part part, const IdemAddress *address)
{
	Rows		rows;
	HeapTuple	tuple;

	rows_open(&rows, part, address);
	while ((tuple = rows_next(&rows)) != NULL)
		writer_delete(rows.rel, tuple->t_self, rows.snapshot);
	rows_close(&rows);
}

/*
 * Deletes all but the record.
 */
void
purge_rows(const IdemAddress *address)
{
	delete_rows(STEPS, address);
	delete_rows(INTENTS, address);
	delete_rows(EVENTS, address);
}
