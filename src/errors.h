/*-------------------------------------------------------------------------
 *
 * errors.h
 *		The SQLSTATE class ID, one name per documented code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_ERRORS_H
#define IDEM_ERRORS_H

#include "utils/elog.h"

/* misuse of a claim */
#define ERRCODE_IDEM_UNFINISHED			MAKE_SQLSTATE('I', 'D', '0', '0', '1')
#define ERRCODE_IDEM_STALE_TICKET		MAKE_SQLSTATE('I', 'D', '0', '0', '2')
#define ERRCODE_IDEM_ILLEGAL_TRANSITION MAKE_SQLSTATE('I', 'D', '0', '0', '3')
#define ERRCODE_IDEM_DIVERGES			MAKE_SQLSTATE('I', 'D', '0', '0', '4')
#define ERRCODE_IDEM_RESPONSE_TOO_LARGE MAKE_SQLSTATE('I', 'D', '0', '0', '5')
#define ERRCODE_IDEM_COPY				MAKE_SQLSTATE('I', 'D', '0', '0', '6')
#define ERRCODE_IDEM_NOT_DURABLE		MAKE_SQLSTATE('I', 'D', '5', '0', '3')

/* outcomes as errors, raised by idem_require alone */
#define ERRCODE_IDEM_DUPLICATE			MAKE_SQLSTATE('I', 'D', '2', '0', '8')
#define ERRCODE_IDEM_ABSENT				MAKE_SQLSTATE('I', 'D', '4', '0', '4')
#define ERRCODE_IDEM_IN_PROGRESS		MAKE_SQLSTATE('I', 'D', '4', '0', '9')
#define ERRCODE_IDEM_EXPIRED			MAKE_SQLSTATE('I', 'D', '4', '1', '0')
#define ERRCODE_IDEM_MISMATCH			MAKE_SQLSTATE('I', 'D', '4', '2', '2')
#define ERRCODE_IDEM_UNKNOWN			MAKE_SQLSTATE('I', 'D', '4', '2', '4')
#define ERRCODE_IDEM_CANCELLED			MAKE_SQLSTATE('I', 'D', '4', '9', '9')

#endif							/* IDEM_ERRORS_H */
