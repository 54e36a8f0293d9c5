/*-------------------------------------------------------------------------
 *
 * owner.c
 *		The SQL functions of a claim's owner, each for a ticket and for its
 *		four parts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/*
 * The ticket that is an argument.
 */
HeapTupleHeader
owner_ticket(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("ticket must not be NULL"),
				 errdetail("The ticket says which command is meant."),
				 errhint("Pass the ticket that idem_claim() returned.")));
	return PG_GETARG_HEAPTUPLEHEADER(arg);
}

static void
read_ticket(FunctionCallInfo fcinfo, bool by_token, IdemAddress *address,
			int64 *token)
{
	if (by_token)
	{
		address_set_args(address, fcinfo, 0);
		*token = PG_ARGISNULL(3) ? 0 : PG_GETARG_INT64(3);
	}
	else
		ticket_read(owner_ticket(fcinfo, 0), address, token);
}

static void
read_change(FunctionCallInfo fcinfo, int first, IdemAction action,
			const IdemAddress *address, IdemChange *change)
{
	NullableDatum *args = &fcinfo->args[first];

	memset(change, 0, sizeof(*change));
	change->action = action;
	switch (action)
	{
		case ACTION_COMPLETE:
		case ACTION_FAIL:
			complete_read_result(args, address, &change->result);
			break;
		case ACTION_RELEASE:
		case ACTION_UNKNOWN:
			change->reason = complete_read_reason(args[0],
												  action == ACTION_UNKNOWN);
			break;
		case ACTION_HEARTBEAT:
			change->has_lease = !args[0].isnull;
			if (change->has_lease)
				change->lease = *DatumGetIntervalP(args[0].value);
			break;
		default:
			break;
	}
}

/*
 * All verbs, in both forms.
 */
static Datum
owner_verb(FunctionCallInfo fcinfo, IdemAction action, bool by_token)
{
	IdemAddress address;
	int64		token;
	IdemChange	change;
	IdemRecord	record;
	IdemTable	table;

	read_ticket(fcinfo, by_token, &address, &token);
	durability_require_writable(&address);
	read_change(fcinfo, by_token ? 4 : 1, action, &address, &change);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	complete_apply(&table, &address, token, &change, &record);
	record_close(&table);
	if (action == ACTION_HEARTBEAT)
		PG_RETURN_TIMESTAMPTZ(record.lease_until);
	PG_RETURN_VOID();
}

#define OWNER_VERB(name, action) \
PG_FUNCTION_INFO_V1(name); \
Datum \
name(PG_FUNCTION_ARGS) \
{ \
	return owner_verb(fcinfo, action, false); \
} \
PG_FUNCTION_INFO_V1(name##_by_token); \
Datum \
name##_by_token(PG_FUNCTION_ARGS) \
{ \
	return owner_verb(fcinfo, action, true); \
} \
extern Datum name(PG_FUNCTION_ARGS)

OWNER_VERB(idem_complete, ACTION_COMPLETE);
OWNER_VERB(idem_fail, ACTION_FAIL);
OWNER_VERB(idem_release, ACTION_RELEASE);
OWNER_VERB(idem_heartbeat, ACTION_HEARTBEAT);
OWNER_VERB(idem_hold, ACTION_HOLD);

PG_FUNCTION_INFO_V1(idem_unknown);
Datum
idem_unknown(PG_FUNCTION_ARGS)
{
	return owner_verb(fcinfo, ACTION_UNKNOWN, false);
}
