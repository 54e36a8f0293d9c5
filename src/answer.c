/*-------------------------------------------------------------------------
 *
 * answer.c
 *		What a record says to everybody but its owner.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "pending.h"
#include "utils/timestamp.h"

/*
 * A ticket with the record's facts and nothing else.
 */
IdemTicket
answer_new(IdemOutcome outcome, const IdemRecord *record)
{
	IdemTicket	ticket = {.outcome = outcome,.retry_after_us = -1,
	.record = *record};

	return ticket;
}

/*
 * The address is held by somebody: say when to ask again.
 */
void
answer_in_progress(IdemTicket *ticket, const IdemRecord *record,
				   int64 retry_after_us)
{
	*ticket = answer_new(OUTCOME_IN_PROGRESS, record);
	ticket->record.state = STATE_PROCESSING;
	ticket->retry_after_us = Max(0, Min(retry_after_us, ANSWER_RETRY_MAX_US));
}

/*
 * The answer that an existing record gives to everybody but its owner.
 * Returns false where the record may be claimed.
 */
bool
answer_from_record(IdemTicket *ticket, const IdemRecord *record,
				   bytea *fingerprint, TimestampTz now)
{
	bytea	   *stored = record->fingerprint.isnull ? NULL :
	DatumGetByteaPP(record->fingerprint.value);

	/*
	 * Before anything else is said, whatever the state.  A command that was
	 * cancelled before it was claimed is bound to no request.
	 */
	if (!fingerprint_equal(stored, fingerprint) &&
		!(record->state == STATE_CANCELLED && stored == NULL))
		*ticket = answer_new(OUTCOME_MISMATCH, record);
	else if (state_is_terminal(record->state) &&
			 record_has_expired(record, now))
		*ticket = answer_new(OUTCOME_EXPIRED, record);
	else if (record->state == STATE_CANCELLED)
		*ticket = answer_new(OUTCOME_CANCELLED, record);
	else if (state_is_terminal(record->state))
	{
		*ticket = answer_new(OUTCOME_REPLAY, record);
		ticket->with_result = true;
	}
	else if (record->state == STATE_UNKNOWN)
		*ticket = answer_new(OUTCOME_UNKNOWN, record);
	else if (record->state == STATE_PROCESSING &&
			 (now < record->lease_until || record->ours))
		answer_in_progress(ticket, record, now < record->lease_until ?
						   record->lease_until - now : ANSWER_RETRY_MAX_US);
	else
		return false;
	return true;
}

/*
 * An owner within this transaction: itself an answer, and no lock is asked
 * for, since this transaction would get it.
 */
bool
answer_own(IdemTicket *ticket, const IdemAddress *address, bytea *fingerprint,
		   text *guard)
{
	IdemPending *own = pending_find_open(address);
	IdemRecord	record;

	if (own == NULL)
		return false;
	pending_facts(own, &record);
	if (!fingerprint_equal(own->fingerprint, fingerprint) ||
		guard_differs(guard, own->guard))
		*ticket = answer_new(OUTCOME_MISMATCH, &record);
	else
		answer_in_progress(ticket, &record, ANSWER_RETRY_MAX_US);
	return true;
}
