/*-------------------------------------------------------------------------
 *
 * stat.h
 *		Figures: what is counted, and how.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_STAT_H
#define IDEM_STAT_H

#include "portability/instr_time.h"

#include "state.h"

/* The order is that of idem_stat_get()'s columns: new ones go to the end. */
typedef enum IdemStat
{
	/* claims by outcome, as IdemOutcome */
	STAT_EXECUTE,
	STAT_RESUME,
	STAT_REPLAY,
	STAT_IN_PROGRESS,
	STAT_MISMATCH,
	STAT_EXPIRED,
	STAT_UNKNOWN,
	STAT_DUPLICATE,
	STAT_CANCELLED,
	STAT_WAITS,					/* of claims */
	STAT_WAIT_US,
	STAT_LOOKUPS,				/* idem_replay */
	STAT_LOOKUPS_ABSENT,
	STAT_COMPLETED,
	STAT_FAILED,
	STAT_RELEASED,
	STAT_HEARTBEATS,
	STAT_STALE_TICKETS,
	STAT_RECOVERED,
	STAT_BECAME_UNKNOWN,
	STAT_RESOLVED,
	STAT_CANCELLATIONS,
	/* intents */
	STAT_SENT,
	STAT_DISPATCHED,
	STAT_CONFIRMED,
	STAT_REJECTED,
	STAT_DEFERRED,
	STAT_HAPPENED,
	STAT_ABSENT,
	STAT_UNCLEAR,
	/* expiry */
	STAT_SWEPT,
	STAT_PURGED
} IdemStat;
#define STAT_COUNT (STAT_PURGED + 1)

extern void stat_count(text *operation, IdemStat what);
extern void stat_count_action(text *operation, IdemAction action);
extern void stat_add(text *operation, IdemStat what, uint64 n);
extern void stat_waits(text *operation, instr_time *since);
extern void stat_waited(text *operation, instr_time since);

#endif							/* IDEM_STAT_H */
