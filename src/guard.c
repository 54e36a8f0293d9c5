/*-------------------------------------------------------------------------
 *
 * guard.c
 *		Guards: business uniqueness next to the key.  A second command with
 *		the guard of one that runs, ran, or may have run, is a duplicate.
 *
 * Invariants:
 *	1. Of the commands of one (tenant, operation, guard) at most one holds
 *	   it, see guard_is_held_by().
 *	2. Whoever writes a record that holds its guard, before or after, has the
 *	   guard's lock until the transaction ends; so has an atomic claim that
 *	   has one.
 *	3. A guard is granted under its lock only, after a probe made under it.
 *
 * Locking: the lock of a guard is taken after the key lock of the address
 * that claims it, and waited for while that is held.  A claim waits only for
 * a guard whose claim is not committed: a record that holds it is an answer.
 * Whoever writes a record waits at most for somebody who looks, and he waits
 * for nothing: a lock taken to look is let go at once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "pending.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/*
 * Takes the guard of a claim from its argument.
 */
void
guard_set(IdemClaim *claim, NullableDatum guard)
{
	claim->guard = NULL;
	if (guard.isnull)
		return;
	claim->guard = DatumGetTextPP(guard.value);
	address_check_text("guard", claim->guard, IDEM_GUARD_MAX,
					   "Pass NULL for no guard.");
}

/*
 * Does the command keep its guard from all others?  It runs, ran with success,
 * nobody knows, or it will run again by itself: what evidence or a decision
 * released may have done a part of its work.  The index idem_record_guard says
 * the same.
 */
bool
guard_is_held_by(const IdemRecord *record)
{
	if (record->guard == NULL)
		return false;
	return record->state == STATE_PROCESSING ||
		record->state == STATE_SUCCEEDED || record->state == STATE_UNKNOWN ||
		(record->state == STATE_RELEASED && record->once_more);
}

/*
 * Does a later claim of an address name another guard?  It may leave it out,
 * and it may bring one to a command that has none yet.
 */
bool
guard_differs(text *asked, text *stored)
{
	return asked != NULL && stored != NULL &&
		!address_same_text(asked, stored);
}

/*
 * The guard that the command will have, in memory that outlives the probe:
 * the one it has, or else the one that is claimed.
 */
text *
guard_of(const IdemClaim *claim, const IdemRecord *record)
{
	if (record->guard == NULL)
		return claim->guard;
	return (text *) DatumGetPointer(datumCopy(PointerGetDatum(record->guard),
											  false, -1));
}

static void
answer_duplicate(IdemTicket *ticket, const IdemRecord *first, text *key)
{
	*ticket = answer_new(OUTCOME_DUPLICATE, first);
	ticket->duplicate_of = key;
	ticket->with_result = first->state == STATE_SUCCEEDED &&
		!record_has_expired(first, GetCurrentTimestamp());
}

/*
 * Does the record of another address hold the guard?  Without its lock only
 * "yes" counts.
 */
static bool
is_held(IdemTable *table, const IdemClaim *claim, const IdemAddress *lock,
		IdemTicket *ticket)
{
	IdemRecord	first;
	text	   *key;

	if (!record_probe_guard(table, lock, &first, &key) ||
		address_same_text(key, claim->address.key))
		return false;
	answer_duplicate(ticket, &first, key);
	return true;
}

/*
 * Does an open atomic claim of this transaction have the guard?
 */
static bool
is_claimed_here(const IdemAddress *lock, IdemTicket *ticket)
{
	IdemPending *own = pending_find_guard(lock);
	IdemRecord	first;

	if (own == NULL)
		return false;
	pending_facts(own, &first);
	answer_duplicate(ticket, &first, own->address.key);
	return true;
}

/*
 * Takes the guard for a claim that may otherwise be granted, or says why not.
 * The key lock is held, so "record" stays what it is, but after a wait it is
 * read again.
 */
bool
guard_take(IdemTable *table, IdemClaim *claim, text *guard,
		   IdemRecord *record, IdemTicket *ticket)
{
	bool		keep_lock = false;	/* of the next wait */
	IdemLocked	locked;
	IdemAddress lock;

	address_set_guard(&lock, &claim->address, guard);
	while ((locked = address_try_lock(&lock)) == LOCKED_NOT)
	{
		TimestampTz now;
		bool		waited;

		if (is_held(table, claim, &lock, ticket))
			return false;
		now = GetCurrentTimestamp();
		if (now >= claim->deadline)
		{
			answer_in_progress(ticket, record, ANSWER_RETRY_MAX_US);
			return false;
		}
		record_let_go(table);
		stat_waits(claim->address.operation, &claim->waiting_since);
		waited = address_wait(&lock, keep_lock, claim->deadline - now);
		(void) record_probe(table, &claim->address, record);
		if (waited && keep_lock)
		{
			locked = LOCKED_NOW;
			break;
		}
		/* as for addresses: first together, then one by one */
		keep_lock = waited;
	}
	if ((locked == LOCKED_BEFORE && is_claimed_here(&lock, ticket)) ||
		is_held(table, claim, &lock, ticket))
	{
		address_unlock(&lock);
		return false;
	}
	return true;
}

/*
 * Before a record is written: nobody may look for the guard while its row
 * moves.
 */
void
guard_lock_to_write(const IdemAddress *address, const IdemRecord *record)
{
	IdemAddress lock;

	if (!record->held_guard && !guard_is_held_by(record))
		return;
	address_set_guard(&lock, address, record->guard);
	address_lock(&lock);
}
