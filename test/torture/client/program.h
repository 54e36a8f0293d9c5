/*
 * program.h
 *		What a client does at random: the choices, and the calls that programs
 *		are made of.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "wire.h"

#define STALE "ID002 ID003"		/* all that may be refused to an owner */
#define ONE_OF(list) (list)[below(&client, sizeof(list) / sizeof(*(list)))]
#define LEVEL ONE_OF(levels)
#define OPERATION ONE_OF(operations)

/* The right to run a command, as a claim has given it. */
typedef struct Ticket
{
	const char *operation;
	char		key[24];
	int64_t		token;
	int			attempt;
} Ticket;

extern Client client;
extern int64_t begun;			/* when all clients began */
extern const char *const levels[4];
extern const char *const operations[7];

extern bool chance(int percent);
extern void choose_key(char *key, const char *operation);
extern int	choose_variant(void);
extern void write_request(char *text, const char *key, int variant);
extern void write_response(char *text);
extern const char *guard_of(char *guard, const char *operation,
							const char *key);
extern Op  *claim(const char *operation, const char *key, int lease_ms,
				  const char *wait);
extern Ticket ticket_of(const Op *op);
extern void effect(const Ticket *mine, const char *kind,
				   const char *response);
extern Op  *owner(Statement what, const Ticket *mine, const char *more,
				  const char *code);
extern Op  *finish(Statement what, const Ticket *mine);
extern void savepoint(void);
extern void undo(int first);
extern void remember(void);

/* owner.c */
extern void atomic(void);
extern void lease(void);
extern void work(void);
extern void execute(void);
extern void batch(void);
extern void timeouts(void);

/* others.c */
extern void replay(void);
extern void forge(void);
extern void finish_prepared(void);
extern void recover(void);
extern void relay(void);
extern void reconcile(void);
extern void sweep(void);

#endif							/* PROGRAM_H */
