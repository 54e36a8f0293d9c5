/*-------------------------------------------------------------------------
 *
 * policy.c
 *		The table idem_policy, and what follows from policy, settings and
 *		arguments together.
 *
 * The table is small (a row per operation) and is read as a whole.  What was
 * read is kept until the relation cache says that the table changed; the
 * trigger below sends that word with every change, and the server takes it to
 * every session when the change commits, and back to this one when it is
 * rolled back.
 *
 * Memory: a context of its own under CacheMemoryContext, dropped by the next
 * policy_get() after a change, never by the invalidation itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "idempotency.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* columns of idem_policy, from zero */
enum
{
	COL_OPERATION,
	COL_TTL,
	COL_LEASE,
	COL_MAX_LEASE,
	COL_WAIT,
	COL_TOMBSTONE_RETENTION,
	COL_MAX_ATTEMPTS,
	COL_IGNORE_PATHS,
	COL_KEEP_REQUEST,
	COL_STEPS,
	COL_VERSION,
	COL_COMMENT,
	COL_NOTIFY,
	POLICY_COLUMNS
};

const int	policy_columns = POLICY_COLUMNS;
const Oid	policy_types[POLICY_COLUMNS] = {
	TEXTOID, INTERVALOID, INTERVALOID, INTERVALOID, INTERVALOID,
	INTERVALOID, INT4OID, TEXTARRAYOID, BOOLOID, TEXTARRAYOID, INT4OID,
	TEXTOID, TEXTOID
};

typedef struct CacheEntry
{
	char		operation[IDEM_OPERATION_SIZE]; /* must be first */
	IdemPolicy	policy;
} CacheEntry;

static const IdemPolicy no_policy = {.wait_us = -1};

static MemoryContext cache_context = NULL;
static HTAB *cache = NULL;		/* NULL: there are no policies */
static bool cache_valid = false;
static Oid	cache_table = InvalidOid;

static void
forget_cache(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == cache_table)
		cache_valid = false;
}

void
policy_init(void)
{
	CacheRegisterRelcacheCallback(forget_cache, (Datum) 0);
}

static int64
read_duration(const Datum *values, const bool *isnull, int column,
			  const char *what)
{
	return isnull[column] ? 0 :
		duration_us(what, DatumGetIntervalP(values[column]));
}

/*
 * Takes a row apart, and refuses values without meaning.
 */
static void
policy_from_row(IdemPolicy *policy, const Datum *values, const bool *isnull)
{
	policy->ttl_us = read_duration(values, isnull, COL_TTL, "ttl");
	policy->lease_us = read_duration(values, isnull, COL_LEASE, "lease");
	policy->max_lease_us = read_duration(values, isnull, COL_MAX_LEASE,
										 "max_lease");
	policy->retention_us = read_duration(values, isnull,
										 COL_TOMBSTONE_RETENTION,
										 "tombstone_retention");
	policy->wait_us = isnull[COL_WAIT] ? -1 :
		duration_wait_us("wait", DatumGetIntervalP(values[COL_WAIT]));
	policy->max_attempts = isnull[COL_MAX_ATTEMPTS] ? 0 :
		DatumGetInt32(values[COL_MAX_ATTEMPTS]);
	policy->keep_request = DatumGetBool(values[COL_KEEP_REQUEST]);
	policy->version = DatumGetInt32(values[COL_VERSION]);
	policy->ignore_paths = isnull[COL_IGNORE_PATHS] ? NULL :
		DatumGetArrayTypePCopy(values[COL_IGNORE_PATHS]);
	policy->notify = isnull[COL_NOTIFY] ? NULL :
		TextDatumGetCString(values[COL_NOTIFY]);
	policy->has_steps = !isnull[COL_STEPS];
}

static void
cache_row(TupleTableSlot *slot)
{
	CacheEntry *entry;
	char	   *operation;

	slot_getallattrs(slot);
	operation = TextDatumGetCString(slot->tts_values[COL_OPERATION]);
	if (cache == NULL)
	{
		HASHCTL		ctl = {.keysize = IDEM_OPERATION_SIZE,
			.entrysize = sizeof(CacheEntry),
		.hcxt = cache_context};

		cache = hash_create("idempotency policies", 32, &ctl,
							HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	entry = hash_search(cache, operation, HASH_ENTER, NULL);
	policy_from_row(&entry->policy, slot->tts_values, slot->tts_isnull);
}

/*
 * Reads the table as it is now, not as the caller's snapshot sees it: a
 * policy counts from its commit on.
 */
static void
read_table(void)
{
	MemoryContext caller = CurrentMemoryContext;
	Snapshot	snapshot;
	Relation	rel;
	TableScanDesc scan;
	TupleTableSlot *slot;

	cache = NULL;
	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(CacheMemoryContext,
											  "idempotency policies",
											  ALLOCSET_SMALL_SIZES);
	else
		MemoryContextReset(cache_context);

	/* changes that arrive from here on make the cache invalid again */
	rel = catalog_open(&catalog_get()->policy, AccessShareLock);
	cache_table = RelationGetRelid(rel);
	cache_valid = true;

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	slot = table_slot_create(rel, NULL);
	scan = compat_table_beginscan(rel, snapshot);
	MemoryContextSwitchTo(cache_context);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		cache_row(slot);
	MemoryContextSwitchTo(caller);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
}

/*
 * The policy of an operation; all defaults when it has none.
 */
void
policy_get(text *operation, IdemPolicy *policy)
{
	char		name[IDEM_OPERATION_SIZE];
	CacheEntry *entry;

	*policy = no_policy;

	/* a policy counts from its commit on, also within a transaction */
	AcceptInvalidationMessages();
	if (!cache_valid)
	{
		/* an error half way leaves it invalid */
		PG_TRY();
		{
			read_table();
		}
		PG_CATCH();
		{
			cache_valid = false;
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
	if (cache == NULL)
		return;
	text_to_cstring_buffer(operation, name, sizeof(name));
	entry = hash_search(cache, name, HASH_FIND, NULL);
	if (entry != NULL)
		*policy = entry->policy;
}

int64
policy_ttl_us(const IdemPolicy *policy, int64 asked_us)
{
	return asked_us != 0 ? asked_us :
		policy->ttl_us != 0 ? policy->ttl_us : settings_ttl_us();
}

/*
 * How long a tombstone is kept after it has expired; -1: for ever.
 */
int64
policy_retention_us(const IdemPolicy *policy)
{
	return policy->retention_us != 0 ? policy->retention_us :
		settings_retention_us();
}

/*
 * The lease of a claim or heartbeat; 0 where neither names one.
 */
int64
policy_lease_us(const IdemPolicy *policy, const Interval *asked)
{
	int64		lease_us;

	if (asked == NULL)
		return policy->lease_us;
	lease_us = duration_us("lease", asked);
	if (policy->max_lease_us != 0 && lease_us > policy->max_lease_us)
	{
		Interval   *max = duration_interval(policy->max_lease_us);
		Datum		shown = DirectFunctionCall1(interval_out,
												IntervalPGetDatum(max));

		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("lease is longer than the policy allows"),
				 errdetail("The operation's max_lease is %s.",
						   DatumGetCString(shown)),
				 errhint("Ask for a shorter lease and extend it with idem_heartbeat().")));
	}
	return lease_us;
}

int64
policy_wait_us(const IdemPolicy *policy, const Interval *asked)
{
	if (asked != NULL)
		return duration_wait_us("wait", asked);
	return policy->wait_us >= 0 ? policy->wait_us : settings_wait_us();
}

static void
refuse_policy(const char *message, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s", message),
			 errdetail("%s", detail),
			 errhint("%s", hint)));
}

static void
check_steps(ArrayType *steps)
{
	Datum	   *elems;
	bool	   *nulls;
	int			n;

	deconstruct_array(steps, TEXTOID, -1, false, TYPALIGN_INT,
					  &elems, &nulls, &n);
	if (ARR_NDIM(steps) != 1)
		refuse_policy("steps must be an array of one dimension",
					  "It has at least one element.",
					  "Pass NULL to allow any step.");
	for (int i = 0; i < n; i++)
	{
		text	   *name = nulls[i] ? NULL : DatumGetTextPP(elems[i]);

		CHECK_FOR_INTERRUPTS();
		address_check_text("step", name, IDEM_OPERATION_MAX,
						   "Name it after what it does.");
		for (int j = 0; j < i; j++)
		{
			if (address_same_text(name, DatumGetTextPP(elems[j])))
				refuse_policy("steps must have different names",
							  psprintf("\"%s\" is there twice.",
									   text_to_cstring(name)),
							  "Name each step once.");
		}
	}
}

/*
 * What NOTIFY takes for a channel.
 */
static void
check_channel(const char *channel)
{
	if (strlen(channel) >= NAMEDATALEN ||
		strspn(channel, " \t\n\v\f\r") == strlen(channel))
		refuse_policy("notify must be the name of a channel",
					  psprintf("It must have 1 to %d bytes, not only white space.",
							   NAMEDATALEN - 1),
					  "Pass NULL to notify nobody.");
}

static void
check_row(TupleDesc desc, HeapTuple tuple)
{
	Datum		values[POLICY_COLUMNS];
	bool		isnull[POLICY_COLUMNS];
	IdemPolicy	policy;

	heap_deform_tuple(tuple, desc, values, isnull);
	address_check_text("operation", isnull[COL_OPERATION] ? NULL :
					   DatumGetTextPP(values[COL_OPERATION]),
					   IDEM_OPERATION_MAX,
					   "Name the operation that the policy is for.");
	if (isnull[COL_KEEP_REQUEST] || isnull[COL_VERSION])
		return;					/* NOT NULL refuses it */
	policy_from_row(&policy, values, isnull);
	if (policy.version < 1)
		refuse_policy("version is out of range", "It must be 1 or more.",
					  "Leave it to idem_define().");
	if (!isnull[COL_MAX_ATTEMPTS] && policy.max_attempts < 1)
		refuse_policy("max_attempts is out of range", "It must be 1 or more.",
					  "Pass NULL for no limit.");
	if (policy.max_lease_us != 0 && policy.lease_us > policy.max_lease_us)
		refuse_policy("lease is longer than max_lease",
					  "No claim could follow this policy.",
					  "Raise max_lease, or shorten lease.");
	if (policy.ignore_paths != NULL)
		(void) paths_parse(policy.ignore_paths);
	if (!isnull[COL_STEPS])
		check_steps(DatumGetArrayTypeP(values[COL_STEPS]));
	if (policy.notify != NULL)
		check_channel(policy.notify);
}

PG_FUNCTION_INFO_V1(idem_policy_check);
Datum
idem_policy_check(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	HeapTuple	result;

	if (!CALLED_AS_TRIGGER(fcinfo) ||
		RelationGetRelid(trigger->tg_relation) != catalog_get()->policy)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("idem_policy_check() is a trigger of idem_policy")));

	/* told to every session at commit, and to this one already now */
	CacheInvalidateRelcache(trigger->tg_relation);
	if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
		PG_RETURN_POINTER(NULL);
	result = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	if (!TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		check_row(RelationGetDescr(trigger->tg_relation), result);
	PG_RETURN_POINTER(result);
}
