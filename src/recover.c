/*-------------------------------------------------------------------------
 *
 * recover.c
 *		What is done about a command from outside: recovery after a lapsed
 *		lease, decisions about unknown ones, cancellation.
 *
 * Each takes the key lock, and keeps it until the transaction ends where it
 * wrote.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "intent.h"
#include "pending.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

static text *
text_arg(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL : PG_GETARG_TEXT_PP(arg);
}

/*
 * Lapsed, or released by evidence or a decision: nobody is at it.
 */
static bool
may_recover(const IdemRecord *record, TimestampTz now)
{
	if (record->ours)
		return false;
	return record->state == STATE_RELEASED ? record->once_more :
		record->state == STATE_PROCESSING && now >= record->lease_until;
}

PG_FUNCTION_INFO_V1(idem_recover_one);
Datum
idem_recover_one(PG_FUNCTION_ARGS)
{
	IdemClaim	claim = {0};
	IdemWorker	worker;
	IdemTicket	ticket;
	IdemRecord	record;
	IdemTable	table;
	TimestampTz now;
	Datum		result;

	address_set_args(&claim.address, fcinfo, 0);
	durability_require_writable(&claim.address);
	outbox_read_worker(&worker, fcinfo, 3, 4);
	claim.owner = worker.name;
	claim.lease_us = worker.lease_us;
	durability_begin();
	/* one's own atomic claim of it would not keep the lock from this session */
	if (pending_find_open(&claim.address) != NULL ||
		!address_try_lock(&claim.address))
		PG_RETURN_NULL();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	now = GetCurrentTimestamp();
	if (!record_probe(&table, &claim.address, &record) ||
		!may_recover(&record, now))
	{
		record_close(&table);
		address_unlock(&claim.address);
		PG_RETURN_NULL();
	}
	policy_get(claim.address.operation, &claim.policy);
	/* refusing it would keep one operation's commands from the others */
	if (claim.policy.max_lease_us != 0)
		claim.lease_us = Min(claim.lease_us, claim.policy.max_lease_us);
	claim.request = null_datum();
	claim.ttl_us = record.ttl_us;	/* as its first owner asked */
	if (!attempt_grant(&table, &claim, &record, &ticket))
	{
		record_close(&table);
		address_unlock(&claim.address);
		PG_RETURN_NULL();
	}
	if (ticket.token != 0)
	{
		ticket.outcome = OUTCOME_RESUME;
		stat_count(claim.address.operation, STAT_RECOVERED);
	}
	result = ticket_datum(&claim.address, &ticket);
	record_close(&table);
	PG_RETURN_DATUM(result);
}

/*
 * An intent of this command is not in question any more, and was since
 * "doubt_since" (IDEM_NO_TIME: it never was): an unknown command that knows of
 * no other may run again.  The caller holds the key lock.
 */
void
recover_answered(const IdemAddress *address, TimestampTz doubt_since)
{
	IdemRecord	record;
	IdemTable	table;

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	if (record_probe(&table, address, &record) &&
		record.state == STATE_UNKNOWN && doubt_since != IDEM_NO_TIME &&
		doubt_since <= record.unknown_at &&
		!intent_exists(address, INTENTS_IN_QUESTION, record.unknown_at))
	{
		text	   *reason = cstring_to_text("last open intent settled");

		record.state = state_next(record.state, ACTION_RESOLVE_RELEASED);
		record.once_more = true;
		record.unknown_at = IDEM_NO_TIME;
		record.reason = text_or_null(reason);
		record_update(&table, address, &record);
		event_write(address, record.attempt, STATE_UNKNOWN, record.state,
					reason);
	}
	record_close(&table);
}

/*
 * The action that an operator's word stands for.
 */
static IdemAction
decision(const IdemAddress *address, text *word)
{
	IdemState	state = STATE_NONE;

	if (word != NULL)
		state = state_from_name(VARDATA_ANY(word), VARSIZE_ANY_EXHDR(word));
	switch (state)
	{
		case STATE_SUCCEEDED:
			return ACTION_RESOLVE_SUCCEEDED;
		case STATE_FAILED:
			return ACTION_RESOLVE_FAILED;
		case STATE_RELEASED:
			return ACTION_RESOLVE_RELEASED;
		default:
			ereport(ERROR,
					(errcode(word == NULL ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
							 ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("state must be succeeded, failed or released"),
					 address_errdetail(address),
					 errhint("Released means that it may run again.")));
	}
	return ACTION_RESOLVE_RELEASED; /* keep the compiler quiet */
}

/*
 * The same decision again, for the same reason: accepted, and changes nothing.
 */
static bool
is_repeated(const IdemRecord *record, IdemAction action,
			const IdemResult *result, text *reason)
{
	if (record->state != state_next(STATE_UNKNOWN, action) ||
		record->reason.isnull ||
		!datum_image_eq(record->reason.value, PointerGetDatum(reason), false,
						-1))
		return false;
	return record->state == STATE_RELEASED ||
		(!record_has_expired(record, GetCurrentTimestamp()) &&
		 record_same_result(&record->result, result));
}

PG_FUNCTION_INFO_V1(idem_resolve);
Datum
idem_resolve(PG_FUNCTION_ARGS)
{
	IdemAddress address;
	IdemResult	result;
	IdemRecord	record;
	IdemTable	table;
	IdemAction	action;
	IdemState	from;
	text	   *reason;

	address_set_args(&address, fcinfo, 0);
	durability_require_writable(&address);
	action = decision(&address, text_arg(fcinfo, 3));
	reason = complete_read_reason(fcinfo->args[4], true);
	complete_read_result(&fcinfo->args[5], &address, &result);
	durability_begin();

	address_lock(&address);
	record_open(&table, RowExclusiveLock, SnapshotSelf);
	(void) record_probe(&table, &address, &record);
	from = record.state;
	if (is_repeated(&record, action, &result, reason))
	{
		record_close(&table);
		PG_RETURN_VOID();
	}
	if (state_next(from, action) == STATE_NONE)
		complete_refuse(&address, from, action,
						"Only an unknown command needs a decision.");
	if (intent_exists(&address, INTENTS_IN_QUESTION, INTENT_EVER))
		complete_refuse(&address, from, action,
						"It has an intent in flight or unknown: settle that first.");
	if (action == ACTION_RESOLVE_RELEASED)
	{
		record.state = state_next(from, action);
		record.once_more = true;
		record.unknown_at = IDEM_NO_TIME;
	}
	else
		complete_end(&record, &address, state_next(from, action), &result,
					 record.ttl_us);
	record.reason = text_or_null(reason);
	record_update(&table, &address, &record);
	event_write(&address, record.attempt, from, record.state, reason);
	durability_flush();
	stat_count_action(address.operation, action);
	record_close(&table);
	PG_RETURN_VOID();
}

/*
 * What stands there, to somebody who did not say what he asked for: never its
 * response.
 */
static void
answer_bystander(IdemTicket *ticket, const IdemRecord *record)
{
	bytea	   *stored = record->fingerprint.isnull ? NULL :
	DatumGetByteaPP(record->fingerprint.value);

	/*
	 * A lapsed one may still be completed by its owner; a released one is
	 * nobody's, but has done something elsewhere, or will.
	 */
	if (!answer_from_record(ticket, record, stored, GetCurrentTimestamp()))
	{
		answer_in_progress(ticket, record, ANSWER_RETRY_MAX_US);
		ticket->record.state = record->state;
	}
	ticket->with_result = false;
}

static void
cancel(IdemTable *table, const IdemAddress *address, IdemRecord *record,
	   text *reason, IdemTicket *ticket)
{
	IdemState	from = record->state;
	IdemResult	nothing = record->result;

	/* what idem_recover would hand out may go on in the original of a copy */
	if (record->once_more)
		adopt_require(address);
	if (from == STATE_NONE)
	{
		record->created_at = GetCurrentTimestamp();
		record->attempt = 1;
	}
	record->token = claim_token();
	record->reason = text_or_null(reason);
	complete_end(record, address, state_next(from, ACTION_CANCEL), &nothing,
				 0);
	if (from == STATE_NONE)
		record_insert(table, address, record);
	else
		record_update(table, address, record);
	event_write(address, record->attempt, from, record->state, reason);
	durability_flush();
	stat_count_action(address->operation, ACTION_CANCEL);
	*ticket = answer_new(OUTCOME_CANCELLED, record);
}

PG_FUNCTION_INFO_V1(idem_cancel);
Datum
idem_cancel(PG_FUNCTION_ARGS)
{
	IdemAddress address;
	IdemTicket	ticket;
	IdemRecord	record;
	IdemTable	table;
	text	   *reason;
	Datum		result;

	address_set_args(&address, fcinfo, 0);
	durability_require_writable(&address);
	reason = complete_read_reason(fcinfo->args[3], true);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	record_clear(&record);
	if (pending_find_open(&address) != NULL || !address_try_lock(&address))
	{
		/* its owner may have ended since */
		if (record_probe(&table, &address, &record) &&
			state_is_terminal(record.state))
			answer_bystander(&ticket, &record);
		else
			answer_in_progress(&ticket, &record, ANSWER_RETRY_MAX_US);
	}
	else if (!record_probe(&table, &address, &record) ||
			 (state_next(record.state, ACTION_CANCEL) != STATE_NONE &&
			  !intent_exists(&address, INTENTS_NOT_REJECTED, INTENT_EVER)))
		cancel(&table, &address, &record, reason, &ticket);
	else
	{
		answer_bystander(&ticket, &record);
		address_unlock(&address);
	}
	durability_answered(ticket.outcome);
	result = ticket_datum(&address, &ticket);
	record_close(&table);
	PG_RETURN_DATUM(result);
}
