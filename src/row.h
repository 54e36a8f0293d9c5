/*-------------------------------------------------------------------------
 *
 * row.h
 *		Values into the columns of a row, for the files that know columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_ROW_H
#define IDEM_ROW_H

#include "idempotency.h"
#include "utils/timestamp.h"

static inline void
put_time(Datum *values, bool *isnull, int column, TimestampTz value)
{
	values[column] = TimestampTzGetDatum(value);
	isnull[column] = value == IDEM_NO_TIME;
}

static inline void
put_nullable(Datum *values, bool *isnull, int column, NullableDatum value)
{
	values[column] = value.value;
	isnull[column] = value.isnull;
}

#endif							/* IDEM_ROW_H */
