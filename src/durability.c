/*-------------------------------------------------------------------------
 *
 * durability.c
 *		How safe a commit has to be before it returns.
 *
 * What outlives its transaction (a leased claim) is flushed, whatever the
 * session's synchronous_commit.  With idempotency.durability = replicated
 * every transaction that claims, completes or replays waits for a synchronous
 * standby as well.  synchronous_commit is raised only just before the commit,
 * since the session can still lower it until then.
 *
 * COMMIT PREPARED is a transaction of its own and follows its session's
 * synchronous_commit; PREPARE itself is covered.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "funcapi.h"
#include "idempotency.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/* Has this transaction promised to wait for a standby? */
static bool promised = false;

/*
 * Refuses what writes where nothing can be written.
 */
void
durability_require_writable(const IdemAddress *address)
{
	if (XactReadOnly)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("cannot claim or complete a command in a read-only transaction"),
				 address_errdetail(address),
				 errhint("Use idem_replay() to read, or a read-write transaction on the primary.")));

	/* a function that calls may say PARALLEL SAFE of itself */
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot claim or complete a command during a parallel operation"),
				 address_errdetail(address),
				 errhint("Mark the function that calls as PARALLEL UNSAFE.")));
}

/*
 * Before any answer is given.
 */
void
durability_begin(void)
{
	if (!settings_replicated() || RecoveryInProgress())
		return;
	if (max_wal_senders == 0 || SyncRepStandbyNames == NULL ||
		SyncRepStandbyNames[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_IDEM_NOT_DURABLE),
				 errmsg("cannot promise replicated durability"),
				 errdetail("No synchronous standby is configured (synchronous_standby_names)."),
				 errhint("Configure one, or set idempotency.durability to local.")));
	promised = true;
}

/*
 * The commit of this transaction has to be flushed.
 */
void
durability_flush(void)
{
	ForceSyncCommit();
}

/*
 * A final answer was read from a record that may not have reached the standby
 * yet.  A transaction that wrote nothing would not wait at its commit: give
 * it an id and a record that does nothing.
 */
void
durability_answered(IdemOutcome outcome)
{
	uint8		nothing = 0;

	if (!promised || outcome == OUTCOME_EXECUTE ||
		outcome == OUTCOME_RESUME || outcome == OUTCOME_IN_PROGRESS ||
		outcome == OUTCOME_ABSENT)
		return;
	(void) GetCurrentTransactionId();
	XLogBeginInsert();
	XLogRegisterData((char *) &nothing, sizeof(nothing));
	(void) XLogInsert(RM_XLOG_ID, XLOG_NOOP);
}

/*
 * Called at PRE_COMMIT and PRE_PREPARE.
 */
void
durability_pre_commit(void)
{
	if (promised && synchronous_commit < SYNCHRONOUS_COMMIT_REMOTE_FLUSH)
		(void) set_config_option("synchronous_commit", "on", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
								 false);
}

void
durability_reset(void)
{
	promised = false;
}

PG_FUNCTION_INFO_V1(idem_durability);
Datum
idem_durability(PG_FUNCTION_ARGS)
{
	Datum		values[3];
	bool		isnull[3] = {false};
	TupleDesc	desc;
	SyncRepStandbyData *standbys;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != lengthof(values))
		elog(ERROR, "idem_durability() has another result type");
	values[0] = CStringGetTextDatum(settings_replicated() ? "replicated" :
									"local");
	values[1] = Int32GetDatum(SyncRepConfig == NULL ? 0 :
							  SyncRepConfig->num_sync);
	values[2] = Int32GetDatum(SyncRepGetCandidateStandbys(&standbys));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, isnull)));
}
