/*
 * log.c
 *		What a client did and was told, as lines for COPY.
 */
#include "wire.h"

static void
log_text(FILE *file, const char *text)
{
	fprintf(file, "\t%s", *text ? text : "\\N");
}

void
write_down(Client *client, const char *status)
{
	fprintf(client->transactions, "%s\t%s\t%s\t%lld\t%lld\t%lld\n", client->tx,
			status, client->writes ? "t" : "f", (long long) client->begun,
			(long long) client->commit_sent, (long long) now_us());
	for (Op *op = client->ops; op < client->ops + client->nops; op++)
	{
		if (op->what == FINISH)
			continue;
		fprintf(client->calls, "%s\t%s", client->tx, statements[op->what].name);
		log_text(client->calls, op->operation ? op->operation : "");
		log_text(client->calls, op->key);
		fprintf(client->calls, "\t%d\t%d\t%lld\t%d", op->variant, op->lease_ms,
				(long long) op->token, op->attempt);
		log_text(client->calls, op->outcome);
		log_text(client->calls, op->state);
		log_text(client->calls, op->response);
		fprintf(client->calls, "\t%d\t%lld", op->code,
				(long long) op->lease_until);
		log_text(client->calls, op->intent);
		fprintf(client->calls, "\t%s\t%s", op->done ? "t" : "f",
				op->undone ? "t" : "f");
		log_text(client->calls, op->error);
		fprintf(client->calls, "\t%lld\t%lld\n", (long long) op->s,
				(long long) op->e);
	}
}
