-- Sweeping: what an expired record loses, and that nothing it answers changes
-- with it; never is anything but an expired record touched (cases 21 and 23).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
-- what other tests left behind
SET client_min_messages = warning;
CALL idem_maintain();
RESET client_min_messages;
CREATE VIEW pg_temp.kept AS
SELECT key, response IS NOT NULL AS response, headers IS NOT NULL AS headers, body IS NOT NULL AS body,
	   request IS NOT NULL AS request,
	   md5((to_jsonb(r) - '{response,headers,body,request,swept}'::text[])::text) AS other_columns
FROM idem_record AS r WHERE operation = 'sweep';
-- What everybody is told about an address.
CREATE FUNCTION pg_temp.never(request jsonb) RETURNS json
LANGUAGE plpgsql AS $$ BEGIN RAISE 'handler ran'; END $$;
CREATE FUNCTION pg_temp.told(key text) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_object_agg(call, to_jsonb(answer))
	FROM (SELECT 'claim' AS call, idem_claim('t', 'sweep', key, '1')
		  UNION ALL SELECT 'leased', idem_claim('t', 'sweep', key, '1', lease => '1 hour')
		  UNION ALL SELECT 'other request', idem_claim('t', 'sweep', key, '2')
		  UNION ALL SELECT 'no request', idem_claim('t', 'sweep', key)
		  UNION ALL SELECT 'batch', b FROM idem_claim_batch('t', 'sweep', ARRAY[key], '{1}') AS b
		  UNION ALL SELECT 'execute', idem_execute('t', 'sweep', key, '1', 'pg_temp.never(jsonb)')
		  UNION ALL SELECT 'replay', idem_replay('t', 'sweep', key, '1')
		  UNION ALL SELECT 'cancel', idem_cancel('t', 'sweep', key, 'did it happen?')) AS told(call, answer);
$$;

-- Every kind of record there is.
SELECT version FROM idem_define('sweep', keep_request => true);
SELECT idem_claim('t', 'sweep', 'all', '1', lease => '1 hour', ttl => '1 us', owner => 'me') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket, '"gone"', 200, 'order 9', '{"h": 1}', '\x00');
SELECT count(idem_complete(idem_claim('t', 'sweep', 'response', '1', ttl => '1 us'), '"gone"')),
	   count(idem_complete(idem_claim('t', 'sweep', 'null', '1', ttl => '1 us'), 'null')),
	   count(idem_complete(idem_claim('t', 'sweep', 'headers', '1', ttl => '1 us'), headers => '{}')),
	   count(idem_complete(idem_claim('t', 'sweep', 'body', '1', ttl => '1 us'), body => '')),
	   count(idem_complete(idem_claim('t', 'sweep', 'request', '1', lease => '1 hour', ttl => '1 us'))),
	   count(idem_fail(idem_claim('t', 'sweep', 'failed', '1', ttl => '1 us'), '"no"', 500, 'problem')),
	   count(idem_complete(idem_claim('t', 'sweep', 'bare', '1', ttl => '1 us'), NULL, 204, 'order 10')),
	   count(idem_complete(idem_claim('t', 'sweep', 'large', '1', ttl => '1 us'),
						   to_json((SELECT string_agg(md5(n::text), '') FROM generate_series(1, 30000) AS n)))),
	   count(idem_complete(idem_claim('t', 'sweep', 'live', '1'), '"kept"'));
SELECT (idem_claim('t', 'sweep', 'lapsed', '1', lease => '1 us')).outcome;
SELECT (idem_claim('t', 'sweep', 'processing', '1', lease => '1 hour')).outcome;
SELECT idem_release(idem_claim('t', 'sweep', 'released', '1', lease => '1 hour'), 'why');
SELECT idem_unknown(idem_claim('t', 'sweep', 'unknown', '1', lease => '1 hour'), 'why');
SELECT (idem_cancel('t', 'sweep', 'cancelled', 'why')).outcome;
CREATE TABLE pg_temp.before AS SELECT *, pg_temp.told(key) AS told FROM pg_temp.kept
WHERE key NOT IN ('lapsed', 'released');
CREATE TABLE pg_temp.places AS SELECT key, ctid AS place FROM idem_record
WHERE operation = 'sweep' AND key IN ('bare', 'cancelled', 'live', 'lapsed', 'processing', 'released', 'unknown');

-- One batch.  What cannot be swept, or has nothing to lose, is not even moved.
SELECT * FROM idem_sweep();
SELECT key, response, headers, body, request FROM pg_temp.kept ORDER BY key;
SELECT count(*) AS untouched FROM pg_temp.places AS p JOIN idem_record AS r
	ON (operation, r.key, r.ctid) = ('sweep', p.key, place);
SELECT code, resource, owner, attempt FROM idem_record WHERE operation = 'sweep' AND key = 'all';
-- no other column has changed, and nobody is told anything else
SELECT key, b.other_columns = k.other_columns AS same_columns, told = pg_temp.told(key) AS same_answers,
	   told->'claim'->>'outcome' AS claim
FROM pg_temp.before AS b JOIN pg_temp.kept AS k USING (key) ORDER BY key;
SELECT DISTINCT call, answer->>'outcome' AS outcome FROM pg_temp.before, jsonb_each(told) AS t(call, answer)
WHERE key = 'all' ORDER BY call;
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'ticket'))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release', 'idem_heartbeat', 'idem_hold']) AS verb;
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, ''"gone"'', 200, ''order 9'', ''{"h": 1}'', ''\x00'')', :'ticket'));
SELECT pg_temp.code_of($$SELECT idem_resolve('t', 'sweep', 'all', 'failed', 'why')$$) AS resolve,
	   pg_temp.code_of($$SELECT idem_require(idem_claim('t', 'sweep', 'all', '1'))$$) AS require;
SELECT * FROM idem_sweep();

-- At most n, the oldest first; it is found without walking over live ones.
SELECT count(idem_complete(idem_claim('t', 'sweep n', n::text, ttl => '1 us'), '1')) FROM generate_series(1, 20) AS n;
SELECT count(idem_complete(idem_claim('t', 'sweep n', n::text), '1')) FROM generate_series(21, 500) AS n;
SELECT * FROM idem_sweep(8);
SELECT count(*) AS swept, max(key::integer) AS last FROM idem_record WHERE operation = 'sweep n' AND response IS NULL;
SELECT pg_stat_get_xact_numscans('idem_record'::regclass) AS scans,
	   pg_stat_get_xact_tuples_returned('idem_record_expiring'::regclass) AS entries \gset before_
SELECT * FROM idem_sweep(20);
SELECT pg_stat_get_xact_numscans('idem_record'::regclass) - :before_scans AS sequential,
	   pg_stat_get_xact_tuples_returned('idem_record_expiring'::regclass) - :before_entries BETWEEN 12 AND 60 AS few_entries;
SELECT * FROM idem_sweep(1);

-- What this transaction has written is left for the next one.
BEGIN;
SELECT idem_complete(idem_claim('t', 'sweep n', 'own', ttl => '1 us'), '1');
SELECT * FROM idem_sweep();
COMMIT;
BEGIN;
SELECT * FROM idem_sweep();
ROLLBACK;
SELECT * FROM idem_sweep();

-- Bad input, and places where nothing is written.
CALL pg_temp.refused('SELECT idem_sweep(0)');
CALL pg_temp.refused('SELECT idem_sweep(NULL)');
SELECT n, pg_temp.code_of(format('SELECT idem_sweep(%s)', n)) FROM unnest(ARRAY[-1, 10000, 10001, 2147483647]) AS n;
BEGIN READ ONLY;
CALL pg_temp.refused('SELECT idem_sweep()');
ROLLBACK;
