/*
 * owner.c
 *		What the owners of commands do: claims of every kind, the work, its end.
 */
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define TICKETS 32

static Ticket tickets[TICKETS]; /* leased claims this client has, or had */
static int	ntickets;

/* Does this transaction know the address already? */
static bool
is_asked(const char *key)
{
	for (int i = 0; i < client.nops; i++)
		if (!client.ops[i].undone && strcmp(client.ops[i].key, key) == 0)
			return true;
	return false;
}

static void
claim_some(int n, const char *wait)
{
	for (int i = 0; i < n; i++)
	{
		const char *operation = OPERATION;
		char		key[24];

		choose_key(key, operation);
		if (is_asked(key))
			continue;
		if (chance(10))
		{
			int			first = client.nops;

			savepoint();
			claim(operation, key, 0, wait);
			undo(first);
		}
		claim(operation, key, 0, wait);
	}
}

static void
end_one(const Ticket *mine)
{
	int			choice = below(&client, 100);

	if (choice < 15)
	{
		int			first = client.nops;

		savepoint();
		finish(COMPLETE, mine);
		undo(first);
	}
	if (choice < 80)
		finish(COMPLETE, mine);
	else if (choice < 90)
		finish(FAIL, mine);
	else if (choice < 98)
		owner(RELEASE, mine, "not now", NULL);
	/* else it is forgotten, and the commit refused */
}

/* Claims in one transaction, and what becomes of each that was granted. */
void
atomic(void)
{
	int			n = chance(60) ? 1 + below(&client, 6) : 1;
	char		gid[64];

	if (!begin(&client, LEVEL, true))
		return;
	claim_some(n, n == 1 && chance(40) ? "50 ms" : "0");
	if (!sync_calls(&client) || chance(6))
	{
		give_up(&client, "40P01 40001");
		return;
	}
	n = client.nops;
	for (int i = 0; i < n; i++)
	{
		Ticket		mine = ticket_of(&client.ops[i]);

		if (!client.ops[i].undone && mine.token != 0)
			end_one(&mine);
	}
	if (!chance(3))
	{
		commit(&client, "ID001 ID003");
		return;
	}
	sprintf(gid, "PREPARE TRANSACTION '%s'", client.tx);
	client.commit_sent = now_us();
	send_text(&client, gid);
	if (sync_calls(&client) || client.complete ||
		PQstatus(client.conn) != CONNECTION_OK)
		end(&client, "prepared", NULL);
	else
		give_up(&client, "ID001 ID003");
}

void
remember(void)
{
	for (Op *op = client.ops; op < client.ops + client.nops; op++)
	{
		if (op->token == 0 || op->undone || op->lease_ms == 0 ||
			strcmp(op->operation, "work") != 0)
			continue;
		if (ntickets == TICKETS)
			memmove(tickets, tickets + 1, --ntickets * sizeof(Ticket));
		tickets[ntickets++] = ticket_of(op);
	}
}

void
lease(void)
{
	static const int leases[] = {2, 20, 50, 200};
	int			n = 1 + below(&client, 3);
	char		keys[3][24];

	if (!begin(&client, LEVEL, true))
		return;
	for (int i = 0; i < n; i++)
	{
		choose_key(keys[i], "work");
		if (i == 0 || strcmp(keys[i], keys[i - 1]) != 0)
			claim("work", keys[i], ONE_OF(leases), "0");
	}
	if (commit(&client, "40P01 40001"))
		remember();
}

/* A step with its writes, unless it was done before; false after an error. */
static bool
step(const Ticket *mine, const char *name)
{
	Op		   *op = owner(STEP, mine, name, NULL);
	char		kind[24],
				token[24],
				response[80];

	strcpy(op->intent, name);
	if (!sync_calls(&client))
		return false;
	if (op->done)
		return true;
	write_response(response);
	sprintf(kind, "step %s", name);
	sprintf(token, "%lld", (long long) mine->token);
	effect(mine, kind, response);
	op = new_op(&client, STEP_DONE, "work", mine->key);
	op->token = mine->token;
	send_call(&client, STEP_DONE, op, "work", mine->key, token, name, response);
	return true;
}

/* Some piece of work on a leased command, be it still this client's or not. */
void
work(void)
{
	int			choice = below(&client, 100);
	bool		good = true;
	Ticket	   *mine;
	char		name[16];

	if (ntickets == 0 || !begin(&client, LEVEL, true))
		return;
	mine = &tickets[ntickets - 1 - below(&client, ntickets < 6 ? ntickets : 6)];
	sprintf(name, "n%d", below(&client, 3));
	if (choice < 15)
	{
		owner(HOLD, mine, NULL, NULL);
		effect(mine, "work", NULL);
	}
	else if (choice < 25)
		owner(HEARTBEAT, mine, "50 ms", NULL);
	else if (choice < 45)
		good = step(mine, name);
	else if (choice < 60)
		strcpy(owner(INTEND, mine, name, NULL)->state, name);
	else if (choice < 90)
		finish(choice < 85 ? COMPLETE : FAIL, mine);
	else
		owner(RELEASE, mine, "no", NULL);
	if (good)
		commit(&client, STALE " 40001");
	else
		give_up(&client, STALE " 40001");
}

void
execute(void)
{
	if (!begin(&client, LEVEL, true))
		return;
	for (int i = 0; i < 3; i++)
	{
		const char *operation = chance(50) ? "pay" : "once";
		char		key[24],
					request[80],
					guard[24];
		Op		   *op;

		choose_key(key, operation);
		if (is_asked(key))
			continue;
		op = new_op(&client, EXECUTE, operation, key);
		op->variant = choose_variant();
		write_request(request, key, op->variant);
		send_call(&client, EXECUTE, op, operation, key, request,
				  guard_of(guard, operation, key));
	}
	commit(&client, "P0001 40001");
}

/* Appends an element to the text of an array. */
static void
append(char *array, const char *element)
{
	strcat(array, array[1] ? ",\"" : "\"");
	array += strlen(array);
	for (; *element; element++)
	{
		if (*element == '"' || *element == '\\')
			*array++ = '\\';
		*array++ = *element;
	}
	strcpy(array, "\"");
}

/* Completes what the batch was granted, by one call. */
static void
complete_all(const char *operation)
{
	char		keys[200] = "{",
				tokens[200] = "{",
				responses[1000] = "{";
	int			n = client.nops;

	for (int i = 0; i < n; i++)
	{
		Ticket		mine = ticket_of(&client.ops[i]);
		char		response[80],
					token[24];
		Op		   *op;

		if (mine.token == 0)
			continue;
		write_response(response);
		sprintf(token, "%lld", (long long) mine.token);
		effect(&mine, "end", response);
		append(keys, mine.key);
		append(tokens, token);
		append(responses, response);
		/* a line for each in the log */
		op = new_op(&client, ALL, operation, mine.key);
		op->token = mine.token;
		op->attempt = mine.attempt;
		strcpy(op->response, response);
		op->s = now_us();
	}
	if (client.nops > n)
		send_call(&client, ALL, new_op(&client, ALL, NULL, NULL), operation,
				  strcat(keys, "}"), strcat(tokens, "}"),
				  strcat(responses, "}"));
}

/* Claims and completes many at once, with a key twice now and then. */
void
batch(void)
{
	static const char *const some[] = {"pay", "brief", "gone"};
	const char *operation = ONE_OF(some);
	char		keys[200] = "{",
				requests[1000] = "{";
	int			variants[4];

	if (!begin(&client, LEVEL, true))
		return;
	for (int i = 0; i < 4; i++)
	{
		char		key[24],
					request[80];

		choose_key(key, operation);
		variants[i] = choose_variant();
		write_request(request, key, variants[i]);
		append(keys, key);
		append(requests, request);
	}
	send_call(&client, BATCH, new_op(&client, BATCH, operation, NULL),
			  operation, strcat(keys, "}"), strcat(requests, "}"), NULL);
	if (!sync_calls(&client))
	{
		give_up(&client, "40P01 40001");
		return;
	}
	for (int i = 0; i < client.nops; i++)
		client.ops[i].variant = variants[i];
	complete_all(operation);
	commit(&client, NULL);
}

/* A few milliseconds, in the middle of whatever it is. */
void
timeouts(void)
{
	static const char *const which[] = {"lock_timeout", "statement_timeout"};
	static const char *const ms[] = {"1", "2", "5"};
	const char *operation = OPERATION;
	char		key[24];
	Op		   *op;

	if (!begin(&client, LEVEL, true))
		return;
	choose_key(key, operation);
	send_call(&client, TIMEOUT, NULL, ONE_OF(which), ONE_OF(ms));
	op = claim(operation, key, 0, "5 s");
	if (!sync_calls(&client))
	{
		give_up(&client, "40P01 55P03");
		return;
	}
	if (op->token)
	{
		Ticket		mine = ticket_of(op);

		finish(COMPLETE, &mine);
	}
	commit(&client, "40P01 55P03");
}
