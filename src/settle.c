/*-------------------------------------------------------------------------
 *
 * settle.c
 *		What is known about an intent that was handed out: its worker's word
 *		(confirm, reject, defer), or a verdict about one that was in question.
 *
 * Each word is bound to the token of the hand-out, and given once: the same
 * again is accepted and changes nothing, another one is refused.  The token
 * stays with what was settled; where the intent goes on, it is kept as
 * past_token until the next hand-out.
 *
 * Locking: see intent.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "intent.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#define PAUSE_MAX_S		3600
#define TRIES_MAX		20		/* then a person has to look */
#define EVIDENCE_MAX	100		/* pieces of it that are kept */

/* in the order of their figures */
typedef enum WordKind
{
	WORD_CONFIRM,
	WORD_REJECT,
	WORD_DEFER,
	WORD_HAPPENED,				/* this and the next are verdicts */
	WORD_ABSENT,
	WORD_UNCLEAR
} WordKind;

typedef struct Word
{
	WordKind	kind;
	int64		token;			/* 0: NULL */
	text	   *reason;			/* NULL: none */
	NullableDatum response;
	NullableDatum evidence;
} Word;

static const char *const word_names[] = {
	[WORD_CONFIRM] = "confirm",
	[WORD_REJECT] = "reject",
	[WORD_DEFER] = "defer",
	[WORD_HAPPENED] = "happened",
	[WORD_ABSENT] = "absent",
	[WORD_UNCLEAR] = "unclear"
};

static bool
is_verdict(const Word *word)
{
	return word->kind >= WORD_HAPPENED;
}

/*
 * Bytes and NULLs alike, wherever and however they are stored?
 */
static bool
same(NullableDatum a, NullableDatum b)
{
	if (a.isnull || b.isnull)
		return a.isnull == b.isnull;
	return datum_image_eq(a.value, b.value, false, -1);
}

/*
 * Is the intent in the state that this word leads to, with the same answer?
 * The first evidence stays.
 */
static bool
is_repeated(const IdemIntent *intent, const Word *word)
{
	bool		same_reason = same(intent->reason,
								   text_or_null(word->reason));
	bool		same_response = same(intent->response, word->response);

	if (is_verdict(word) && word->response.isnull)
		same_response = true;
	switch (word->kind)
	{
		case WORD_CONFIRM:
		case WORD_HAPPENED:
			return intent->state == INTENT_CONFIRMED && same_response;
		case WORD_REJECT:
			return intent->state == INTENT_REJECTED && same_reason &&
				same_response;
		case WORD_DEFER:
			return same_reason && (intent->state == INTENT_PENDING ||
								   intent->state == INTENT_UNKNOWN);
		case WORD_ABSENT:
			return same_reason && same_response &&
				intent->state == INTENT_PENDING;
		case WORD_UNCLEAR:
			return same_reason && same_response &&
				intent->state == INTENT_UNKNOWN;
	}
	return false;
}

/*
 * A verdict against another one is for people: it stands in the server's log
 * even if the caller handles the error.
 */
static void
refuse_verdict(const IdemIntent *intent, const Word *word)
{
	const char *state = intent_state_name(intent->state);
	const char *verdict = word_names[word->kind];

	/* without the statement, which may hold the evidence */
	ereport(LOG_SERVER_ONLY,
			(errmsg("verdict %s about an intent that is %s", verdict, state),
			 errdetail("The intent is %s, \"%s\" of tenant \"%s\", operation \"%s\", key \"%s\".",
					   outbox_show_id(intent->operation_id),
					   text_to_cstring(intent->name),
					   text_to_cstring(intent->address.tenant),
					   text_to_cstring(intent->address.operation),
					   text_to_cstring(intent->address.key)),
			 errhidestmt(true), errhidecontext(true)));
	outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
				  psprintf("verdict %s contradicts an intent that is %s",
						   verdict, state),
				  "What was said first stays; look at both pieces of evidence.");
}

static void
refuse_word(const IdemIntent *intent, const Word *word)
{
	outbox_refuse(intent, ERRCODE_IDEM_ILLEGAL_TRANSITION,
				  psprintf("cannot %s an intent that is %s",
						   is_verdict(word) ? "settle" :
						   word_names[word->kind],
						   intent_state_name(intent->state)),
				  intent->state == INTENT_IN_FLIGHT ?
				  "Its worker confirms, rejects or defers it." :
				  intent->state == INTENT_UNKNOWN ?
				  "Nobody knows whether it happened: settle it." :
				  "What was said first stays.");
}

/*
 * Has the token the right to say this now?  False: it has said it already.
 */
static bool
may_speak(const IdemIntent *intent, const Word *word)
{
	bool		holds = word->token > 0 && intent->token == word->token;
	bool		spoke = word->token > 0 && intent->past_token == word->token;

	if (!holds && !spoke)
		outbox_refuse(intent, ERRCODE_IDEM_STALE_TICKET,
					  "token of the intent is not valid any more",
					  "Somebody else has it; what you know is evidence for idem_settle().");
	if (holds && intent->settled_at == IDEM_NO_TIME)
	{
		if (intent->state == INTENT_UNKNOWN ? word->kind == WORD_DEFER :
			is_verdict(word))
			refuse_word(intent, word);
		return true;
	}
	if (is_repeated(intent, word))
		return false;
	if (is_verdict(word))
		refuse_verdict(intent, word);
	refuse_word(intent, word);
	return false;				/* keep the compiler quiet */
}

/*
 * An array of the evidence so far: the first piece, and the last ones.
 */
static NullableDatum
add_evidence(NullableDatum before, NullableDatum evidence)
{
	IdemJsonbState state = {0};
	Jsonb	   *added = DatumGetJsonbP(evidence.value);
	JsonbValue	value;
	NullableDatum result = {0};

	compat_push_jsonb(&state, WJB_BEGIN_ARRAY, NULL);
	if (!before.isnull)
	{
		JsonbContainer *old = &DatumGetJsonbP(before.value)->root;
		int			first_kept = JsonContainerSize(old) - EVIDENCE_MAX + 2;

		for (int i = 0; i < JsonContainerSize(old); i++)
			if (i == 0 || i >= first_kept)
				compat_push_jsonb(&state, WJB_ELEM,
								  getIthJsonbValueFromContainer(old, i));
	}
	if (!JsonbExtractScalar(&added->root, &value))
	{
		value.type = jbvBinary;
		value.val.binary.data = &added->root;
		value.val.binary.len = VARSIZE_ANY_EXHDR(added);
	}
	compat_push_jsonb(&state, WJB_ELEM, &value);
	compat_push_jsonb(&state, WJB_END_ARRAY, NULL);
	result.value = JsonbPGetDatum(JsonbValueToJsonb(state.result));
	return result;
}

static void
settle(IdemIntent *intent, IdemIntentState state, TimestampTz now)
{
	intent->state = state;
	intent->settled_at = now;
	intent->lease_until = IDEM_NO_TIME;
}

/*
 * It did not happen: to be sent from "due_at" on.
 */
static void
make_pending(IdemIntent *intent, TimestampTz due_at)
{
	intent->state = INTENT_PENDING;
	intent->due_at = due_at;
	intent->lease_until = IDEM_NO_TIME;
	intent->doubt_since = IDEM_NO_TIME;
	intent->doubtful = false;
}

/*
 * Nobody knows; asked about after all others.
 */
static void
make_unknown(IdemIntent *intent, TimestampTz now)
{
	intent->state = INTENT_UNKNOWN;
	intent->lease_until = now;
}

/*
 * After 1 s, 2 s, 4 s ... 1 hour; never, once it was tried too often.
 */
static TimestampTz
next_try(const IdemIntent *intent, TimestampTz now)
{
	int			doubled = Min(Max(intent->tries, 1) - 1, 12);

	if (intent->tries >= TRIES_MAX)
		return DT_NOEND;
	return now + Min(1 << doubled, PAUSE_MAX_S) * USECS_PER_SEC;
}

static bool
judge_word(IdemIntent *intent, void *arg)
{
	const Word *word = arg;
	TimestampTz now = GetCurrentTimestamp();

	if (!may_speak(intent, word))
		return false;
	intent->reason = text_or_null(word->reason);
	if (!word->response.isnull)
		intent->response = word->response;
	if (!word->evidence.isnull)
		intent->evidence = add_evidence(intent->evidence, word->evidence);
	switch (word->kind)
	{
		case WORD_CONFIRM:
		case WORD_HAPPENED:
			settle(intent, INTENT_CONFIRMED, now);
			return true;
		case WORD_REJECT:
			settle(intent, INTENT_REJECTED, now);
			return true;
		case WORD_DEFER:
			/* this try did not happen, but an earlier one may have */
			if (intent->doubtful)
				make_unknown(intent, now);
			else
				make_pending(intent, next_try(intent, now));
			break;
		case WORD_ABSENT:
			make_pending(intent, now);
			break;
		case WORD_UNCLEAR:
			make_unknown(intent, now);
			break;
	}
	intent->past_token = intent->token;
	intent->token = 0;
	return true;
}

/*
 * Takes somebody's word about the intent in the first argument, whose token is
 * the second.
 */
static Datum
take_word(FunctionCallInfo fcinfo, Word *word)
{
	IdemIntentTable table;
	IdemIntent	before;
	IdemIntent	after;
	Datum		result;

	word->token = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);
	intents_open(&table);
	if (outbox_change(&table, fcinfo, judge_word, word, &before, &after))
	{
		/* what was confirmed proves itself */
		if (word->kind != WORD_CONFIRM)
			outbox_note(&before, &after, outbox_attempt(&before.address),
						word->reason);
		if (after.state != INTENT_UNKNOWN)
			recover_answered(&before.address, before.doubt_since);
		if (word->kind == WORD_ABSENT)
			intend_notify(&after);
		stat_count(before.address.operation,
				   (IdemStat) (STAT_CONFIRMED + word->kind));
		durability_flush();
	}
	result = HeapTupleGetDatum(intents_form(&table, &after));
	intents_close(&table);
	PG_RETURN_DATUM(result);
}

PG_FUNCTION_INFO_V1(idem_confirm);
Datum
idem_confirm(PG_FUNCTION_ARGS)
{
	Word		word = {.kind = WORD_CONFIRM,.response = fcinfo->args[2],
	.evidence = null_datum()};

	return take_word(fcinfo, &word);
}

PG_FUNCTION_INFO_V1(idem_reject);
Datum
idem_reject(PG_FUNCTION_ARGS)
{
	Word		word = {.kind = WORD_REJECT,.response = fcinfo->args[3],
	.evidence = null_datum()};

	word.reason = complete_read_reason(fcinfo->args[2], true);
	return take_word(fcinfo, &word);
}

PG_FUNCTION_INFO_V1(idem_defer);
Datum
idem_defer(PG_FUNCTION_ARGS)
{
	Word		word = {.kind = WORD_DEFER,.response = null_datum(),
	.evidence = null_datum()};

	word.reason = complete_read_reason(fcinfo->args[2], true);
	return take_word(fcinfo, &word);
}

static WordKind
read_verdict(FunctionCallInfo fcinfo, int arg)
{
	text	   *verdict = PG_ARGISNULL(arg) ? NULL : PG_GETARG_TEXT_PP(arg);

	for (int kind = WORD_HAPPENED; verdict != NULL && kind <= WORD_UNCLEAR;
		 kind++)
	{
		if (strcmp(text_to_cstring(verdict), word_names[kind]) == 0)
			return (WordKind) kind;
	}
	ereport(ERROR,
			(errcode(verdict == NULL ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
					 ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("verdict must be happened, absent or unclear"),
			 errdetail("It is %s.", verdict == NULL ? "NULL" : "another word"),
			 errhint("Say unclear when you cannot tell.")));
	return WORD_UNCLEAR;		/* keep the compiler quiet */
}

PG_FUNCTION_INFO_V1(idem_settle);
Datum
idem_settle(PG_FUNCTION_ARGS)
{
	Word		word = {.kind = read_verdict(fcinfo, 2),
	.evidence = fcinfo->args[3],.response = fcinfo->args[4]};

	word.reason = cstring_to_text(psprintf("verdict %s",
										   word_names[word.kind]));
	if (word.evidence.isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("evidence must not be NULL"),
				 errdetail("It is kept with the intent."),
				 errhint("Say what was asked and what was answered.")));
	return take_word(fcinfo, &word);
}
