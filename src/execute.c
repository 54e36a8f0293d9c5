/*-------------------------------------------------------------------------
 *
 * execute.c
 *		idem_execute: claim, work and completion in one call.
 *
 * No row stays pinned while the handler runs: it may take long, and may use
 * the extension itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

typedef struct Handler
{
	FmgrInfo	function;
	Oid			result_type;
} Handler;

static void
refuse_handler(Oid proc, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			 errmsg("function %s cannot be a handler", format_procedure(proc)),
			 errdetail("%s", detail),
			 errhint("A handler takes one jsonb and returns json, jsonb or idem_response.")));
}

/*
 * Finds the handler, and refuses one with a wrong signature or that the
 * caller may not execute.
 */
static void
find_handler(Handler *handler, Oid proc, const IdemClaim *claim)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(proc));
	Form_pg_proc form;
	AclResult	allowed;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("handler with oid %u does not exist", proc),
				 address_errdetail(&claim->address),
				 errhint("Pass it by name, as 'schema.function(jsonb)'.")));
	form = (Form_pg_proc) GETSTRUCT(tuple);
	handler->result_type = form->prorettype;
	if (form->prokind != PROKIND_FUNCTION)
		refuse_handler(proc, "It is no plain function.");
	if (form->proretset)
		refuse_handler(proc, "It returns a set.");
	if (form->pronargs != 1 || form->proargtypes.values[0] != JSONBOID)
		refuse_handler(proc, "It does not take exactly one jsonb.");
	if (form->prorettype != JSONOID && form->prorettype != JSONBOID &&
		form->prorettype != catalog_get()->response)
		refuse_handler(proc, psprintf("It returns %s.",
									  format_type_be(form->prorettype)));
	if (form->proisstrict && claim->request.isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("strict handler would not be called for a NULL request"),
				 address_errdetail(&claim->address),
				 errhint("Pass a request, or make the handler CALLED ON NULL INPUT.")));
	ReleaseSysCache(tuple);

	allowed = compat_proc_aclcheck(proc, GetUserId());
	if (allowed != ACLCHECK_OK)
		aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(proc));
	InvokeFunctionExecuteHook(proc);
	fmgr_info(proc, &handler->function);
}

/*
 * jsonb is stored as its text.
 */
static NullableDatum
json_of_jsonb(Datum value)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	char	   *out = JsonbToCString(NULL, &jsonb->root, VARSIZE(jsonb));

	return text_or_null(cstring_to_text(out));
}

/*
 * Runs the handler; its errors propagate.
 */
static void
call_handler(Handler *handler, const IdemClaim *claim, IdemChange *change)
{
	LOCAL_FCINFO(fcinfo, 1);
	IdemResult *result = &change->result;
	Datum		value;

	InitFunctionCallInfoData(*fcinfo, &handler->function, 1, InvalidOid, NULL,
							 NULL);
	fcinfo->args[0] = claim->request;
	value = FunctionCallInvoke(fcinfo);

	memset(change, 0, sizeof(*change));
	change->action = ACTION_COMPLETE;
	result->code = result->resource = result->response = null_datum();
	result->headers = result->body = null_datum();
	if (fcinfo->isnull)
		return;
	if (handler->result_type == JSONOID)
		result->response = text_or_null(DatumGetTextPP(value));
	else if (handler->result_type == JSONBOID)
		result->response = json_of_jsonb(value);
	else if (response_read(DatumGetHeapTupleHeader(value), result) ==
			 STATE_FAILED)
		change->action = ACTION_FAIL;
}

/*
 * Calls the handler and stores what it answered.
 */
static void
run(Handler *handler, const IdemClaim *claim, IdemTicket *ticket,
	IdemTable *table)
{
	IdemChange	change;
	int64		token = ticket->token;

	record_let_go(table);
	call_handler(handler, claim, &change);
	complete_check_result(&claim->address, &change.result);
	complete_apply(table, &claim->address, token, &change, &ticket->record);
	ticket->with_result = true;
	ticket->token = 0;
}

PG_FUNCTION_INFO_V1(idem_execute);
Datum
idem_execute(PG_FUNCTION_ARGS)
{
	/* no lease: the claim ends within this call */
	static const IdemClaimArgs args = {.wait = 6,.lease = -1,.ttl = 7,
	.owner = 8};
	IdemClaim	claim;
	IdemTicket	ticket;
	IdemTable	table;
	Handler		handler;
	Datum		result;

	address_set_args(&claim.address, fcinfo, 0);
	durability_require_writable(&claim.address);
	policy_get(claim.address.operation, &claim.policy);
	claim_set_options(&claim, fcinfo, &args);
	claim_set_request(&claim, fcinfo->args[3], null_datum(),
					  fcinfo->args[5]);
	if (PG_ARGISNULL(4))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("handler must not be NULL"),
				 address_errdetail(&claim.address),
				 errhint("Pass it by name, as 'schema.function(jsonb)'.")));
	find_handler(&handler, PG_GETARG_OID(4), &claim);
	durability_begin();

	record_open(&table, RowExclusiveLock, SnapshotSelf);
	(void) claim_take(&table, &claim, &ticket);
	if (ticket.token != 0)
		run(&handler, &claim, &ticket, &table);
	result = ticket_datum(&claim.address, &ticket);
	record_close(&table);
	PG_RETURN_DATUM(result);
}
