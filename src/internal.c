/*-------------------------------------------------------------------------
 *
 * internal.c
 *		What the functions written in SQL need from C.  Granted to nobody.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(idem_lock);
Datum
idem_lock(PG_FUNCTION_ARGS)
{
	IdemAddress address;

	address_set_args(&address, fcinfo, 0);
	durability_require_writable(&address);
	address_lock(&address);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(idem_check_address);
Datum
idem_check_address(PG_FUNCTION_ARGS)
{
	IdemAddress address;

	address_set_args(&address, fcinfo, 0);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(idem_token);
Datum
idem_token(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(claim_token());
}

/*
 * What the functions in SQL give as a constant.
 */
static void
refuse_null(FunctionCallInfo fcinfo, int arg, const char *name)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be NULL", name),
				 errdetail("This function is internal."),
				 errhint("Use the functions that idem_grant() gives.")));
}

PG_FUNCTION_INFO_V1(idem_duration);
Datum
idem_duration(PG_FUNCTION_ARGS)
{
	char	   *what;
	int64		us;

	refuse_null(fcinfo, 0, "what");
	refuse_null(fcinfo, 2, "required");
	what = text_to_cstring(PG_GETARG_TEXT_PP(0));
	if (PG_ARGISNULL(1) && PG_GETARG_BOOL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be NULL", what),
				 errdetail("What is handed out comes back only after its lease."),
				 errhint("Pass the time the work may take.")));
	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	us = duration_us(what, PG_GETARG_INTERVAL_P(1));
	PG_RETURN_INTERVAL_P(duration_interval(us));
}

PG_FUNCTION_INFO_V1(idem_text);
Datum
idem_text(PG_FUNCTION_ARGS)
{
	text	   *value = PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1);

	refuse_null(fcinfo, 0, "what");
	refuse_null(fcinfo, 2, "max_chars");
	address_check_text(text_to_cstring(PG_GETARG_TEXT_PP(0)), value,
					   PG_GETARG_INT32(2),
					   "Name it, for people to read.");
	PG_RETURN_TEXT_P(value);
}
