/*-------------------------------------------------------------------------
 *
 * state.c
 *		The state machine of a record, as one table.
 *
 * Pure: no locks, no memory, no I/O.  Whatever changes a record asks here
 * first, the trigger on idem_record included.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"

static const char *const state_names[] = {
	[STATE_NONE] = "none",
	[STATE_PROCESSING] = "processing",
	[STATE_RELEASED] = "released",
	[STATE_SUCCEEDED] = "succeeded",
	[STATE_FAILED] = "failed",
	[STATE_UNKNOWN] = "unknown",
	[STATE_CANCELLED] = "cancelled"
};

static const char *const action_names[] = {
	[ACTION_CLAIM] = "claim",
	[ACTION_COMPLETE] = "complete",
	[ACTION_FAIL] = "fail",
	[ACTION_RELEASE] = "release",
	[ACTION_HEARTBEAT] = "heartbeat",
	[ACTION_HOLD] = "hold",
	[ACTION_GIVE_UP] = "give up",
	[ACTION_UNKNOWN] = "call unknown",
	[ACTION_RESOLVE_SUCCEEDED] = "resolve as succeeded",
	[ACTION_RESOLVE_FAILED] = "resolve as failed",
	[ACTION_RESOLVE_RELEASED] = "resolve as released",
	[ACTION_CANCEL] = "cancel"
};

static const char *const outcome_names[] = {
	[OUTCOME_EXECUTE] = "execute",
	[OUTCOME_RESUME] = "resume",
	[OUTCOME_REPLAY] = "replay",
	[OUTCOME_IN_PROGRESS] = "in_progress",
	[OUTCOME_MISMATCH] = "mismatch",
	[OUTCOME_EXPIRED] = "expired",
	[OUTCOME_UNKNOWN] = "unknown",
	[OUTCOME_DUPLICATE] = "duplicate",
	[OUTCOME_CANCELLED] = "cancelled",
	[OUTCOME_ABSENT] = "absent"
};

/*
 * What each action makes of each state; STATE_NONE (zero, so whatever is not
 * listed) is "illegal".  Taking over a lapsed record is a claim of a
 * processing one.  An action that repeats a record's last transition leads
 * to the state the record is in.
 */
static const IdemState transitions[STATE_COUNT][ACTION_COUNT] = {
	[STATE_NONE] = {
		[ACTION_CLAIM] = STATE_PROCESSING,
		[ACTION_CANCEL] = STATE_CANCELLED
	},
	[STATE_PROCESSING] = {
		[ACTION_CLAIM] = STATE_PROCESSING,
		[ACTION_COMPLETE] = STATE_SUCCEEDED,
		[ACTION_FAIL] = STATE_FAILED,
		[ACTION_RELEASE] = STATE_RELEASED,
		[ACTION_HEARTBEAT] = STATE_PROCESSING,
		[ACTION_HOLD] = STATE_PROCESSING,
		[ACTION_GIVE_UP] = STATE_UNKNOWN,
		[ACTION_UNKNOWN] = STATE_UNKNOWN
	},
	[STATE_RELEASED] = {
		[ACTION_CLAIM] = STATE_PROCESSING,
		[ACTION_RELEASE] = STATE_RELEASED,
		[ACTION_GIVE_UP] = STATE_UNKNOWN,
		[ACTION_CANCEL] = STATE_CANCELLED
	},
	[STATE_SUCCEEDED] = {
		[ACTION_COMPLETE] = STATE_SUCCEEDED
	},
	[STATE_FAILED] = {
		[ACTION_FAIL] = STATE_FAILED
	},
	[STATE_UNKNOWN] = {
		[ACTION_UNKNOWN] = STATE_UNKNOWN,
		[ACTION_RESOLVE_SUCCEEDED] = STATE_SUCCEEDED,
		[ACTION_RESOLVE_FAILED] = STATE_FAILED,
		[ACTION_RESOLVE_RELEASED] = STATE_RELEASED
	}
};

/*
 * State after an action, or STATE_NONE where the action is illegal.
 */
IdemState
state_next(IdemState from, IdemAction action)
{
	return transitions[from][action];
}

/*
 * Is there any action that leads from one state to the other?
 */
bool
state_reachable(IdemState from, IdemState to)
{
	for (int action = 0; action < ACTION_COUNT; action++)
	{
		if (transitions[from][action] == to && to != STATE_NONE)
			return true;
	}
	return false;
}

bool
state_is_terminal(IdemState state)
{
	return state == STATE_SUCCEEDED || state == STATE_FAILED ||
		state == STATE_CANCELLED;
}

const char *
state_name(IdemState state)
{
	return state_names[state];
}

/*
 * The state with that name, or STATE_NONE where there is none.
 */
IdemState
state_from_name(const char *name, int len)
{
	for (int i = STATE_NONE + 1; i < STATE_COUNT; i++)
	{
		if (strlen(state_names[i]) == (size_t) len &&
			memcmp(state_names[i], name, len) == 0)
			return (IdemState) i;
	}
	return STATE_NONE;
}

const char *
action_name(IdemAction action)
{
	return action_names[action];
}

const char *
outcome_name(IdemOutcome outcome)
{
	return outcome_names[outcome];
}

/*
 * The outcome with that name, or OUTCOME_COUNT where there is none.
 */
IdemOutcome
outcome_from_name(const char *name, int len)
{
	for (int i = 0; i < OUTCOME_COUNT; i++)
	{
		if (strlen(outcome_names[i]) == (size_t) len &&
			memcmp(outcome_names[i], name, len) == 0)
			return (IdemOutcome) i;
	}
	return OUTCOME_COUNT;
}
