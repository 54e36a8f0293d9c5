/*-------------------------------------------------------------------------
 *
 * intent_row.c
 *		The only file that knows the columns of idem_intent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "intent.h"
#include "row.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* columns, from zero */
enum
{
	COL_OPERATION_ID,
	COL_CREATED_AT,
	COL_CREATED_BY,
	COL_DUE_AT,
	COL_FIRST_SENT_AT,
	COL_LEASE_UNTIL,
	COL_SETTLED_AT,
	COL_TOKEN,
	COL_TRIES,
	COL_SEND,
	COL_TENANT,
	COL_OPERATION,
	COL_KEY,
	COL_NAME,
	COL_TARGET,
	COL_STATE,
	COL_RESEND_SAFE_FOR,
	COL_REQUEST,
	COL_WORKER,
	COL_REASON,
	COL_RESPONSE,
	COL_EVIDENCE,
	COL_DOUBTFUL,
	COL_DOUBT_SINCE,
	COL_PAST_TOKEN
};

StaticAssertDecl(COL_PAST_TOKEN + 1 == INTENT_COLUMNS, "columns of idem_intent");

const Oid	intent_types[INTENT_COLUMNS] = {
	UUIDOID, TIMESTAMPTZOID, XID8OID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, INT4OID, BOOLOID, TEXTOID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INTERVALOID, JSONBOID,
	TEXTOID, TEXTOID, JSONOID, JSONBOID, BOOLOID, TIMESTAMPTZOID, INT8OID
};

static const char *const state_names[] = {
	[INTENT_PENDING] = "pending",
	[INTENT_IN_FLIGHT] = "in_flight",
	[INTENT_CONFIRMED] = "confirmed",
	[INTENT_REJECTED] = "rejected",
	[INTENT_UNKNOWN] = "unknown"
};

const char *
intent_state_name(IdemIntentState state)
{
	return state_names[state];
}

static IdemIntentState
state_of(Datum value)
{
	text	   *name = DatumGetTextPP(value);
	int			len = VARSIZE_ANY_EXHDR(name);

	for (int i = 0; i < INTENT_STATE_COUNT; i++)
	{
		if (strlen(state_names[i]) == (size_t) len &&
			memcmp(state_names[i], VARDATA_ANY(name), len) == 0)
			return (IdemIntentState) i;
	}
	elog(ERROR, "intent has unknown state \"%s\"", text_to_cstring(name));
	return INTENT_UNKNOWN;		/* keep the compiler quiet */
}

static NullableDatum
get_nullable(TupleTableSlot *slot, int column)
{
	NullableDatum result = {.value = slot->tts_values[column],
	.isnull = slot->tts_isnull[column]};

	return result;
}

static TimestampTz
get_time(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? IDEM_NO_TIME :
		DatumGetTimestampTz(slot->tts_values[column]);
}

static int64
get_token(TupleTableSlot *slot, int column)
{
	return slot->tts_isnull[column] ? 0 :
		DatumGetInt64(slot->tts_values[column]);
}

static text *
get_text(TupleTableSlot *slot, int column)
{
	return DatumGetTextPP(slot->tts_values[column]);
}

/*
 * The values point into the slot.
 */
void
intent_from_row(IdemIntent *intent, TupleTableSlot *slot)
{
	const Datum *values;

	slot_getallattrs(slot);
	values = slot->tts_values;
	intent->tid = slot->tts_tid;
	intent->operation_id = values[COL_OPERATION_ID];
	intent->created_at = get_time(slot, COL_CREATED_AT);
	intent->created_by =
		FullTransactionIdFromU64(DatumGetInt64(values[COL_CREATED_BY]));
	intent->due_at = get_time(slot, COL_DUE_AT);
	intent->first_sent_at = get_time(slot, COL_FIRST_SENT_AT);
	intent->doubt_since = get_time(slot, COL_DOUBT_SINCE);
	intent->lease_until = get_time(slot, COL_LEASE_UNTIL);
	intent->settled_at = get_time(slot, COL_SETTLED_AT);
	intent->token = get_token(slot, COL_TOKEN);
	intent->past_token = get_token(slot, COL_PAST_TOKEN);
	intent->tries = DatumGetInt32(values[COL_TRIES]);
	intent->send = DatumGetBool(values[COL_SEND]);
	intent->doubtful = DatumGetBool(values[COL_DOUBTFUL]);
	memset(&intent->address, 0, sizeof(intent->address));
	intent->address.tenant = get_text(slot, COL_TENANT);
	intent->address.operation = get_text(slot, COL_OPERATION);
	intent->address.key = get_text(slot, COL_KEY);
	intent->name = get_text(slot, COL_NAME);
	intent->target = get_text(slot, COL_TARGET);
	intent->state = state_of(values[COL_STATE]);
	intent->resend_us = slot->tts_isnull[COL_RESEND_SAFE_FOR] ? 0 :
		duration_us("resend_safe_for",
					DatumGetIntervalP(values[COL_RESEND_SAFE_FOR]));
	intent->request = get_nullable(slot, COL_REQUEST);
	intent->worker = get_nullable(slot, COL_WORKER);
	intent->reason = get_nullable(slot, COL_REASON);
	intent->response = get_nullable(slot, COL_RESPONSE);
	intent->evidence = get_nullable(slot, COL_EVIDENCE);
}

static void
put_token(Datum *values, bool *isnull, int column, int64 value)
{
	values[column] = Int64GetDatum(value);
	isnull[column] = value == 0;
}

void
intent_to_row(const IdemIntent *intent, Datum *values, bool *isnull)
{
	memset(isnull, false, INTENT_COLUMNS * sizeof(bool));
	values[COL_OPERATION_ID] = intent->operation_id;
	put_time(values, isnull, COL_CREATED_AT, intent->created_at);
	values[COL_CREATED_BY] =
		Int64GetDatum((int64) U64FromFullTransactionId(intent->created_by));
	put_time(values, isnull, COL_DUE_AT, intent->due_at);
	put_time(values, isnull, COL_FIRST_SENT_AT, intent->first_sent_at);
	put_time(values, isnull, COL_DOUBT_SINCE, intent->doubt_since);
	put_time(values, isnull, COL_LEASE_UNTIL, intent->lease_until);
	put_time(values, isnull, COL_SETTLED_AT, intent->settled_at);
	put_token(values, isnull, COL_TOKEN, intent->token);
	put_token(values, isnull, COL_PAST_TOKEN, intent->past_token);
	values[COL_TRIES] = Int32GetDatum(intent->tries);
	values[COL_SEND] = BoolGetDatum(intent->send);
	values[COL_DOUBTFUL] = BoolGetDatum(intent->doubtful);
	values[COL_TENANT] = PointerGetDatum(intent->address.tenant);
	values[COL_OPERATION] = PointerGetDatum(intent->address.operation);
	values[COL_KEY] = PointerGetDatum(intent->address.key);
	values[COL_NAME] = PointerGetDatum(intent->name);
	values[COL_TARGET] = PointerGetDatum(intent->target);
	values[COL_STATE] = CStringGetTextDatum(state_names[intent->state]);
	isnull[COL_RESEND_SAFE_FOR] = intent->resend_us == 0;
	values[COL_RESEND_SAFE_FOR] = intent->resend_us == 0 ? (Datum) 0 :
		IntervalPGetDatum(duration_interval(intent->resend_us));
	put_nullable(values, isnull, COL_REQUEST, intent->request);
	put_nullable(values, isnull, COL_WORKER, intent->worker);
	put_nullable(values, isnull, COL_REASON, intent->reason);
	put_nullable(values, isnull, COL_RESPONSE, intent->response);
	put_nullable(values, isnull, COL_EVIDENCE, intent->evidence);
}
