/*-------------------------------------------------------------------------
 *
 * outbox.c
 *		Moving one intent: what all who do have in common, taking it in
 *		flight by hand, and waking a dead one.
 *
 * The trail has what the row does not prove by itself.  It proves that it was
 * noted (created_at), first sent (first_sent_at) and confirmed (settled_at).
 *
 * Locking: see intent.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "funcapi.h"
#include "intent.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

void
outbox_read_worker(IdemWorker *worker, FunctionCallInfo fcinfo, int name_arg,
				   int lease_arg)
{
	worker->name = PG_ARGISNULL(name_arg) ? NULL :
		PG_GETARG_TEXT_PP(name_arg);
	address_check_text("worker", worker->name, IDEM_OWNER_MAX,
					   "Name the worker, for people to read.");
	if (PG_ARGISNULL(lease_arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("lease must not be NULL"),
				 errdetail("What is handed out comes back only after its lease."),
				 errhint("Pass the time the work may take.")));
	worker->lease_us = duration_us("lease", PG_GETARG_INTERVAL_P(lease_arg));
}

void
outbox_refuse(const IdemIntent *intent, int code, const char *message,
			  const char *hint)
{
	ereport(ERROR,
			(errcode(code),
			 errmsg("%s", message),
			 errdetail("The intent is \"%s\" (%s) of tenant \"%s\", operation \"%s\", key \"%s\".",
					   text_to_cstring(intent->name),
					   intent_state_name(intent->state),
					   text_to_cstring(intent->address.tenant),
					   text_to_cstring(intent->address.operation),
					   text_to_cstring(intent->address.key)),
			 errhint("%s", hint)));
	pg_unreachable();
}

char *
outbox_show_id(Datum id)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out, id));
}

static void
refuse_missing(const NullableDatum *id)
{
	char	   *shown = id->isnull ? pstrdup("NULL") :
	outbox_show_id(id->value);

	ereport(ERROR,
			(errcode(id->isnull ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
					 ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("intent %s does not exist", shown),
			 errdetail("No committed intent has this operation id."),
			 errhint("Pass the operation_id that idem_intend() returned.")));
}

/*
 * The current attempt of a command; 0 where it has no record.  Without the key
 * lock a probe can miss a record that is just being moved (see record.c): then
 * the second one finds it, or the trail goes without the number.
 */
int32
outbox_attempt(const IdemAddress *address)
{
	IdemRecord	record;
	IdemTable	table;

	record_open(&table, AccessShareLock, SnapshotSelf);
	if (!record_probe(&table, address, &record))
		(void) record_probe(&table, address, &record);
	record_close(&table);
	return record.attempt;
}

void
outbox_note(const IdemIntent *before, const IdemIntent *after, int32 attempt,
			text *reason)
{
	event_write_intent(&before->address, attempt, before->name,
					   intent_state_name(before->state),
					   intent_state_name(after->state), reason);
}

/*
 * May what was sent be sent again?  Within the time that its target remembers
 * operation ids, counted from when it may have happened first.
 */
bool
outbox_may_resend(const IdemIntent *intent, TimestampTz now)
{
	return intent->resend_us > 0 && intent->doubt_since != IDEM_NO_TIME &&
		now < intent->doubt_since + intent->resend_us;
}

/*
 * Gives it to a worker to be sent.
 */
void
outbox_take(IdemIntent *intent, const IdemWorker *worker, TimestampTz now)
{
	/* sent while an earlier call may have happened */
	intent->doubtful |= intent->state != INTENT_PENDING;
	intent->state = INTENT_IN_FLIGHT;
	intent->token = claim_token();
	intent->past_token = 0;
	intent->worker = text_or_null(worker->name);
	intent->lease_until = now + worker->lease_us;
	intent->tries++;
	if (intent->first_sent_at == IDEM_NO_TIME)
		intent->first_sent_at = now;
	if (intent->doubt_since == IDEM_NO_TIME)
		intent->doubt_since = now;
}

/*
 * The row proves the first time, no later one.
 */
void
outbox_note_taken(const IdemIntent *before, const IdemIntent *after)
{
	char	   *reason;

	if (before->state == INTENT_PENDING &&
		before->first_sent_at == IDEM_NO_TIME)
		return;
	reason = psprintf("sent again by %s",
					  TextDatumGetCString(after->worker.value));
	outbox_note(before, after, outbox_attempt(&before->address),
				cstring_to_text(reason));
}

/*
 * Waits for the key lock, without holding a pin meanwhile.
 */
static void
wait_for_key(IdemIntentTable *table, const IdemAddress *address)
{
	IdemAddress copy = {
		.tenant = DatumGetTextPCopy(PointerGetDatum(address->tenant)),
		.operation = DatumGetTextPCopy(PointerGetDatum(address->operation)),
		.key = DatumGetTextPCopy(PointerGetDatum(address->key)),
		.hash = address->hash
	};

	intents_let_go(table);
	address_lock(&copy);
}

/*
 * Changes the intent that the first argument names, as "judge" decides, under
 * the key lock of its command.  False when nothing had to be changed.
 */
bool
outbox_change(IdemIntentTable *table, FunctionCallInfo fcinfo,
			  IdemJudge judge, void *arg, IdemIntent *before,
			  IdemIntent *after)
{
	bool		locked = false;

	durability_begin();
	for (;;)
	{
		/* another tenant's does not exist either */
		if (PG_ARGISNULL(0) ||
			!intents_find(table, PG_GETARG_DATUM(0), before) ||
			!access_allows(before->address.tenant))
			refuse_missing(&fcinfo->args[0]);
		if (!locked)
		{
			address_set(&before->address, before->address.tenant,
						before->address.operation, before->address.key);
			durability_require_writable(&before->address);
			locked = true;
			if (!address_try_lock(&before->address))
			{
				wait_for_key(table, &before->address);
				continue;
			}
			if (!intents_is_current(table))
				continue;
		}
		*after = *before;
		if (!judge(after, arg))
			return false;
		if (intents_update(table, after))
			return true;
		/* a relay has moved it since: look again */
	}
}

static bool
judge_send(IdemIntent *intent, void *arg)
{
	TimestampTz now = GetCurrentTimestamp();

	if (FullTransactionIdEquals(intent->created_by,
								GetTopFullTransactionIdIfAny()))
		outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
					  "cannot send an intent that is not committed",
					  "Commit first: what is not committed must not be known outside.");
	if (intent->state == INTENT_CONFIRMED ||
		intent->state == INTENT_REJECTED ||
		(intent->state != INTENT_PENDING && intent->lease_until > now))
		outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
					  psprintf("cannot send an intent that is %s",
							   intent_state_name(intent->state)),
					  "It is settled, or a worker has it.");
	if (intent->state != INTENT_PENDING && !outbox_may_resend(intent, now))
		outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
					  "cannot send again what may have happened",
					  "Its resend_safe_for is over or was never given: reconcile and settle it.");
	outbox_take(intent, arg, now);
	return true;
}

PG_FUNCTION_INFO_V1(idem_send);
Datum
idem_send(PG_FUNCTION_ARGS)
{
	IdemIntentTable table;
	IdemIntent	before;
	IdemIntent	after;
	IdemWorker	worker;
	Datum		result;

	adopt_require(NULL);
	outbox_read_worker(&worker, fcinfo, 1, 2);
	intents_open(&table);
	(void) outbox_change(&table, fcinfo, judge_send, &worker, &before,
						 &after);
	outbox_note_taken(&before, &after);
	stat_count(before.address.operation, STAT_SENT);
	durability_flush();
	result = HeapTupleGetDatum(intents_form(&table, &after));
	intents_close(&table);
	PG_RETURN_DATUM(result);
}

static bool
judge_retry(IdemIntent *intent, void *arg)
{
	if (intent->state != INTENT_PENDING)
		outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
					  psprintf("cannot retry an intent that is %s",
							   intent_state_name(intent->state)),
					  "Only what is known not to have happened is retried; reconcile it first.");
	intent->due_at = GetCurrentTimestamp();
	intent->tries = 0;
	return true;
}

PG_FUNCTION_INFO_V1(idem_retry);
Datum
idem_retry(PG_FUNCTION_ARGS)
{
	IdemIntentTable table;
	IdemIntent	before;
	IdemIntent	after;
	text	   *reason = complete_read_reason(fcinfo->args[1], true);
	Datum		result;

	intents_open(&table);
	(void) outbox_change(&table, fcinfo, judge_retry, NULL, &before, &after);
	outbox_note(&before, &after, outbox_attempt(&before.address), reason);
	intend_notify(&after);
	durability_flush();
	result = HeapTupleGetDatum(intents_form(&table, &after));
	intents_close(&table);
	PG_RETURN_DATUM(result);
}
