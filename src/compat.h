/*-------------------------------------------------------------------------
 *
 * compat.h
 *		The differences between PostgreSQL 15 and 19; no other file asks for
 *		the server's version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_COMPAT_H
#define IDEM_COMPAT_H

#include "access/genam.h"
#include "access/sysattr.h"
#include "access/tableam.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "parser/parse_relation.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/guc_tables.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#if PG_VERSION_NUM < 150000
#error "idempotency needs PostgreSQL 15 or newer"
#endif

/* 18 has the keyword instead of an attribute */
#if PG_VERSION_NUM < 180000
#define pg_noreturn _Noreturn
#endif

/* 16 tells which indexes an update has to touch */
#if PG_VERSION_NUM < 160000
typedef bool IdemUpdateIndexes;
#define IDEM_UPDATE_NONE false
#else
typedef TU_UpdateIndexes IdemUpdateIndexes;
#define IDEM_UPDATE_NONE TU_None
#endif

static inline List *
compat_insert_index_tuples(ResultRelInfo *rri, TupleTableSlot *slot,
						   EState *estate, bool is_update,
						   IdemUpdateIndexes which)
{
#if PG_VERSION_NUM < 160000
	return ExecInsertIndexTuples(rri, slot, estate, is_update, false, NULL,
								 NIL);
#elif PG_VERSION_NUM < 190000
	return ExecInsertIndexTuples(rri, slot, estate, is_update, false, NULL,
								 NIL, is_update && which == TU_Summarizing);
#else
	uint32		flags = 0;

	if (is_update)
		flags = EIIT_IS_UPDATE |
			(which == TU_Summarizing ? EIIT_ONLY_SUMMARIZING : 0);
	return ExecInsertIndexTuples(rri, estate, flags, slot, NIL, NULL);
#endif
}

/* 19 takes options */
static inline TM_Result
compat_tuple_update(Relation rel, ItemPointer tid, TupleTableSlot *slot,
					CommandId command, Snapshot snapshot,
					TM_FailureData *failure, LockTupleMode *mode,
					IdemUpdateIndexes *which)
{
#if PG_VERSION_NUM < 190000
	return table_tuple_update(rel, tid, slot, command, snapshot,
							  InvalidSnapshot, true, failure, mode, which);
#else
	return table_tuple_update(rel, tid, slot, command, 0, snapshot,
							  InvalidSnapshot, true, failure, mode, which);
#endif
}

/* 18 tells deferrable primary keys apart; ours is not deferrable */
static inline Oid
compat_primary_key(Relation rel)
{
#if PG_VERSION_NUM < 180000
	return RelationGetPrimaryKeyIndex(rel);
#else
	return RelationGetPrimaryKeyIndex(rel, false);
#endif
}

/* 18 counts index searches for EXPLAIN, 19 takes the scan's flags */
static inline IndexScanDesc
compat_index_beginscan(Relation rel, Relation index, Snapshot snapshot,
					   int nkeys)
{
#if PG_VERSION_NUM < 180000
	return index_beginscan(rel, index, snapshot, nkeys, 0);
#elif PG_VERSION_NUM < 190000
	return index_beginscan(rel, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(rel, index, snapshot, NULL, nkeys, 0, SO_NONE);
#endif
}

static inline TableScanDesc
compat_table_beginscan(Relation rel, Snapshot snapshot)
{
#if PG_VERSION_NUM < 190000
	return table_beginscan(rel, snapshot, 0, NULL);
#else
	return table_beginscan(rel, snapshot, 0, NULL, SO_NONE);
#endif
}

/*
 * One entry, whose columns all count as updated.  16 keeps them elsewhere, 18
 * asks which partitions were pruned.
 */
static inline void
compat_init_range_table(EState *estate, Relation rel)
{
	RangeTblEntry *entry = makeNode(RangeTblEntry);
	Bitmapset  *columns = NULL;
	int			natts = RelationGetNumberOfAttributes(rel);
	List	   *entries = list_make1(entry);
#if PG_VERSION_NUM >= 160000
	List	   *rights = NIL;
#endif

	columns = bms_add_range(columns, 1 - FirstLowInvalidHeapAttributeNumber,
							natts - FirstLowInvalidHeapAttributeNumber);
	entry->rtekind = RTE_RELATION;
	entry->relid = RelationGetRelid(rel);
	entry->relkind = rel->rd_rel->relkind;
	entry->rellockmode = RowExclusiveLock;
#if PG_VERSION_NUM < 160000
	entry->updatedCols = columns;
	ExecInitRangeTable(estate, entries);
#else
	addRTEPermissionInfo(&rights, entry)->updatedCols = columns;
#if PG_VERSION_NUM < 180000
	ExecInitRangeTable(estate, entries, rights);
#else
	ExecInitRangeTable(estate, entries, rights, bms_make_singleton(1));
#endif
#endif
}

/* 17 takes the relation */
static inline Oid
compat_identity_sequence(Relation rel, AttrNumber attribute)
{
#if PG_VERSION_NUM < 170000
	return getIdentitySequence(RelationGetRelid(rel), attribute, false);
#else
	return getIdentitySequence(rel, attribute, false);
#endif
}

/* 16 has one function for all classes of objects */
static inline AclResult
compat_proc_aclcheck(Oid proc, Oid role)
{
#if PG_VERSION_NUM < 160000
	return pg_proc_aclcheck(proc, role, ACL_EXECUTE);
#else
	return object_aclcheck(ProcedureRelationId, proc, role, ACL_EXECUTE);
#endif
}

/* 19 has all its space from the start */
static inline HTAB *
compat_shmem_hash(const char *name, int nelems, HASHCTL *ctl, int flags)
{
#if PG_VERSION_NUM < 190000
	return ShmemInitHash(name, nelems, nelems, ctl, flags);
#else
	return ShmemInitHash(name, nelems, ctl, flags);
#endif
}

/* 19 keeps the result with the stack */
#if PG_VERSION_NUM < 190000
typedef struct IdemJsonbState
{
	JsonbParseState *stack;
	JsonbValue *result;
} IdemJsonbState;
#else
typedef JsonbInState IdemJsonbState;
#endif

static inline void
compat_push_jsonb(IdemJsonbState *state, JsonbIteratorToken what,
				  JsonbValue *value)
{
#if PG_VERSION_NUM < 190000
	state->result = pushJsonbValue(&state->stack, what, value);
#else
	pushJsonbValue(state, what, value);
#endif
}

/*
 * Has a setting, maybe still a placeholder, got a value?  19 reads one that
 * has none as empty; 15 does not tell where a value comes from.
 */
static inline bool
compat_setting_has_value(const char *name)
{
#if PG_VERSION_NUM < 160000
	return GetConfigOption(name, true, false) != NULL;
#else
	struct config_generic *setting = find_option(name, false, true, 0);

	return setting != NULL && setting->source != PGC_S_DEFAULT;
#endif
}

#endif							/* IDEM_COMPAT_H */
