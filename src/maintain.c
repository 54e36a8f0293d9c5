/*-------------------------------------------------------------------------
 *
 * maintain.c
 *		The calls that keep the tables small and no lapsed command forgotten:
 *		idem_sweep() and idem_maintain().
 *
 * idem_maintain() commits after each batch.  Cancelled at any moment it loses
 * the batch at hand, and nothing more.  It shows how far it is as its
 * session's application_name, set for one transaction after the other: so it
 * is seen at once by everybody, and gone whatever ends the call.
 *
 * It stays out of the way of the claims.  Its commits wait for no flush, which
 * theirs would have to queue behind: what a crash takes back is swept again,
 * and whoever claims a purged address anew commits after the purge.  And
 * before each batch but the first it rests, in proportion to what the last one
 * took; meanwhile it holds no snapshot and no lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "compat.h"
#include "executor/spi.h"
#include "expire.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "record_row.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define BATCH_MIN 1
#define BATCH_MAX 10000

/*
 * Of the lock table, for each of the up to five locks that one record more in
 * a batch may take: to give up and to sweep a key and a guard, to purge a key.
 */
#define LOCK_SHARE 10

/* of the time that a call of idem_maintain() lasts, for its batches */
#define EFFORT_MIN 0.01

/* what counting beforehand may cost */
#define BACKLOG_MAX 10000000

/* One call of idem_maintain(). */
typedef struct Maintenance
{
	IdemExpiry	pass;
	TimestampTz until;			/* begins no batch after that */
	TimestampTz lapsed_to;		/* where it is among the lapsed commands */
	int			batch;
	double		effort;
	int64		rest_us;		/* before the next batch */
	int64		swept;
	int64		purged;
	int64		given_up;
	int64		backlog;		/* when it began, about */
} Maintenance;

/*
 * The size of a batch, so that it never fills the lock table.
 */
static int
batch_limit(const char *what, NullableDatum n)
{
	int			value = n.isnull ? 0 : DatumGetInt32(n.value);
	int64		locks = (int64) max_locks_per_xact *
	(MaxBackends + max_prepared_xacts);

	if (value < BATCH_MIN || value > BATCH_MAX)
		ereport(ERROR,
				(errcode(n.isnull ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
						 ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range", what),
				 n.isnull ? errdetail("It is NULL; it must be %d to %d.",
									  BATCH_MIN, BATCH_MAX) :
				 errdetail("It is %d; it must be %d to %d.", value,
						   BATCH_MIN, BATCH_MAX),
				 errhint("Call again for more.")));
	return (int) Min(value, Max(locks / LOCK_SHARE, 1));
}

/*
 * It concerns every tenant, so a login role that is bound to some has no part
 * in it.
 */
static void
require_right(const char *call)
{
	access_require(NULL);
	PreventCommandIfReadOnly(call);
	PreventCommandIfParallelMode(call);
}

PG_FUNCTION_INFO_V1(idem_sweep);
Datum
idem_sweep(PG_FUNCTION_ARGS)
{
	int			limit = batch_limit("n", fcinfo->args[0]);
	Datum		values[3];
	bool		isnull[3] = {false, false, false};
	TupleDesc	desc;
	IdemExpiry	pass;
	int			swept;
	int			purged;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "idem_sweep() returns a row");
	require_right("idem_sweep()");
	expire_begin(&pass);
	swept = expire_sweep(&pass, limit);
	purged = expire_purge(&pass, limit);
	values[0] = Int32GetDatum(swept);
	values[1] = Int32GetDatum(purged);
	values[2] = BoolGetDatum(swept == limit || purged == limit);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, isnull)));
}

/*
 * Moves one lapsed command to unknown, if nobody may take it over.
 */
static bool
give_up_one(IdemTable *table, const IdemAddress *address)
{
	IdemClaim	claim = {.address = *address};
	bool		given_up = false;
	IdemRecord	record;
	IdemTicket	ticket;

	if (!address_try_lock(address))
		return false;
	if (record_probe(table, address, &record) &&
		record.state == STATE_PROCESSING &&
		GetCurrentTimestamp() >= record.lease_until)
	{
		policy_get(address->operation, &claim.policy);
		given_up = attempt_give_up(table, &claim, &record, &ticket);
	}
	if (!given_up)
		address_unlock(address);
	return given_up;
}

/*
 * Moves up to a batch of lapsed commands to unknown, and says how many.  In a
 * copy none: their owners may be at work in the original.  The next batch goes
 * on from there, instead of looking again at those that may be taken over.
 */
static int
give_up_lapsed(Maintenance *run)
{
	text	   *processing = cstring_to_text(state_name(STATE_PROCESSING));
	int			given_up = 0;
	IdemTable	table;
	Relation	index;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	ScanKeyData keys[3];

	if (adopt_is_copy())
		return 0;
	record_open(&table, RowExclusiveLock, SnapshotSelf);
	index = catalog_open_index(record_open, AccessShareLock);
	scan = compat_index_beginscan(table.rel, index, SnapshotSelf, 3);
	slot = table_slot_create(table.rel, NULL);
	ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				PointerGetDatum(processing));
	ScanKeyInit(&keys[1], 2, BTGreaterEqualStrategyNumber, F_TIMESTAMPTZ_GE,
				TimestampTzGetDatum(run->lapsed_to));
	ScanKeyInit(&keys[2], 2, BTLessEqualStrategyNumber, F_TIMESTAMPTZ_LE,
				TimestampTzGetDatum(run->pass.now));
	index_rescan(scan, keys, 3, NULL, 0);
	while (given_up < run->batch &&
		   index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		IdemAddress address;
		IdemRecord	record;

		CHECK_FOR_INTERRUPTS();
		record_from_slot(&record, &address, slot);
		run->lapsed_to = record.lease_until;
		if (give_up_one(&table, &address))
			given_up++;
	}
	ExecDropSingleTupleTableSlot(slot);
	index_endscan(scan);
	index_close(index, NoLock);
	record_close(&table);
	return given_up;
}

static void
set_for_transaction(const char *setting, const char *value)
{
	(void) set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

/*
 * Until the transaction ends; idem_progress reads it.
 */
static void
show_progress(const Maintenance *run)
{
	int64		done = run->swept + run->purged;
	char		shown[NAMEDATALEN];

	snprintf(shown, sizeof(shown),
			 "idem_maintain: " INT64_FORMAT " done, " INT64_FORMAT " left",
			 done, Max(run->backlog - done, 0));
	set_for_transaction("application_name", shown);
}

static void
rest(int64 us)
{
	TimestampTz until = GetCurrentTimestamp() + us;

	while (us > 0)
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min((us + 999) / 1000, INT_MAX),
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		us = until - GetCurrentTimestamp();
	}
}

/*
 * One transaction's work; false when nothing is left.
 */
static bool
run_batch(Maintenance *run)
{
	TimestampTz began;
	int			swept;
	int			purged;
	int			given_up;

	show_progress(run);
	rest(run->rest_us);
	began = GetCurrentTimestamp();
	PushActiveSnapshot(GetTransactionSnapshot());
	given_up = give_up_lapsed(run);
	if (given_up == 0)
		set_for_transaction("synchronous_commit", "off");
	swept = expire_sweep(&run->pass, run->batch);
	purged = expire_purge(&run->pass, run->batch);
	PopActiveSnapshot();
	run->swept += swept;
	run->purged += purged;
	run->given_up += given_up;
	run->rest_us = (GetCurrentTimestamp() - began) * (1 / run->effort - 1);
	return swept == run->batch || purged == run->batch ||
		given_up == run->batch;
}

static int64
time_limit_us(NullableDatum arg)
{
	if (arg.isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("max_time must not be NULL"),
				 errdetail("Maintenance ends when nothing is left to do, or after this time."),
				 errhint("Pass the time it may take at most.")));
	return duration_us("max_time", DatumGetIntervalP(arg.value));
}

static double
effort_share(NullableDatum arg)
{
	double		effort = arg.isnull ? 0 : DatumGetFloat8(arg.value);

	/* so written, it refuses NaN as well */
	if (!(effort >= EFFORT_MIN && effort <= 1))
		ereport(ERROR,
				(errcode(arg.isnull ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
						 ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("effort is out of range"),
				 arg.isnull ?
				 errdetail("It is NULL; it must be %g to 1.", EFFORT_MIN) :
				 errdetail("It is %g; it must be %g to 1.", effort,
						   EFFORT_MIN),
				 errhint("Pass the share of the time that maintenance may work; it rests for the others.")));
	return effort;
}

PG_FUNCTION_INFO_V1(idem_maintain);
Datum
idem_maintain(PG_FUNCTION_ARGS)
{
	CallContext *call = (CallContext *) fcinfo->context;
	int64		max_time_us = time_limit_us(fcinfo->args[0]);
	Maintenance run = {.batch = batch_limit("batch", fcinfo->args[1]),
	.effort = effort_share(fcinfo->args[2])};
	MemoryContext batch;
	MemoryContext caller;
	bool		more;

	if (call == NULL || !IsA(call, CallContext) || call->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("idem_maintain() cannot run inside a transaction block"),
				 errdetail("It commits after each batch."),
				 errhint("Call it as a statement of its own, or call idem_sweep().")));
	require_right("idem_maintain()");

	SPI_connect_ext(SPI_OPT_NONATOMIC);
	expire_begin(&run.pass);
	run.until = run.pass.now + max_time_us;
	run.lapsed_to = DT_NOBEGIN;
	run.backlog = expire_backlog(BACKLOG_MAX);
	batch = AllocSetContextCreate(CurrentMemoryContext, "idempotency batch",
								  ALLOCSET_DEFAULT_SIZES);
	do
	{
		caller = MemoryContextSwitchTo(batch);
		more = run_batch(&run);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(batch);
		SPI_commit();
	} while (more && GetCurrentTimestamp() + run.rest_us < run.until);
	SPI_finish();

	if (run.swept + run.purged + run.given_up > 0)
		ereport(NOTICE,
				(errmsg("swept " INT64_FORMAT ", purged " INT64_FORMAT ", moved " INT64_FORMAT " to unknown",
						run.swept, run.purged, run.given_up)));
	PG_RETURN_VOID();
}
