/*
 * wire.h
 *		A client that sends calls in a pipeline, and notes what it was told.
 *
 * A transaction is begun, filled by send_call() and sync_calls(), and ended;
 * its calls are then written to the client's log, with the times between which
 * each took place.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <libpq-fe.h>

#define MAX_OPS 256

/* What a result is read into. */
typedef enum Reading
{
	READ_NOTHING,
	READ_TICKETS,				/* a row for each call, see TICKET */
	READ_INTENTS,				/* a row for each intent, see INTENT */
	READ_STEP
} Reading;

#define TICKET \
	"t.outcome, t.state, t.attempt, t.token, t.response::text, t.code," \
	" t.lease_until, t.key"
#define MINE \
	"ROW('execute', 't', $1, $2, $3::bigint" NULL_16 ")::idem_ticket"
#define NULL_16 NULL_4 NULL_4 NULL_4 NULL_4
#define NULL_4 ", NULL, NULL, NULL, NULL"
#define INTENT "i.operation_id::text, i.token, i.lease_until, i.key"

/* Name of the prepared statement, how its result is read, its text. */
#define STATEMENTS(X) \
	X(NOTE, READ_NOTHING, "INSERT INTO txn VALUES ($1)") \
	X(EFFECT, READ_NOTHING, \
	  "INSERT INTO effect VALUES ($1, $2, $3, $4, $5::bigint, $6::int, $7)") \
	X(CLAIM, READ_TICKETS, "SELECT " TICKET " FROM idem_claim('t', $1, $2," \
	  " $3::jsonb, guard => $4, wait => $5::interval, lease => $6::interval) t") \
	X(BATCH, READ_TICKETS, "SELECT " TICKET " FROM idem_claim_batch('t', $1," \
	  " $2::text[], $3::jsonb[], lease => $4::interval) t") \
	X(EXECUTE, READ_TICKETS, "SELECT " TICKET " FROM idem_execute('t', $1, $2," \
	  " $3::jsonb, 'handle(jsonb)', guard => $4) t") \
	X(REPLAY, READ_TICKETS, \
	  "SELECT " TICKET " FROM idem_replay('t', $1, $2, $3::jsonb) t") \
	X(RECOVER, READ_TICKETS, "SELECT " TICKET \
	  " FROM idem_recover($1, $2::int, $3::interval) t WHERE t.operation = 'work'") \
	X(COMPLETE, READ_NOTHING, "SELECT idem_complete('t', $1, $2, $3::bigint," \
	  " $4::json, $5::int)") \
	X(FAIL, READ_NOTHING, \
	  "SELECT idem_fail('t', $1, $2, $3::bigint, $4::json, $5::int)") \
	X(ALL, READ_NOTHING, "SELECT idem_complete_batch(array_agg(ROW('execute'," \
	  " 't', $1, k, x" NULL_16 ")::idem_ticket), array_agg(r))" \
	  " FROM unnest($2::text[], $3::bigint[], $4::json[]) AS u (k, x, r)") \
	X(RELEASE, READ_NOTHING, "SELECT idem_release('t', $1, $2, $3::bigint, $4)") \
	X(HOLD, READ_NOTHING, "SELECT idem_hold('t', $1, $2, $3::bigint)") \
	X(HEARTBEAT, READ_NOTHING, \
	  "SELECT idem_heartbeat('t', $1, $2, $3::bigint, $4::interval)") \
	X(STEP, READ_STEP, "SELECT done, result::text FROM idem_step(" MINE ", $4)") \
	X(STEP_DONE, READ_NOTHING, "SELECT idem_step_done(" MINE ", $4, $5::json)") \
	X(INTEND, READ_INTENTS, "SELECT " INTENT " FROM idem_intend(" MINE \
	  ", $4, 'bank', NULL, true) i") \
	X(DISPATCH, READ_INTENTS, "SELECT " INTENT \
	  " FROM idem_dispatch('bank', $1, $2::int, $3::interval) i") \
	X(RECONCILE, READ_INTENTS, "SELECT " INTENT \
	  " FROM idem_reconcile('bank', $1, $2::int, $3::interval) i") \
	X(CONFIRM, READ_NOTHING, "SELECT idem_confirm($1::uuid, $2::bigint, $3::json)") \
	X(SETTLE, READ_NOTHING, "SELECT idem_settle($1::uuid, $2::bigint, $3, '1')") \
	X(SWEEP, READ_NOTHING, "SELECT idem_sweep(500)") \
	X(TIMEOUT, READ_NOTHING, "SELECT set_config($1, $2, true)") \
	X(FINISH, READ_NOTHING, "SELECT gid FROM pg_prepared_xacts" \
	  " ORDER BY random() LIMIT 1")

#define NUMBER(name, reading, text) name,
typedef enum Statement
{
	STATEMENTS(NUMBER)
	STATEMENT_COUNT,
	PLAIN = STATEMENT_COUNT		/* text that is not prepared */
} Statement;

typedef struct StatementFacts
{
	const char *name;
	Reading		reading;
	const char *text;
} StatementFacts;

extern const StatementFacts statements[];

/* One call, and what was answered; for several rows one for each. */
typedef struct Op
{
	Statement	what;
	const char *operation;
	char		key[24];
	int			variant;		/* of the request; -1 none */
	int			lease_ms;
	int64_t		token;
	int			attempt;
	char		outcome[16];
	char		state[16];
	char		response[96];	/* what was sent, or answered */
	int			code;
	int64_t		lease_until;	/* microseconds since 1970, 0 none */
	char		intent[40];
	bool		done;			/* of a step */
	bool		undone;			/* its savepoint was rolled back */
	char		error[8];		/* SQLSTATE; "lost", "skipped" */
	int64_t		s,
				e;				/* when it was sent and answered */
} Op;

typedef struct Client
{
	int			number;
	int64_t		until;			/* it ends then */
	PGconn	   *conn;
	FILE	   *calls,
			   *transactions,
			   *faults;
	uint64_t	random;
	int64_t		made;			/* calls so far */
	int64_t		id;				/* of the transaction */
	char		tx[32];
	bool		writes;
	int64_t		begun,
				commit_sent;
	char		error[8];		/* the first of this transaction */
	char		message[256];
	Op			ops[MAX_OPS];
	int			nops;
	struct
	{
		Statement	what;
		Op		   *op;
	}			waiting[MAX_OPS];
	int			nwaiting;
	bool		complete;		/* was each call of the last sync a success? */
} Client;

extern int64_t now_us(void);
extern uint64_t next_random(Client *client);
extern int	below(Client *client, int n);

extern bool connect_client(Client *client);
extern Op  *new_op(Client *client, Statement what, const char *operation,
				   const char *key);
extern void send_call(Client *client, Statement what, Op *op, ...);
extern void send_text(Client *client, const char *sql);
extern bool sync_calls(Client *client);
extern bool begin(Client *client, const char *options, bool writes);
extern void end(Client *client, const char *status, const char *allowed);
extern bool commit(Client *client, const char *allowed);
extern void give_up(Client *client, const char *allowed);

/* log.c */
extern void write_down(Client *client, const char *status);

#endif							/* WIRE_H */
