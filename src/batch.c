/*-------------------------------------------------------------------------
 *
 * batch.c
 *		Many claims, or many completions, in one call.
 *
 * Locking: key locks are taken in the order of the hash that makes their lock
 * tag, whatever the order of the arrays; after all of them those of the
 * guards, in the same way.  So two batches never wait for each other in a
 * circle.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

/* One element of the arrays. */
typedef struct BatchItem
{
	IdemAddress address;
	int			place;			/* in the arrays, from zero */
	int64		token;			/* of a ticket */
	IdemAddress guard;			/* what is locked for it */
} BatchItem;

/* What a batch of claims is told. */
typedef struct BatchArgs
{
	NullableDatum *keys;
	NullableDatum *requests;
	NullableDatum *fingerprints;
	NullableDatum *guards;
} BatchArgs;

static int
compare_items(const void *a, const void *b)
{
	const BatchItem *left = a;
	const BatchItem *right = b;

	if (left->address.hash != right->address.hash)
		return left->address.hash < right->address.hash ? -1 : 1;
	/* of two places with one address the first claims it */
	return left->place - right->place;
}

static int
compare_guards(const void *a, const void *b)
{
	const BatchItem *left = a;
	const BatchItem *right = b;

	if (left->guard.hash != right->guard.hash)
		return left->guard.hash < right->guard.hash ? -1 : 1;
	return left->place - right->place;
}

/*
 * Elements of an array argument, or NULL for a NULL array.
 */
static NullableDatum *
read_array(FunctionCallInfo fcinfo, int arg, const char *what, int *n)
{
	ArrayType  *array;
	NullableDatum *items;
	Datum	   *values;
	bool	   *nulls;
	int16		len;
	bool		byval;
	char		align;

	if (PG_ARGISNULL(arg))
		return NULL;
	array = PG_GETARG_ARRAYTYPE_P(arg);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be an array of one dimension", what),
				 errdetail("It has %d.", ARR_NDIM(array)),
				 errhint("Pass a plain array.")));
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
	deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align,
					  &values, &nulls, n);
	items = palloc((*n + 1) * sizeof(NullableDatum));
	for (int i = 0; i < *n; i++)
	{
		items[i].value = values[i];
		items[i].isnull = nulls[i];
	}
	return items;
}

/*
 * As read_array(), for an argument that goes with another one.
 */
static NullableDatum *
read_companion(FunctionCallInfo fcinfo, int arg, const char *what,
			   const char *main_what, int main_n)
{
	int			n;
	NullableDatum *items = read_array(fcinfo, arg, what, &n);

	if (items != NULL && n != main_n)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s and %s must have the same length", what,
						main_what),
				 errdetail("There are %d and %d.", n, main_n),
				 errhint("Pass NULL to leave %s out, or NULL elements.",
						 what)));
	return items;
}

static NullableDatum *
require_array(FunctionCallInfo fcinfo, int arg, const char *what, int *n)
{
	NullableDatum *items = read_array(fcinfo, arg, what, n);

	if (items == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be NULL", what),
				 errdetail("It says which commands are meant."),
				 errhint("An empty array is allowed.")));
	return items;
}

static NullableDatum
item_of(const NullableDatum *items, int place)
{
	return items == NULL ? null_datum() : items[place];
}

static BatchItem *
sort_items(BatchItem *items, int n)
{
	qsort(items, n, sizeof(BatchItem), compare_items);
	return items;
}

/*
 * Claims one element.  False where its guard comes later.
 */
static bool
take_item(IdemTable *table, IdemClaim *claim, const BatchItem *item,
		  const BatchArgs *args, HeapTuple *tickets)
{
	int			place = item->place;
	IdemTicket	ticket;

	CHECK_FOR_INTERRUPTS();
	claim->address = item->address;
	claim_set_request(claim, item_of(args->requests, place),
					  item_of(args->fingerprints, place),
					  item_of(args->guards, place));
	if (!claim_take(table, claim, &ticket))
		return false;
	tickets[place] = ticket_form(&claim->address, &ticket);
	return true;
}

/*
 * First all addresses, then, where they may be claimed, all guards.  Between
 * the two the key locks are held, so the second claim of an address never
 * waits for it.
 */
static void
take_items(IdemTable *table, IdemClaim *claim, BatchItem *items, int n,
		   const BatchArgs *args, HeapTuple *tickets)
{
	int			nlater = 0;

	claim->guards_later = true;
	for (int i = 0; i < n; i++)
	{
		if (take_item(table, claim, &items[i], args, tickets))
			continue;
		address_set_guard(&items[i].guard, &items[i].address, claim->guard);
		items[nlater++] = items[i];
	}
	qsort(items, nlater, sizeof(BatchItem), compare_guards);
	claim->guards_later = false;
	for (int i = 0; i < nlater; i++)
	{
		(void) take_item(table, claim, &items[i], args, tickets);
		/* where it was granted, the claim has a lock of its own */
		address_unlock(&items[i].address);
	}
}

PG_FUNCTION_INFO_V1(idem_claim_batch);
Datum
idem_claim_batch(PG_FUNCTION_ARGS)
{
	static const IdemClaimArgs options = {.wait = 6,.lease = 7,.ttl = 8,
	.owner = 9};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	IdemClaim	claim;
	IdemTable	table;
	int			n;
	BatchArgs	args;
	BatchItem  *items;
	HeapTuple  *tickets;

	InitMaterializedSRF(fcinfo, 0);
	args.keys = require_array(fcinfo, 2, "keys", &n);
	args.requests = read_companion(fcinfo, 3, "requests", "keys", n);
	args.fingerprints = read_companion(fcinfo, 4, "fingerprints", "keys", n);
	args.guards = read_companion(fcinfo, 5, "guards", "keys", n);
	if (n == 0)
		PG_RETURN_NULL();
	items = palloc(n * sizeof(BatchItem));
	tickets = palloc(n * sizeof(HeapTuple));
	for (int i = 0; i < n; i++)
	{
		text	   *key = args.keys[i].isnull ? NULL :
		DatumGetTextPP(args.keys[i].value);

		items[i].place = i;
		address_set(&items[i].address,
					PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0),
					PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1), key);
	}
	durability_require_writable(&items[0].address);
	policy_get(items[0].address.operation, &claim.policy);
	/* a trigger of the first row may have the cache read again */
	if (claim.policy.ignore_paths != NULL)
		claim.policy.ignore_paths =
			DatumGetArrayTypePCopy(PointerGetDatum(claim.policy.ignore_paths));
	claim_set_options(&claim, fcinfo, &options);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	take_items(&table, &claim, sort_items(items, n), n, &args, tickets);
	record_close(&table);
	for (int i = 0; i < n; i++)
		tuplestore_puttuple(rsinfo->setResult, tickets[i]);
	PG_RETURN_NULL();
}

PG_FUNCTION_INFO_V1(idem_complete_batch);
Datum
idem_complete_batch(PG_FUNCTION_ARGS)
{
	IdemTable	table;
	int			n;
	NullableDatum *tickets = require_array(fcinfo, 0, "tickets", &n);
	NullableDatum *responses = read_companion(fcinfo, 1, "responses",
											  "tickets", n);
	BatchItem  *items = palloc((n + 1) * sizeof(BatchItem));

	if (n == 0)
		PG_RETURN_INT32(0);
	for (int i = 0; i < n; i++)
	{
		if (tickets[i].isnull)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("ticket must not be NULL"),
					 errdetail("Element %d of the tickets is NULL.", i + 1),
					 errhint("Leave the element out.")));
		items[i].place = i;
		ticket_read(DatumGetHeapTupleHeader(tickets[i].value),
					&items[i].address, &items[i].token);
	}
	durability_require_writable(&items[0].address);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	sort_items(items, n);
	for (int i = 0; i < n; i++)
	{
		IdemChange	change = {.action = ACTION_COMPLETE};
		IdemRecord	record;

		CHECK_FOR_INTERRUPTS();
		change.result.code = change.result.resource = null_datum();
		change.result.headers = change.result.body = null_datum();
		change.result.response = item_of(responses, items[i].place);
		complete_check_result(&items[i].address, &change.result);
		complete_apply(&table, &items[i].address, items[i].token, &change,
					   &record);
	}
	record_close(&table);
	PG_RETURN_INT32(n);
}
