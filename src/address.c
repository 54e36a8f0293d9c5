/*-------------------------------------------------------------------------
 *
 * address.c
 *		Addresses: checks of tenant, operation and key, and the key lock.  The
 *		lock on a guard is one of them.
 *
 * Locking: the key lock is a transaction-scoped heavyweight lock in a class
 * of its own among the advisory locks, so that the advisory locks of an
 * application never touch it.  Whoever writes a record holds its key lock
 * until the end of the transaction; a lock taken only to look is let go
 * under the resource owner that took it, which is always the one of the
 * (sub)transaction, never that of a portal.
 *
 * Two addresses can share a lock (a 64-bit hash).  That can make one wait
 * for, or answer in_progress because of, the other; records are found by
 * comparing all bytes, so it can do no more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "idempotency.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/resowner.h"

/* field4 of the lock tag; 1 and 2 are the application's advisory locks */
#define KEY_LOCK_CLASS 0x4944

static bool
is_blank(const char *bytes, int len)
{
	return (int) strspn(bytes, " \t\n\v\f\r") >= len;
}

/*
 * Refuses a text that is NULL, blank or too long.  Values are not repeated in
 * the message: they can be of any size.
 */
void
address_check_text(const char *what, text *value, int max_chars,
				   const char *hint)
{
	int			len;
	int			nchars;

	if (value == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be NULL", what),
				 errdetail("It must have 1 to %d characters.", max_chars),
				 errhint("%s", hint)));

	len = VARSIZE_ANY_EXHDR(value);
	/* only what may be too long is counted */
	nchars = len <= max_chars ? len :
		pg_mbstrlen_with_len(VARDATA_ANY(value), len);
	if (nchars > max_chars)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is too long", what),
				 errdetail("It has %d characters, the limit is %d.",
						   nchars, max_chars),
				 errhint("Use a digest of what is longer.")));

	/* most begin with a letter: look no further */
	if (len == 0 || (*VARDATA_ANY(value) <= ' ' &&
					 is_blank(pnstrdup(VARDATA_ANY(value), len), len)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not be blank", what),
				 errdetail("It must have 1 to %d characters, not only white space.",
						   max_chars),
				 errhint("%s", hint)));
}

static uint64
hash_part(text *part, uint64 seed)
{
	/* the length keeps ('ab', 'c') and ('a', 'bc') apart */
	int			len = VARSIZE_ANY_EXHDR(part);

	return hash_bytes_extended((unsigned char *) VARDATA_ANY(part), len,
							   seed + (uint64) len);
}

/*
 * The hash is seen in pg_locks by everybody: the cluster's secret keeps a
 * tenant from recognising the addresses of another, and from making one that
 * shares its lock.
 */
static uint64
secret_seed(void)
{
	uint64		seed;

	memcpy(&seed, GetMockAuthenticationNonce(), sizeof(seed));
	return seed;
}

/*
 * NULL stands for SQL's NULL.  Whoever names an address comes through here, so
 * this is where the tenant has to be allowed.
 */
void
address_set(IdemAddress *address, text *tenant, text *operation, text *key)
{
	address_check_text("tenant", tenant, IDEM_TENANT_MAX,
					   "A command without tenant cannot be protected.");
	address_check_text("operation", operation, IDEM_OPERATION_MAX,
					   "A command without operation cannot be protected.");
	address_check_text("key", key, IDEM_KEY_MAX,
					   "A command without key cannot be protected.");
	access_require(tenant);
	address->tenant = tenant;
	address->operation = operation;
	address->key = key;
	address->is_guard = false;
	address->hash = hash_part(key,
							  hash_part(operation,
										hash_part(tenant, secret_seed())));
}

/*
 * What to lock for a guard of a command's operation: it looks like an address,
 * and its hash is of another kind, so that a guard and a key of one spelling
 * have nothing to do with each other.
 */
void
address_set_guard(IdemAddress *lock, const IdemAddress *address, text *guard)
{
	lock->tenant = address->tenant;
	lock->operation = address->operation;
	lock->key = guard;
	lock->is_guard = true;
	lock->hash = hash_part(guard,
						   hash_part(lock->operation,
									 hash_part(lock->tenant, ~secret_seed())));
}

/*
 * From three successive arguments of a function.
 */
void
address_set_args(IdemAddress *address, FunctionCallInfo fcinfo, int first)
{
	address_set(address,
				PG_ARGISNULL(first) ? NULL : PG_GETARG_TEXT_PP(first),
				PG_ARGISNULL(first + 1) ? NULL : PG_GETARG_TEXT_PP(first + 1),
				PG_ARGISNULL(first + 2) ? NULL : PG_GETARG_TEXT_PP(first + 2));
}

bool
address_same_text(text *a, text *b)
{
	int			len = VARSIZE_ANY_EXHDR(a);

	return len == (int) VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), len) == 0;
}

bool
address_equal(const IdemAddress *a, const IdemAddress *b)
{
	return a->hash == b->hash && a->is_guard == b->is_guard &&
		address_same_text(a->key, b->key) &&
		address_same_text(a->tenant, b->tenant) &&
		address_same_text(a->operation, b->operation);
}

/*
 * The DETAIL that names an address; for use in ereport().
 */
int
address_errdetail(const IdemAddress *address)
{
	return errdetail("The address is tenant \"%s\", operation \"%s\", key \"%s\".",
					 text_to_cstring(address->tenant),
					 text_to_cstring(address->operation),
					 text_to_cstring(address->key));
}

static void
set_lock_tag(LOCKTAG *tag, const IdemAddress *address)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (address->hash >> 32),
						 (uint32) address->hash, KEY_LOCK_CLASS);
}

static void
name_address(void *arg)
{
	const IdemAddress *address = arg;

	errcontext("locking tenant \"%s\", operation \"%s\", %s \"%s\"",
			   text_to_cstring(address->tenant),
			   text_to_cstring(address->operation),
			   address->is_guard ? "guard" : "key",
			   text_to_cstring(address->key));
}

/*
 * Takes a lock for the (sub)transaction instead of the portal that runs now.
 * The server's own errors (deadlock, timeout, full lock table) name the
 * address in their context.
 */
static IdemLocked
acquire(const IdemAddress *address, LOCKMODE mode, bool dont_wait)
{
	ResourceOwner caller = CurrentResourceOwner;
	ErrorContextCallback context = {.previous = error_context_stack,
		.callback = name_address,
	.arg = unconstify(IdemAddress *, address)};
	LockAcquireResult result;
	LOCKTAG		tag;

	set_lock_tag(&tag, address);
	error_context_stack = &context;
	CurrentResourceOwner = CurTransactionResourceOwner;
	result = LockAcquire(&tag, mode, false, dont_wait);
	CurrentResourceOwner = caller;
	error_context_stack = context.previous;
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return LOCKED_NOT;
	return result == LOCKACQUIRE_OK ? LOCKED_NOW : LOCKED_BEFORE;
}

static void
release(const IdemAddress *address, LOCKMODE mode)
{
	ResourceOwner caller = CurrentResourceOwner;
	LOCKTAG		tag;

	set_lock_tag(&tag, address);
	CurrentResourceOwner = CurTransactionResourceOwner;
	LockRelease(&tag, mode, false);
	CurrentResourceOwner = caller;
}

/*
 * The key lock, if nobody else holds it.
 */
IdemLocked
address_try_lock(const IdemAddress *address)
{
	return acquire(address, ExclusiveLock, true);
}

/*
 * The key lock, however long it takes: lock_timeout, statement_timeout,
 * cancel and the deadlock detector end the wait as usual.
 */
void
address_lock(const IdemAddress *address)
{
	(void) acquire(address, ExclusiveLock, false);
}

/*
 * Lets go of a lock that this call took.
 */
void
address_unlock(const IdemAddress *address)
{
	release(address, ExclusiveLock);
}

/*
 * Waits until the address is free, or the time is over (false).
 *
 * With "keep" the caller then holds the key lock.  Without it he holds
 * nothing: all who wait so are woken at once by the owner's commit, instead
 * of one by the other.
 *
 * The wait needs a lock_timeout of its own, and its expiry must not end the
 * caller's transaction: both take a subtransaction.  It writes nothing, so it
 * gets no transaction id.  A shorter lock_timeout of the caller stays in
 * force and raises as usual.
 */
bool
address_wait(const IdemAddress *address, bool keep, int64 timeout_us)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	LOCKMODE	mode = keep ? ExclusiveLock : ShareLock;
	int64		timeout_ms = (timeout_us + 999) / 1000;
	bool		ours = LockTimeout == 0 || timeout_ms < LockTimeout;
	volatile bool locked = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		int			nest_level = NewGUCNestLevel();

		if (ours)
		{
			char		value[32];

			snprintf(value, sizeof(value), INT64_FORMAT, timeout_ms);
			(void) set_config_option("lock_timeout", value, PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE, true,
									 0, false);
		}
		(void) acquire(address, mode, false);

		/*
		 * The time may have run out just when the lock was granted.  What is
		 * pending then must not end a later statement of the caller.
		 */
		CHECK_FOR_INTERRUPTS();
		if (!keep)
			release(address, mode);
		AtEOXact_GUC(true, nest_level);

		/* a lock that is kept passes to the caller's (sub)transaction */
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		/*
		 * First of all, while nothing can fail: who catches an error would
		 * otherwise roll this subtransaction back instead of his own.
		 */
		RollbackAndReleaseCurrentSubTransaction();
		CurrentResourceOwner = owner;
		if (!ours || geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		locked = false;
	}
	PG_END_TRY();
	return locked;
}

/*
 * Does another session hold the address at this moment?  A standby has no
 * such locks.
 */
bool
address_is_locked_elsewhere(const IdemAddress *address)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	int			nholders;

	if (RecoveryInProgress())
		return false;
	set_lock_tag(&tag, address);
	holders = GetLockConflicts(&tag, ShareLock, &nholders);
	/* in a transaction it is palloc'd anew at each call */
	pfree(holders);
	return nholders > 0;
}
