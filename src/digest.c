/*-------------------------------------------------------------------------
 *
 * digest.c
 *		SHA-256, of bytes that come piece by piece.
 *
 * There is one digest at a time.  An error in the middle leaves nothing
 * behind: the next one begins anew.
 *
 * OpenSSL is called directly, where the server is built with it, as pgcrypto
 * does.  The server's own pg_cryptohash makes a context for each digest and
 * looks the algorithm up, which costs half as much again as the digest of a
 * small request.  So one context is made per session, and kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef USE_OPENSSL
#include <openssl/evp.h>
#else
#include "common/cryptohash.h"
#include "common/sha2.h"
#endif
#include "idempotency.h"

#ifdef USE_OPENSSL

static EVP_MD_CTX *context = NULL;
static bool ready = false;		/* has it the algorithm? */

static void
check(int result)
{
	if (result != 1)
		elog(ERROR, "could not compute a digest");
}

void
digest_begin(void)
{
	/* without an algorithm it takes the one that the context has */
	const EVP_MD *algorithm = ready ? NULL : EVP_sha256();

	if (context == NULL)
		context = EVP_MD_CTX_new();
	if (context == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	ready = false;
	check(EVP_DigestInit_ex(context, algorithm, NULL));
	ready = true;
}

void
digest_add(const void *bytes, Size len)
{
	check(EVP_DigestUpdate(context, bytes, len));
}

void
digest_end(uint8 *out)
{
	check(EVP_DigestFinal_ex(context, out, NULL));
}

#else							/* !USE_OPENSSL */

static pg_cryptohash_ctx *context;

static void
check(int result)
{
	if (result < 0)
		elog(ERROR, "could not compute a digest: %s",
			 pg_cryptohash_error(context));
}

void
digest_begin(void)
{
	context = pg_cryptohash_create(PG_SHA256);
	check(pg_cryptohash_init(context));
}

void
digest_add(const void *bytes, Size len)
{
	check(pg_cryptohash_update(context, bytes, len));
}

void
digest_end(uint8 *out)
{
	check(pg_cryptohash_final(context, out, IDEM_DIGEST_SIZE));
	pg_cryptohash_free(context);
}

#endif							/* USE_OPENSSL */
