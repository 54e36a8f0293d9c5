/*
 * program.c
 *		See program.h.
 */
#include <stdlib.h>
#include <string.h>

#include "program.h"

#define WIDTH 6					/* commands of an operation fought for at once */
#define RATE_PER_S 120			/* those left behind, and new ones taken up */
#define REBORN 12				/* commands that are purged, and claimed again */

Client		client;
int64_t		begun;
const char *const levels[4] = {"", "", "ISOLATION LEVEL REPEATABLE READ",
	"ISOLATION LEVEL SERIALIZABLE"};
const char *const operations[7] = {"pay", "pay", "pay", "once", "brief",
	"gone", "work"};

bool
chance(int percent)
{
	return below(&client, 100) < percent;
}

/* The window of commands that all fight for moves on with the time. */
void
choose_key(char *key, const char *operation)
{
	int64_t		behind = (now_us() - begun) * RATE_PER_S / 1000000;

	if (strcmp(operation, "gone") == 0)
		behind = below(&client, REBORN);
	else
	{
		if (chance(4))
			behind = next_random(&client) % (behind + 1);
		behind += below(&client, WIDTH);
	}
	snprintf(key, 24, "%s%lld", operation, (long long) behind);
}

int
choose_variant(void)
{
	return chance(8);
}

void
write_request(char *text, const char *key, int variant)
{
	sprintf(text, "{\"key\": \"%s\", \"variant\": %d}", key, variant);
}

/* Commands of "once" that share a guard. */
const char *
guard_of(char *guard, const char *operation, const char *key)
{
	if (strcmp(operation, "once") != 0)
		return NULL;
	sprintf(guard, "g%d", atoi(key + 4) / 4);
	return guard;
}

/* No two are equal, and none survives jsonb. */
void
write_response(char *text)
{
	static int	n = 0;

	sprintf(text, "{\"by\" : \"%d.%d.%x\",  \"id\":1.50}", client.number, ++n,
			(unsigned) next_random(&client));
}

Op *
claim(const char *operation, const char *key, int lease_ms, const char *wait)
{
	Op		   *op = new_op(&client, CLAIM, operation, key);
	char		request[80],
				guard[24],
				lease[24];

	op->variant = choose_variant();
	op->lease_ms = lease_ms;
	write_request(request, key, op->variant);
	sprintf(lease, "%d ms", lease_ms);
	send_call(&client, CLAIM, op, operation, key, request,
			  guard_of(guard, operation, key), wait, lease_ms ? lease : NULL);
	return op;
}

Ticket
ticket_of(const Op *op)
{
	Ticket		mine = {.operation = op->operation,.token = op->token,
	.attempt = op->attempt};

	strcpy(mine.key, op->key);
	return mine;
}

void
effect(const Ticket *mine, const char *kind, const char *response)
{
	char		token[24],
				attempt[16];

	sprintf(token, "%lld", (long long) mine->token);
	sprintf(attempt, "%d", mine->attempt);
	send_call(&client, EFFECT, NULL, client.tx, mine->operation, mine->key,
			  kind, token, attempt, response);
}

/* One of the calls that take the four parts of a ticket, and more. */
Op *
owner(Statement what, const Ticket *mine, const char *more, const char *code)
{
	Op		   *op = new_op(&client, what, mine->operation, mine->key);
	char		token[24];

	op->token = mine->token;
	op->attempt = mine->attempt;
	if (more)
		snprintf(op->response, sizeof(op->response), "%s", more);
	op->code = code ? atoi(code) : 0;
	sprintf(token, "%lld", (long long) mine->token);
	send_call(&client, what, op, mine->operation, mine->key, token, more, code);
	return op;
}

/* Completes or fails, with the effect that only a success keeps. */
Op *
finish(Statement what, const Ticket *mine)
{
	char		response[80];

	write_response(response);
	if (what == COMPLETE)
		effect(mine, "end", response);
	return owner(what, mine, response, chance(50) ? "201" : NULL);
}

void
savepoint(void)
{
	send_text(&client, "SAVEPOINT undone");
}

void
undo(int first)
{
	send_text(&client, "ROLLBACK TO undone");
	for (int i = first; i < client.nops; i++)
		client.ops[i].undone = true;
}

