/*-------------------------------------------------------------------------
 *
 * catalog.c
 *		Oids of the extension's own tables and types.
 *
 * Found by name in the extension's schema, so that no search_path matters,
 * and remembered until the relation cache says that one of them changed:
 * DROP EXTENSION and CREATE EXTENSION in a living session make new ones.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "idempotency.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static IdemCatalog catalog;
static bool catalog_valid = false;

/*
 * A composite type has no relation among ours, but it is dropped only with
 * the tables.
 */
static void
forget_catalog(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == catalog.record ||
		relid == catalog.policy || relid == catalog.event ||
		relid == catalog.intent || relid == catalog.origin)
		catalog_valid = false;
}

void
catalog_init(void)
{
	CacheRegisterRelcacheCallback(forget_catalog, (Datum) 0);
}

static Oid
extension_schema(void)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	Oid			schema = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber,
				F_NAMEEQ, CStringGetDatum("idempotency"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return schema;
}

static Oid
own_type(const char *name, Oid schema)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						   CStringGetDatum(name), ObjectIdGetDatum(schema));
}

const IdemCatalog *
catalog_get(void)
{
	IdemCatalog found;
	Oid			schema;

	if (catalog_valid)
		return &catalog;

	schema = extension_schema();
	found.record = get_relname_relid("idem_record", schema);
	found.record_open = get_relname_relid("idem_record_open", schema);
	found.policy = get_relname_relid("idem_policy", schema);
	found.event = get_relname_relid("idem_event", schema);
	found.intent = get_relname_relid("idem_intent", schema);
	found.intent_address = get_relname_relid("idem_intent_address", schema);
	found.origin = get_relname_relid("idem_origin", schema);
	found.ticket = own_type("idem_ticket", schema);
	found.response = own_type("idem_response", schema);
	if (!OidIsValid(found.record) || !OidIsValid(found.policy) ||
		!OidIsValid(found.ticket) || !OidIsValid(found.response))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"idempotency\" is not installed in this database"),
				 errhint("Run CREATE EXTENSION idempotency.")));
	catalog = found;
	catalog_valid = true;
	return &catalog;
}
