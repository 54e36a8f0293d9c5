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
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "intent.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

static IdemCatalog catalog;
static Oid	ticket_relation;	/* the relations of the composite types */
static Oid	response_relation;
static bool catalog_valid = false;
static bool news = false;		/* of any relation, since it was set to false */

#define MAX_READS	10

static void
forget_catalog(Datum arg, Oid relid)
{
	news = true;
	if (relid == InvalidOid || relid == catalog.record ||
		relid == catalog.policy || relid == catalog.event ||
		relid == catalog.intent || relid == catalog.step ||
		relid == catalog.origin || relid == catalog.policy_steps ||
		relid == ticket_relation || relid == response_relation)
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

static void
refuse(const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("extension \"idempotency\" does not match its library"),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

/*
 * The library and the script that made the objects come from the same package
 * but are changed at different moments: by the package manager, by ALTER
 * EXTENSION UPDATE, and by a reconnect where a session has loaded an older
 * library.  Rows are read and written by column number, so a table with other
 * columns than expected must not be touched; nor one of whose columns somebody
 * has changed the type.  A table that a crash empties forgets what has run; one
 * that hides rows from its owner hides them from the functions in SQL.
 */
static void
require_columns(const char *name, Oid relid, int expected, const Oid *types)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	int			columns = 0;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		columns = class->relnatts;
		if (class->relpersistence != RELPERSISTENCE_PERMANENT)
			refuse(psprintf("%s is unlogged: a crash empties it.", name),
				   psprintf("Run ALTER TABLE %s SET LOGGED.", name));
		if (class->relforcerowsecurity &&
			check_enable_rls(relid, class->relowner, true) == RLS_ENABLED)
			refuse(psprintf("%s hides rows from its owner.", name),
				   psprintf("Run ALTER TABLE %s NO FORCE ROW LEVEL SECURITY.",
							name));
		ReleaseSysCache(tuple);
	}
	if (columns != expected)
		refuse(psprintf("%s has %d columns, the library knows %d.", name,
						columns, expected),
			   columns < expected ?
			   "Run ALTER EXTENSION idempotency UPDATE." :
			   "Install the library of that version, and reconnect.");
	for (int i = 0; i < expected; i++)
	{
		if (get_atttype(relid, i + 1) != types[i])
			refuse(psprintf("Column %d of %s is not of type %s.", i + 1, name,
							format_type_be(types[i])),
				   "Undo what was done to the column.");
	}
}

static void
require_all_columns(const IdemCatalog *found)
{
	require_columns("idem_record", found->record, record_columns,
					record_types);
	require_columns("idem_policy", found->policy, policy_columns,
					policy_types);
	require_columns("idem_event", found->event, event_columns, event_types);
	require_columns("idem_step", found->step, step_columns, step_types);
	require_columns("idem_intent", found->intent, INTENT_COLUMNS,
					intent_types);
	require_columns("idem_origin", found->origin, origin_columns,
					origin_types);
	require_columns("idem_policy_steps", found->policy_steps,
					policy_steps_columns, policy_steps_types);
	require_columns("idem_ticket", ticket_relation, ticket_columns,
					ticket_types);
	require_columns("idem_response", response_relation, response_columns,
					response_types);
}

static void
read_catalog(IdemCatalog *found)
{
	Oid			schema = extension_schema();

	found->record = get_relname_relid("idem_record", schema);
	found->record_open = get_relname_relid("idem_record_open", schema);
	found->record_guard = get_relname_relid("idem_record_guard", schema);
	found->record_expiring = get_relname_relid("idem_record_expiring", schema);
	found->record_tombstone = get_relname_relid("idem_record_tombstone",
												schema);
	found->policy = get_relname_relid("idem_policy", schema);
	found->event = get_relname_relid("idem_event", schema);
	found->event_address = get_relname_relid("idem_event_address", schema);
	found->step = get_relname_relid("idem_step", schema);
	found->intent = get_relname_relid("idem_intent", schema);
	found->intent_address = get_relname_relid("idem_intent_address", schema);
	found->intent_due = get_relname_relid("idem_intent_due", schema);
	found->intent_open = get_relname_relid("idem_intent_open", schema);
	found->intent_resend = get_relname_relid("idem_intent_resend", schema);
	found->origin = get_relname_relid("idem_origin", schema);
	found->policy_steps = get_relname_relid("idem_policy_steps", schema);
	found->ticket = own_type("idem_ticket", schema);
	found->response = own_type("idem_response", schema);
}

/*
 * News that comes while the catalogue is read would be lost: what was read
 * before may be old already.  Then it is read again, but not for ever, since
 * with debug_discard_caches there is always news; nor is it remembered.  Who
 * holds the lock of a table may rely on what is read of its indexes all the
 * same: none goes before he lets go of the lock.
 */
const IdemCatalog *
catalog_get(void)
{
	IdemCatalog found;
	int			reads = 0;

	if (catalog_valid)
		return &catalog;

	do
	{
		news = false;
		read_catalog(&found);
	} while (news && ++reads < MAX_READS);
	if (!OidIsValid(found.record) || !OidIsValid(found.policy) ||
		!OidIsValid(found.ticket) || !OidIsValid(found.response))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"idempotency\" is not installed in this database"),
				 errhint("Run CREATE EXTENSION idempotency.")));
	ticket_relation = get_typ_typrelid(found.ticket);
	response_relation = get_typ_typrelid(found.response);
	require_all_columns(&found);
	catalog = found;
	catalog_valid = !news;
	return &catalog;
}

/*
 * Opens a table of the catalogue.  What is remembered may be from before a
 * DROP EXTENSION, or another column, that is committed while the lock is waited
 * for; with the lock comes the news.  Only then the oids of the table's indexes
 * are what there is, too.
 */
Relation
catalog_open(const Oid *table, LOCKMODE mode)
{
	Relation	rel;

	while ((rel = try_table_open(*table, mode)) == NULL)
	{
		CHECK_FOR_INTERRUPTS();
		catalog_valid = false;
		catalog_get();
	}
	catalog_get();
	return rel;
}

static void
refuse_index(const char *what)
{
	refuse(psprintf("%s is missing, not valid, or not what it was.", what),
		   "Make it as the extension's script does, or REINDEX it.");
}

/*
 * Opens an index of an open table, to look for rows.  One that somebody is
 * making anew does not have all of them yet, and what it does not have would be
 * taken for new.  That which REINDEX CONCURRENTLY has put another in the place
 * of is not valid any more either: then the catalogue knows the other.  Of one
 * that gets its name by ALTER INDEX there is no news.
 */
Relation
catalog_open_named(const Oid *index, const char *name, LOCKMODE mode)
{
	for (int reads = 0; reads < MAX_READS; reads++)
	{
		if (OidIsValid(*index))
		{
			Relation	rel = index_open(*index, mode);

			if (rel->rd_index->indisvalid && index_fits(*index))
				return rel;
			index_close(rel, mode);
		}
		catalog_valid = false;
		catalog_get();
	}
	refuse_index(psprintf("Index %s", name));
	return NULL;				/* keep compilers quiet */
}

/*
 * The same for the primary key; the server calls none so that is not valid.
 */
Relation
catalog_open_key(Relation table, LOCKMODE mode)
{
	Oid			key = compat_primary_key(table);

	if (!OidIsValid(key) || !index_fits(key))
		refuse_index(psprintf("The primary key of %s",
							  RelationGetRelationName(table)));
	return index_open(key, mode);
}
