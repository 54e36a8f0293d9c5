/*
 * others.c
 *		Who asks, forges, prepares, relays, recovers and sweeps.
 */
#include <string.h>

#include "program.h"

void
replay(void)
{
	if (!begin(&client, chance(50) ? "READ ONLY" : LEVEL, false))
		return;
	for (int i = 0; i < 16; i++)
	{
		const char *operation = OPERATION;
		Op		   *op = new_op(&client, REPLAY, operation, NULL);
		char		request[80];

		choose_key(op->key, operation);
		op->variant = choose_variant();
		write_request(request, op->key, op->variant);
		send_call(&client, REPLAY, op, operation, op->key, request);
	}
	commit(&client, NULL);
}

/* Ends a prepared transaction, whoever prepared it. */
void
finish_prepared(void)
{
	char		sql[160];
	Op		   *op;

	if (!begin(&client, "READ ONLY", false))
		return;
	op = new_op(&client, FINISH, NULL, NULL);
	send_call(&client, FINISH, op);
	if (!commit(&client, NULL) || !op->response[0])
		return;
	sprintf(sql, "%s PREPARED '%s'", chance(70) ? "COMMIT" : "ROLLBACK",
			op->response);
	send_text(&client, sql);
	sync_calls(&client);		/* somebody else may have been faster */
}

/* A made-up token ends nothing. */
void
forge(void)
{
	Ticket		mine = {.operation = OPERATION};

	if (!begin(&client, LEVEL, true))
		return;
	choose_key(mine.key, mine.operation);
	mine.token = next_random(&client) >> 2;
	owner(chance(50) ? COMPLETE : HOLD, &mine, NULL, NULL);
	if (sync_calls(&client))
		fprintf(client.faults, "client %s: a forged token was accepted: %s\n",
				client.tx, mine.key);
	give_up(&client, STALE);
}

void
recover(void)
{
	Op		   *op;

	if (!begin(&client, "", true))
		return;
	op = new_op(&client, RECOVER, "work", NULL);
	op->lease_ms = 50;
	send_call(&client, RECOVER, op, "recoverer", "4", "50 ms");
	if (commit(&client, "40P01"))
		remember();
}

/* What a relay got, or who asks about it: says what became of each. */
static void
tell(bool asked)
{
	Op			taken[16];
	int			n = 0;

	for (int i = 0; i < client.nops && n < 16; i++)
		if (client.ops[i].intent[0])
			taken[n++] = client.ops[i];
	for (int i = 0; i < n; i++)
	{
		Op		   *op;
		char		token[24],
					response[80];

		if (chance(20) || !begin(&client, LEVEL, true))
			continue;			/* the answer was lost: nobody knows */
		sprintf(token, "%lld", (long long) taken[i].token);
		op = new_op(&client, asked ? SETTLE : CONFIRM, NULL, taken[i].key);
		strcpy(op->intent, taken[i].intent);
		op->token = taken[i].token;
		write_response(response);
		send_call(&client, op->what, op, op->intent, token,
				  !asked ? response : chance(80) ? "happened" : "absent");
		commit(&client, STALE " 40001");
	}
}

void
relay(void)
{
	Op		   *op;

	if (!begin(&client, LEVEL, true))
		return;
	op = new_op(&client, DISPATCH, NULL, NULL);
	op->lease_ms = 50;
	send_call(&client, DISPATCH, op, "relay", "8", "50 ms");
	if (commit(&client, "40001"))
		tell(false);
}

void
reconcile(void)
{
	Op		   *op;

	if (!begin(&client, LEVEL, true))
		return;
	op = new_op(&client, RECONCILE, NULL, NULL);
	op->lease_ms = 50;
	send_call(&client, RECONCILE, op, "asker", "8", "50 ms");
	if (commit(&client, "40001"))
		tell(true);
}

void
sweep(void)
{
	if (!begin(&client, "", true))
		return;
	send_call(&client, SWEEP, new_op(&client, SWEEP, NULL, NULL));
	commit(&client, "40P01 40001");
}
