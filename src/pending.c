/*-------------------------------------------------------------------------
 *
 * pending.c
 *		The atomic claims of this transaction, and all transaction callbacks.
 *
 * Invariants:
 *	1. An entry exists only while its key lock is held, and that of its
 *	   guard: they go when the subtransaction that made the claim aborts, and
 *	   when the transaction ends.
 *	2. No transaction commits or is prepared with an open entry.
 *	3. An address has at most one open entry.
 *
 * Savepoints: every change is noted in a log with the subtransaction that
 * made it.  Subtransaction ids grow, and one aborts only after all that began
 * later have ended, so its abort undoes exactly the notes with its own id or
 * a higher one, which stand at the end of the log; its commit needs nothing
 * done.  Outside of any subtransaction nothing can be undone but the whole
 * transaction, and nothing is noted.
 *
 * Memory: all of it belongs to TopTransactionContext and goes with it.  The
 * callbacks write nothing and read no table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "idempotency.h"
#include "pending.h"
#include "utils/memutils.h"

#define BUCKETS_MIN 16			/* a power of two */

typedef struct Note
{
	SubTransactionId subid;
	IdemPending *claim;
	bool		made;			/* else: closed */
} Note;

/* entries by the hash of their address */
static IdemPending **buckets = NULL;
static uint32 nbuckets = 0;
static uint32 nclaims = 0;
static uint32 nopen = 0;

static Note *notes = NULL;
static uint32 nnotes = 0;
static uint32 max_notes = 0;

/*
 * Forgets everything; the memory goes with the transaction.
 */
static void
reset(void)
{
	buckets = NULL;
	nbuckets = nclaims = nopen = 0;
	notes = NULL;
	nnotes = max_notes = 0;
}

static IdemPending **
bucket_of(uint64 hash)
{
	return &buckets[hash & (nbuckets - 1)];
}

static void
link_claim(IdemPending *claim)
{
	IdemPending **bucket = bucket_of(claim->address.hash);

	claim->next = *bucket;
	*bucket = claim;
}

/*
 * Twice the buckets when there are as many entries.
 */
static void
grow_buckets(void)
{
	IdemPending **old = buckets;
	uint32		nold = nbuckets;

	if (nclaims < nbuckets)
		return;
	nbuckets = nold == 0 ? BUCKETS_MIN : nold * 2;
	buckets = MemoryContextAllocExtended(TopTransactionContext,
										 nbuckets * sizeof(IdemPending *),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < nold; i++)
	{
		while (old[i] != NULL)
		{
			IdemPending *claim = old[i];

			old[i] = claim->next;
			link_claim(claim);
		}
	}
	if (old != NULL)
		pfree(old);
}

static void
drop_claim(IdemPending *claim)
{
	IdemPending **link = bucket_of(claim->address.hash);

	while (*link != claim)
		link = &(*link)->next;
	*link = claim->next;
	nclaims--;
	if (claim->status == PENDING_OPEN)
		nopen--;
	pfree(claim);
}

/*
 * Room for one more note; may fail, so it comes before the change.
 */
static void
reserve_note(void)
{
	if (GetCurrentTransactionNestLevel() == 1)
	{
		nnotes = 0;				/* nothing noted can be undone any more */
		return;
	}
	if (nnotes < max_notes)
		return;
	if (notes == NULL)
		notes = MemoryContextAlloc(TopTransactionContext,
								   (max_notes = 16) * sizeof(Note));
	else
		notes = repalloc_huge(notes,
							  (Size) (max_notes *= 2) * sizeof(Note));
}

static void
note(IdemPending *claim, bool made)
{
	if (GetCurrentTransactionNestLevel() == 1)
		return;
	notes[nnotes].subid = GetCurrentSubTransactionId();
	notes[nnotes].claim = claim;
	notes[nnotes].made = made;
	nnotes++;
}

static char *
copy_varlena(char *to, void *value)
{
	memcpy(to, value, VARSIZE_ANY(value));
	return to + INTALIGN(VARSIZE_ANY(value));
}

static Size
size_of(void *value)
{
	return value == NULL ? 0 : INTALIGN(VARSIZE_ANY(value));
}

/*
 * Remembers a claim, in one piece of memory.  The caller holds its key lock,
 * and that of its guard, until the (sub)transaction ends.
 */
void
pending_add(const IdemPending *claim)
{
	const IdemAddress *from = &claim->address;
	IdemPending *copy;
	char	   *at;

	reserve_note();
	grow_buckets();
	copy = MemoryContextAlloc(TopTransactionContext,
							  MAXALIGN(sizeof(IdemPending)) +
							  size_of(from->tenant) +
							  size_of(from->operation) + size_of(from->key) +
							  size_of(claim->fingerprint) +
							  size_of(claim->guard) + size_of(claim->owner));
	*copy = *claim;
	at = (char *) copy + MAXALIGN(sizeof(IdemPending));
	copy->address.tenant = (text *) at;
	at = copy_varlena(at, from->tenant);
	copy->address.operation = (text *) at;
	at = copy_varlena(at, from->operation);
	copy->address.key = (text *) at;
	at = copy_varlena(at, from->key);
	if (claim->fingerprint != NULL)
	{
		copy->fingerprint = (bytea *) at;
		at = copy_varlena(at, claim->fingerprint);
	}
	if (claim->guard != NULL)
	{
		IdemAddress lock;

		copy->guard = (text *) at;
		at = copy_varlena(at, claim->guard);
		address_set_guard(&lock, &copy->address, copy->guard);
		copy->guard_hash = lock.hash;
	}
	if (claim->owner != NULL)
	{
		copy->owner = (text *) at;
		(void) copy_varlena(at, claim->owner);
	}
	copy->status = PENDING_OPEN;
	link_claim(copy);
	nclaims++;
	nopen++;
	note(copy, true);
}

/*
 * The open claim of an address, or NULL.
 */
IdemPending *
pending_find_open(const IdemAddress *address)
{
	if (nopen == 0)
		return NULL;
	for (IdemPending *claim = *bucket_of(address->hash); claim != NULL;
		 claim = claim->next)
	{
		if (claim->status == PENDING_OPEN &&
			address_equal(&claim->address, address))
			return claim;
	}
	return NULL;
}

/*
 * The open claim that has a guard, or NULL.  To be asked only where this
 * transaction had the guard's lock before: otherwise there is none, and this
 * looks at all of them.
 */
IdemPending *
pending_find_guard(const IdemAddress *lock)
{
	for (uint32 i = 0; i < nbuckets; i++)
	{
		for (IdemPending *claim = buckets[i]; claim != NULL;
			 claim = claim->next)
		{
			IdemAddress guard;

			if (claim->status != PENDING_OPEN || claim->guard == NULL ||
				claim->guard_hash != lock->hash)
				continue;
			address_set_guard(&guard, &claim->address, claim->guard);
			if (address_equal(&guard, lock))
				return claim;
		}
	}
	return NULL;
}

/*
 * The claim with that token, open or not, or NULL.
 */
IdemPending *
pending_find_token(const IdemAddress *address, int64 token)
{
	if (nclaims == 0)
		return NULL;
	for (IdemPending *claim = *bucket_of(address->hash); claim != NULL;
		 claim = claim->next)
	{
		if (claim->token == token && address_equal(&claim->address, address))
			return claim;
	}
	return NULL;
}

/*
 * What is known of an open claim, as a record would say it.
 */
void
pending_facts(const IdemPending *claim, IdemRecord *record)
{
	record_clear(record);
	record->state = STATE_PROCESSING;
	record->attempt = claim->attempt;
	record->created_at = claim->created_at;
	record->owner = text_or_null(claim->owner);
}

/*
 * The claim was completed (its record says so from now on) or released.
 */
void
pending_close(IdemPending *claim, IdemPendingStatus status)
{
	Assert(claim->status == PENDING_OPEN && status != PENDING_OPEN);
	reserve_note();
	nopen--;
	claim->status = status;
	note(claim, false);

	/* no savepoint can open it again, and its record answers for it */
	if (status == PENDING_COMPLETED && GetCurrentTransactionNestLevel() == 1)
		drop_claim(claim);
}

static void
undo(SubTransactionId subid)
{
	while (nnotes > 0 && notes[nnotes - 1].subid >= subid)
	{
		Note	   *last = &notes[--nnotes];

		if (last->made)
			drop_claim(last->claim);
		else
		{
			last->claim->status = PENDING_OPEN;
			nopen++;
		}
	}
}

static void
refuse_open(void)
{
	for (uint32 i = 0; i < nbuckets; i++)
	{
		for (IdemPending *claim = buckets[i]; claim != NULL;
			 claim = claim->next)
		{
			if (claim->status == PENDING_OPEN)
				ereport(ERROR,
						(errcode(ERRCODE_IDEM_UNFINISHED),
						 errmsg_plural("cannot commit with %u unfinished atomic claim",
									   "cannot commit with %u unfinished atomic claims",
									   nopen, nopen),
						 address_errdetail(&claim->address),
						 errhint("Call idem_complete(), idem_fail() or idem_release() in the transaction of idem_claim(), or claim with a lease.")));
		}
	}
}

static void
at_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (nopen > 0)
				refuse_open();
			durability_pre_commit();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			reset();
			durability_reset();
			break;
		default:				/* parallel workers have no claims */
			break;
	}
}

static void
at_subtransaction(SubXactEvent event, SubTransactionId subid,
				  SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		undo(subid);
}

void
pending_init(void)
{
	RegisterXactCallback(at_transaction, NULL);
	RegisterSubXactCallback(at_subtransaction, NULL);
}
