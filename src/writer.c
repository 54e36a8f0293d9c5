/*-------------------------------------------------------------------------
 *
 * writer.c
 *		Direct writes to the extension's own tables, with the extension's
 *		right: callers have none on them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "idempotency.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

void
writer_open(IdemWriter *writer, Relation rel)
{
	if (writer->rri != NULL)
		return;
	writer->rri = makeNode(ResultRelInfo);
	InitResultRelInfo(writer->rri, rel, 0, NULL, 0);
	ExecOpenIndices(writer->rri, false);
	writer->estate = CreateExecutorState();
	writer->slot = MakeSingleTupleTableSlot(RelationGetDescr(rel),
											&TTSOpsVirtual);
}

/*
 * Leaves an index out of the next write, or takes it back in: for a partial
 * index whose predicate the caller knows to be false, since working that out
 * in general costs more than the rest of the insertion.
 */
void
writer_skip(IdemWriter *writer, Oid index, bool skip)
{
	ResultRelInfo *rri = writer->rri;

	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		Relation	rel = rri->ri_IndexRelationDescs[i];

		if (RelationGetRelid(rel) == index)
			rri->ri_IndexRelationInfo[i]->ii_ReadyForInserts =
				!skip && rel->rd_index->indisready;
	}
}

/*
 * Inserts the row in writer->slot.
 */
void
writer_insert(IdemWriter *writer)
{
	ExecStoreVirtualTuple(writer->slot);
	simple_table_tuple_insert(writer->rri->ri_RelationDesc, writer->slot);
	compat_insert_index_tuples(writer->rri, writer->slot, writer->estate,
							   false, IDEM_UPDATE_NONE);
	ResetPerTupleExprContext(writer->estate);
}

/*
 * Replaces the row at "tid" by that in writer->slot.
 */
void
writer_update(IdemWriter *writer, ItemPointerData tid)
{
	IdemUpdateIndexes which = IDEM_UPDATE_NONE;

	ExecStoreVirtualTuple(writer->slot);
	/* the row may come from an earlier call within the same command */
	CommandCounterIncrement();
	simple_table_tuple_update(writer->rri->ri_RelationDesc, &tid,
							  writer->slot, SnapshotSelf, &which);
	if (which != IDEM_UPDATE_NONE)
		compat_insert_index_tuples(writer->rri, writer->slot, writer->estate,
								   true, which);
	ResetPerTupleExprContext(writer->estate);
}

void
writer_close(IdemWriter *writer)
{
	if (writer->rri == NULL)
		return;
	ExecDropSingleTupleTableSlot(writer->slot);
	ExecCloseIndices(writer->rri);
	FreeExecutorState(writer->estate);
	writer->rri = NULL;
}
