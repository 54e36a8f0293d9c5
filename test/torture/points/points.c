/*-------------------------------------------------------------------------
 *
 * points.c
 *		Injects one fault at the Nth point that a session passes.
 *
 * SET inject.at = N arms it and counts from zero; it goes off once.  SHOW
 * inject.passed tells how many points were passed since, how many of them
 * where nothing may be thrown (outside of a running transaction, or in a
 * critical section), and at which one it went off, also after inject.at is
 * zero again.  inject.how says what happens:
 *
 *		error		an error with SQLSTATE INJ00, or a call that says it failed
 *		cancel		what a cancel request does: a signal
 *		terminate	what pg_terminate_backend() does
 *		timeout		the lock timeout expires when the lock has just been granted;
 *					only waits that have one are points then
 *
 *-------------------------------------------------------------------------
 */
#define INJECT_LIBRARY
#include "postgres.h"

#include <limits.h>
#include <signal.h>

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "points.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timeout.h"

PG_MODULE_MAGIC;

typedef enum How
{
	HOW_ERROR,
	HOW_CANCEL,
	HOW_TERMINATE,
	HOW_TIMEOUT
} How;

static const struct config_enum_entry how_options[] = {
	{"error", HOW_ERROR, false},
	{"cancel", HOW_CANCEL, false},
	{"terminate", HOW_TERMINATE, false},
	{"timeout", HOW_TIMEOUT, false},
	{NULL, 0, false}
};

static InjectPoint *points = NULL;
static InjectPoint *points_end = NULL;

static int	at = 0;				/* 0: nowhere */
static int	how = HOW_ERROR;
static int	passed_shown;		/* its variable, not used */
static bool armed = false;
static int	passed = 0;
static int	misplaced = 0;
static InjectPoint *fired = NULL;

/*
 * Each file of the extension says the same.
 */
void
inject_register(InjectPoint *first, InjectPoint *end)
{
	points = first;
	points_end = end;
}

/*
 * Is a fault due here?
 */
static bool
pass(InjectPoint *point)
{
	if (at == 0)
		return false;
	passed++;
	if (!IsTransactionState() || CritSectionCount > 0)
	{
		misplaced++;
		return false;
	}
	if (!armed || passed < at)
		return false;
	armed = false;
	fired = point;
	return true;
}

static char *
name_of(InjectPoint *point)
{
	const char *slash = strrchr(point->file, '/');

	return psprintf("%s:%ld: %s", slash == NULL ? point->file : slash + 1,
					point->line, point->function);
}

static void
go_off(InjectPoint *point)
{
	if (how == HOW_ERROR)
		ereport(ERROR,
				(errcode(MAKE_SQLSTATE('I', 'N', 'J', '0', '0')),
				 errmsg("injected at %s", name_of(point))));
	raise(how == HOW_CANCEL ? SIGINT : SIGTERM);
}

void
inject_point(InjectPoint *point)
{
	if (how != HOW_TIMEOUT && pass(point))
		go_off(point);
}

/*
 * A lock is granted.  The server does not ask for interrupts any more before
 * it stops the timer, so the cancel that its expiry is stays to be dealt with
 * by whoever asks next.
 */
void
inject_timeout(InjectPoint *point)
{
	if (how != HOW_TIMEOUT || LockTimeout == 0 || !pass(point))
		return;
	enable_timeout_after(LOCK_TIMEOUT, 1);
	while (!QueryCancelPending)
		pg_usleep(100);
	disable_timeout(LOCK_TIMEOUT, true);
}

bool
inject_failure(InjectPoint *point)
{
	if (how == HOW_TIMEOUT || !pass(point))
		return false;
	if (how == HOW_ERROR)
		return true;
	go_off(point);
	return false;
}

static void
arm(int newval, void *extra)
{
	armed = newval > 0;
	if (!armed)
		return;
	passed = misplaced = 0;
	fired = NULL;
}

static const char *
show_passed(void)
{
	return psprintf("%d %d %s", passed, misplaced,
					fired == NULL ? "nowhere" : name_of(fired));
}

/*
 * All points, one a line.
 */
PG_FUNCTION_INFO_V1(inject_points);
Datum
inject_points(PG_FUNCTION_ARGS)
{
	StringInfoData list;

	initStringInfo(&list);
	for (InjectPoint *point = points; point < points_end; point++)
		appendStringInfo(&list, "%s\n", name_of(point));
	PG_RETURN_TEXT_P(cstring_to_text(list.data));
}

void		_PG_init(void);
void
_PG_init(void)
{
	DefineCustomIntVariable("inject.at", "At which point.", NULL, &at, 0, 0,
							INT_MAX, PGC_USERSET, 0, NULL, arm, NULL);
	DefineCustomEnumVariable("inject.how", "What happens.", NULL, &how,
							 HOW_ERROR, how_options, PGC_USERSET, 0, NULL,
							 NULL, NULL);
	DefineCustomIntVariable("inject.passed", "How many points.", NULL,
							&passed_shown, 0, 0, INT_MAX, PGC_INTERNAL, 0,
							NULL, NULL, show_passed);
}
