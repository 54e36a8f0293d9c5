/*-------------------------------------------------------------------------
 *
 * complete.c
 *		What the owner of a claim does with it: complete, fail, release,
 *		heartbeat, hold.
 *
 * Each call proves the ticket first.  An atomic claim is found in this
 * transaction's memory, with its key lock held.  For a leased one the key
 * lock is taken and kept until the transaction ends, so that nobody can take
 * over before the caller's other writes are committed; then the token decides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "idempotency.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

static void
refuse_stale(const IdemAddress *address, const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_STALE_TICKET),
			 errmsg("%s", message),
			 address_errdetail(address),
			 errhint("Claim again and follow the outcome. An atomic claim ends with its transaction, a leased one when somebody takes over.")));
}

static void
refuse_transition(const IdemAddress *address, IdemState state,
				  IdemAction action, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
			 errmsg("cannot %s a command that is %s", action_name(action),
					state_name(state)),
			 address_errdetail(address),
			 errhint("%s", hint)));
}

static void
check_size(const IdemAddress *address, const char *what, NullableDatum value)
{
	Size		size;

	if (value.isnull)
		return;
	size = toast_raw_datum_size(value.value) - VARHDRSZ;
	if (size > (Size) idem_max_response_size)
		ereport(ERROR,
				(errcode(ERRCODE_IDEM_RESPONSE_TOO_LARGE),
				 errmsg("%s of %zu bytes exceeds idempotency.max_response_size (%d bytes)",
						what, size, idem_max_response_size),
				 address_errdetail(address),
				 errhint("Store a shorter answer, or a resource alone.")));
}

/*
 * Refuses a result that cannot be stored, before anything is written.
 */
void
complete_check_result(const IdemAddress *address, const IdemResult *result)
{
	check_size(address, "response", result->response);
	check_size(address, "headers", result->headers);
	check_size(address, "body", result->body);
	if (!result->resource.isnull)
		address_check_text("resource", DatumGetTextPP(result->resource.value),
						   IDEM_NOTE_MAX, "Pass NULL for no resource.");
}

static void
end_record(IdemRecord *record, const IdemAddress *address,
		   const IdemChange *change, int64 asked_ttl_us)
{
	IdemPolicy	policy;

	policy_get(address->operation, &policy);
	record->state = state_next(STATE_PROCESSING, change->action);
	record->completed_at = GetCurrentTimestamp();
	record->expires_at = record->completed_at +
		policy_ttl_us(&policy, asked_ttl_us);
	record->lease_until = IDEM_NO_TIME;
	record->ttl_us = 0;
	record->result = change->result;
}

/*
 * The one write of an atomic claim.
 */
static void
write_pending(IdemTable *table, const IdemAddress *address,
			  IdemPending *claim, const IdemChange *change,
			  IdemRecord *record)
{
	if (!claim->replaces)
	{
		record_clear(record);
		record->created_at = claim->created_at;
		record->policy_version = claim->policy_version;
		record->fingerprint = text_or_null(claim->fingerprint);
	}
	else if (!record_probe(table, address, record))
		elog(ERROR, "record of a pending claim is gone");
	record->attempt = claim->attempt;
	record->token = claim->token;
	record->owner = text_or_null(claim->owner);
	record->reason = null_datum();
	end_record(record, address, change, claim->ttl_us);
	if (claim->replaces)
		record_update(table, address, record);
	else
		record_insert(table, address, record);
	pending_close(claim, PENDING_COMPLETED);
}

static void
apply_to_pending(IdemTable *table, const IdemAddress *address,
				 IdemPending *claim, const IdemChange *change,
				 IdemRecord *record)
{
	switch (change->action)
	{
		case ACTION_COMPLETE:
		case ACTION_FAIL:
			write_pending(table, address, claim, change, record);
			break;
		case ACTION_RELEASE:
			/* the lock stays: a savepoint may bring the claim back */
			pending_close(claim, PENDING_RELEASED);
			break;
		case ACTION_HOLD:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_IDEM_ILLEGAL_TRANSITION),
					 errmsg("cannot extend an atomic claim"),
					 address_errdetail(address),
					 errhint("It has no lease: it lasts as long as its transaction.")));
	}
}

/*
 * The same again: accepted, and changes nothing.
 */
static void
repeat(const IdemAddress *address, const IdemChange *change,
	   const IdemRecord *record)
{
	if (change->action == ACTION_RELEASE)
		return;
	if (GetCurrentTimestamp() >= record->expires_at)
		refuse_transition(address, record->state, change->action,
						  "Its answer has expired, so it cannot be compared.");
	if (!record_same_result(&record->result, &change->result))
		refuse_transition(address, record->state, change->action,
						  "It has another answer already, which stays.");
}

static int64
heartbeat_us(const IdemAddress *address, const IdemChange *change)
{
	IdemPolicy	policy;
	int64		lease_us;

	policy_get(address->operation, &policy);
	lease_us = policy_lease_us(&policy, change->has_lease ? &change->lease :
							   NULL);
	if (lease_us == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("heartbeat needs a lease"),
				 address_errdetail(address),
				 errhint("Pass one, or give the operation's policy a lease.")));
	return lease_us;
}

static void
apply_to_record(IdemTable *table, const IdemAddress *address,
				const IdemChange *change, IdemRecord *record)
{
	IdemState	next = state_next(record->state, change->action);

	if (next == STATE_NONE)
		refuse_transition(address, record->state, change->action,
						  state_is_terminal(record->state) ?
						  "A final state never changes." :
						  "Claim it again and follow the outcome.");
	switch (change->action)
	{
		case ACTION_HOLD:
			return;
		case ACTION_HEARTBEAT:
			record->lease_until = GetCurrentTimestamp() +
				heartbeat_us(address, change);
			break;
		case ACTION_RELEASE:
			if (next == record->state)
				return;
			record->state = next;
			record->lease_until = IDEM_NO_TIME;
			record->reason = text_or_null(change->reason);
			break;
		default:
			if (next == record->state)
			{
				repeat(address, change, record);
				return;
			}
			end_record(record, address, change, record->ttl_us);
			break;
	}
	record_update(table, address, record);
	durability_flush();
}

/*
 * Applies a change that the ticket's holder asks for, or refuses it and
 * leaves everything as it was.  "record" becomes what is stored then.
 */
void
complete_apply(IdemTable *table, const IdemAddress *address, int64 token,
			   const IdemChange *change, IdemRecord *record)
{
	IdemPending *claim;

	record_clear(record);
	if (token == 0)
		refuse_stale(address, "ticket has no token");
	claim = pending_find_token(address, token);
	if (claim != NULL && claim->status == PENDING_OPEN)
	{
		apply_to_pending(table, address, claim, change, record);
		return;
	}
	if (claim != NULL && claim->status == PENDING_RELEASED)
	{
		if (state_next(STATE_RELEASED, change->action) == STATE_NONE)
			refuse_transition(address, STATE_RELEASED, change->action,
							  "Claim it again and follow the outcome.");
		return;
	}

	/* taken over by this very transaction, which has written nothing yet */
	if (pending_find_open(address) != NULL)
		refuse_stale(address, "ticket is not valid any more");

	address_lock(address);
	if (!record_probe(table, address, record) || record->token != token)
		refuse_stale(address, "ticket is not valid any more");
	apply_to_record(table, address, change, record);
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
	{
		if (PG_ARGISNULL(0))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("ticket must not be NULL"),
					 errdetail("The ticket says which command is meant."),
					 errhint("Pass the ticket that idem_claim() returned.")));
		ticket_read(PG_GETARG_HEAPTUPLEHEADER(0), address, token);
	}
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
			change->result.response = args[0];
			change->result.code = args[1];
			change->result.resource = args[2];
			change->result.headers = args[3];
			change->result.body = args[4];
			complete_check_result(address, &change->result);
			break;
		case ACTION_RELEASE:
			if (args[0].isnull)
				break;
			change->reason = DatumGetTextPP(args[0].value);
			address_check_text("reason", change->reason, IDEM_NOTE_MAX,
							   "Say why in a few words.");
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
