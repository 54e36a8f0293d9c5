/*-------------------------------------------------------------------------
 *
 * pending.h
 *		The atomic claims of this transaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_PENDING_H
#define IDEM_PENDING_H

#include "idempotency.h"

typedef enum IdemPendingStatus
{
	PENDING_OPEN,
	PENDING_COMPLETED,
	PENDING_RELEASED
} IdemPendingStatus;

typedef struct IdemPending
{
	struct IdemPending *next;	/* in the same bucket */
	IdemAddress address;
	IdemPendingStatus status;
	bool		replaces;		/* there is a row to be updated */
	int32		attempt;
	int32		policy_version;
	int64		token;
	int64		ttl_us;			/* 0: the default */
	TimestampTz created_at;
	TimestampTz claimed_at;
	bytea	   *fingerprint;	/* NULL: no request */
	text	   *guard;			/* NULL: none */
	uint64		guard_hash;		/* of its lock */
	text	   *owner;			/* NULL: none */
} IdemPending;

extern void pending_init(void);
extern void pending_add(const IdemPending *claim);
extern IdemPending *pending_find_open(const IdemAddress *address);
extern IdemPending *pending_find_guard(const IdemAddress *lock);
extern IdemPending *pending_find_token(const IdemAddress *address,
									   int64 token);
extern void pending_facts(const IdemPending *claim, IdemRecord *record);
extern void pending_close(IdemPending *claim, IdemPendingStatus status);

#endif							/* IDEM_PENDING_H */
