/*-------------------------------------------------------------------------
 *
 * ticket.c
 *		The only file that knows the columns of the types idem_ticket and
 *		idem_response.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "idempotency.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

/* columns of idem_ticket, from zero */
enum
{
	COL_OUTCOME,
	COL_TENANT,
	COL_OPERATION,
	COL_KEY,
	COL_TOKEN,
	COL_ATTEMPT,
	COL_STATE,
	COL_CREATED_AT,
	COL_COMPLETED_AT,
	COL_EXPIRES_AT,
	COL_LEASE_UNTIL,
	COL_RETRY_AFTER,
	COL_CODE,
	COL_RESOURCE,
	COL_RESPONSE,
	COL_HEADERS,
	COL_BODY,
	COL_REQUEST,
	COL_OWNER,
	COL_REASON,
	COL_DUPLICATE_OF,
	TICKET_COLUMNS
};

const int	ticket_columns = TICKET_COLUMNS;
const Oid	ticket_types[TICKET_COLUMNS] = {
	TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT4OID, TEXTOID,
	TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	INTERVALOID, INT4OID, TEXTOID, JSONOID, JSONBOID, BYTEAOID, JSONBOID,
	TEXTOID, TEXTOID, TEXTOID
};

/* columns of idem_response, from zero */
enum
{
	RESPONSE_RESPONSE,
	RESPONSE_CODE,
	RESPONSE_RESOURCE,
	RESPONSE_HEADERS,
	RESPONSE_BODY,
	RESPONSE_STATE,
	RESPONSE_COLUMNS
};

const int	response_columns = RESPONSE_COLUMNS;
const Oid	response_types[RESPONSE_COLUMNS] = {
	JSONOID, INT4OID, TEXTOID, JSONBOID, BYTEAOID, TEXTOID
};

/* The row being made. */
typedef struct Row
{
	Datum		values[TICKET_COLUMNS];
	bool		isnull[TICKET_COLUMNS];
} Row;

static void
set_value(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->isnull[column] = false;
}

static void
set_time(Row *row, int column, TimestampTz value)
{
	if (value != IDEM_NO_TIME)
		set_value(row, column, TimestampTzGetDatum(value));
}

static void
set_nullable(Row *row, int column, NullableDatum value)
{
	if (!value.isnull)
		set_value(row, column, value.value);
}

static void
set_facts(Row *row, const IdemRecord *record)
{
	if (record->state == STATE_NONE)
		return;
	if (record->attempt > 0)
		set_value(row, COL_ATTEMPT, Int32GetDatum(record->attempt));
	set_value(row, COL_STATE, CStringGetTextDatum(state_name(record->state)));
	set_time(row, COL_CREATED_AT, record->created_at);
	set_time(row, COL_COMPLETED_AT, record->completed_at);
	set_time(row, COL_EXPIRES_AT, record->expires_at);
	set_time(row, COL_LEASE_UNTIL, record->lease_until);
	set_nullable(row, COL_RESOURCE, record->result.resource);
	set_nullable(row, COL_OWNER, record->owner);
	set_nullable(row, COL_REASON, record->reason);
}

/*
 * Only a replay, and the call that made the answer, see it; only an owner
 * sees the stored request.
 */
static void
set_contents(Row *row, const IdemTicket *ticket)
{
	const IdemResult *result = &ticket->record.result;

	if (ticket->with_result)
	{
		set_nullable(row, COL_CODE, result->code);
		set_nullable(row, COL_RESPONSE, result->response);
		set_nullable(row, COL_HEADERS, result->headers);
		set_nullable(row, COL_BODY, result->body);
	}
	if (ticket->token != 0)
	{
		set_value(row, COL_TOKEN, Int64GetDatum(ticket->token));
		set_nullable(row, COL_REQUEST, ticket->record.request);
	}
}

/*
 * The columns of a type of ours; refuses others than the library knows.  Asked
 * in this order, since news may come with each.
 */
static TupleDesc
open_type(Oid type, int32 typmod)
{
	TupleDesc	desc = lookup_rowtype_tupdesc(type, typmod);

	catalog_get();
	return desc;
}

HeapTuple
ticket_form(const IdemAddress *address, const IdemTicket *ticket)
{
	TupleDesc	desc = open_type(catalog_get()->ticket, -1);
	HeapTuple	tuple;
	Row			row;

	memset(row.isnull, true, sizeof(row.isnull));
	set_value(&row, COL_OUTCOME,
			  CStringGetTextDatum(outcome_name(ticket->outcome)));
	set_value(&row, COL_TENANT, PointerGetDatum(address->tenant));
	set_value(&row, COL_OPERATION, PointerGetDatum(address->operation));
	set_value(&row, COL_KEY, PointerGetDatum(address->key));
	if (ticket->retry_after_us >= 0)
		set_value(&row, COL_RETRY_AFTER,
				  IntervalPGetDatum(duration_interval(ticket->retry_after_us)));
	set_facts(&row, &ticket->record);
	set_contents(&row, ticket);
	set_nullable(&row, COL_DUPLICATE_OF, text_or_null(ticket->duplicate_of));
	tuple = heap_form_tuple(desc, row.values, row.isnull);
	ReleaseTupleDesc(desc);
	return tuple;
}

Datum
ticket_datum(const IdemAddress *address, const IdemTicket *ticket)
{
	/* fetches what is stored out of line */
	return HeapTupleGetDatum(ticket_form(address, ticket));
}

/*
 * Takes apart a row that came back.  It may have been made when its type had
 * fewer columns: the others are NULL.
 */
static void
deform(HeapTupleHeader header, Datum *values, bool *isnull)
{
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header),
	.t_data = header};
	TupleDesc	desc = open_type(HeapTupleHeaderGetTypeId(header),
								 HeapTupleHeaderGetTypMod(header));

	heap_deform_tuple(&tuple, desc, values, isnull);
	ReleaseTupleDesc(desc);
}

static void
deform_ticket(HeapTupleHeader header, Row *row)
{
	deform(header, row->values, row->isnull);
}

static text *
get_text(const Row *row, int column)
{
	return row->isnull[column] ? NULL : DatumGetTextPP(row->values[column]);
}

/*
 * Address and token (0 for NULL) of a ticket that came back.
 */
void
ticket_read(HeapTupleHeader header, IdemAddress *address, int64 *token)
{
	Row			row;

	deform_ticket(header, &row);
	*token = row.isnull[COL_TOKEN] ? 0 : DatumGetInt64(row.values[COL_TOKEN]);
	address_set(address, get_text(&row, COL_TENANT),
				get_text(&row, COL_OPERATION), get_text(&row, COL_KEY));
}

IdemOutcome
ticket_read_outcome(HeapTupleHeader header)
{
	IdemOutcome outcome = OUTCOME_COUNT;
	text	   *name;
	Row			row;

	deform_ticket(header, &row);
	name = get_text(&row, COL_OUTCOME);
	if (name != NULL)
		outcome = outcome_from_name(VARDATA_ANY(name),
									VARSIZE_ANY_EXHDR(name));
	if (outcome == OUTCOME_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("ticket has no known outcome"),
				 errdetail("Its outcome is %s.",
						   name ? quote_literal_cstr(text_to_cstring(name)) :
						   "NULL"),
				 errhint("Pass the ticket as idem_claim() or idem_replay() returned it.")));
	return outcome;
}

/*
 * The key of the first command, for a duplicate; otherwise NULL.
 */
text *
ticket_read_duplicate_of(HeapTupleHeader header)
{
	Row			row;

	deform_ticket(header, &row);
	return get_text(&row, COL_DUPLICATE_OF);
}

static NullableDatum
get_nullable(const Datum *values, const bool *isnull, int column)
{
	NullableDatum result = {.value = values[column],.isnull = isnull[column]};

	return result;
}

/*
 * Takes an idem_response apart; returns the state it asks for.
 */
IdemState
response_read(HeapTupleHeader row, IdemResult *result)
{
	IdemState	wanted = STATE_SUCCEEDED;
	Datum		values[RESPONSE_COLUMNS];
	bool		isnull[RESPONSE_COLUMNS];

	deform(row, values, isnull);
	result->response = get_nullable(values, isnull, RESPONSE_RESPONSE);
	result->code = get_nullable(values, isnull, RESPONSE_CODE);
	result->resource = get_nullable(values, isnull, RESPONSE_RESOURCE);
	result->headers = get_nullable(values, isnull, RESPONSE_HEADERS);
	result->body = get_nullable(values, isnull, RESPONSE_BODY);
	if (!isnull[RESPONSE_STATE])
	{
		char	   *name = TextDatumGetCString(values[RESPONSE_STATE]);

		wanted = state_from_name(name, strlen(name));
		if (wanted != STATE_SUCCEEDED && wanted != STATE_FAILED)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a handler cannot end a command as \"%s\"", name),
					 errdetail("The state of an idem_response is succeeded, failed or NULL."),
					 errhint("Raise an error to undo everything.")));
	}
	return wanted;
}
