/*-------------------------------------------------------------------------
 *
 * writer.c
 *		Direct writes to the extension's own tables, with the extension's
 *		right: callers have none on them.
 *
 * Entries go straight into the indexes, as the server's own toaster has it:
 * setting the executor up costs more than the rest of the write.  It is left
 * to the executor only where somebody has added an index of another kind, or a
 * constraint that may be deferred.
 * Which indexes there are is asked at each call, so that CREATE INDEX and
 * REINDEX CONCURRENTLY are safe.  AFTER ROW triggers fire.  A change that a
 * publication could not tell its subscribers is refused, as by the executor.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "compat.h"
#include "idempotency.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* An index of the table. */
typedef struct IdemIndex
{
	Oid			oid;
	Relation	rel;			/* NULL: not needed so far */
	bool		direct;			/* can an entry be made of the row's values? */
	bool		partial;
	bool		told;			/* has the caller worked the predicate out? */
	bool		skip;			/* and it is false */
} IdemIndex;

void
writer_open(IdemWriter *writer, Relation rel)
{
	List	   *oids;

	if (writer->rel != NULL)
		return;
	writer->rel = rel;
	writer->context = CurrentMemoryContext;
	writer->slot = MakeSingleTupleTableSlot(RelationGetDescr(rel),
											&TTSOpsVirtual);
	oids = RelationGetIndexList(rel);
	writer->nindexes = list_length(oids);
	writer->indexes = palloc0(writer->nindexes * sizeof(IdemIndex));
	for (int i = 0; i < writer->nindexes; i++)
		writer->indexes[i].oid = list_nth_oid(oids, i);
	list_free(oids);
}

/*
 * Whether a partial index has no entry for the next row.  The caller knows:
 * to work the predicate out takes the executor.  Not where the predicate is
 * another than the caller's.
 */
void
writer_skip(IdemWriter *writer, Oid index, bool skip)
{
	for (int i = 0; i < writer->nindexes; i++)
	{
		if (writer->indexes[i].oid != index || !index_fits(index))
			continue;
		writer->indexes[i].told = true;
		writer->indexes[i].skip = skip;
	}
}

static void
open_index(IdemIndex *index)
{
	Form_pg_index form;

	if (index->rel != NULL)
		return;
	index->rel = index_open(index->oid, RowExclusiveLock);
	form = index->rel->rd_index;
	index->partial = !heap_attisnull(index->rel->rd_indextuple,
									 Anum_pg_index_indpred, NULL);
	index->direct = index->rel->rd_rel->relam == BTREE_AM_OID &&
		!form->indisexclusion && form->indimmediate;
	for (int i = 0; i < form->indnatts; i++)
	{
		/* zero stands for an expression */
		if (form->indkey.values[i] <= 0)
			index->direct = false;
	}
}

/*
 * Opens the indexes that the row goes into.  Can all entries be made here?
 */
static bool
open_indexes(IdemWriter *writer)
{
	for (int i = 0; i < writer->nindexes; i++)
	{
		IdemIndex  *index = &writer->indexes[i];

		if (index->skip)
			continue;
		open_index(index);
		if (!index->direct || (index->partial && !index->told))
			return false;
	}
	return true;
}

static void
insert_entry(IdemWriter *writer, Relation index, bool is_update)
{
	Form_pg_index form = index->rd_index;
	TupleTableSlot *slot = writer->slot;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	/* it may be under construction */
	if (!form->indisready)
		return;
	for (int i = 0; i < form->indnatts; i++)
	{
		int			column = form->indkey.values[i] - 1;

		values[i] = slot->tts_values[column];
		isnull[i] = slot->tts_isnull[column];
	}
	(void) index_insert(index, values, isnull, &slot->tts_tid, writer->rel,
						form->indisunique ? UNIQUE_CHECK_YES :
						UNIQUE_CHECK_NO, is_update, NULL);
}

static List *
insert_by_executor(IdemWriter *writer, bool is_update,
				   IdemUpdateIndexes which)
{
	List	   *recheck;

	if (writer->rri == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(writer->context);

		writer->rri = makeNode(ResultRelInfo);
		InitResultRelInfo(writer->rri, writer->rel, 0, NULL, 0);
		ExecOpenIndices(writer->rri, false);
		writer->estate = CreateExecutorState();
		MemoryContextSwitchTo(caller);
	}
	recheck = compat_insert_index_tuples(writer->rri, writer->slot,
										 writer->estate, is_update, which);
	ResetPerTupleExprContext(writer->estate);
	return recheck;
}

/*
 * Returns the deferrable indexes whose constraint has to be asked again.
 */
static List *
insert_entries(IdemWriter *writer, bool is_update, IdemUpdateIndexes which)
{
	if (!open_indexes(writer))
		return insert_by_executor(writer, is_update, which);
	for (int i = 0; i < writer->nindexes; i++)
	{
		if (!writer->indexes[i].skip)
			insert_entry(writer, writer->indexes[i].rel, is_update);
	}
	return NIL;
}

/*
 * Inserts the row in writer->slot.
 */
void
writer_insert(IdemWriter *writer)
{
	List	   *recheck;

	writer->written = false;
	ExecStoreVirtualTuple(writer->slot);
	simple_table_tuple_insert(writer->rel, writer->slot);
	recheck = insert_entries(writer, false, IDEM_UPDATE_NONE);
	writer->written = true;
	triggers_after_insert(writer->rel, writer->slot, recheck);
}

static void
finish_update(IdemWriter *writer, ItemPointer old, IdemUpdateIndexes which)
{
	List	   *recheck = NIL;

	if (which != IDEM_UPDATE_NONE)
		recheck = insert_entries(writer, true, which);
	writer->written = true;
	triggers_after_update(writer->rel, old, writer->slot, recheck);
}

/*
 * Replaces the row at "tid" by that in writer->slot.
 */
void
writer_update(IdemWriter *writer, ItemPointerData tid)
{
	IdemUpdateIndexes which = IDEM_UPDATE_NONE;

	CheckCmdReplicaIdentity(writer->rel, CMD_UPDATE);
	writer->written = false;
	ExecStoreVirtualTuple(writer->slot);
	/* the row may come from an earlier call within the same command */
	CommandCounterIncrement();
	simple_table_tuple_update(writer->rel, &tid, writer->slot, SnapshotSelf,
							  &which);
	finish_update(writer, &tid, which);
}

/*
 * Replaces the row at "tid", unless it is not the last version any more:
 * then nothing is written, and the answer is false.  Waits for whoever is
 * changing it.
 */
bool
writer_try_update(IdemWriter *writer, ItemPointerData tid)
{
	IdemUpdateIndexes which = IDEM_UPDATE_NONE;
	TM_FailureData failure;
	LockTupleMode mode;
	TM_Result	result;

	CheckCmdReplicaIdentity(writer->rel, CMD_UPDATE);
	writer->written = false;
	ExecStoreVirtualTuple(writer->slot);
	result = compat_tuple_update(writer->rel, &tid, writer->slot,
								 GetCurrentCommandId(true), SnapshotSelf,
								 &failure, &mode, &which);
	if (result == TM_Updated || result == TM_Deleted)
		return false;
	if (result != TM_Ok)
		elog(ERROR, "unexpected result %d of an update", result);
	finish_update(writer, &tid, which);
	return true;
}

/*
 * Deletes the row at "tid"; this takes no writer to be open.
 */
void
writer_delete(Relation rel, ItemPointerData tid, Snapshot snapshot)
{
	CheckCmdReplicaIdentity(rel, CMD_DELETE);
	simple_table_tuple_delete(rel, &tid, snapshot);
	triggers_after_delete(rel, &tid);
}

void
writer_close(IdemWriter *writer)
{
	if (writer->rel == NULL)
		return;
	ExecDropSingleTupleTableSlot(writer->slot);
	for (int i = 0; i < writer->nindexes; i++)
	{
		if (writer->indexes[i].rel != NULL)
			index_close(writer->indexes[i].rel, NoLock);
	}
	pfree(writer->indexes);
	if (writer->rri != NULL)
	{
		ExecCloseIndices(writer->rri);
		FreeExecutorState(writer->estate);
	}
	memset(writer, 0, sizeof(*writer));
}
