-- Guards: a second command with the guard of one that runs, ran or may have
-- run is a duplicate, and is told which command was first.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- The first command answers for the second, whatever that one's request; the
-- ticket gives no right.
SELECT idem_complete(idem_claim('t', 'guard', 'first', '1', guard => 'cart:7:v3', owner => 'me'),
					 '{"id" :17}', 201, 'orders/17', '{"h": 1}', '\x00ff');
SELECT idem_claim('t', 'guard', 'second', '2', guard => 'cart:7:v3') AS ticket \gset
SELECT outcome, key, duplicate_of, token, attempt, state, resource, code, response, headers, body,
	   owner, completed_at IS NOT NULL AS completed, retry_after
FROM unnest(ARRAY[:'ticket'::idem_ticket]);
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_require(%L::idem_ticket)', :'ticket'));
SELECT count(*) FROM idem_record WHERE operation = 'guard';
-- asking does not know of guards
SELECT outcome, duplicate_of FROM idem_replay('t', 'guard', 'second', '2');

-- Its own address comes first: a command is no duplicate of itself.  A guard
-- may be left out later, another one is another request.
SELECT outcome, duplicate_of FROM idem_claim('t', 'guard', 'first', '1', guard => 'cart:7:v3');
SELECT outcome, duplicate_of FROM idem_claim('t', 'guard', 'first', '1');
SELECT outcome, response, duplicate_of FROM idem_claim('t', 'guard', 'first', '1', guard => 'cart:7:v4');
SELECT outcome, duplicate_of FROM idem_claim('t', 'guard', 'first', '2', guard => 'cart:7:v3');

-- Other tenants, operations and guards have nothing to do with it, nor has a
-- key of the same spelling.  Guards are compared byte for byte.
SELECT tenant, operation, key, guard, outcome
FROM (VALUES ('u', 'guard', 'other', 'cart:7:v3'), ('t', 'guard 2', 'other', 'cart:7:v3'),
			 ('t', 'guard', 'other', 'Cart:7:v3'), ('t', 'guard', 'cart:7:v3', NULL),
			 ('t', 'guard', 'other', 'cart:7:v3 '), ('t', 'guard', 'other', 'first')) AS v(t, o, k, guard),
	 LATERAL idem_claim(t, o, k, guard => guard) AS c, LATERAL idem_release(c);

-- What each state means for another command: processing, also lapsed, unknown
-- and succeeded, also expired or swept, keep the guard; the others free it.
SELECT idem_claim('t', 'states', 'live', guard => 'live', lease => '1 hour') AS ticket \gset
SELECT outcome FROM idem_claim('t', 'states', 'lapsed', guard => 'lapsed', lease => '1 microsecond');
SELECT idem_release(idem_claim('t', 'states', 'released', guard => 'released', lease => '1 hour'));
SELECT idem_unknown(idem_claim('t', 'states', 'unknown', guard => 'unknown', lease => '1 hour'), 'why');
SELECT idem_complete(idem_claim('t', 'states', 'succeeded', guard => 'succeeded'), '"r"', resource => 'r');
SELECT idem_complete(idem_claim('t', 'states', 'swept', guard => 'swept', ttl => '1 microsecond'), '"r"', resource => 'r');
SELECT swept > 0 AS swept FROM idem_sweep(10000);
SELECT idem_complete(idem_claim('t', 'states', 'expired', guard => 'expired', ttl => '1 microsecond'), '"r"', resource => 'r');
SELECT idem_fail(idem_claim('t', 'states', 'failed', guard => 'failed'), '"no"');
SELECT idem_release(idem_claim('t', 'states', 'cancelled', guard => 'cancelled', lease => '1 hour'));
SELECT outcome FROM idem_cancel('t', 'states', 'cancelled', 'why');
BEGIN;
SELECT guard, outcome, duplicate_of, state, resource, response
FROM unnest(ARRAY['live', 'lapsed', 'released', 'unknown', 'succeeded', 'expired', 'swept',
				  'failed', 'cancelled']) AS guard,
	 LATERAL idem_claim('t', 'states', 'other ' || guard, guard => guard);
ROLLBACK;
-- and for the command itself, which needs not name it
BEGIN;
SELECT key, outcome, state, duplicate_of
FROM unnest(ARRAY['live', 'lapsed', 'released', 'unknown', 'succeeded', 'expired', 'swept',
				  'failed', 'cancelled']) AS k,
	 LATERAL idem_claim('t', 'states', k, lease => '1 hour');
SELECT key, guard FROM idem_record WHERE operation = 'states' ORDER BY key;
ROLLBACK;
-- what an operator decides
BEGIN;
SELECT idem_resolve('t', 'states', 'unknown', 'succeeded', 'seen');
SELECT outcome, duplicate_of, state FROM idem_claim('t', 'states', 'other', guard => 'unknown');
ROLLBACK;
BEGIN;
SELECT idem_resolve('t', 'states', 'unknown', 'failed', 'not seen');
SELECT outcome, duplicate_of, state FROM idem_claim('t', 'states', 'other', guard => 'unknown');
ROLLBACK;
BEGIN;
SELECT idem_resolve('t', 'states', 'unknown', 'released', 'not seen');
SELECT outcome, duplicate_of, state FROM idem_claim('t', 'states', 'other', guard => 'unknown');
ROLLBACK;

-- A released command gets its guard again, or is told who has it; its record
-- stays as it was.
SELECT md5(r::text) AS row FROM idem_record AS r WHERE operation = 'states' AND key = 'released' \gset before_
SELECT idem_complete(idem_claim('t', 'states', 'other', guard => 'released'), '"other"');
SELECT outcome, key, duplicate_of, response FROM idem_claim('t', 'states', 'released');
SELECT outcome, key, duplicate_of, response FROM idem_claim('t', 'states', 'released', lease => '1 hour');
SELECT md5(r::text) = :'before_row' AS unchanged FROM idem_record AS r WHERE operation = 'states' AND key = 'released';
SELECT outcome FROM idem_cancel('t', 'states', 'released', 'done by another');
-- also where its attempts are used up: unknown would hold the guard as well
SELECT version FROM idem_define('attempts', max_attempts => 1);
SELECT idem_release(idem_claim('t', 'attempts', 'first', guard => 'g', lease => '1 hour'));
SELECT idem_complete(idem_claim('t', 'attempts', 'second', guard => 'g'));
SELECT outcome, duplicate_of, state FROM idem_claim('t', 'attempts', 'first');

-- A command that began without a guard takes one while it may still run; then
-- that one stays.
SELECT idem_complete(idem_claim('t', 'late', 'done'), '"done"');
SELECT outcome, duplicate_of FROM idem_claim('t', 'late', 'done', guard => 'd');
SELECT idem_release(idem_claim('t', 'late', 'leased', lease => '1 hour'));
SELECT idem_release(idem_claim('t', 'late', 'atomic', lease => '1 hour'));
SELECT outcome FROM idem_claim('t', 'late', 'leased', guard => 'l', lease => '1 hour');
SELECT idem_complete(idem_claim('t', 'late', 'atomic', guard => 'a'));
SELECT key, guard FROM idem_record WHERE operation = 'late' ORDER BY key;
SELECT guard, outcome, duplicate_of
FROM unnest(ARRAY['l', 'a']) AS guard, idem_claim('t', 'late', 'other', guard => guard);

-- Within one transaction: an open claim counts as well, until it is released,
-- fails, or is rolled back.
BEGIN;
SELECT idem_claim('t', 'open', 'a', guard => 'g', owner => 'me') AS ticket \gset
SELECT outcome, duplicate_of, state, attempt, owner FROM idem_claim('t', 'open', 'b', guard => 'g');
SELECT outcome FROM idem_claim('t', 'open', 'a', guard => 'g');
SELECT outcome FROM idem_claim('t', 'open', 'a');
SELECT outcome FROM idem_claim('t', 'open', 'a', guard => 'h');
SAVEPOINT s;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT outcome, duplicate_of FROM idem_claim('t', 'open', 'b', guard => 'g');
SELECT outcome, duplicate_of FROM idem_claim('t', 'open', 'a', guard => 'g');
ROLLBACK TO s;
SELECT outcome, duplicate_of FROM idem_claim('t', 'open', 'b', guard => 'g');
SELECT idem_fail(:'ticket'::idem_ticket);
SELECT idem_complete(idem_claim('t', 'open', 'b', guard => 'g'), '"b"');
SELECT outcome, duplicate_of, response FROM idem_claim('t', 'open', 'c', guard => 'g');
ROLLBACK TO s;
SELECT idem_complete(:'ticket'::idem_ticket, '"a"');
SELECT outcome, duplicate_of, response FROM idem_claim('t', 'open', 'b', guard => 'g');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT outcome FROM idem_claim('t', 'open', 'a', guard => 'g');
ROLLBACK TO s;
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT idem_complete(idem_claim('t', 'open', 'b', guard => 'g'));
COMMIT;

-- Without a guard there is one lock, with one there are two, and whoever
-- changes the record of one has them as well; a look leaves none.
CREATE VIEW pg_temp.locks AS
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
BEGIN;
SELECT idem_claim('t', 'locks', 'leased', guard => 'leased', lease => '1 hour') AS ticket,
	   idem_claim('t', 'locks', 'bare', lease => '1 hour') AS bare \gset
SELECT * FROM pg_temp.locks;
COMMIT;
BEGIN;
SELECT outcome FROM idem_claim('t', 'locks', 'other', guard => 'leased');
SELECT outcome FROM idem_claim('t', 'locks', 'leased', guard => 'leased');
SELECT * FROM pg_temp.locks;
SELECT idem_heartbeat(:'bare'::idem_ticket, '1 hour') > now() AS later;
SELECT * FROM pg_temp.locks;
SELECT idem_heartbeat(:'ticket'::idem_ticket, '2 hours') > now() AS later;
SELECT * FROM pg_temp.locks;
ROLLBACK;
BEGIN;
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT * FROM pg_temp.locks;
ROLLBACK;
BEGIN;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT * FROM pg_temp.locks;
COMMIT;
BEGIN;
SELECT outcome FROM idem_cancel('t', 'locks', 'leased', 'it does not hold its guard');
SELECT * FROM pg_temp.locks;
ROLLBACK;

-- A duplicate writes nothing.
BEGIN;
SELECT outcome FROM idem_claim('t', 'guard', 'second', guard => 'cart:7:v3');
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_id;
COMMIT;

-- In one call.
CREATE FUNCTION pg_temp.handler(request jsonb) RETURNS json LANGUAGE sql AS $$SELECT '"made"'::json$$;
SELECT key, outcome, response, duplicate_of
FROM unnest(ARRAY['a', 'b', 'a']) AS k,
	 LATERAL idem_execute('t', 'guarded', k, '1', 'pg_temp.handler(jsonb)', guard => 'g') AS c;
SELECT outcome, key, duplicate_of, state, response
FROM idem_claim_batch('t', 'guarded', ARRAY['a', 'b', 'x', 'y', 'z', 'x'], '{1,1,1,1,1,1}', NULL,
					  ARRAY['g', 'g', 'i', 'i', NULL, 'i'], lease => '1 hour');
SELECT key, guard FROM idem_record WHERE operation = 'guarded' ORDER BY key;
BEGIN;
SELECT outcome, duplicate_of FROM idem_claim_batch('t', 'guarded', '{p,q,r}', guards => '{g,i,g}');
SELECT * FROM pg_temp.locks;
COMMIT;
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'guarded', '{a,b}', guards => '{g}')$$);

-- 1 to 255 characters, not blank; the largest one fits into the index next to
-- the largest tenant and operation.
CALL pg_temp.refused($$SELECT idem_claim('t', 'limits', 'k', guard => '')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'limits', 'k', guard => E' \t\n')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'limits', 'k', guard => repeat('x', 256))$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'limits', 'k', '1', 'pg_temp.handler(jsonb)', guard => '')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'limits', '{a,b}', guards => '{g,""}')$$);
SELECT count(*) FROM idem_record WHERE operation = 'limits';
CREATE FUNCTION pg_temp.long(n integer) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(chr(128512 + (i * i + n) % 79), '') FROM generate_series(1, n) AS i
$$;
SELECT outcome, duplicate_of = pg_temp.long(255) AS first
FROM unnest(ARRAY['', 'x']) AS x,
	 LATERAL idem_claim(pg_temp.long(128), pg_temp.long(127) || 'o', left(x || pg_temp.long(255), 255),
						guard => pg_temp.long(255), lease => '1 hour');

-- The unique index refuses what all this should have made impossible: an
-- internal error, never a 23505.
BEGIN;
SELECT idem_claim('t', 'by hand', 'a', guard => 'g') AS ticket \gset
INSERT INTO idem_record (created_at, lease_until, token, attempt, tenant, operation, key, state, guard)
VALUES (now(), now(), 1, 1, 't', 'by hand', 'b', 'processing', 'g');
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket);
\echo :SQLSTATE
ROLLBACK TO s;
SELECT idem_fail(:'ticket'::idem_ticket);
ROLLBACK;
BEGIN;
SELECT idem_release(idem_claim('t', 'by hand', 'a', guard => 'g', lease => '1 hour'));
SELECT idem_claim('t', 'by hand', 'a') AS ticket \gset
INSERT INTO idem_record (created_at, lease_until, token, attempt, tenant, operation, key, state, guard)
VALUES (now(), now(), 1, 1, 't', 'by hand', 'b', 'processing', 'g');
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket);
\echo :SQLSTATE
ROLLBACK;
-- in exactly the states that hold a guard
BEGIN;
SELECT state, pg_temp.code_of(format($$
	INSERT INTO idem_record (created_at, lease_until, completed_at, expires_at, token, attempt,
							 tenant, operation, key, state, guard)
	SELECT now(), CASE WHEN %1$L = 'processing' THEN now() END,
		   CASE WHEN %2$L THEN now() END, CASE WHEN %2$L THEN now() END, 1, 1,
		   't', 'by hand', %1$L || n, %1$L, %1$L
	FROM generate_series(1, 2) AS n$$, state, state IN ('succeeded', 'failed', 'cancelled')))
FROM unnest(ARRAY['processing', 'released', 'succeeded', 'failed', 'unknown', 'cancelled']) AS state;
SELECT pg_temp.code_of($$
	INSERT INTO idem_record (created_at, token, attempt, tenant, operation, key, state, guard, once_more)
	SELECT now(), 1, 1, 't', 'by hand', 'once more ' || n, 'released', 'once more', true
	FROM generate_series(1, 2) AS n$$);
ROLLBACK;
