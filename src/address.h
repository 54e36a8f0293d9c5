/*-------------------------------------------------------------------------
 *
 * address.h
 *		Addresses, and the locks on them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_ADDRESS_H
#define IDEM_ADDRESS_H

#include "fmgr.h"

/*
 * address.c: tenant, operation and key, and the lock on them.
 */
#define IDEM_TENANT_MAX		128
#define IDEM_OPERATION_MAX	128
#define IDEM_KEY_MAX		255
#define IDEM_GUARD_MAX		255
#define IDEM_OWNER_MAX		255
#define IDEM_NOTE_MAX		1024	/* reason, resource */

/* an operation of the greatest length, with its terminating zero */
#define IDEM_OPERATION_SIZE (IDEM_OPERATION_MAX * MAX_MULTIBYTE_CHAR_LEN + 1)

typedef struct IdemAddress
{
	text	   *tenant;
	text	   *operation;
	text	   *key;
	uint64		hash;			/* of all three, secret to this cluster */
	bool		is_guard;		/* "key" is the name of a guard */
} IdemAddress;

/* What asking for a lock without waiting gives. */
typedef enum IdemLocked
{
	LOCKED_NOT,
	LOCKED_NOW,
	LOCKED_BEFORE				/* and by this transaction already */
} IdemLocked;

extern void address_set(IdemAddress *address, text *tenant, text *operation,
						text *key);
extern void address_set_args(IdemAddress *address, FunctionCallInfo fcinfo,
							 int first);
extern void address_set_guard(IdemAddress *lock, const IdemAddress *address,
							  text *guard);
extern bool address_same_text(text *a, text *b);
extern bool address_equal(const IdemAddress *a, const IdemAddress *b);
extern void address_check_text(const char *what, text *value, int max_chars,
							   const char *hint);
extern int	address_errdetail(const IdemAddress *address);
extern IdemLocked address_try_lock(const IdemAddress *address);
extern void address_lock(const IdemAddress *address);
extern bool address_wait(const IdemAddress *address, bool keep,
						 int64 timeout_us);
extern void address_unlock(const IdemAddress *address);
extern bool address_is_locked_elsewhere(const IdemAddress *address);

#endif							/* IDEM_ADDRESS_H */
