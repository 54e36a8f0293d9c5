/*-------------------------------------------------------------------------
 *
 * state.h
 *		States, actions and outcomes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_STATE_H
#define IDEM_STATE_H

typedef enum IdemState
{
	STATE_NONE,
	STATE_PROCESSING,
	STATE_RELEASED,
	STATE_SUCCEEDED,
	STATE_FAILED,
	STATE_UNKNOWN,
	STATE_CANCELLED
} IdemState;
#define STATE_COUNT (STATE_CANCELLED + 1)

typedef enum IdemAction
{
	ACTION_CLAIM,
	ACTION_COMPLETE,
	ACTION_FAIL,
	ACTION_RELEASE,
	ACTION_HEARTBEAT,
	ACTION_HOLD,
	ACTION_GIVE_UP,
	ACTION_UNKNOWN,
	ACTION_RESOLVE_SUCCEEDED,
	ACTION_RESOLVE_FAILED,
	ACTION_RESOLVE_RELEASED,
	ACTION_CANCEL
} IdemAction;
#define ACTION_COUNT (ACTION_CANCEL + 1)

typedef enum IdemOutcome
{
	OUTCOME_EXECUTE,
	OUTCOME_RESUME,
	OUTCOME_REPLAY,
	OUTCOME_IN_PROGRESS,
	OUTCOME_MISMATCH,
	OUTCOME_EXPIRED,
	OUTCOME_UNKNOWN,
	OUTCOME_DUPLICATE,
	OUTCOME_CANCELLED,
	OUTCOME_ABSENT
} IdemOutcome;
#define OUTCOME_COUNT (OUTCOME_ABSENT + 1)

extern IdemState state_next(IdemState from, IdemAction action);
extern bool state_reachable(IdemState from, IdemState to);
extern bool state_is_terminal(IdemState state);
extern const char *state_name(IdemState state);
extern IdemState state_from_name(const char *name, int len);
extern const char *action_name(IdemAction action);
extern const char *outcome_name(IdemOutcome outcome);
extern IdemOutcome outcome_from_name(const char *name, int len);

#endif							/* IDEM_STATE_H */
