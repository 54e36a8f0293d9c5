/*-------------------------------------------------------------------------
 *
 * points.h
 *		Calls of the extension into the server, as points at which an error
 *		can be injected.
 *
 * The extension's source knows nothing of this: test/torture/inject compiles
 * it with a generated file included before everything else, which includes
 * the server's headers and this one, and then redefines each function of the
 * server that the extension calls as a macro that passes a point first.  A
 * macro is not expanded within itself, so what follows is the function.
 *
 *-------------------------------------------------------------------------
 */
#ifndef IDEM_POINTS_H
#define IDEM_POINTS_H

/* A call in the source; aligned so that all of them together are an array. */
typedef struct InjectPoint
{
	const char *function;
	const char *file;
	long		line;
} __attribute__((aligned(32))) InjectPoint;

/* points.c, a library of its own */
extern void inject_register(InjectPoint *first, InjectPoint *end);
extern void inject_point(InjectPoint *point);
extern bool inject_failure(InjectPoint *point);
extern void inject_timeout(InjectPoint *point);

#ifndef INJECT_LIBRARY			/* in each file of the extension */

/* by the linker */
extern InjectPoint __start_inject_points[] __attribute__((visibility("hidden")));
extern InjectPoint __stop_inject_points[] __attribute__((visibility("hidden")));

static void __attribute__((constructor))
register_points(void)
{
	inject_register(__start_inject_points, __stop_inject_points);
}

#define INJECT_AT(name, call) \
	({ \
		static InjectPoint inject_here \
			__attribute__((section("inject_points"), used)) = \
			{name, __FILE__, __LINE__}; \
		call(&inject_here); \
	})

#define INJECT_POINT(name) INJECT_AT(name, inject_point)

/* Of those that do not throw, but say that they failed. */
#define pg_strong_random(...) \
	(INJECT_AT("pg_strong_random", inject_failure) ? false : \
	 pg_strong_random(__VA_ARGS__))
#ifdef USE_OPENSSL
#include <openssl/evp.h>
#define EVP_MD_CTX_new() \
	(INJECT_AT("EVP_MD_CTX_new", inject_failure) ? NULL : EVP_MD_CTX_new())
#define EVP_DigestInit_ex(...) \
	(INJECT_AT("EVP_DigestInit_ex", inject_failure) ? 0 : \
	 EVP_DigestInit_ex(__VA_ARGS__))
#define EVP_DigestUpdate(...) \
	(INJECT_AT("EVP_DigestUpdate", inject_failure) ? 0 : \
	 EVP_DigestUpdate(__VA_ARGS__))
#define EVP_DigestFinal_ex(...) \
	(INJECT_AT("EVP_DigestFinal_ex", inject_failure) ? 0 : \
	 EVP_DigestFinal_ex(__VA_ARGS__))
#else
#define pg_cryptohash_create(...) \
	(INJECT_AT("pg_cryptohash_create", inject_failure) ? NULL : \
	 pg_cryptohash_create(__VA_ARGS__))
#define pg_cryptohash_init(...) \
	(INJECT_AT("pg_cryptohash_init", inject_failure) ? -1 : \
	 pg_cryptohash_init(__VA_ARGS__))
#define pg_cryptohash_update(...) \
	(INJECT_AT("pg_cryptohash_update", inject_failure) ? -1 : \
	 pg_cryptohash_update(__VA_ARGS__))
#define pg_cryptohash_final(...) \
	(INJECT_AT("pg_cryptohash_final", inject_failure) ? -1 : \
	 pg_cryptohash_final(__VA_ARGS__))
#endif

/* What may wait has two points: before, and when the wait is over. */
#define LockAcquire(tag, mode, session, dont_wait) \
	({ \
		LockAcquireResult result_of_lock; \
		INJECT_POINT("LockAcquire"); \
		result_of_lock = LockAcquire(tag, mode, session, dont_wait); \
		if (!(dont_wait)) \
			INJECT_AT("LockAcquire, granted", inject_timeout); \
		result_of_lock; \
	})

/* Calls of functions that are hidden in macros. */
#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS() \
	do { \
		INJECT_POINT("CHECK_FOR_INTERRUPTS"); \
		if (INTERRUPTS_PENDING_CONDITION()) \
			ProcessInterrupts(); \
	} while (0)
#undef FunctionCallInvoke
#define FunctionCallInvoke(fcinfo) \
	(INJECT_POINT("FunctionCallInvoke"), \
	 (*(fcinfo)->flinfo->fn_addr) (fcinfo))

#endif							/* INJECT_LIBRARY */

#endif							/* IDEM_POINTS_H */
