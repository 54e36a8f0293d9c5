/*-------------------------------------------------------------------------
 *
 * record_row.h
 *		A record as the columns of idem_record; for record.c alone.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_RECORD_ROW_H
#define IDEM_RECORD_ROW_H

#include "idempotency.h"

extern void record_from_row(IdemRecord *record, const Datum *values,
							const bool *isnull);
extern void record_to_row(const IdemAddress *address,
						  const IdemRecord *record, Datum *values,
						  bool *isnull);
extern text *record_row_key(const Datum *values);

#endif							/* IDEM_RECORD_ROW_H */
