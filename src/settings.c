/*-------------------------------------------------------------------------
 *
 * settings.c
 *		Every setting of the extension: unit, bounds, and the meaning of
 *		zero and of -1.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "compat.h"
#include "idempotency.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#define TTL_MIN_S					1
#define TTL_MAX_S					INT_MAX
#define TTL_DEFAULT_S				SECS_PER_DAY

#define WAIT_MIN_MS					0	/* do not wait */
#define WAIT_MAX_MS					((int) (IDEM_WAIT_MAX_US / 1000))
#define WAIT_DEFAULT_MS				0

#define RESPONSE_SIZE_MIN_BYTES		0	/* store no response at all */
#define RESPONSE_SIZE_MAX_BYTES		(256 * 1024 * 1024)
#define RESPONSE_SIZE_DEFAULT_BYTES (1024 * 1024)

#define RETENTION_MIN_S				(-1)	/* keep for ever */
#define RETENTION_MAX_S				INT_MAX
#define RETENTION_DEFAULT_S			(-1)

#define STAT_OPERATIONS_MIN			1
#define STAT_OPERATIONS_MAX			10000
#define STAT_OPERATIONS_DEFAULT		256

typedef enum Durability
{
	DURABILITY_LOCAL,
	DURABILITY_REPLICATED
} Durability;

static const struct config_enum_entry durability_options[] = {
	{"local", DURABILITY_LOCAL, false},
	{"replicated", DURABILITY_REPLICATED, false},
	{NULL, 0, false}
};

int			idem_max_response_size = RESPONSE_SIZE_DEFAULT_BYTES;
int			idem_stat_operations = STAT_OPERATIONS_DEFAULT;

char	   *idem_allowed_tenants;

static GucSource allowed_tenants_source;	/* of the last good value */
static int	ttl_s = TTL_DEFAULT_S;
static int	wait_ms = WAIT_DEFAULT_MS;
static int	tombstone_retention_s = RETENTION_DEFAULT_S;
static int	durability = DURABILITY_LOCAL;

static bool
check_allowed_tenants(char **value, void **extra, GucSource source)
{
	if (!access_check_list(*value))
		return false;
	allowed_tenants_source = source;
	return true;
}

/*
 * The server replaces a value from before, malformed or set by somebody who
 * may not, by the default.  That would allow what was to be forbidden, also by
 * a value that it had taken the place of: here it allows nothing, until a
 * better one comes.
 */
static void
define_allowed_tenants(void)
{
	bool		before = compat_setting_has_value(IDEM_ALLOWED_TENANTS);

	DefineCustomStringVariable(IDEM_ALLOWED_TENANTS,
							   "Tenants that the session may act on.",
							   "Names separated by commas, in double quotes where needed. Empty: none. *: every one.",
							   &idem_allowed_tenants,
							   IDEM_EVERY_TENANT,
							   PGC_SUSET, 0,
							   check_allowed_tenants, NULL, NULL);
	if (before && allowed_tenants_source == PGC_S_DEFAULT)
		SetConfigOption(IDEM_ALLOWED_TENANTS, "", PGC_SUSET,
						PGC_S_DYNAMIC_DEFAULT);
}

/*
 * Values set before the library was loaded are checked here; the server
 * replaces a bad one by the default, with a warning.
 */
void
settings_init(void)
{
	DefineCustomIntVariable("idempotency.ttl",
							"How long the answer of a completed command is replayed.",
							"Counted from the completion. Operations with a ttl in their policy do not use it.",
							&ttl_s,
							TTL_DEFAULT_S, TTL_MIN_S, TTL_MAX_S,
							PGC_USERSET, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomIntVariable("idempotency.wait",
							"How long a claim waits for another owner of its address.",
							"Zero answers in_progress at once.",
							&wait_ms,
							WAIT_DEFAULT_MS, WAIT_MIN_MS, WAIT_MAX_MS,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	DefineCustomIntVariable("idempotency.max_response_size",
							"Largest response, headers or body that can be stored.",
							"Zero allows empty ones only.",
							&idem_max_response_size,
							RESPONSE_SIZE_DEFAULT_BYTES,
							RESPONSE_SIZE_MIN_BYTES, RESPONSE_SIZE_MAX_BYTES,
							PGC_SUSET, GUC_UNIT_BYTE,
							NULL, NULL, NULL);

	DefineCustomIntVariable("idempotency.tombstone_retention",
							"How long an expired record is remembered.",
							"-1 keeps it for ever.",
							&tombstone_retention_s,
							RETENTION_DEFAULT_S,
							RETENTION_MIN_S, RETENTION_MAX_S,
							PGC_SUSET, GUC_UNIT_S,
							NULL, NULL, NULL);

	DefineCustomEnumVariable("idempotency.durability",
							 "What a commit of claims, completions and replays waits for.",
							 "local: the flush of this server. replicated: a synchronous standby as well.",
							 &durability,
							 DURABILITY_LOCAL, durability_options,
							 PGC_SUSET, 0,
							 NULL, NULL, NULL);

	/*
	 * Means nothing where the library is not preloaded, but stands in the
	 * file: known there as well, so that no session is warned of it.
	 */
	DefineCustomIntVariable("idempotency.stat_operations",
							"How many operations have figures of their own.",
							"All others are counted together. Needs shared_preload_libraries; about 1 kB of shared memory each.",
							&idem_stat_operations,
							STAT_OPERATIONS_DEFAULT,
							STAT_OPERATIONS_MIN, STAT_OPERATIONS_MAX,
							process_shared_preload_libraries_in_progress ?
							PGC_POSTMASTER : PGC_SIGHUP, 0,
							NULL, NULL, NULL);

	define_allowed_tenants();
	MarkGUCPrefixReserved("idempotency");
}

int64
settings_ttl_us(void)
{
	return (int64) ttl_s * USECS_PER_SEC;
}

int64
settings_wait_us(void)
{
	return (int64) wait_ms * 1000;
}

/*
 * -1: for ever.
 */
int64
settings_retention_us(void)
{
	return tombstone_retention_s < 0 ? -1 :
		(int64) tombstone_retention_s * USECS_PER_SEC;
}

bool
settings_replicated(void)
{
	return durability == DURABILITY_REPLICATED;
}
