-- Bad input: one documented SQLSTATE each with DETAIL and HINT, nothing
-- written, the transaction usable, and the claim still completable.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- What a claim refuses.  Addresses: see address; durations: see durations.
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', '1', idem_fingerprint('1'))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', fingerprint => '')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', fingerprint => sha256('x'))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', fingerprint => '\x00' || sha512('x'))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', fingerprint => '\x02' || sha256('x'))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', fingerprint => '\xff' || sha256('x'))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', owner => '')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k', owner => repeat('o', 256))$$);
CALL pg_temp.refused($$SELECT idem_replay('t', 'errors', 'k', '1', idem_fingerprint('1'))$$);
CALL pg_temp.refused($$SELECT idem_replay('t', 'errors', 'k', fingerprint => sha256('x'))$$);
SELECT count(*) AS rows FROM idem_record WHERE operation = 'errors';
SELECT outcome FROM idem_claim('t', 'errors', 'owner', owner => repeat('ж', 255),
							   lease => '1 hour');

-- What a completion refuses; the claim outlives all of it.
SET idempotency.max_response_size = 10;
BEGIN;
SELECT idem_claim('t', 'errors', 'a', '1') AS ticket \gset
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket, '"123456789"');
ROLLBACK TO s;
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, body => ''\x0102030405060708090a0b'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, headers => ''{"a": "b"}'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_fail(%L::idem_ticket, ''"123456789"'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, resource => '' '')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, resource => repeat(''r'', 1025))', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket, '''')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket, repeat(''r'', 1025))', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_complete_batch(ARRAY[%L::idem_ticket], ARRAY[''"123456789"''::json])', :'ticket'));
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''"12'')', :'ticket'));
SELECT outcome FROM idem_claim('t', 'errors', 'a', '1');
SELECT count(*) AS rows FROM idem_record WHERE operation = 'errors' AND key = 'a';
SELECT idem_complete(:'ticket'::idem_ticket, resource => repeat('ж', 1024));
COMMIT;
RESET idempotency.max_response_size;
SELECT outcome, response, length(resource) FROM idem_claim('t', 'errors', 'a', '1');

-- The same for a leased claim.
SELECT idem_claim('t', 'errors', 'leased', '1', lease => '1 hour') AS ticket \gset
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE operation = 'errors' AND key = 'leased' \gset before_
SET idempotency.max_response_size = 10;
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''"123456789"'')', :'ticket'));
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket, '''')', :'ticket'));
SELECT pg_temp.code_of(format('SELECT idem_heartbeat(%L::idem_ticket, ''0'')', :'ticket'));
RESET idempotency.max_response_size;
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE operation = 'errors' AND key = 'leased';
SELECT idem_complete(:'ticket'::idem_ticket, '"now"');

-- Nothing but a replay is possible where nothing can be written.
SELECT idem_claim('t', 'errors', 'read only', lease => '1 hour') AS ticket \gset
CREATE FUNCTION errors_handler(request jsonb) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
BEGIN READ ONLY;
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'errors', 'a', '1')$$);
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT what, pg_temp.code_of(command)
FROM (VALUES ('leased', $$SELECT idem_claim('t', 'errors', 'k', lease => '1 hour')$$),
			 ('batch', $$SELECT idem_claim_batch('t', 'errors', '{k}')$$),
			 ('execute', $$SELECT idem_execute('t', 'errors', 'k', '1', 'errors_handler(jsonb)')$$),
			 ('fail', format('SELECT idem_fail(%L::idem_ticket)', :'ticket')),
			 ('release', format('SELECT idem_release(%L::idem_ticket)', :'ticket')),
			 ('heartbeat', format('SELECT idem_heartbeat(%L::idem_ticket, ''1 hour'')', :'ticket')),
			 ('hold', format('SELECT idem_hold(%L::idem_ticket)', :'ticket')),
			 ('complete batch', format('SELECT idem_complete_batch(ARRAY[%L::idem_ticket])', :'ticket')),
			 ('define', $$SELECT idem_define('errors')$$)) AS v(what, command);
SELECT outcome FROM idem_replay('t', 'errors', 'read only');
COMMIT;
DROP FUNCTION errors_handler;
SELECT idem_complete(:'ticket'::idem_ticket);

-- A mistake in the middle of a batch leaves nothing of it.
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'errors', '{b1,b2," "}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'errors', '{b1,b2}', '{1,1}', ARRAY[idem_fingerprint('1'), NULL], lease => '1 hour')$$);
SELECT count(*) AS rows FROM idem_record WHERE operation = 'errors' AND key LIKE 'b_';
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
