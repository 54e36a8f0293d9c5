/*-------------------------------------------------------------------------
 *
 * duration.c
 *		Intervals as absolute durations in microseconds.
 *
 * A day is 24 hours in any time zone; months and years have no fixed length
 * and are refused.  The upper bound keeps every sum with a timestamp far from
 * overflow.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "idempotency.h"

#define DURATION_MAX_US (IDEM_DURATION_MAX_DAYS * USECS_PER_DAY)

/*
 * Days and time of an interval; false when they overflow.
 */
static bool
interval_us(const Interval *value, int64 *us)
{
	int64		days;

	return !pg_mul_s64_overflow(value->day, USECS_PER_DAY, &days) &&
		!pg_add_s64_overflow(days, value->time, us);
}

/*
 * An infinite interval (since PostgreSQL 17) has months, too.
 */
static void
refuse_months(const char *what, const Interval *value)
{
	if (value->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not have months or years", what),
				 errdetail("A month has no fixed length."),
				 errhint("Use days, hours or smaller units.")));
}

/*
 * Length of a duration that has to be more than zero.
 */
int64
duration_us(const char *what, const Interval *value)
{
	int64		us;

	refuse_months(what, value);
	if (!interval_us(value, &us) || us <= 0 || us > DURATION_MAX_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range", what),
				 errdetail("It must be more than zero and at most %d days.",
						   IDEM_DURATION_MAX_DAYS),
				 errhint("Pass NULL for the default.")));
	return us;
}

/*
 * Length of a wait, which may be zero.
 */
int64
duration_wait_us(const char *what, const Interval *value)
{
	int64		us;

	refuse_months(what, value);
	if (!interval_us(value, &us) || us < 0 || us > IDEM_WAIT_MAX_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is out of range", what),
				 errdetail("It must be at least zero and at most 1 day."),
				 errhint("Pass 0 not to wait, NULL for the default.")));
	return us;
}

Interval *
duration_interval(int64 us)
{
	Interval   *value = palloc0(sizeof(Interval));

	value->time = us;
	return value;
}
