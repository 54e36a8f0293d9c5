/*-------------------------------------------------------------------------
 *
 * intent.h
 *		Intents, for the rooms that work on them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_INTENT_H
#define IDEM_INTENT_H

#include "compat.h"
#include "idempotency.h"
#include "access/transam.h"

#define IDEM_INTENT_NAME_MAX	128
#define IDEM_TARGET_MAX			128

typedef enum IdemIntentState
{
	INTENT_PENDING,
	INTENT_IN_FLIGHT,
	INTENT_CONFIRMED,
	INTENT_REJECTED,
	INTENT_UNKNOWN
} IdemIntentState;
#define INTENT_STATE_COUNT (INTENT_UNKNOWN + 1)

/* A row. */
typedef struct IdemIntent
{
	ItemPointerData tid;
	IdemAddress address;		/* without its hash */
	Datum		operation_id;
	TimestampTz created_at;
	FullTransactionId created_by;
	TimestampTz due_at;
	TimestampTz first_sent_at;
	TimestampTz doubt_since;
	TimestampTz lease_until;
	TimestampTz settled_at;
	int64		token;			/* 0: NULL */
	int64		past_token;		/* 0: NULL */
	int32		tries;
	bool		send;
	bool		doubtful;
	text	   *name;
	text	   *target;
	IdemIntentState state;
	int64		resend_us;		/* 0: NULL */
	NullableDatum request;
	NullableDatum worker;
	NullableDatum reason;
	NullableDatum response;
	NullableDatum evidence;
} IdemIntent;

/* intent_row.c: an intent as the columns of idem_intent */
#define INTENT_COLUMNS			25

extern const Oid intent_types[];

extern void intent_from_row(IdemIntent *intent, TupleTableSlot *slot);
extern void intent_to_row(const IdemIntent *intent, Datum *values,
						  bool *isnull);
extern const char *intent_state_name(IdemIntentState state);

/* intent.c: the table */
typedef struct IdemIntentTable
{
	Relation	rel;
	TupleTableSlot *found;		/* the row that was found last */
	IdemWriter	writer;
} IdemIntentTable;

extern void intents_open(IdemIntentTable *table);
extern bool intents_find(IdemIntentTable *table, Datum id, IdemIntent *intent);
extern bool intents_is_current(IdemIntentTable *table);
extern void intents_let_go(IdemIntentTable *table);
extern void intents_insert(IdemIntentTable *table, const IdemIntent *intent);
extern bool intents_update(IdemIntentTable *table, const IdemIntent *intent);
extern HeapTuple intents_form(IdemIntentTable *table, const IdemIntent *intent);
extern void intents_close(IdemIntentTable *table);

/* the intents of a command, as far as its own state depends on them */
typedef enum IdemIntents
{
	INTENTS_IN_QUESTION,		/* in flight or unknown */
	INTENTS_UNSETTLED,			/* or still to be sent */
	INTENTS_NOT_REJECTED
} IdemIntents;

#define INTENT_EVER DT_NOEND	/* since whenever */

extern bool intent_exists(const IdemAddress *address, IdemIntents which,
						  TimestampTz doubt_until);

/* intend.c: noting them */
extern Datum intend_operation_id(const IdemAddress *address, text *name);
extern void intend_notify(const IdemIntent *intent);

/* step.c: what may be noted now */
extern const int step_columns;
extern const Oid step_types[];
extern const int policy_steps_columns;
extern const Oid policy_steps_types[];

extern void step_check_turn(const IdemAddress *address, int64 token,
							const IdemRecord *record, text *name);

/* outbox.c: what all who move them have in common */
typedef struct IdemWorker
{
	text	   *name;
	int64		lease_us;
} IdemWorker;

/* Changes the intent as asked, or refuses; false: it is so already. */
typedef bool (*IdemJudge) (IdemIntent *intent, void *arg);

extern void outbox_read_worker(IdemWorker *worker, FunctionCallInfo fcinfo,
							   int name_arg, int lease_arg);
pg_noreturn extern void outbox_refuse(const IdemIntent *intent, int code,
									  const char *message, const char *hint);
extern char *outbox_show_id(Datum id);
extern bool outbox_may_resend(const IdemIntent *intent, TimestampTz now);
extern void outbox_take(IdemIntent *intent, const IdemWorker *worker,
						TimestampTz now);
extern void outbox_note(const IdemIntent *before, const IdemIntent *after,
						int32 attempt, text *reason);
extern void outbox_note_taken(const IdemIntent *before,
							  const IdemIntent *after);
extern int32 outbox_attempt(const IdemAddress *address);
extern bool outbox_change(IdemIntentTable *table, FunctionCallInfo fcinfo,
						  IdemJudge judge, void *arg, IdemIntent *before,
						  IdemIntent *after);

#endif							/* IDEM_INTENT_H */
