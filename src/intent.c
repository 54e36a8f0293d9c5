/*-------------------------------------------------------------------------
 *
 * intent.c
 *		Intents, as far as a command's state depends on them.  Everything
 *		else about them is in intent.sql.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "idempotency.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* columns of idem_intent, from one */
#define ATTR_FIRST_SENT_AT	5
#define ATTR_TENANT		11
#define ATTR_OPERATION	12
#define ATTR_KEY		13
#define ATTR_STATE		16

static bool
counts(HeapTuple tuple, TupleDesc desc, IdemIntents which,
	   TimestampTz sent_until)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, ATTR_STATE, desc, &isnull);
	char	   *state = TextDatumGetCString(value);

	value = heap_getattr(tuple, ATTR_FIRST_SENT_AT, desc, &isnull);
	if (which == INTENTS_NOT_REJECTED)
		return strcmp(state, "rejected") != 0;
	if (strcmp(state, "pending") == 0)
		return which == INTENTS_UNSETTLED;
	if (strcmp(state, "in_flight") != 0 && strcmp(state, "unknown") != 0)
		return false;
	return isnull || DatumGetTimestampTz(value) <= sent_until;
}

/*
 * Has the command such an intent, first sent by "sent_until" if it is in
 * flight or unknown?
 *
 * Read with a snapshot of now: relays change intents without the key lock,
 * and a scan without snapshot could miss a row that is being moved.
 */
bool
intent_exists(const IdemAddress *address, IdemIntents which,
			  TimestampTz sent_until)
{
	Relation	rel = table_open(catalog_get()->intent, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	bool		found = false;
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], ATTR_TENANT, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->tenant));
	ScanKeyInit(&keys[1], ATTR_OPERATION, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[2], ATTR_KEY, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->key));
	scan = systable_beginscan(rel, catalog_get()->intent_address, true,
							  snapshot, 3, keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
		found = counts(tuple, RelationGetDescr(rel), which, sent_until);
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return found;
}
