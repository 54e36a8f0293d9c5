/*-------------------------------------------------------------------------
 *
 * batch.c
 *		Many claims, or many completions, in one call.
 *
 * Locking: key locks are taken in the order of the hash that makes their lock
 * tag, whatever the order of the arrays.  So two batches never wait for each
 * other in a circle.
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
} BatchItem;

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

PG_FUNCTION_INFO_V1(idem_claim_batch);
Datum
idem_claim_batch(PG_FUNCTION_ARGS)
{
	static const IdemClaimArgs args = {.wait = 5,.lease = 6,.ttl = 7,
	.owner = 8};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	IdemClaim	claim;
	IdemTable	table;
	int			n;
	NullableDatum *keys;
	NullableDatum *requests;
	NullableDatum *fingerprints;
	BatchItem  *items;
	HeapTuple  *tickets;

	InitMaterializedSRF(fcinfo, 0);
	keys = require_array(fcinfo, 2, "keys", &n);
	requests = read_companion(fcinfo, 3, "requests", "keys", n);
	fingerprints = read_companion(fcinfo, 4, "fingerprints", "keys", n);
	if (n == 0)
		PG_RETURN_NULL();
	items = palloc(n * sizeof(BatchItem));
	tickets = palloc(n * sizeof(HeapTuple));
	for (int i = 0; i < n; i++)
	{
		items[i].place = i;
		address_set(&items[i].address,
					PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0),
					PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1),
					keys[i].isnull ? NULL : DatumGetTextPP(keys[i].value));
	}
	durability_require_writable(&items[0].address);
	policy_get(items[0].address.operation, &claim.policy);
	claim_set_options(&claim, fcinfo, &args);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	sort_items(items, n);
	for (int i = 0; i < n; i++)
	{
		int			place = items[i].place;
		IdemTicket	ticket;

		CHECK_FOR_INTERRUPTS();
		claim.address = items[i].address;
		claim_set_request(&claim, item_of(requests, place),
						  item_of(fingerprints, place));
		claim_take(&table, &claim, &ticket);
		tickets[place] = ticket_form(&claim.address, &ticket);
	}
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
