/*-------------------------------------------------------------------------
 *
 * compat.h
 *		The differences between PostgreSQL 15 and 18; no other file asks for
 *		the server's version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_COMPAT_H
#define IDEM_COMPAT_H

#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/dependency.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#if PG_VERSION_NUM < 150000
#error "idempotency needs PostgreSQL 15 or newer"
#endif

/* 16 tells which indexes an update has to touch */
#if PG_VERSION_NUM < 160000
typedef bool IdemUpdateIndexes;
#define IDEM_UPDATE_NONE false
#else
typedef TU_UpdateIndexes IdemUpdateIndexes;
#define IDEM_UPDATE_NONE TU_None
#endif

static inline void
compat_insert_index_tuples(ResultRelInfo *rri, TupleTableSlot *slot,
						   EState *estate, bool is_update,
						   IdemUpdateIndexes which)
{
#if PG_VERSION_NUM < 160000
	ExecInsertIndexTuples(rri, slot, estate, is_update, false, NULL, NIL);
#else
	ExecInsertIndexTuples(rri, slot, estate, is_update, false, NULL, NIL,
						  is_update && which == TU_Summarizing);
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

/* 18 counts index searches for EXPLAIN */
static inline IndexScanDesc
compat_index_beginscan(Relation rel, Relation index, Snapshot snapshot,
					   int nkeys)
{
#if PG_VERSION_NUM < 180000
	return index_beginscan(rel, index, snapshot, nkeys, 0);
#else
	return index_beginscan(rel, index, snapshot, NULL, nkeys, 0);
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

#endif							/* IDEM_COMPAT_H */
