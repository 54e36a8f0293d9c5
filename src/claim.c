/*-------------------------------------------------------------------------
 *
 * claim.c
 *		Claims: who may run a command, and what everybody else is told.
 *
 * A probe under the key lock decides: what it finds is the truth until the
 * lock is let go.  The lock is asked for without waiting.  A probe without it
 * comes first where a replay is likely, and when the lock is taken: a terminal
 * record answers for good, so a storm of replays never queues and is never
 * told in_progress.  A miss without the lock proves nothing.
 *
 * Only the lock on its own address, or on its guard (guard.c), can make a
 * claim wait, and only within the bound that the caller chose.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "intent.h"
#include "miscadmin.h"
#include "pending.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#define NAP_MIN_MS			2
#define NAP_MAX_MS			100
#define TOKEN_STOCK			32

/*
 * What this session's next claim will probably be.  A wrong guess costs a
 * probe, or a lock that is let go; never a wrong answer.
 */
static bool expect_new = true;

/*
 * Fills in the arguments that claims have in common; the address and its
 * policy are there already.
 */
void
claim_set_options(IdemClaim *claim, FunctionCallInfo fcinfo,
				  const IdemClaimArgs *args)
{
	const IdemPolicy *policy = &claim->policy;
	bool		has_wait = !PG_ARGISNULL(args->wait);

	claim->deadline = GetCurrentTimestamp() +
		policy_wait_us(policy, has_wait ? PG_GETARG_INTERVAL_P(args->wait) :
					   NULL);
	claim->guards_later = false;
	claim->lease_us = 0;
	if (args->lease >= 0)
		claim->lease_us = policy_lease_us(policy, PG_ARGISNULL(args->lease) ?
										  NULL :
										  PG_GETARG_INTERVAL_P(args->lease));
	claim->ttl_us = PG_ARGISNULL(args->ttl) ? 0 :
		duration_us("ttl", PG_GETARG_INTERVAL_P(args->ttl));
	claim->owner = NULL;
	if (!PG_ARGISNULL(args->owner))
	{
		claim->owner = PG_GETARG_TEXT_PP(args->owner);
		address_check_text("owner", claim->owner, IDEM_OWNER_MAX,
						   "Pass NULL for no owner.");
	}
}

/*
 * What the address is bound to: a request, or a fingerprint of it, and a
 * guard.
 */
void
claim_set_request(IdemClaim *claim, NullableDatum request,
				  NullableDatum fingerprint, NullableDatum guard)
{
	guard_set(claim, guard);
	claim->request = request;
	claim->fingerprint = NULL;
	if (!request.isnull && !fingerprint.isnull)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("request and fingerprint exclude each other"),
				 address_errdetail(&claim->address),
				 errhint("Pass the request, or a fingerprint of it.")));
	if (!request.isnull)
		claim->fingerprint =
			fingerprint_compute(DatumGetJsonbP(request.value),
								claim->policy.ignore_paths);
	else if (!fingerprint.isnull)
	{
		claim->fingerprint = DatumGetByteaPP(fingerprint.value);
		fingerprint_check_given(claim->fingerprint);
	}
}

/*
 * A random number above zero.  They are fetched by the dozen: most of the
 * generator's cost is per call.
 */
int64
claim_token(void)
{
	static uint64 stock[TOKEN_STOCK];
	static int	left = 0;
	uint64		token;

	do
	{
		if (left == 0)
		{
			if (!pg_strong_random(stock, sizeof(stock)))
				ereport(ERROR,
						(errcode(ERRCODE_INTERNAL_ERROR),
						 errmsg("could not generate random tokens")));
			left = TOKEN_STOCK;
		}
		token = stock[--left] & PG_INT64_MAX;
	} while (token == 0);
	return (int64) token;
}

/*
 * A committed lease has no lock to wait for: look again and again, ever less
 * often, until the deadline or the end of the lease.
 */
static void
nap(int *nap_ms, TimestampTz until)
{
	long		left_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														  until);

	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(*nap_ms, left_ms + 1), PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	*nap_ms = Min(*nap_ms * 2, NAP_MAX_MS);
}

/*
 * Asks the record itself.  Without the key lock only an answer counts: a miss
 * proves nothing.
 */
static bool
look(IdemTable *table, const IdemClaim *claim, IdemRecord *record,
	 IdemTicket *ticket)
{
	if (!record_probe(table, &claim->address, record))
		return false;
	if (!guard_differs(claim->guard, record->guard))
		return answer_from_record(ticket, record, claim->fingerprint,
								  GetCurrentTimestamp());
	*ticket = answer_new(OUTCOME_MISMATCH, record);
	return true;
}

/*
 * With the key lock: answers and lets go of it, or makes the caller the owner.
 * False where that is put off, see claim_take().
 */
static bool
decide(IdemTable *table, IdemClaim *claim, IdemRecord *record,
	   IdemTicket *ticket)
{
	if (look(table, claim, record, ticket))
		address_unlock(&claim->address);
	else if (claim->guards_later && guard_of(claim, record) != NULL)
	{
		claim->guard = guard_of(claim, record);
		return false;
	}
	else if (!attempt_grant(table, claim, record, ticket))
		address_unlock(&claim->address);
	return true;
}

/*
 * Begun only, see claim_take(): what it waited for its address is counted now.
 */
static bool
put_off(const IdemClaim *claim)
{
	stat_waited(claim->address.operation, claim->waiting_since);
	return false;
}

/*
 * Claims the address, or says why not.
 *
 * With "guards_later" a claim that needs a guard is only begun: then this
 * returns false, with the key lock held and claim->guard set.
 */
bool
claim_take(IdemTable *table, IdemClaim *claim, IdemTicket *ticket)
{
	const IdemAddress *address = &claim->address;
	IdemRecord	record;
	bool		keep_lock = false;	/* of the next wait */
	bool		probe_first = !expect_new;
	int			nap_ms = NAP_MIN_MS;

	/* after an error, too: a full lock table must not hide every answer */
	expect_new = false;
	INSTR_TIME_SET_ZERO(claim->waiting_since);
	if (answer_own(ticket, address, claim->fingerprint, claim->guard))
	{
		stat_count(address->operation, (IdemStat) ticket->outcome);
		return true;
	}
	for (;; probe_first = true)
	{
		bool		busy = false;	/* is the key lock taken? */
		TimestampTz now;

		if (!probe_first || !look(table, claim, &record, ticket))
		{
			if (address_try_lock(address))
			{
				if (!decide(table, claim, &record, ticket))
					return put_off(claim);
			}
			else if (!look(table, claim, &record, ticket))
			{
				/* not even now: its owner's transaction is still open */
				answer_in_progress(ticket, &record, ANSWER_RETRY_MAX_US);
				busy = true;
			}
		}

		now = GetCurrentTimestamp();
		if (ticket->outcome != OUTCOME_IN_PROGRESS || now >= claim->deadline)
			break;
		/* this transaction would wait for itself */
		if (!busy && record.ours)
			break;
		record_let_go(table);
		stat_waits(address->operation, &claim->waiting_since);
		if (!busy)
			nap(&nap_ms, Min(claim->deadline, record.lease_until));
		else if (address_wait(address, keep_lock, claim->deadline - now))
		{
			if (keep_lock)
			{
				if (!decide(table, claim, &record, ticket))
					return put_off(claim);
				if (ticket->outcome != OUTCOME_IN_PROGRESS)
					break;
			}
			/* a commit answers all at once; after a rollback queue up */
			keep_lock = !keep_lock;
		}
	}
	expect_new = ticket->outcome == OUTCOME_EXECUTE;
	durability_answered(ticket->outcome);
	stat_count(address->operation, (IdemStat) ticket->outcome);
	stat_waited(address->operation, claim->waiting_since);
	return true;
}

PG_FUNCTION_INFO_V1(idem_claim);
Datum
idem_claim(PG_FUNCTION_ARGS)
{
	static const IdemClaimArgs args = {.wait = 6,.lease = 7,.ttl = 8,
	.owner = 9};
	IdemClaim	claim;
	IdemTicket	ticket;
	IdemTable	table;
	Datum		result;

	address_set_args(&claim.address, fcinfo, 0);
	durability_require_writable(&claim.address);
	policy_get(claim.address.operation, &claim.policy);
	claim_set_options(&claim, fcinfo, &args);
	claim_set_request(&claim, fcinfo->args[3], fcinfo->args[4],
					  fcinfo->args[5]);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	(void) claim_take(&table, &claim, &ticket);
	result = ticket_datum(&claim.address, &ticket);
	record_close(&table);
	PG_RETURN_DATUM(result);
}
