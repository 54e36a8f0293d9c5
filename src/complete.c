/*-------------------------------------------------------------------------
 *
 * complete.c
 *		What the owner of a claim does with it: complete, fail, release,
 *		heartbeat, hold.
 *
 * Each call proves the ticket first.  An atomic claim is found in this
 * transaction's memory, with its key lock held.  For a leased one the key
 * lock is taken and kept until the transaction ends, so that nobody can take
 * over before the caller's other writes are committed; then the token decides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "intent.h"
#include "pending.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

static void
refuse_stale(const IdemAddress *address, const char *message)
{
	stat_count(address->operation, STAT_STALE_TICKETS);
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_STALE_TICKET),
			 errmsg("%s", message),
			 address_errdetail(address),
			 errhint("Claim again and follow the outcome. An atomic claim ends with its transaction, a leased one when somebody takes over.")));
}

void
complete_refuse(const IdemAddress *address, IdemState state,
				IdemAction action, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
			 errmsg("cannot %s a command that is %s", action_name(action),
					state_name(state)),
			 address_errdetail(address),
			 errhint("%s", hint)));
}

void
complete_check_size(const IdemAddress *address, const char *what,
					NullableDatum value)
{
	Size		size;

	if (value.isnull)
		return;
	size = toast_raw_datum_size(value.value) - VARHDRSZ;
	if (size > (Size) idem_max_response_size)
		ereport(ERROR,
				(errcode(ERRCODE_IDEM_RESPONSE_TOO_LARGE),
				 errmsg("%s of %zu bytes exceeds idempotency.max_response_size (%d bytes)",
						what, size, idem_max_response_size),
				 address_errdetail(address),
				 errhint("Store a shorter answer, or a resource alone.")));
}

/*
 * Refuses a result that cannot be stored, before anything is written.
 */
void
complete_check_result(const IdemAddress *address, const IdemResult *result)
{
	complete_check_size(address, "response", result->response);
	complete_check_size(address, "headers", result->headers);
	complete_check_size(address, "body", result->body);
	if (!result->resource.isnull)
		address_check_text("resource", DatumGetTextPP(result->resource.value),
						   IDEM_NOTE_MAX, "Pass NULL for no resource.");
}

/*
 * The record is final from now on.
 */
void
complete_end(IdemRecord *record, const IdemAddress *address, IdemState state,
			 const IdemResult *result, int64 asked_ttl_us)
{
	IdemPolicy	policy;

	policy_get(address->operation, &policy);
	record->state = state;
	record->completed_at = GetCurrentTimestamp();
	record->expires_at = record->completed_at +
		policy_ttl_us(&policy, asked_ttl_us);
	record->lease_until = IDEM_NO_TIME;
	record->unknown_at = IDEM_NO_TIME;
	record->once_more = false;
	record->ttl_us = 0;
	record->result = *result;
}

/*
 * A copy: the claim's memory goes with the claim, the record stays.
 */
static text *
keep(text *value)
{
	return value == NULL ? NULL : DatumGetTextPCopy(PointerGetDatum(value));
}

/*
 * The one write of an atomic claim, which is over before it: a trigger that
 * calls back finds the record.
 */
static void
write_pending(IdemTable *table, const IdemAddress *address,
			  IdemPending *claim, const IdemChange *change,
			  IdemRecord *record)
{
	IdemState	from = STATE_NONE;
	bool		replaces = claim->replaces;
	TimestampTz claimed_at = claim->claimed_at;

	if (!replaces)
	{
		record_clear(record);
		record->created_at = claim->created_at;
		record->policy_version = claim->policy_version;
		record->fingerprint = text_or_null(keep(claim->fingerprint));
	}
	else if (!record_probe(table, address, record) ||
			 state_next(record->state, ACTION_CLAIM) == STATE_NONE)
		/* by an idem_adopt() of this transaction */
		refuse_stale(address, "ticket is not valid any more");
	else
		from = record->state;
	record->attempt = claim->attempt;
	record->token = claim->token;
	record->guard = keep(claim->guard);
	record->owner = text_or_null(keep(claim->owner));
	record->reason = null_datum();
	complete_end(record, address,
				 state_next(STATE_PROCESSING, change->action),
				 &change->result, claim->ttl_us);
	pending_close(claim, PENDING_COMPLETED);
	if (replaces)
	{
		record_update(table, address, record);
		event_write_at(address, claimed_at, record->attempt, from,
					   STATE_PROCESSING,
					   cstring_to_text(from == STATE_PROCESSING ?
									   "lease lapsed" : "claimed again"));
	}
	else
		record_insert(table, address, record);
}

/*
 * Nothing happened, says who releases: the command gives its guard back, and
 * nobody is asked to run it again.  An intent that was not rejected says that
 * something has happened, may have, or will.
 */
static void
refuse_with_intent(const IdemAddress *address, IdemState state)
{
	if (intent_exists(address, INTENTS_NOT_REJECTED, INTENT_EVER))
		complete_refuse(address, state, ACTION_RELEASE,
						"It has an intent that was not rejected. Complete or fail it, or leave it to whoever takes over when its lease has lapsed.");
}

static void
apply_to_pending(IdemTable *table, const IdemAddress *address,
				 IdemPending *claim, const IdemChange *change,
				 IdemRecord *record)
{
	switch (change->action)
	{
		case ACTION_COMPLETE:
		case ACTION_FAIL:
			write_pending(table, address, claim, change, record);
			stat_count_action(address->operation, change->action);
			break;
		case ACTION_RELEASE:
			refuse_with_intent(address, STATE_PROCESSING);
			/* the lock stays: a savepoint may bring the claim back */
			pending_close(claim, PENDING_RELEASED);
			stat_count_action(address->operation, change->action);
			break;
		case ACTION_HOLD:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
					 errmsg("cannot %s an atomic claim",
							change->action == ACTION_HEARTBEAT ? "extend" :
							action_name(change->action)),
					 address_errdetail(address),
					 errhint("It lasts as long as its transaction: complete it, or roll back.")));
	}
}

/*
 * The same again: accepted, and changes nothing.
 */
static void
check_repeat(const IdemAddress *address, const IdemChange *change,
			 const IdemRecord *record)
{
	if (record_has_expired(record, GetCurrentTimestamp()))
		complete_refuse(address, record->state, change->action,
						"Its answer has expired, so it cannot be compared.");
	if (!record_same_result(&record->result, &change->result))
		complete_refuse(address, record->state, change->action,
						"It has another answer already, which stays.");
}

static int64
heartbeat_us(const IdemAddress *address, const IdemChange *change)
{
	IdemPolicy	policy;
	int64		lease_us;

	policy_get(address->operation, &policy);
	lease_us = policy_lease_us(&policy, change->has_lease ? &change->lease :
							   NULL);
	if (lease_us == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("heartbeat needs a lease"),
				 address_errdetail(address),
				 errhint("Pass one, or give the operation's policy a lease.")));
	return lease_us;
}

static void
apply_to_record(IdemTable *table, const IdemAddress *address,
				const IdemChange *change, IdemRecord *record)
{
	IdemState	from = record->state;
	IdemState	next = state_next(from, change->action);
	bool		noted = false;

	if (next == STATE_NONE)
		complete_refuse(address, record->state, change->action,
						state_is_terminal(record->state) ?
						"A final state never changes." :
						"Claim it again and follow the outcome.");
	switch (change->action)
	{
		case ACTION_HOLD:
			return;
		case ACTION_HEARTBEAT:
			record->lease_until = GetCurrentTimestamp() +
				heartbeat_us(address, change);
			break;
		case ACTION_RELEASE:
		case ACTION_UNKNOWN:
			if (next == record->state)
				return;
			if (change->action == ACTION_RELEASE)
				refuse_with_intent(address, record->state);
			noted = true;
			record->state = next;
			record->lease_until = IDEM_NO_TIME;
			if (next == STATE_UNKNOWN)
				record->unknown_at = GetCurrentTimestamp();
			record->reason = text_or_null(change->reason);
			break;
		default:
			if (next == record->state)
			{
				check_repeat(address, change, record);
				return;
			}
			complete_end(record, address, next, &change->result,
						 record->ttl_us);
			break;
	}
	record_update(table, address, record);
	if (noted)
		event_write(address, record->attempt, from, next, change->reason);
	durability_flush();
	stat_count_action(address->operation, change->action);
}

/*
 * Applies a change that the ticket's holder asks for, or refuses it and
 * leaves everything as it was.  "record" becomes what is stored then.
 */
void
complete_apply(IdemTable *table, const IdemAddress *address, int64 token,
			   const IdemChange *change, IdemRecord *record)
{
	IdemPending *claim;

	record_clear(record);
	if (token == 0)
		refuse_stale(address, "ticket has no token");
	claim = pending_find_token(address, token);
	if (claim != NULL && claim->status == PENDING_OPEN)
	{
		apply_to_pending(table, address, claim, change, record);
		return;
	}
	if (claim != NULL && claim->status == PENDING_RELEASED)
	{
		if (state_next(STATE_RELEASED, change->action) == STATE_NONE)
			complete_refuse(address, STATE_RELEASED, change->action,
							"Claim it again and follow the outcome.");
		return;
	}

	/* taken over by this very transaction, which has written nothing yet */
	if (pending_find_open(address) != NULL)
		refuse_stale(address, "ticket is not valid any more");

	address_lock(address);
	if (!record_probe(table, address, record) || record->token != token)
		refuse_stale(address, "ticket is not valid any more");
	apply_to_record(table, address, change, record);
}

/*
 * Five successive arguments: response, code, resource, headers, body.
 */
void
complete_read_result(const NullableDatum *args, const IdemAddress *address,
					 IdemResult *result)
{
	result->response = args[0];
	result->code = args[1];
	result->resource = args[2];
	result->headers = args[3];
	result->body = args[4];
	complete_check_result(address, result);
}

text *
complete_read_reason(NullableDatum arg, bool required)
{
	text	   *reason = arg.isnull ? NULL : DatumGetTextPP(arg.value);

	if (required || reason != NULL)
		address_check_text("reason", reason, IDEM_NOTE_MAX,
						   "Say why in a few words.");
	return reason;
}
