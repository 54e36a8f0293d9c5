/*-------------------------------------------------------------------------
 *
 * referred.c
 *		Does a foreign key of the application refer to a row?
 *
 * A purge asks before it deletes, and keeps what is referred to.  Only keys
 * that would refuse the deletion count; those with ON DELETE CASCADE, SET NULL
 * or SET DEFAULT say themselves what becomes of their rows.
 *
 * The referring table is read as the server's own checks read it: with the
 * rights of its owner, and whatever its row security says.
 *
 * Locking: what nobody refers to is locked and looked at again, since nobody
 * can refer to it from then on.  Whoever is about to has a lock on it, too:
 * that counts, and is not waited for; so does a lock on the referring table.
 * What is kept is not locked.
 *
 * Memory: none is left in the caller's context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/reltrigger.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* A foreign key to one of the extension's tables. */
typedef struct ForeignKey
{
	int			ncolumns;
	AttrNumber	from[INDEX_MAX_KEYS];
	AttrNumber	to[INDEX_MAX_KEYS];
	Oid			equal[INDEX_MAX_KEYS];	/* to = from */
} ForeignKey;

/*
 * Is the trigger the one with which a foreign key refuses deletions?  Those
 * among the extension's own tables are left: all their rows go together.
 */
static bool
refuses_deletion(const Trigger *trigger)
{
	const IdemCatalog *catalog = catalog_get();
	Oid			from = trigger->tgconstrrelid;

	return (trigger->tgfoid == F_RI_FKEY_NOACTION_DEL ||
			trigger->tgfoid == F_RI_FKEY_RESTRICT_DEL) &&
		trigger->tgenabled != TRIGGER_DISABLED &&
		from != catalog->record && from != catalog->step &&
		from != catalog->intent && from != catalog->event;
}

static void
read_foreign_key(Oid constraint, ForeignKey *key)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for constraint %u", constraint);
	DeconstructFkConstraintRow(tuple, &key->ncolumns, key->from, key->to,
							   key->equal, NULL, NULL, NULL, NULL);
	ReleaseSysCache(tuple);
}

/*
 * Runs a query whose arguments are columns of a row; did it find anything?
 * It sees what is committed now, in every isolation level.
 */
static bool
finds_any(const char *query, const ForeignKey *key, TupleTableSlot *row)
{
	Datum		values[INDEX_MAX_KEYS];
	Oid			types[INDEX_MAX_KEYS];
	bool		found;

	for (int i = 0; i < key->ncolumns; i++)
	{
		bool		isnull;

		values[i] = slot_getattr(row, key->to[i], &isnull);
		if (isnull)
			return false;
		types[i] = TupleDescAttr(row->tts_tupleDescriptor,
								 key->to[i] - 1)->atttypid;
	}
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(query, key->ncolumns, types, values, NULL,
							  true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for what refers to a row");
	found = SPI_processed > 0;
	SPI_finish();
	PopActiveSnapshot();
	return found;
}

/*
 * Finds rows of the table that refer to one whose columns are $1, $2 and so on.
 */
static char *
query_of(Relation from, const ForeignKey *key, TupleDesc to)
{
	bool		parted = from->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	char	   *schema = get_namespace_name(RelationGetNamespace(from));
	char	   *name = RelationGetRelationName(from);
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT FROM %s%s AS r WHERE ",
					 parted ? "" : "ONLY ",
					 quote_qualified_identifier(schema, name));
	for (int i = 0; i < key->ncolumns; i++)
	{
		Form_pg_attribute left = TupleDescAttr(to, key->to[i] - 1);
		Form_pg_attribute right = TupleDescAttr(RelationGetDescr(from),
												key->from[i] - 1);
		const char *column = quote_identifier(NameStr(right->attname));

		if (i > 0)
			appendStringInfoString(&query, " AND ");
		generate_operator_clause(&query, psprintf("$%d", i + 1),
								 left->atttypid, key->equal[i],
								 psprintf("r.%s", column), right->atttypid);
	}
	return query.data;
}

static bool
refers_to(Oid constraint, Oid table, TupleTableSlot *row)
{
	Relation	from;
	ForeignKey	key;
	char	   *query;
	Oid			caller;
	int			context;
	bool		found;

	/* as the server's check locks it */
	if (!ConditionalLockRelationOid(table, RowShareLock))
		return true;
	from = table_open(table, NoLock);
	read_foreign_key(constraint, &key);
	query = query_of(from, &key, row->tts_tupleDescriptor);
	GetUserIdAndSecContext(&caller, &context);
	SetUserIdAndSecContext(from->rd_rel->relowner,
						   context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	found = finds_any(query, &key, row);
	SetUserIdAndSecContext(caller, context);
	table_close(from, NoLock);
	return found;
}

/*
 * Could the row be locked at once?
 */
static bool
lock_row(Relation rel, TupleTableSlot *row)
{
	TupleTableSlot *locked = table_slot_create(rel, NULL);
	TM_FailureData failure;
	TM_Result	result;

	result = table_tuple_lock(rel, &row->tts_tid, SnapshotSelf, locked,
							  GetCurrentCommandId(true), LockTupleExclusive,
							  LockWaitSkip, 0, &failure);
	ExecDropSingleTupleTableSlot(locked);
	return result == TM_Ok;
}

bool
may_be_referred_to(Relation rel)
{
	return rel->trigdesc != NULL && rel->trigdesc->trig_delete_after_row;
}

static bool
any_refers_to(const TriggerDesc *triggers, TupleTableSlot *row)
{
	for (int i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (refuses_deletion(trigger) &&
			refers_to(trigger->tgconstraint, trigger->tgconstrrelid, row))
			return true;
	}
	return false;
}

bool
is_referred_to(Relation rel, TupleTableSlot *row)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext own;
	TriggerDesc *triggers;
	bool		result;

	if (!may_be_referred_to(rel))
		return false;
	own = AllocSetContextCreate(caller, "idempotency foreign keys",
								ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(own);
	/* a query may bring news of the table, and with them others */
	triggers = CopyTriggerDesc(rel->trigdesc);
	result = any_refers_to(triggers, row) || !lock_row(rel, row) ||
		any_refers_to(triggers, row);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(own);
	return result;
}
