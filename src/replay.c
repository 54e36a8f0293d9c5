/*-------------------------------------------------------------------------
 *
 * replay.c
 *		Asking without claiming: idem_replay, and idem_require for callers
 *		who want outcomes as errors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/*
 * The caller's snapshot finds the row even while it is being moved by an
 * update.  Under SERIALIZABLE it would take predicate locks, and so set
 * unrelated addresses against each other; SnapshotSelf takes none, and what
 * it misses is at worst "absent", which is no proof anyway.
 */
static Snapshot
replay_snapshot(void)
{
	return IsolationIsSerializable() ? SnapshotSelf : GetActiveSnapshot();
}

/*
 * Is there an answer?  "record" is what was found, also when it has none.
 */
static bool
look(IdemTable *table, const IdemClaim *claim, IdemRecord *record,
	 IdemTicket *ticket)
{
	return record_probe(table, &claim->address, record) &&
		answer_from_record(ticket, record, claim->fingerprint,
						   GetCurrentTimestamp());
}

/*
 * The caller's snapshot shows nothing final; it may be older than an owner's
 * commit.  Look again, at what is true now, whatever the isolation level.
 *
 * The lock is asked for first: it goes only when its owner's commit can be
 * seen, so nobody is told absent after somebody was told in_progress.
 */
static void
look_again(IdemTable *table, const IdemClaim *claim, IdemRecord *record,
		   IdemTicket *ticket)
{
	bool		busy = address_is_locked_elsewhere(&claim->address);

	record_close(table);
	/* what this very command wrote counts as well */
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	record_open(table, AccessShareLock, replay_snapshot());
	if (look(table, claim, record, ticket))
		return;
	if (busy)
		answer_in_progress(ticket, record, ANSWER_RETRY_MAX_US);
	else
		*ticket = answer_new(OUTCOME_ABSENT, record);
}

PG_FUNCTION_INFO_V1(idem_replay);
Datum
idem_replay(PG_FUNCTION_ARGS)
{
	IdemClaim	claim;
	IdemTicket	ticket;
	IdemRecord	record;
	IdemTable	table;
	bool		again = false;
	Datum		result;

	PreventCommandIfParallelMode("idem_replay()");
	address_set_args(&claim.address, fcinfo, 0);
	policy_get(claim.address.operation, &claim.policy);
	claim_set_request(&claim, fcinfo->args[3], fcinfo->args[4], null_datum());
	durability_begin();

	record_open(&table, AccessShareLock, replay_snapshot());
	if (!answer_own(&ticket, &claim.address, claim.fingerprint, NULL))
	{
		/* what is final in any snapshot is final now */
		again = !look(&table, &claim, &record, &ticket) ||
			!state_is_terminal(record.state);
		if (again)
			look_again(&table, &claim, &record, &ticket);
	}
	durability_answered(ticket.outcome);
	stat_count(claim.address.operation, STAT_LOOKUPS);
	if (ticket.outcome == OUTCOME_ABSENT)
		stat_count(claim.address.operation, STAT_LOOKUPS_ABSENT);
	result = ticket_datum(&claim.address, &ticket);
	record_close(&table);
	if (again)
		PopActiveSnapshot();
	PG_RETURN_DATUM(result);
}

/*
 * What each outcome becomes as an error; execute, resume and replay are none.
 */
static const struct
{
	int			sqlstate;
	const char *message;
	const char *hint;
}			requirements[OUTCOME_COUNT] = {

	[OUTCOME_IN_PROGRESS] = {
		ERRCODE_IDEM_IN_PROGRESS, "command is in progress",
		"Ask again after retry_after, or claim with a wait."
	},
	[OUTCOME_MISMATCH] = {
		ERRCODE_IDEM_MISMATCH, "key was used for a different request",
		"Use a new key for a new request."
	},
	[OUTCOME_EXPIRED] = {
		ERRCODE_IDEM_EXPIRED, "command has run, and its answer has expired",
		"Do not run it again; look for what it made."
	},
	[OUTCOME_UNKNOWN] = {
		ERRCODE_IDEM_UNKNOWN, "outcome of the command is unknown",
		"Do not run it again; it has to be reconciled first."
	},
	[OUTCOME_DUPLICATE] = {
		ERRCODE_IDEM_DUPLICATE, "command was given under another key",
		"Use the answer of the first command."
	},
	[OUTCOME_CANCELLED] = {
		ERRCODE_IDEM_CANCELLED, "command was cancelled before it ran",
		"Use a new key to give it again."
	},
	[OUTCOME_ABSENT] = {
		ERRCODE_IDEM_ABSENT, "no result of the command is known here",
		"Claim it to run it."
	}
};

PG_FUNCTION_INFO_V1(idem_require);
Datum
idem_require(PG_FUNCTION_ARGS)
{
	HeapTupleHeader row;
	IdemOutcome outcome;
	IdemAddress address;
	int64		token;
	text	   *first;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("ticket must not be NULL"),
				 errdetail("The ticket says which command is meant."),
				 errhint("Pass the ticket that idem_claim() returned.")));
	row = PG_GETARG_HEAPTUPLEHEADER(0);
	outcome = ticket_read_outcome(row);
	ticket_read(row, &address, &token);
	first = ticket_read_duplicate_of(row);
	if (requirements[outcome].message != NULL)
		ereport(ERROR,
				(errcode(requirements[outcome].sqlstate),
				 errmsg("%s", requirements[outcome].message),
				 first == NULL ? address_errdetail(&address) :
				 errdetail("The address is tenant \"%s\", operation \"%s\", key \"%s\"; the first command has key \"%s\".",
						   text_to_cstring(address.tenant),
						   text_to_cstring(address.operation),
						   text_to_cstring(address.key),
						   text_to_cstring(first)),
				 errhint("%s", requirements[outcome].hint)));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}
