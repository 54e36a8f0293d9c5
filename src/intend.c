/*-------------------------------------------------------------------------
 *
 * intend.c
 *		Noting an intent, before the call is made.
 *
 * Locking: the owner's ticket is proven first, with the key lock of the
 * command (complete.c), so nobody else notes the same one meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/async.h"
#include "funcapi.h"
#include "intent.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/*
 * Adds a text to a digest: in UTF-8, so that every encoding gives the same
 * (SQL_ASCII has bytes and no characters: they stay as they are), and with its
 * length before it, unless it is the last.
 */
static void
digest_text(text *value, bool last)
{
	int			len = VARSIZE_ANY_EXHDR(value);
	char	   *bytes = VARDATA_ANY(value);
	uint32		length;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		bytes = pg_server_to_any(bytes, len, PG_UTF8);
	if (bytes != VARDATA_ANY(value))
		len = strlen(bytes);
	length = pg_hton32((uint32) len);
	if (!last)
		digest_add(&length, sizeof(length));
	digest_add(bytes, len);
}

/*
 * Derived from address and name alone: 16 bytes of a digest, as a UUID of
 * version 8.
 */
Datum
intend_operation_id(const IdemAddress *address, text *name)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	uint8		bytes[IDEM_DIGEST_SIZE];

	digest_begin();
	digest_text(address->tenant, false);
	digest_text(address->operation, false);
	digest_text(address->key, false);
	digest_text(name, true);
	digest_end(bytes);
	memcpy(id->data, bytes, UUID_LEN);
	id->data[6] = (id->data[6] & 0x0f) | 0x80;
	id->data[8] = (id->data[8] & 0x3f) | 0x80;
	return UUIDPGetDatum(id);
}

PG_FUNCTION_INFO_V1(idem_operation_id);
Datum
idem_operation_id(PG_FUNCTION_ARGS)
{
	IdemAddress address = {0};

	for (int i = 0; i < 4; i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	address.tenant = PG_GETARG_TEXT_PP(0);
	address.operation = PG_GETARG_TEXT_PP(1);
	address.key = PG_GETARG_TEXT_PP(2);
	PG_RETURN_DATUM(intend_operation_id(&address, PG_GETARG_TEXT_PP(3)));
}

/*
 * Wakes the relays, where the operation's policy names a channel.
 */
void
intend_notify(const IdemIntent *intent)
{
	IdemPolicy	policy;

	if (!intent->send)
		return;
	policy_get(intent->address.operation, &policy);
	if (policy.notify != NULL)
		Async_Notify(policy.notify, text_to_cstring(intent->target));
}

/*
 * Noted before: the same target and request?
 */
static void
check_repeat(const IdemIntent *noted, const IdemIntent *asked)
{
	bool		same = noted->request.isnull == asked->request.isnull &&
	datum_image_eq(PointerGetDatum(noted->target),
				   PointerGetDatum(asked->target), false, -1);

	if (same && !noted->request.isnull)
	{
		Jsonb	   *before = DatumGetJsonbP(noted->request.value);
		Jsonb	   *now = DatumGetJsonbP(asked->request.value);

		same = compareJsonbContainers(&before->root, &now->root) == 0;
	}
	if (!same)
		ereport(ERROR,
				(errcode(ERRCODE_IDEM_DIVERGES),
				 errmsg("intent \"%s\" was noted with another target or request",
						text_to_cstring(asked->name)),
				 address_errdetail(&asked->address),
				 errhint("It stays as it is. Another call needs another name.")));
}

/*
 * The ticket is good, and the policy allows such an intent now?
 */
static void
prove_ticket(HeapTupleHeader ticket, IdemAddress *address, text *name)
{
	IdemChange	change = {.action = ACTION_HOLD};
	IdemRecord	record;
	IdemTable	table;
	int64		token;

	ticket_read(ticket, address, &token);
	durability_require_writable(address);
	durability_begin();
	record_open(&table, RowExclusiveLock, SnapshotSelf);
	complete_apply(&table, address, token, &change, &record);
	step_check_turn(address, token, &record, name);
	record_close(&table);
}

static void
read_intent(IdemIntent *intent, FunctionCallInfo fcinfo)
{
	memset(intent, 0, sizeof(*intent));
	intent->name = PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1);
	intent->target = PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2);
	prove_ticket(owner_ticket(fcinfo, 0), &intent->address, intent->name);
	address_check_text("target", intent->target, IDEM_TARGET_MAX,
					   "Name the system that is called.");
	intent->request = fcinfo->args[3];
	intent->send = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	intent->resend_us = PG_ARGISNULL(5) ? 0 :
		duration_us("resend_safe_for", PG_GETARG_INTERVAL_P(5));
	intent->operation_id = intend_operation_id(&intent->address,
											   intent->name);
	intent->state = INTENT_PENDING;
	intent->created_at = intent->due_at = GetCurrentTimestamp();
	intent->first_sent_at = intent->doubt_since = IDEM_NO_TIME;
	intent->lease_until = intent->settled_at = IDEM_NO_TIME;
	intent->worker = intent->reason = null_datum();
	intent->response = intent->evidence = null_datum();
}

PG_FUNCTION_INFO_V1(idem_intend);
Datum
idem_intend(PG_FUNCTION_ARGS)
{
	IdemIntentTable table;
	IdemIntent	asked;
	IdemIntent	noted;
	Datum		result;

	read_intent(&asked, fcinfo);
	intents_open(&table);
	if (intents_find(&table, asked.operation_id, &noted))
		check_repeat(&noted, &asked);
	else
	{
		asked.created_by = GetTopFullTransactionId();
		intents_insert(&table, &asked);
		intend_notify(&asked);
		durability_flush();
		noted = asked;
	}
	result = HeapTupleGetDatum(intents_form(&table, &noted));
	intents_close(&table);
	PG_RETURN_DATUM(result);
}
