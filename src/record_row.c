/*-------------------------------------------------------------------------
 *
 * record_row.c
 *		The only file that knows the columns of idem_record, and the trigger
 *		that holds changes made by hand to the state machine.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "idempotency.h"
#include "record_row.h"
#include "row.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* columns, from zero */
enum
{
	COL_CREATED_AT,
	COL_COMPLETED_AT,
	COL_EXPIRES_AT,
	COL_LEASE_UNTIL,
	COL_TOKEN,
	COL_ATTEMPT,
	COL_POLICY_VERSION,
	COL_CODE,
	COL_TENANT,
	COL_OPERATION,
	COL_KEY,
	COL_STATE,
	COL_FINGERPRINT,
	COL_RESOURCE,
	COL_RESPONSE,
	COL_HEADERS,
	COL_BODY,
	COL_TTL,
	COL_REQUEST,
	COL_OWNER,
	COL_REASON,
	COL_ONCE_MORE,
	COL_UNKNOWN_AT,
	COL_GUARD,
	COL_SWEPT,
	RECORD_COLUMNS
};

const int	record_columns = RECORD_COLUMNS;
const Oid	record_types[RECORD_COLUMNS] = {
	TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	INT8OID, INT4OID, INT4OID, INT4OID, TEXTOID, TEXTOID, TEXTOID,
	TEXTOID, BYTEAOID, TEXTOID, JSONOID, JSONBOID, BYTEAOID, INTERVALOID,
	JSONBOID, TEXTOID, TEXTOID, BOOLOID, TIMESTAMPTZOID, TEXTOID, BOOLOID
};

NullableDatum
null_datum(void)
{
	NullableDatum result = {.value = (Datum) 0,.isnull = true};

	return result;
}

NullableDatum
text_or_null(text *value)
{
	NullableDatum result = {.value = PointerGetDatum(value),
	.isnull = value == NULL};

	return result;
}

/*
 * "No row", and the start of a new one.
 */
void
record_clear(IdemRecord *record)
{
	memset(record, 0, sizeof(*record));
	ItemPointerSetInvalid(&record->tid);
	record->created_at = IDEM_NO_TIME;
	record->completed_at = IDEM_NO_TIME;
	record->expires_at = IDEM_NO_TIME;
	record->lease_until = IDEM_NO_TIME;
	record->unknown_at = IDEM_NO_TIME;
	record->result.code = null_datum();
	record->result.resource = null_datum();
	record->result.response = null_datum();
	record->result.headers = null_datum();
	record->result.body = null_datum();
	record->fingerprint = null_datum();
	record->request = null_datum();
	record->owner = null_datum();
	record->reason = null_datum();
}

static NullableDatum
get_nullable(const Datum *values, const bool *isnull, int column)
{
	NullableDatum result = {.value = values[column],.isnull = isnull[column]};

	return result;
}

static TimestampTz
get_time(const Datum *values, const bool *isnull, int column)
{
	return isnull[column] ? IDEM_NO_TIME :
		DatumGetTimestampTz(values[column]);
}

static IdemState
state_of(Datum value)
{
	text	   *name = DatumGetTextPP(value);

	return state_from_name(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
}

void
record_from_row(IdemRecord *record, const Datum *values, const bool *isnull)
{
	IdemResult *result = &record->result;

	record->state = state_of(values[COL_STATE]);
	if (record->state == STATE_NONE)
		elog(ERROR, "record has unknown state \"%s\"",
			 TextDatumGetCString(values[COL_STATE]));
	record->attempt = DatumGetInt32(values[COL_ATTEMPT]);
	record->policy_version = isnull[COL_POLICY_VERSION] ? 0 :
		DatumGetInt32(values[COL_POLICY_VERSION]);
	record->token = DatumGetInt64(values[COL_TOKEN]);
	record->created_at = DatumGetTimestampTz(values[COL_CREATED_AT]);
	record->completed_at = get_time(values, isnull, COL_COMPLETED_AT);
	record->expires_at = get_time(values, isnull, COL_EXPIRES_AT);
	record->lease_until = get_time(values, isnull, COL_LEASE_UNTIL);
	record->unknown_at = get_time(values, isnull, COL_UNKNOWN_AT);
	record->ttl_us = isnull[COL_TTL] ? 0 :
		duration_us("ttl", DatumGetIntervalP(values[COL_TTL]));
	result->code = get_nullable(values, isnull, COL_CODE);
	result->resource = get_nullable(values, isnull, COL_RESOURCE);
	result->response = get_nullable(values, isnull, COL_RESPONSE);
	result->headers = get_nullable(values, isnull, COL_HEADERS);
	result->body = get_nullable(values, isnull, COL_BODY);
	record->fingerprint = get_nullable(values, isnull, COL_FINGERPRINT);
	record->request = get_nullable(values, isnull, COL_REQUEST);
	record->owner = get_nullable(values, isnull, COL_OWNER);
	record->reason = get_nullable(values, isnull, COL_REASON);
	record->once_more = !isnull[COL_ONCE_MORE] &&
		DatumGetBool(values[COL_ONCE_MORE]);
	record->swept = !isnull[COL_SWEPT] && DatumGetBool(values[COL_SWEPT]);
	record->guard = isnull[COL_GUARD] ? NULL :
		DatumGetTextPP(values[COL_GUARD]);
	record->held_guard = guard_is_held_by(record);
}

text *
record_row_key(const Datum *values)
{
	return DatumGetTextPP(values[COL_KEY]);
}

static void
put_value(Datum *values, bool *isnull, int column, Datum value)
{
	values[column] = value;
	isnull[column] = false;
}

/*
 * For those who walk through the table.
 */
void
record_from_slot(IdemRecord *record, IdemAddress *address,
				 TupleTableSlot *slot)
{
	Datum	   *values;

	slot_getallattrs(slot);
	values = slot->tts_values;
	record_from_row(record, values, slot->tts_isnull);
	address_set(address, DatumGetTextPP(values[COL_TENANT]),
				DatumGetTextPP(values[COL_OPERATION]),
				DatumGetTextPP(values[COL_KEY]));
}

void
record_to_row(const IdemAddress *address, const IdemRecord *record,
			  Datum *values, bool *isnull)
{
	const IdemResult *result = &record->result;

	put_time(values, isnull, COL_CREATED_AT, record->created_at);
	put_time(values, isnull, COL_COMPLETED_AT, record->completed_at);
	put_time(values, isnull, COL_EXPIRES_AT, record->expires_at);
	put_time(values, isnull, COL_LEASE_UNTIL, record->lease_until);
	put_time(values, isnull, COL_UNKNOWN_AT, record->unknown_at);
	put_value(values, isnull, COL_TOKEN, Int64GetDatum(record->token));
	put_value(values, isnull, COL_ATTEMPT, Int32GetDatum(record->attempt));
	values[COL_POLICY_VERSION] = Int32GetDatum(record->policy_version);
	isnull[COL_POLICY_VERSION] = record->policy_version == 0;
	put_nullable(values, isnull, COL_CODE, result->code);
	put_value(values, isnull, COL_TENANT, PointerGetDatum(address->tenant));
	put_value(values, isnull, COL_OPERATION,
			  PointerGetDatum(address->operation));
	put_value(values, isnull, COL_KEY, PointerGetDatum(address->key));
	put_value(values, isnull, COL_STATE,
			  CStringGetTextDatum(state_name(record->state)));
	put_nullable(values, isnull, COL_FINGERPRINT, record->fingerprint);
	put_nullable(values, isnull, COL_RESOURCE, result->resource);
	put_nullable(values, isnull, COL_RESPONSE, result->response);
	put_nullable(values, isnull, COL_HEADERS, result->headers);
	put_nullable(values, isnull, COL_BODY, result->body);
	isnull[COL_TTL] = record->ttl_us == 0;
	values[COL_TTL] = isnull[COL_TTL] ? (Datum) 0 :
		IntervalPGetDatum(duration_interval(record->ttl_us));
	put_nullable(values, isnull, COL_REQUEST, record->request);
	put_nullable(values, isnull, COL_OWNER, record->owner);
	put_nullable(values, isnull, COL_REASON, record->reason);
	values[COL_ONCE_MORE] = BoolGetDatum(true);
	isnull[COL_ONCE_MORE] = !record->once_more;
	put_nullable(values, isnull, COL_GUARD, text_or_null(record->guard));
	values[COL_SWEPT] = BoolGetDatum(true);
	isnull[COL_SWEPT] = !record->swept;
}

static bool
same_value(NullableDatum a, NullableDatum b, int len)
{
	if (a.isnull || b.isnull)
		return a.isnull == b.isnull;
	/* compares bytes, wherever and however they are stored */
	return datum_image_eq(a.value, b.value, len > 0, len);
}

/*
 * The same answer, byte for byte.
 */
bool
record_same_result(const IdemResult *a, const IdemResult *b)
{
	return same_value(a->code, b->code, sizeof(int32)) &&
		same_value(a->resource, b->resource, -1) &&
		same_value(a->response, b->response, -1) &&
		same_value(a->headers, b->headers, -1) &&
		same_value(a->body, b->body, -1);
}

/*
 * Is there anything that expiry drops?  The indexes of expire.sql ask the
 * same.
 */
bool
record_has_payload(const IdemRecord *record)
{
	return !record->result.response.isnull ||
		!record->result.headers.isnull || !record->result.body.isnull ||
		!record->request.isnull;
}

void
record_drop_payload(IdemRecord *record)
{
	record->result.response = null_datum();
	record->result.headers = null_datum();
	record->result.body = null_datum();
	record->request = null_datum();
	record->swept = true;
}

/*
 * What was swept has expired for good, also where the clock went back since:
 * by itself, or because another server took over.
 */
bool
record_has_expired(const IdemRecord *record, TimestampTz now)
{
	return record->swept || now >= record->expires_at;
}

static void
refuse_change(const char *what, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
			 errmsg("cannot %s idem_record", what),
			 errdetail("%s", detail),
			 errhint("Use the idem_ functions.")));
}

/*
 * The columns that never change (a guard: once it is there).
 */
static void
check_columns(TupleDesc desc, const IdemRecord *old, const Datum *old_values,
			  const bool *old_isnull, const Datum *new_values,
			  const bool *new_isnull)
{
	bool		terminal = state_is_terminal(old->state);

	for (int i = 0; i < RECORD_COLUMNS; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		bool		frozen = terminal || i == COL_CREATED_AT ||
		i == COL_TENANT || i == COL_OPERATION || i == COL_KEY ||
		i == COL_FINGERPRINT || (i == COL_GUARD && !old_isnull[i]);

		if (!frozen || (old_isnull[i] && new_isnull[i]))
			continue;
		if (old_isnull[i] || new_isnull[i] ||
			!datum_image_eq(old_values[i], new_values[i], att->attbyval,
							att->attlen))
			refuse_change("update",
						  psprintf("Column \"%s\" of a %s record does not change.",
								   NameStr(att->attname),
								   state_name(old->state)));
	}
}

static void
check_update(TupleDesc desc, HeapTuple old_tuple, HeapTuple new_tuple)
{
	Datum		old_values[RECORD_COLUMNS];
	Datum		new_values[RECORD_COLUMNS];
	bool		old_isnull[RECORD_COLUMNS];
	bool		new_isnull[RECORD_COLUMNS];
	IdemRecord	old;
	IdemRecord	new;

	heap_deform_tuple(old_tuple, desc, old_values, old_isnull);
	heap_deform_tuple(new_tuple, desc, new_values, new_isnull);
	if (new_isnull[COL_STATE] || new_isnull[COL_ATTEMPT] ||
		new_isnull[COL_TOKEN] || new_isnull[COL_CREATED_AT])
		return;					/* NOT NULL refuses it */
	if (state_of(new_values[COL_STATE]) == STATE_NONE)
		return;					/* CHECK refuses it */
	record_from_row(&old, old_values, old_isnull);
	record_from_row(&new, new_values, new_isnull);

	check_columns(desc, &old, old_values, old_isnull, new_values, new_isnull);
	if (state_is_terminal(old.state))
		return;
	if (!state_reachable(old.state, new.state))
		refuse_change("update",
					  psprintf("State %s does not follow %s.",
							   state_name(new.state), state_name(old.state)));
	if (new.attempt < old.attempt || new.attempt > old.attempt + 1)
		refuse_change("update", "The attempt grows by one.");
}

PG_FUNCTION_INFO_V1(idem_record_protect);
Datum
idem_record_protect(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("idem_record_protect() is a trigger of idem_record")));
	if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
		refuse_change("truncate", "Records are proof that commands ran.");
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		refuse_change("delete from", "Records are proof that commands ran.");
	if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ||
		RelationGetRelid(trigger->tg_relation) != catalog_get()->record)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("idem_record_protect() is a trigger of idem_record")));
	check_update(RelationGetDescr(trigger->tg_relation), trigger->tg_trigtuple,
				 trigger->tg_newtuple);
	PG_RETURN_POINTER(trigger->tg_newtuple);
}
