/*-------------------------------------------------------------------------
 *
 * stat.c
 *		Figures: what happened, counted per operation.
 *
 * It is counted at the moment it happens, so no rollback takes it back, and
 * exactly once: where a verb has its effect or refuses it, never in what the
 * verbs share underneath.  A counter is added to atomically, without a lock.
 * Without shared memory (stat_shmem.c) counting is one branch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "stat_shmem.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#define COLUMN_FIRST	2		/* after operation and stats_reset */

/*
 * Counts "n" of something that happened to a command of this operation.
 */
void
stat_add(text *operation, IdemStat what, uint64 n)
{
	StatEntry  *entry = stat_shmem_entry(operation);

	if (entry != NULL)
		(void) pg_atomic_fetch_add_u64(&entry->counters[what], n);
}

void
stat_count(text *operation, IdemStat what)
{
	stat_add(operation, what, 1);
}

/*
 * Counts a transition; those that are no figure of their own, not.
 */
void
stat_count_action(text *operation, IdemAction action)
{
	static const IdemStat figures[ACTION_COUNT] = {
		[ACTION_COMPLETE] = STAT_COMPLETED,
		[ACTION_FAIL] = STAT_FAILED,
		[ACTION_RELEASE] = STAT_RELEASED,
		[ACTION_HEARTBEAT] = STAT_HEARTBEATS,
		[ACTION_GIVE_UP] = STAT_BECAME_UNKNOWN,
		[ACTION_UNKNOWN] = STAT_BECAME_UNKNOWN,
		[ACTION_RESOLVE_SUCCEEDED] = STAT_RESOLVED,
		[ACTION_RESOLVE_FAILED] = STAT_RESOLVED,
		[ACTION_RESOLVE_RELEASED] = STAT_RESOLVED,
		[ACTION_CANCEL] = STAT_CANCELLATIONS
	};

	/* zero is an outcome, and so no figure of an action */
	if (figures[action] != 0)
		stat_count(operation, figures[action]);
}

/*
 * Before a wait, each of them: a claim that waits again is counted once.
 */
void
stat_waits(text *operation, instr_time *since)
{
	if (!INSTR_TIME_IS_ZERO(*since))
		return;
	INSTR_TIME_SET_CURRENT(*since);
	stat_count(operation, STAT_WAITS);
}

/*
 * Adds the time of a wait that has ended; "since" is zero where there was none.
 */
void
stat_waited(text *operation, instr_time since)
{
	instr_time	time;

	if (INSTR_TIME_IS_ZERO(since))
		return;
	INSTR_TIME_SET_CURRENT(time);
	INSTR_TIME_SUBTRACT(time, since);
	stat_add(operation, STAT_WAIT_US, INSTR_TIME_GET_MICROSEC(time));
}

static void
require_preload(void)
{
	if (!stat_shmem_exists())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no figures are kept: the library is not preloaded"),
				 errdetail("Their shared memory is handed out when the server starts."),
				 errhint("Add idempotency to shared_preload_libraries and restart the server.")));
}

static bool
is_zero(StatEntry *entry)
{
	for (int i = 0; i < STAT_COUNT; i++)
	{
		if (pg_atomic_read_u64(&entry->counters[i]) != 0)
			return false;
	}
	return true;
}

/*
 * A row, unless it stands for the others and there are none.
 */
static void
show(StatEntry *entry, void *arg)
{
	ReturnSetInfo *rsinfo = arg;
	int			natts = rsinfo->setDesc->natts;
	Datum	   *values;
	bool	   *isnull;

	if (entry->key.database != MyDatabaseId && is_zero(entry))
		return;
	values = palloc0(natts * sizeof(Datum));
	isnull = palloc0(natts * sizeof(bool));
	values[0] = CStringGetTextDatum(entry->key.operation);
	values[1] = TimestampTzGetDatum((TimestampTz)
									pg_atomic_read_u64(&entry->reset_at));
	/* an older or newer install script may declare fewer or more */
	for (int i = COLUMN_FIRST; i < natts; i++)
	{
		int			what = i - COLUMN_FIRST;

		isnull[i] = what >= STAT_COUNT;
		if (!isnull[i])
			values[i] =
				Int64GetDatum((int64)
							  pg_atomic_read_u64(&entry->counters[what]));
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, isnull);
}

PG_FUNCTION_INFO_V1(idem_stat_get);
Datum
idem_stat_get(PG_FUNCTION_ARGS)
{
	access_require(NULL);
	require_preload();
	InitMaterializedSRF(fcinfo, 0);
	stat_shmem_visit(show, fcinfo->resultinfo);
	PG_RETURN_NULL();
}

static void
reset(StatEntry *entry, void *arg)
{
	if (arg == NULL || strcmp(entry->key.operation, arg) == 0)
		stat_shmem_clear(entry);
}

PG_FUNCTION_INFO_V1(idem_stat_reset);
Datum
idem_stat_reset(PG_FUNCTION_ARGS)
{
	access_require(NULL);
	require_preload();
	stat_shmem_visit(reset, PG_ARGISNULL(0) ? NULL :
					 text_to_cstring(PG_GETARG_TEXT_PP(0)));
	PG_RETURN_VOID();
}
