/*-------------------------------------------------------------------------
 *
 * record_row.h
 *		A record as the columns of idem_record; for record.c, and those who walk
 *		through the table.
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
extern void record_from_slot(IdemRecord *record, IdemAddress *address,
							 TupleTableSlot *slot);
extern bool record_has_payload(const IdemRecord *record);
extern void record_drop_payload(IdemRecord *record);

#endif							/* IDEM_RECORD_ROW_H */
