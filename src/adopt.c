/*-------------------------------------------------------------------------
 *
 * adopt.c
 *		Copies of a database: what must not be done in one.
 *
 * A restored dump brings the row of idem_origin that says where it comes
 * from, a database made from a template keeps it.  Where the dump came from
 * this very database, CREATE EXTENSION has made a row as well, and the two
 * differ in nothing but their time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/tuptable.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* columns of idem_origin, from zero */
enum
{
	COL_SYSTEM_IDENTIFIER,
	COL_DATABASE,
	COL_ADOPTED_AT,
	ORIGIN_COLUMNS
};

const int	origin_columns = ORIGIN_COLUMNS;
const Oid	origin_types[ORIGIN_COLUMNS] = {
	INT8OID, OIDOID, TIMESTAMPTZOID
};

static bool
is_elsewhere(TupleTableSlot *slot)
{
	slot_getallattrs(slot);
	return DatumGetInt64(slot->tts_values[COL_SYSTEM_IDENTIFIER]) !=
		(int64) GetSystemIdentifier() ||
		DatumGetObjectId(slot->tts_values[COL_DATABASE]) != MyDatabaseId;
}

/*
 * Does anything here belong to another database, or to an earlier time of
 * this one?  The table has a row or two, and is read only where something is
 * taken over or handed out: a cache would save nothing.  It is read as it is
 * now, in every isolation level; without a snapshot, since one would take
 * predicate locks under SERIALIZABLE.
 */
bool
adopt_is_copy(void)
{
	Relation	rel = catalog_open(&catalog_get()->origin, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = compat_table_beginscan(rel, SnapshotSelf);
	bool		found = false;
	int			rows = 0;

	while (!found && table_scan_getnextslot(scan, ForwardScanDirection, slot))
		found = ++rows > 1 || is_elsewhere(slot);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, NoLock);
	return found;
}

/*
 * Refuses what would go on with somebody else's work; "address" is what was
 * asked for, or NULL.
 */
void
adopt_require(const IdemAddress *address)
{
	if (!adopt_is_copy())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_COPY),
			 errmsg("this database is a copy"),
			 address != NULL ? address_errdetail(address) :
			 errdetail("Its commands and intents belong to another database, which may still be at work on them."),
			 errhint("When the original is out of use, call idem_adopt().")));
}

PG_FUNCTION_INFO_V1(idem_is_copy);
Datum
idem_is_copy(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(adopt_is_copy());
}

PG_FUNCTION_INFO_V1(idem_require_adopted);
Datum
idem_require_adopted(PG_FUNCTION_ARGS)
{
	adopt_require(NULL);
	PG_RETURN_VOID();
}
