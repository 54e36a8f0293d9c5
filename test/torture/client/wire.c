/*
 * wire.c
 *		See wire.h.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire.h"

#define SECONDS_TO_2000 946684800

/* A statement may be cancelled, and the server end a session, at any time. */
#define MAY_END "57014 57P01 57P02 57P03"

#define DESCRIBE(name, reading, text) {#name, reading, text},
const StatementFacts statements[] = {STATEMENTS(DESCRIBE)};

int64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

/* splitmix64 */
uint64_t
next_random(Client *client)
{
	uint64_t	z = (client->random += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

int
below(Client *client, int n)
{
	return next_random(client) % n;
}

/* That there is nothing to roll back, for instance. */
static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
}

/* Prepares every statement; false when the connection did not last. */
static bool
prepare(Client *client)
{
	for (int i = 0; i < STATEMENT_COUNT; i++)
		PQsendPrepare(client->conn, statements[i].name, statements[i].text, 0,
					  NULL);
	PQpipelineSync(client->conn);
	while (PQstatus(client->conn) == CONNECTION_OK)
	{
		PGresult   *result = PQgetResult(client->conn);
		ExecStatusType status = PQresultStatus(result);
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		if (state && !strstr(MAY_END, state))
			fprintf(client->faults, "prepare: %s", PQresultErrorMessage(result));
		PQclear(result);
		if (status == PGRES_PIPELINE_SYNC)
			return true;
		if (result && status == PGRES_FATAL_ERROR)
			break;
	}
	return false;
}

/* Waits until the server takes connections; false when the time is up. */
bool
connect_client(Client *client)
{
	char		info[64];
	struct timespec pause = {0, 20000000};

	if (client->conn)
		PQfinish(client->conn);
	snprintf(info, sizeof(info), "application_name='client %d'",
			 client->number);
	while ((client->conn = PQconnectdb(info)) != NULL)
	{
		PQsetNoticeProcessor(client->conn, ignore_notice, NULL);
		if (PQstatus(client->conn) == CONNECTION_OK &&
			PQenterPipelineMode(client->conn) && prepare(client))
			return true;
		if (now_us() > client->until)
			return false;
		PQfinish(client->conn);
		nanosleep(&pause, NULL);
	}
	abort();
}

Op *
new_op(Client *client, Statement what, const char *operation, const char *key)
{
	Op		   *op = &client->ops[client->nops++];

	if (client->nops > MAX_OPS - 32)
		abort();
	memset(op, 0, sizeof(*op));
	op->what = what;
	op->operation = operation;
	op->variant = -1;
	if (key)
		snprintf(op->key, sizeof(op->key), "%s", key);
	return op;
}

static void
wait_for(Client *client, Statement what, Op *op)
{
	if (client->nwaiting == MAX_OPS)
		abort();
	if (op)
	{
		op->s = now_us();
		strcpy(op->error, "lost");
		client->made++;
	}
	client->waiting[client->nwaiting].what = what;
	client->waiting[client->nwaiting++].op = op;
}

/* The parameters follow, as text, with a NULL pointer for NULL. */
void
send_call(Client *client, Statement what, Op *op, ...)
{
	const char *values[8];
	const char *text = statements[what].text;
	int			n = 0;
	va_list		args;

	for (const char *p = strchr(text, '$'); p; p = strchr(p + 1, '$'))
		if (p[1] - '0' > n)
			n = p[1] - '0';
	va_start(args, op);
	for (int i = 0; i < n; i++)
		values[i] = va_arg(args, const char *);
	va_end(args);
	wait_for(client, what, op);
	PQsendQueryPrepared(client->conn, statements[what].name, n, values, NULL,
						NULL, 1);
}

void
send_text(Client *client, const char *sql)
{
	wait_for(client, PLAIN, NULL);
	PQsendQueryParams(client->conn, sql, 0, NULL, NULL, NULL, NULL, 1);
}

static int64_t
int8_of(PGresult *result, int row, int column)
{
	uint64_t	value;

	if (PQgetisnull(result, row, column))
		return 0;
	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return (int64_t) be64toh(value);
}

static int
int4_of(PGresult *result, int row, int column)
{
	uint32_t	value;

	if (PQgetisnull(result, row, column))
		return 0;
	memcpy(&value, PQgetvalue(result, row, column), sizeof(value));
	return (int) ntohl(value);
}

static int64_t
time_of(PGresult *result, int row, int column)
{
	if (PQgetisnull(result, row, column))
		return 0;
	return int8_of(result, row, column) + SECONDS_TO_2000 * INT64_C(1000000);
}

#define TEXT_OF(target, result, row, column) \
	snprintf(target, sizeof(target), "%s", PQgetvalue(result, row, column))

static void
read_row(PGresult *result, int row, Reading reading, Op *op)
{
	if (reading == READ_TICKETS)
	{
		TEXT_OF(op->outcome, result, row, 0);
		TEXT_OF(op->state, result, row, 1);
		op->attempt = int4_of(result, row, 2);
		op->token = int8_of(result, row, 3);
		TEXT_OF(op->response, result, row, 4);
		op->code = int4_of(result, row, 5);
		op->lease_until = time_of(result, row, 6);
		TEXT_OF(op->key, result, row, 7);
	}
	else if (reading == READ_INTENTS)
	{
		TEXT_OF(op->intent, result, row, 0);
		if (op->what != INTEND)
			op->token = int8_of(result, row, 1);
		op->lease_until = time_of(result, row, 2);
		TEXT_OF(op->key, result, row, 3);
	}
	else if (reading == READ_STEP)
	{
		op->done = *PQgetvalue(result, row, 0);
		TEXT_OF(op->response, result, row, 1);
	}
}

/* A row for each; the first one is there, the others follow it. */
static void
read_result(Client *client, PGresult *result, Statement what, Op *op)
{
	ExecStatusType status = PQresultStatus(result);
	Op			first;

	if (what == FINISH && status == PGRES_TUPLES_OK && PQntuples(result))
		TEXT_OF(op->response, result, 0, 0);
	if (status == PGRES_FATAL_ERROR && !client->error[0])
	{
		const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

		snprintf(client->error, sizeof(client->error), "%s",
				 state ? state : "lost");
		snprintf(client->message, sizeof(client->message), "%s: %s",
				 what == PLAIN ? "text" : statements[what].name,
				 PQresultErrorMessage(result));
	}
	if (op == NULL)
		return;
	op->e = now_us();
	if (status == PGRES_FATAL_ERROR || status == PGRES_PIPELINE_ABORTED)
	{
		strcpy(op->error, status == PGRES_FATAL_ERROR ? client->error : "skipped");
		return;
	}
	op->error[0] = '\0';
	first = *op;
	for (int row = 0; row < PQntuples(result) && what != FINISH; row++)
	{
		if (row > 0)
		{
			op = new_op(client, what, first.operation, NULL);
			*op = first;
		}
		read_row(result, row, statements[what].reading, op);
	}
}

/*
 * Sends what waits and reads all answers; false after an error or a loss.  The
 * sync itself may be cancelled, when all calls before it were a success.
 */
bool
sync_calls(Client *client)
{
	int			read = 0;
	int			succeeded = 0;
	bool		good = true;

	PQpipelineSync(client->conn);
	while (good || PQstatus(client->conn) == CONNECTION_OK)
	{
		PGresult   *result = PQgetResult(client->conn);
		ExecStatusType status = PQresultStatus(result);

		if (result == NULL)
		{
			/* libpq may have told that it cannot send, and not have read since */
			if (!PQconsumeInput(client->conn) ||
				PQstatus(client->conn) != CONNECTION_OK)
				break;
			continue;
		}
		if (status != PGRES_PIPELINE_SYNC && read < client->nwaiting)
			read_result(client, result, client->waiting[read].what,
						client->waiting[read].op);
		PQclear(result);
		if (status == PGRES_PIPELINE_SYNC)
			break;
		read++;
		if (status == PGRES_FATAL_ERROR || status == PGRES_PIPELINE_ABORTED)
			good = false;
		else
			succeeded++;
	}
	client->complete = succeeded == client->nwaiting;
	client->nwaiting = 0;
	if (PQstatus(client->conn) != CONNECTION_OK)
	{
		good = false;
		strcpy(client->error, "lost");
	}
	return good;
}

/* The first thing that a transaction writes is a row with its name. */
bool
begin(Client *client, const char *options, bool writes)
{
	char		sql[80];

	if (PQstatus(client->conn) != CONNECTION_OK && !connect_client(client))
		return false;
	client->nops = 0;
	client->error[0] = client->message[0] = '\0';
	client->writes = writes;
	client->begun = now_us();
	client->commit_sent = 0;
	snprintf(client->tx, sizeof(client->tx), "%d.%lld", client->number,
			 (long long) ++client->id);
	snprintf(sql, sizeof(sql), "BEGIN %s", options);
	send_text(client, sql);
	if (writes)
		send_call(client, NOTE, NULL, client->tx);
	return true;
}

/* The transaction is over: it is written down. */
void
end(Client *client, const char *status, const char *allowed)
{
	if (client->error[0] && strcmp(client->error, "lost") != 0 &&
		!strstr(MAY_END, client->error) &&
		!(allowed && strstr(allowed, client->error)))
		fprintf(client->faults, "client %s: %s %s\n", client->tx,
				client->error, client->message);
	write_down(client, status);
}

/* Whether it is certain that it was committed. */
bool
commit(Client *client, const char *allowed)
{
	bool		good;

	client->commit_sent = now_us();
	send_text(client, "COMMIT");
	good = sync_calls(client) || client->complete;
	if (!good && PQstatus(client->conn) == CONNECTION_OK)
	{
		give_up(client, allowed);
		return false;
	}
	end(client, good ? "acked" : "unknown", allowed);
	return good;
}

void
give_up(Client *client, const char *allowed)
{
	char		error[8];

	strcpy(error, client->error);
	/* it may be cancelled, too */
	do
		send_text(client, "ROLLBACK");
	while (!sync_calls(client) && PQstatus(client->conn) == CONNECTION_OK);
	if (error[0])
		strcpy(client->error, error);
	end(client, "aborted", allowed);
}
