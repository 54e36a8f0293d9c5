/*-------------------------------------------------------------------------
 *
 * attempt.c
 *		The next attempt of a command begins, or nobody may make one.
 *
 * Locking: the key lock is held by whoever calls.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "intent.h"
#include "pending.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/*
 * Nobody may run it any more until a person has looked, or the open intents
 * are settled.  The new token belongs to nobody, so the last owner is fenced
 * off as well.
 */
static void
give_up(IdemTable *table, const IdemClaim *claim, IdemRecord *record,
		const char *why, IdemTicket *ticket)
{
	IdemState	from = record->state;
	text	   *reason = cstring_to_text(why);

	record->state = state_next(from, ACTION_GIVE_UP);
	record->token = claim_token();
	record->lease_until = IDEM_NO_TIME;
	record->unknown_at = GetCurrentTimestamp();
	record->reason = text_or_null(reason);
	record_update(table, &claim->address, record);
	event_write(&claim->address, record->attempt, from, record->state, reason);
	durability_flush();
	stat_count_action(claim->address.operation, ACTION_GIVE_UP);
	*ticket = answer_new(OUTCOME_UNKNOWN, record);
}

/*
 * Gives up a command that nobody may take over, though it is free; false
 * where somebody may.
 */
bool
attempt_give_up(IdemTable *table, const IdemClaim *claim, IdemRecord *record,
				IdemTicket *ticket)
{
	int32		max_attempts = claim->policy.max_attempts;

	if (record->state == STATE_PROCESSING &&
		intent_exists(&claim->address, INTENTS_IN_QUESTION, INTENT_EVER))
		give_up(table, claim, record,
				"lease lapsed with an intent in flight", ticket);
	else if (max_attempts > 0 && record->attempt >= max_attempts &&
			 !record->once_more)
		give_up(table, claim, record, "max_attempts reached", ticket);
	else
		return false;
	return true;
}

/*
 * Nothing is written: the record is inserted once, at completion.
 */
static void
remember(const IdemClaim *claim, const IdemRecord *record, bool replaces,
		 TimestampTz now)
{
	IdemPending pending = {.address = claim->address,
		.replaces = replaces,
		.attempt = record->attempt,
		.policy_version = record->policy_version,
		.token = record->token,
		.ttl_us = claim->ttl_us,
		.created_at = record->created_at,
		.claimed_at = now,
		.fingerprint = claim->fingerprint,
		.guard = record->guard,
	.owner = claim->owner};

	pending_add(&pending);
}

/*
 * The next attempt begins.  The clock is read only now, after any wait.
 */
static void
begin_attempt(IdemTable *table, const IdemClaim *claim, text *guard,
			  IdemRecord *record, IdemTicket *ticket)
{
	IdemState	from = record->state;
	bool		exists = from != STATE_NONE;
	bool		lapsed = from == STATE_PROCESSING;
	TimestampTz now = GetCurrentTimestamp();

	record->state = state_next(from, ACTION_CLAIM);
	record->attempt++;
	record->once_more = false;
	record->guard = guard;
	record->token = claim_token();
	record->owner = text_or_null(claim->owner);
	record->reason = null_datum();
	record->lease_until = IDEM_NO_TIME;
	if (!exists)
	{
		record->created_at = now;
		record->policy_version = claim->policy.version;
		record->fingerprint = text_or_null(claim->fingerprint);
	}
	if (claim->lease_us == 0)
		remember(claim, record, exists, now);
	else
	{
		record->lease_until = now + claim->lease_us;
		record->ttl_us = claim->ttl_us;
		if (claim->policy.keep_request && record->request.isnull)
			record->request = claim->request;
		if (exists)
		{
			record_update(table, &claim->address, record);
			event_write(&claim->address, record->attempt, from, record->state,
						cstring_to_text(lapsed ? "lease lapsed" :
										"claimed again"));
		}
		else
			record_insert(table, &claim->address, record);
		durability_flush();
	}
	*ticket = answer_new(lapsed ? OUTCOME_RESUME : OUTCOME_EXECUTE, record);
	ticket->token = record->token;
}

/*
 * Makes the caller the owner.  The key lock is held, and "record" is what
 * stands there now: nothing, or something that may be claimed.  False where
 * nothing was written, because the guard belongs to another command.
 */
bool
attempt_grant(IdemTable *table, IdemClaim *claim, IdemRecord *record,
			  IdemTicket *ticket)
{
	text	   *guard = guard_of(claim, record);

	/* what idem_recover would hand out may go on in the original of a copy */
	if (record->state == STATE_PROCESSING || record->once_more)
		adopt_require(&claim->address);
	if (guard != NULL && !guard_take(table, claim, guard, record, ticket))
		return false;
	if (record->state == STATE_NONE ||
		!attempt_give_up(table, claim, record, ticket))
		begin_attempt(table, claim, guard, record, ticket);
	return true;
}
