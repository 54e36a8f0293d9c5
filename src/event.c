/*-------------------------------------------------------------------------
 *
 * event.c
 *		The trail: the table idem_event, as C code writes it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "compat.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* columns, from zero */
enum
{
	COL_ID,
	COL_AT,
	COL_ATTEMPT,
	COL_TENANT,
	COL_OPERATION,
	COL_KEY,
	COL_INTENT,
	COL_FROM_STATE,
	COL_TO_STATE,
	COL_ACTOR,
	COL_REASON,
	EVENT_COLUMNS
};

const int	event_columns = EVENT_COLUMNS;
const Oid	event_types[EVENT_COLUMNS] = {
	INT8OID, TIMESTAMPTZOID, INT4OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	TEXTOID, TEXTOID, TEXTOID, TEXTOID
};

static void
write_row(const IdemAddress *address, TimestampTz at, int32 attempt,
		  text *intent, const char *from, const char *to, text *reason)
{
	Relation	rel = catalog_open(&catalog_get()->event, RowExclusiveLock);
	Oid			sequence = compat_identity_sequence(rel, COL_ID + 1);
	IdemWriter	writer = {0};
	Datum	   *values;
	bool	   *isnull;

	writer_open(&writer, rel);
	ExecClearTuple(writer.slot);
	values = writer.slot->tts_values;
	isnull = writer.slot->tts_isnull;
	memset(isnull, false, EVENT_COLUMNS * sizeof(bool));
	values[COL_ID] = Int64GetDatum(nextval_internal(sequence, false));
	values[COL_AT] = TimestampTzGetDatum(at);
	values[COL_ATTEMPT] = Int32GetDatum(attempt);
	isnull[COL_ATTEMPT] = attempt == 0;
	values[COL_TENANT] = PointerGetDatum(address->tenant);
	values[COL_OPERATION] = PointerGetDatum(address->operation);
	values[COL_KEY] = PointerGetDatum(address->key);
	values[COL_INTENT] = PointerGetDatum(intent);
	isnull[COL_INTENT] = intent == NULL;
	values[COL_FROM_STATE] = CStringGetTextDatum(from);
	values[COL_TO_STATE] = CStringGetTextDatum(to);
	values[COL_ACTOR] =
		CStringGetTextDatum(GetUserNameFromId(GetSessionUserId(), false));
	values[COL_REASON] = PointerGetDatum(reason);
	isnull[COL_REASON] = reason == NULL;
	writer_insert(&writer);
	writer_close(&writer);
	table_close(rel, NoLock);
}

/*
 * Notes a transition of a command at a time; "reason" may be NULL.
 */
void
event_write_at(const IdemAddress *address, TimestampTz at, int32 attempt,
			   IdemState from, IdemState to, text *reason)
{
	write_row(address, at, attempt, NULL, state_name(from), state_name(to),
			  reason);
}

void
event_write(const IdemAddress *address, int32 attempt, IdemState from,
			IdemState to, text *reason)
{
	event_write_at(address, GetCurrentTimestamp(), attempt, from, to, reason);
}

/*
 * Notes a transition of an intent; "attempt" is 0 where its command has no
 * record yet or any more.
 */
void
event_write_intent(const IdemAddress *address, int32 attempt, text *intent,
				   const char *from, const char *to, text *reason)
{
	write_row(address, GetCurrentTimestamp(), attempt, intent, from, to,
			  reason);
}
