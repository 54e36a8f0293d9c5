/*-------------------------------------------------------------------------
 *
 * fingerprint.c
 *		Digest of a jsonb value: a version byte and a SHA-256 over a
 *		canonical encoding.
 *
 * Two requests have the same digest if and only if they are equal as jsonb.
 * The encoding is a sequence of tokens, each a tag and, for strings and
 * numbers, a length and bytes; objects and arrays are closed by a tag of
 * their own, so no two values encode alike.  jsonb keeps the members of an
 * object unique and in one order.  Numbers are encoded by the digits of
 * numeric's wire format, without its display scale.
 *
 * A change of the encoding takes a new version byte: stored digests keep
 * their meaning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idempotency.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#define FINGERPRINT_OF_CALLER	0	/* the caller's own digest */
#define FINGERPRINT_VERSION		1

#define TAG_NULL		'n'
#define TAG_FALSE		'f'
#define TAG_TRUE		't'
#define TAG_STRING		's'
#define TAG_NUMBER		'#'
#define TAG_ARRAY		'['
#define TAG_ARRAY_END	']'
#define TAG_OBJECT		'{'
#define TAG_KEY			'k'
#define TAG_OBJECT_END	'}'

/* Tokens on their way into the digest. */
typedef struct Encoder
{
	int			used;
	uint8		buffer[1024];
} Encoder;

/*
 * The container being walked.  "paths" has a bit for each path whose steps
 * lead here.
 */
typedef struct Level
{
	bool		is_array;
	uint32		index;			/* of the next element */
	uint64		paths;
} Level;

static void
flush(Encoder *encoder)
{
	digest_add(encoder->buffer, encoder->used);
	encoder->used = 0;
}

/*
 * Where the next "len" bytes go; no more than the buffer has.
 */
static inline uint8 *
reserve(Encoder *encoder, int len)
{
	if (encoder->used + len > (int) sizeof(encoder->buffer))
		flush(encoder);
	encoder->used += len;
	return encoder->buffer + encoder->used - len;
}

static inline void
put_tag(Encoder *encoder, char tag)
{
	*reserve(encoder, 1) = tag;
}

static void
put_counted(Encoder *encoder, char tag, const void *bytes, int len)
{
	uint32		count = pg_hton32((uint32) len);
	uint8	   *at = reserve(encoder, 1 + sizeof(count));

	at[0] = tag;
	memcpy(at + 1, &count, sizeof(count));
	if (len <= (int) sizeof(encoder->buffer))
		memcpy(reserve(encoder, len), bytes, len);
	else
	{
		flush(encoder);
		digest_add(bytes, len);
	}
}

/*
 * numeric_send() gives digits, weight, sign and scale as 16-bit numbers in
 * network order, then base-10000 digits.  Equal numbers can differ in scale
 * alone: a numeric has no zeroes at either end of its digits, and its zero has
 * neither weight nor sign.
 */
static void
put_number(Encoder *encoder, Numeric number)
{
	Datum		sent = DirectFunctionCall1(numeric_send,
										   NumericGetDatum(number));
	bytea	   *wire = DatumGetByteaPP(sent);
	int			ndigits = (VARSIZE_ANY_EXHDR(wire) - 8) / 2;
	uint16	   *words;
	uint16	   *digits;
	uint16		head[2];

	/* palloc aligns the varlena, and its header is four bytes long */
	Assert(!VARATT_IS_SHORT(wire));
	words = (uint16 *) VARDATA(wire);
	digits = words + 4;
	Assert(ndigits == 0 || (digits[0] != 0 && digits[ndigits - 1] != 0));

	head[0] = words[2];			/* sign */
	head[1] = words[1];			/* weight */
	put_tag(encoder, TAG_NUMBER);
	memcpy(reserve(encoder, sizeof(head)), head, sizeof(head));
	put_counted(encoder, TAG_NUMBER, digits, ndigits * sizeof(uint16));
	pfree(wire);
}

static void
put_scalar(Encoder *encoder, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			put_tag(encoder, TAG_NULL);
			break;
		case jbvBool:
			put_tag(encoder, value->val.boolean ? TAG_TRUE : TAG_FALSE);
			break;
		case jbvString:
			put_counted(encoder, TAG_STRING, value->val.string.val,
						value->val.string.len);
			break;
		case jbvNumeric:
			put_number(encoder, value->val.numeric);
			break;
		default:
			elog(ERROR, "unexpected jsonb value type %d", (int) value->type);
	}
}

/*
 * Walks the value and encodes what no path leads to.
 */
static void
put_container(Encoder *encoder, JsonbContainer *root,
			  const IdemPaths *paths)
{
	JsonbIterator *it = JsonbIteratorInit(root);
	JsonbIteratorToken token;
	JsonbValue	value;
	int			max_depth = 8;
	int			depth = -1;		/* of the container being walked */
	Level	   *levels = palloc(max_depth * sizeof(Level));
	uint64		inner = paths ? paths_all(paths) : 0;
	bool		skip = false;	/* is the next element to be left out? */

	while ((token = JsonbIteratorNext(&it, &value, skip)) != WJB_DONE)
	{
		bool		skipped = skip;

		CHECK_FOR_INTERRUPTS();
		skip = false;
		switch (token)
		{
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				if (++depth == max_depth)
					levels = repalloc(levels,
									  (max_depth *= 2) * sizeof(Level));
				levels[depth].is_array = (token == WJB_BEGIN_ARRAY);
				levels[depth].index = 0;
				levels[depth].paths = inner;
				/* a scalar stands alone in an array of its own */
				if (token == WJB_BEGIN_OBJECT)
					put_tag(encoder, TAG_OBJECT);
				else if (!value.val.array.rawScalar)
					put_tag(encoder, TAG_ARRAY);
				else
					levels[depth].is_array = false;
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				if (token == WJB_END_OBJECT)
					put_tag(encoder, TAG_OBJECT_END);
				else if (levels[depth].is_array)
					put_tag(encoder, TAG_ARRAY_END);
				depth--;
				break;
			case WJB_KEY:
				skip = paths != NULL &&
					paths_follow(paths, levels[depth].paths, depth,
								 value.val.string.val, value.val.string.len,
								 &inner);
				if (!skip)
					put_counted(encoder, TAG_KEY, value.val.string.val,
								value.val.string.len);
				continue;		/* its value is next */
			case WJB_VALUE:
			case WJB_ELEM:
				if (!skipped)
					put_scalar(encoder, &value);
				break;
			default:
				elog(ERROR, "unexpected jsonb token %d", (int) token);
		}

		/* the next element of an array has no key: look ahead */
		if (paths != NULL && depth >= 0 && levels[depth].is_array)
		{
			char		step[16];
			int			len = snprintf(step, sizeof(step), "%u",
									   levels[depth].index++);

			skip = paths_follow(paths, levels[depth].paths, depth, step, len,
								&inner);
		}
	}
	pfree(levels);
}

/*
 * The digest of a request, without the parts that the paths lead to.
 */
bytea *
fingerprint_compute(Jsonb *request, ArrayType *ignore_paths)
{
	bytea	   *result = palloc(VARHDRSZ + IDEM_FINGERPRINT_SIZE);
	uint8	   *out = (uint8 *) VARDATA(result);
	IdemPaths  *paths = ignore_paths ? paths_parse(ignore_paths) : NULL;
	Encoder		encoder;

	encoder.used = 0;
	digest_begin();
	put_container(&encoder, &request->root, paths);
	flush(&encoder);
	SET_VARSIZE(result, VARHDRSZ + IDEM_FINGERPRINT_SIZE);
	out[0] = FINGERPRINT_VERSION;
	digest_end(out + 1);
	return result;
}

/*
 * Refuses a fingerprint that a caller cannot have made by the rules.
 */
void
fingerprint_check_given(bytea *fingerprint)
{
	int			len = VARSIZE_ANY_EXHDR(fingerprint);
	uint8		version = len > 0 ? *(uint8 *) VARDATA_ANY(fingerprint) : 0;

	if (len != IDEM_FINGERPRINT_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("fingerprint must have %d bytes",
						IDEM_FINGERPRINT_SIZE),
				 errdetail("It has %d.", len),
				 errhint("Pass the result of idem_fingerprint(), or a zero byte and 32 bytes of your own digest.")));
	if (version != FINGERPRINT_OF_CALLER && version != FINGERPRINT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown version of fingerprint"),
				 errdetail("Its first byte is %d.", version),
				 errhint("Pass the result of idem_fingerprint(), or a zero byte and 32 bytes of your own digest.")));
}

/*
 * NULL stands for "no request", which equals only itself.
 */
bool
fingerprint_equal(bytea *a, bytea *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

PG_FUNCTION_INFO_V1(idem_fingerprint);
Datum
idem_fingerprint(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_BYTEA_P(fingerprint_compute(PG_GETARG_JSONB_P(0),
										  PG_ARGISNULL(1) ? NULL :
										  PG_GETARG_ARRAYTYPE_P(1)));
}
