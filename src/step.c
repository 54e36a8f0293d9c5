/*-------------------------------------------------------------------------
 *
 * step.c
 *		Steps: named units of a leased command, each done at most once.
 *
 * A step is one row, inserted in the transaction of its own writes and never
 * changed.
 *
 * Locking: the ticket is proven first, with the key lock of the command, so
 * nobody else writes a step of it meanwhile, and a probe with SnapshotSelf
 * finds what there is (see record.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "funcapi.h"
#include "intent.h"
#include "pending.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* columns of idem_step, from zero */
enum
{
	COL_DONE_AT,
	COL_ATTEMPT,
	COL_TENANT,
	COL_OPERATION,
	COL_KEY,
	COL_STEP,
	COL_INPUT,
	COL_RESULT,
	STEP_COLUMNS
};

const int	step_columns = STEP_COLUMNS;
const Oid	step_types[STEP_COLUMNS] = {
	TIMESTAMPTZOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, BYTEAOID,
	JSONOID
};

/* columns of idem_policy_steps, from one */
enum
{
	ATTR_OPERATION = 1,
	ATTR_VERSION,
	ATTR_STEPS
};

const int	policy_steps_columns = ATTR_STEPS;
const Oid	policy_steps_types[ATTR_STEPS] = {TEXTOID, INT4OID, TEXTARRAYOID};

/* A step that was asked for. */
typedef struct Step
{
	IdemAddress address;
	int32		attempt;
	text	   *name;
	bytea	   *input;			/* digest; NULL: none */
} Step;

/* idem_step, and the row of a step in it. */
typedef struct StepTable
{
	Relation	rel;
	TupleTableSlot *found;
} StepTable;

static void
steps_open(StepTable *table, LOCKMODE mode)
{
	table->rel = catalog_open(&catalog_get()->step, mode);
	table->found = table_slot_create(table->rel, NULL);
}

static void
steps_close(StepTable *table)
{
	ExecDropSingleTupleTableSlot(table->found);
	table_close(table->rel, NoLock);
}

static bool
steps_find(StepTable *table, const IdemAddress *address, text *name)
{
	Relation	pkey = catalog_open_key(table->rel, AccessShareLock);
	IndexScanDesc scan = compat_index_beginscan(table->rel, pkey,
												SnapshotSelf, 4);
	text	   *parts[] = {address->tenant, address->operation, address->key,
	name};
	ScanKeyData keys[4];
	bool		found;

	for (int i = 0; i < 4; i++)
		ScanKeyInit(&keys[i], i + 1, BTEqualStrategyNumber, F_TEXTEQ,
					PointerGetDatum(parts[i]));
	index_rescan(scan, keys, 4, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, table->found);
	index_endscan(scan);
	index_close(pkey, NoLock);
	if (found)
		slot_getallattrs(table->found);
	return found;
}

/*
 * The legal steps of one version of a policy, or NULL where any is legal.
 */
static ArrayType *
legal_steps(const IdemAddress *address, int32 version)
{
	IdemPolicy	policy;
	Relation	rel;
	Snapshot	snapshot;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	ArrayType  *result = NULL;

	if (version == 0)
		return NULL;			/* begun without a policy */
	policy_get(address->operation, &policy);
	if (policy.version == version && !policy.has_steps)
		return NULL;
	rel = catalog_open(&catalog_get()->policy_steps, AccessShareLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyInit(&keys[0], ATTR_OPERATION, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(address->operation));
	ScanKeyInit(&keys[1], ATTR_VERSION, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(version));
	scan = systable_beginscan(rel, compat_primary_key(rel), true, snapshot,
							  2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		steps = heap_getattr(tuple, ATTR_STEPS,
										 RelationGetDescr(rel), &isnull);

		result = isnull ? NULL : DatumGetArrayTypePCopy(steps);
	}
	systable_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return result;
}

/*
 * A step is done when it was noted; an intent, when it is confirmed: what is
 * still to be sent, in question or rejected did not happen.
 */
static bool
is_done(StepTable *steps, IdemIntentTable *intents,
		const IdemAddress *address, text *name)
{
	IdemIntent	intent;

	return steps_find(steps, address, name) ||
		(intents_find(intents, intend_operation_id(address, name), &intent) &&
		 intent.state == INTENT_CONFIRMED);
}

static void
check_order(const IdemAddress *address, text *name, const Datum *names,
			int place)
{
	IdemIntentTable intents;
	StepTable	steps;

	steps_open(&steps, AccessShareLock);
	intents_open(&intents);
	for (int i = 0; i < place; i++)
	{
		if (!is_done(&steps, &intents, address, DatumGetTextPP(names[i])))
			ereport(ERROR,
					(errcode(ERRCODE_IDEM_DIVERGES),
					 errmsg("step \"%s\" comes before step \"%s\"",
							TextDatumGetCString(names[i]),
							text_to_cstring(name)),
					 address_errdetail(address),
					 errhint("Do the steps in the order of the policy; an intent is done once it is confirmed.")));
	}
	intents_close(&intents);
	steps_close(&steps);
}

static char *
list_names(const Datum *names, int n)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < n; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "",
						 TextDatumGetCString(names[i]));
	return list.data;
}

/*
 * Refuses a step or intent that the policy does not name, in the version that
 * the command began with; or not yet: all before it have to be done.  An
 * atomic claim is one step by itself, so its intents have no order.
 */
void
step_check_turn(const IdemAddress *address, int64 token,
				const IdemRecord *record, text *name)
{
	bool		leased = record->state != STATE_NONE;
	ArrayType  *legal;
	Datum	   *names;
	int			n;
	int			place = 0;

	address_check_text("name of a step or intent", name,
					   IDEM_INTENT_NAME_MAX,
					   "Name it after what it does, not after its position.");
	legal = legal_steps(address, leased ? record->policy_version :
						pending_find_token(address, token)->policy_version);
	if (legal == NULL)
		return;
	deconstruct_array(legal, TEXTOID, -1, false, TYPALIGN_INT, &names, NULL,
					  &n);
	while (place < n && !datum_image_eq(names[place], PointerGetDatum(name),
										false, -1))
		place++;
	if (place == n)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("operation \"%s\" has no step \"%s\"",
						text_to_cstring(address->operation),
						text_to_cstring(name)),
				 errdetail("Its steps are %s.", list_names(names, n)),
				 errhint("Add it with idem_define(); commands that began before keep their steps.")));
	if (leased)
		check_order(address, name, names, place);
}

/*
 * Proves the ticket, and that the step may be asked for now.
 */
static void
read_step(Step *step, FunctionCallInfo fcinfo, int input_arg)
{
	IdemChange	change = {.action = ACTION_HOLD};
	IdemRecord	record;
	IdemTable	table;
	int64		token;

	ticket_read(owner_ticket(fcinfo, 0), &step->address, &token);
	step->name = PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1);
	step->input = PG_ARGISNULL(input_arg) ? NULL :
		fingerprint_compute(PG_GETARG_JSONB_P(input_arg), NULL);
	durability_require_writable(&step->address);
	durability_begin();
	record_open(&table, RowExclusiveLock, SnapshotSelf);
	complete_apply(&table, &step->address, token, &change, &record);
	if (record.state == STATE_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
				 errmsg("steps need a leased claim"),
				 address_errdetail(&step->address),
				 errhint("An atomic claim is one step by itself.")));
	step_check_turn(&step->address, token, &record, step->name);
	step->attempt = record.attempt;
	record_close(&table);
}

static bool
same_input(const StepTable *table, const Step *step)
{
	bytea	   *input = table->found->tts_isnull[COL_INPUT] ? NULL :
	DatumGetByteaPP(table->found->tts_values[COL_INPUT]);

	return fingerprint_equal(input, step->input);
}

static void
refuse_diverging(const Step *step, const char *what, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_DIVERGES),
			 errmsg("step \"%s\" was done with another %s",
					text_to_cstring(step->name), what),
			 address_errdetail(&step->address),
			 errhint("%s", hint)));
}

PG_FUNCTION_INFO_V1(idem_step);
Datum
idem_step(PG_FUNCTION_ARGS)
{
	StepTable	table;
	Step		step;
	TupleDesc	desc;
	Datum		values[2] = {BoolGetDatum(false)};
	bool		isnull[2] = {false, true};
	Datum		result;

	read_step(&step, fcinfo, 2);
	steps_open(&table, AccessShareLock);
	if (steps_find(&table, &step.address, step.name))
	{
		if (!same_input(&table, &step))
			refuse_diverging(&step, "input",
							 "Its result stays. A step that does something else needs another name.");
		values[0] = BoolGetDatum(true);
		values[1] = table.found->tts_values[COL_RESULT];
		isnull[1] = table.found->tts_isnull[COL_RESULT];
	}
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "idem_step() must return a row");
	result = HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values,
											   isnull));
	steps_close(&table);
	PG_RETURN_DATUM(result);
}

static void
insert_step(StepTable *table, const Step *step, NullableDatum result)
{
	IdemWriter	writer = {0};
	Datum	   *values;

	writer_open(&writer, table->rel);
	ExecClearTuple(writer.slot);
	values = writer.slot->tts_values;
	memset(writer.slot->tts_isnull, false, STEP_COLUMNS * sizeof(bool));
	values[COL_DONE_AT] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[COL_ATTEMPT] = Int32GetDatum(step->attempt);
	values[COL_TENANT] = PointerGetDatum(step->address.tenant);
	values[COL_OPERATION] = PointerGetDatum(step->address.operation);
	values[COL_KEY] = PointerGetDatum(step->address.key);
	values[COL_STEP] = PointerGetDatum(step->name);
	values[COL_INPUT] = PointerGetDatum(step->input);
	writer.slot->tts_isnull[COL_INPUT] = step->input == NULL;
	values[COL_RESULT] = result.value;
	writer.slot->tts_isnull[COL_RESULT] = result.isnull;
	writer_insert(&writer);
	writer_close(&writer);
}

static bool
same_result(const StepTable *table, NullableDatum result)
{
	if (table->found->tts_isnull[COL_RESULT] || result.isnull)
		return table->found->tts_isnull[COL_RESULT] && result.isnull;
	return datum_image_eq(table->found->tts_values[COL_RESULT], result.value,
						  false, -1);
}

PG_FUNCTION_INFO_V1(idem_step_done);
Datum
idem_step_done(PG_FUNCTION_ARGS)
{
	StepTable	table;
	Step		step;

	read_step(&step, fcinfo, 3);
	complete_check_size(&step.address, "result", fcinfo->args[2]);
	steps_open(&table, RowExclusiveLock);
	if (!steps_find(&table, &step.address, step.name))
	{
		insert_step(&table, &step, fcinfo->args[2]);
		durability_flush();
	}
	else if (!same_input(&table, &step) ||
			 !same_result(&table, fcinfo->args[2]))
		refuse_diverging(&step, "input or result",
						 "Ask idem_step() before doing a step.");
	steps_close(&table);
	PG_RETURN_VOID();
}
