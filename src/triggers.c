/*-------------------------------------------------------------------------
 *
 * triggers.c
 *		Fires the AFTER ROW triggers that somebody has added to one of the
 *		extension's tables: a writer goes past the executor, which would.
 *
 * They fire before the call returns, with the rights in force, as those of any
 * other statement; deferred ones at COMMIT.  An UPDATE writes every column, so
 * UPDATE OF a column fires at each.  A deletion asks constraints at once, also
 * deferred ones: maintenance must not fail at its COMMIT.
 *
 * Each row is a statement of its own to them: a transition table has one row.
 *
 * Triggers of other kinds do not fire: BEFORE triggers would have a say in
 * what is written, and there are no statements.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "compat.h"
#include "idempotency.h"
#include "utils/rel.h"

/* What the server's trigger manager wants to know. */
typedef struct Firing
{
	EState	   *estate;
	ResultRelInfo *rri;
	TransitionCaptureState *capture;	/* NULL: no transition tables */
	MemoryContext caller;
} Firing;

static void
firing_begin(Firing *firing, Relation rel, CmdType command)
{
	firing->estate = CreateExecutorState();
	firing->caller = MemoryContextSwitchTo(firing->estate->es_query_cxt);
	compat_init_range_table(firing->estate, rel);
	firing->rri = makeNode(ResultRelInfo);
	InitResultRelInfo(firing->rri, rel, 1, NULL, 0);
	firing->estate->es_opened_result_relations = list_make1(firing->rri);
	AfterTriggerBeginQuery();
	firing->capture = MakeTransitionCaptureState(firing->rri->ri_TrigDesc,
												 RelationGetRelid(rel),
												 command);
}

static void
firing_end(Firing *firing)
{
	AfterTriggerEndQuery(firing->estate);
	ExecCloseResultRelations(firing->estate);
	ExecResetTupleTable(firing->estate->es_tupleTable, false);
	MemoryContextSwitchTo(firing->caller);
	FreeExecutorState(firing->estate);
}

/*
 * After the row in "slot" was inserted.  "recheck" has the deferrable indexes
 * in which it met another row: the server's own triggers ask again.
 */
void
triggers_after_insert(Relation rel, TupleTableSlot *slot, List *recheck)
{
	Firing		firing;

	if (rel->trigdesc == NULL || !rel->trigdesc->trig_insert_after_row)
		return;
	firing_begin(&firing, rel, CMD_INSERT);
	ExecARInsertTriggers(firing.estate, firing.rri, slot, recheck,
						 firing.capture);
	firing_end(&firing);
}

/*
 * After the row at "old" was replaced by that in "slot".
 */
void
triggers_after_update(Relation rel, ItemPointer old, TupleTableSlot *slot,
					  List *recheck)
{
	Firing		firing;

	if (rel->trigdesc == NULL || !rel->trigdesc->trig_update_after_row)
		return;
	firing_begin(&firing, rel, CMD_UPDATE);
	ExecARUpdateTriggers(firing.estate, firing.rri, NULL, NULL, old, NULL,
						 slot, recheck, firing.capture, false);
	firing_end(&firing);
}

/*
 * After the row at "old" was deleted.
 */
void
triggers_after_delete(Relation rel, ItemPointer old)
{
	Firing		firing;
	TriggerDesc *own_copy;

	if (rel->trigdesc == NULL || !rel->trigdesc->trig_delete_after_row)
		return;
	firing_begin(&firing, rel, CMD_DELETE);
	own_copy = firing.rri->ri_TrigDesc;
	for (int i = 0; i < own_copy->numtriggers; i++)
		own_copy->triggers[i].tgdeferrable = false;
	ExecARDeleteTriggers(firing.estate, firing.rri, old, NULL,
						 firing.capture, false);
	firing_end(&firing);
}
