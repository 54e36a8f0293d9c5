/*-------------------------------------------------------------------------
 *
 * idempotency.c
 *		Entry point of the library: lets each room set itself up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "pending.h"
#include "stat_shmem.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

/*
 * Must never fail: a server that preloads the library would not start, and a
 * session that loads it could not work.
 */
void
_PG_init(void)
{
	settings_init();
	catalog_init();
	policy_init();
	pending_init();
	stat_shmem_init();
}
