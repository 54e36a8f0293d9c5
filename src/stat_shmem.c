/*-------------------------------------------------------------------------
 *
 * stat_shmem.c
 *		Shared memory of the figures: an entry per database and operation.
 *
 * It is handed out when the server starts: without shared_preload_libraries
 * "shared" stays NULL.  Nothing outlives the server; a crash and a restart
 * begin at zero.
 *
 * Invariants:
 *	1. An entry keeps its place as long as its database exists.  So a session
 *	   may remember where those of its own database are.
 *	2. There are at most idempotency.stat_operations entries.  What finds no
 *	   room is counted in "others", whatever its database.
 *	3. A session whose generation is the shared one knows all entries of its
 *	   database; what it does not know is not there.
 *
 * Locking: shared->lock, in share mode to find entries, exclusively to make
 * and remove them: once per session and operation.  Counters are added to
 * atomically, without it; who reads gets each as it is at that moment.
 *
 * Memory: "known" belongs to CacheMemoryContext and grows with the entries.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "stat_shmem.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define TRANCHE			"idempotency"
#define OTHERS			"(others)"

typedef struct StatShared
{
	LWLock	   *lock;
	pg_atomic_uint32 generation;	/* grows when an entry is made */
	StatEntry	others;
} StatShared;

/* An entry of this session's database. */
typedef struct KnownEntry
{
	char		operation[IDEM_OPERATION_SIZE]; /* must be first */
	StatEntry  *entry;
} KnownEntry;

static StatShared *shared = NULL;	/* NULL: not preloaded */
static HTAB *entries = NULL;
static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

static HTAB *known = NULL;
static StatEntry *last = NULL;	/* what was counted in last */
static int	last_len;
static uint32 generation;		/* that "known" is as new as */
static bool full;				/* was there no room left since? */

static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	RequestAddinShmemSpace(add_size(sizeof(StatShared),
									hash_estimate_size(idem_stat_operations,
													   sizeof(StatEntry))));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

/*
 * Counts from zero again.
 */
void
stat_shmem_clear(StatEntry *entry)
{
	pg_atomic_write_u64(&entry->reset_at, (uint64) GetCurrentTimestamp());
	for (int i = 0; i < STAT_COUNT; i++)
		pg_atomic_write_u64(&entry->counters[i], 0);
}

static void
init_entry(StatEntry *entry)
{
	pg_atomic_init_u64(&entry->reset_at, 0);
	for (int i = 0; i < STAT_COUNT; i++)
		pg_atomic_init_u64(&entry->counters[i], 0);
	stat_shmem_clear(entry);
}

/*
 * Also after a crash, and in each child where children do not inherit.
 */
static void
attach_memory(void)
{
	HASHCTL		ctl = {.keysize = sizeof(StatKey),
	.entrysize = sizeof(StatEntry)};
	bool		found;

	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("idempotency figures", sizeof(StatShared),
							 &found);
	if (!found)
	{
		shared->lock = &GetNamedLWLockTranche(TRANCHE)->lock;
		pg_atomic_init_u32(&shared->generation, 1);
		memset(&shared->others.key, 0, sizeof(StatKey));
		strlcpy(shared->others.key.operation, OTHERS, IDEM_OPERATION_SIZE);
		init_entry(&shared->others);
	}
	entries = compat_shmem_hash("idempotency operations",
								idem_stat_operations, &ctl,
								HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
}

void
stat_shmem_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup = shmem_startup_hook;
	shmem_startup_hook = attach_memory;
}

static void
remember(StatEntry *entry)
{
	KnownEntry *mine = hash_search(known, entry->key.operation, HASH_ENTER,
								   NULL);

	mine->entry = entry;
}

/*
 * Brings "known" up to date.
 */
static void
learn(void)
{
	HASH_SEQ_STATUS scan;
	StatEntry  *entry;

	if (known == NULL)
	{
		HASHCTL		ctl = {.keysize = IDEM_OPERATION_SIZE,
			.entrysize = sizeof(KnownEntry),
		.hcxt = CacheMemoryContext};

		known = hash_create("idempotency figures", 32, &ctl,
							HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->key.database == MyDatabaseId)
			remember(entry);
	}
	full = false;				/* as far as it is known */
	generation = pg_atomic_read_u32(&shared->generation);
	LWLockRelease(shared->lock);
}

/*
 * Gives back the entries of databases that were dropped.  Nobody can be
 * counting in them: a database is dropped only when no session is in it.
 * Others learn of the room when the caller makes its entry.
 */
static bool
remove_dropped(void)
{
	List	   *databases = NIL;
	List	   *dropped = NIL;
	ListCell   *cell;
	HASH_SEQ_STATUS scan;
	StatEntry  *entry;

	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
		databases = list_append_unique_oid(databases, entry->key.database);
	LWLockRelease(shared->lock);

	/* the catalogue must not be read under the lock */
	foreach(cell, databases)
	{
		if (!SearchSysCacheExists1(DATABASEOID,
								   ObjectIdGetDatum(lfirst_oid(cell))))
			dropped = lappend_oid(dropped, lfirst_oid(cell));
	}
	if (dropped == NIL)
		return false;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (list_member_oid(dropped, entry->key.database))
			(void) hash_search(entries, &entry->key, HASH_REMOVE, NULL);
	}
	LWLockRelease(shared->lock);
	return true;
}

static StatEntry *
find_known(const char *operation)
{
	KnownEntry *mine = hash_search(known, operation, HASH_FIND, NULL);

	return mine == NULL ? NULL : mine->entry;
}

/*
 * Makes the entry, unless another session has just done so; NULL where there
 * is no room.
 */
static StatEntry *
make_entry(const char *operation)
{
	StatKey		key;
	StatEntry  *entry;
	bool		found;

	/* hashed with all its bytes */
	memset(&key, 0, sizeof(key));
	key.database = MyDatabaseId;
	strlcpy(key.operation, operation, sizeof(key.operation));

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	entry = hash_search(entries, &key, HASH_FIND, NULL);
	if (entry == NULL &&
		hash_get_num_entries(entries) < idem_stat_operations)
	{
		entry = hash_search(entries, &key, HASH_ENTER_NULL, &found);
		if (entry != NULL)
		{
			init_entry(entry);
			(void) pg_atomic_fetch_add_u32(&shared->generation, 1);
		}
	}
	LWLockRelease(shared->lock);
	return entry;
}

static StatEntry *
find_entry(text *operation)
{
	char		name[IDEM_OPERATION_SIZE];
	StatEntry  *entry = NULL;

	text_to_cstring_buffer(operation, name, sizeof(name));
	if (strcmp(name, OTHERS) == 0)
		return &shared->others;
	if (known != NULL)
		entry = find_known(name);
	if (entry != NULL)
		return entry;

	if (known == NULL ||
		generation != pg_atomic_read_u32(&shared->generation))
	{
		learn();
		entry = find_known(name);
	}
	if (entry == NULL && !full)
	{
		entry = make_entry(name);
		if (entry == NULL && remove_dropped())
			entry = make_entry(name);
		if (entry != NULL)
			remember(entry);
		else
			full = true;
	}
	return entry == NULL ? &shared->others : entry;
}

bool
stat_shmem_exists(void)
{
	return shared != NULL;
}

/*
 * The entry to count in, or NULL where the library is not preloaded.
 */
StatEntry *
stat_shmem_entry(text *operation)
{
	StatEntry  *entry;
	int			len;

	if (shared == NULL)
		return NULL;
	len = VARSIZE_ANY_EXHDR(operation);
	if (last != NULL && len == last_len &&
		memcmp(last->key.operation, VARDATA_ANY(operation), len) == 0)
		return last;
	entry = find_entry(operation);
	/* each of the others is a name of its own */
	if (entry != &shared->others)
	{
		last = entry;
		last_len = len;
	}
	return entry;
}

/*
 * Calls "visit" for each entry of this database, and for the others.
 */
void
stat_shmem_visit(StatVisitor visit, void *arg)
{
	HASH_SEQ_STATUS scan;
	StatEntry  *entry;

	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if (entry->key.database == MyDatabaseId)
			visit(entry, arg);
	}
	LWLockRelease(shared->lock);
	visit(&shared->others, arg);
}
