-- Batches: many claims, or many completions, in one call.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- Tickets come in the order of the keys, each with its own request.
BEGIN;
SELECT outcome, key, attempt, state, lease_until - created_at AS lease
FROM idem_claim_batch('t', 'batch', '{c,a,b}', '{1,2,null}', lease => '1 hour');
SELECT key, fingerprint = idem_fingerprint('1') AS one,
	   fingerprint = idem_fingerprint('2') AS two
FROM idem_record WHERE operation = 'batch' ORDER BY key;
ROLLBACK;

-- Claimed and completed in one transaction: one row each, of one id.
BEGIN;
SELECT array_agg(c ORDER BY key) AS tickets
FROM idem_claim_batch('t', 'batch', '{c,a,b}', '{1,2,null}', ttl => '2 hours', owner => 'me') AS c \gset
SELECT outcome, key, attempt, state, token IS NOT NULL AS token, owner
FROM unnest(:'tickets'::idem_ticket[]);
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT idem_complete_batch(:'tickets'::idem_ticket[], ARRAY['"a"', NULL, '{"c" :1}']::json[]);
COMMIT;
SELECT key, state, response, owner, expires_at - completed_at AS ttl,
	   fingerprint = idem_fingerprint(CASE key WHEN 'a' THEN '2'::jsonb WHEN 'c' THEN '1' END) AS bound,
	   count(*) OVER (PARTITION BY xmin::text) AS of_one_id
FROM idem_record WHERE operation = 'batch' ORDER BY key;

-- Outcomes differ from key to key; a repeated key is claimed by its first place.
SELECT outcome FROM idem_claim('t', 'batch', 'busy', lease => '1 hour');
BEGIN;
SELECT outcome, key, response, token IS NOT NULL AS token
FROM idem_claim_batch('t', 'batch', '{new,a,b,c,busy,new,a}', '{1,2,null,3,null,1,3}');
ROLLBACK;
SELECT outcome, key, lease_until - created_at AS lease
FROM idem_claim_batch('t', 'batch', '{l1,l2,l1}', lease => '1 hour');
SELECT outcome, key
FROM idem_claim_batch('t', 'batch', '{f1,f2}',
					  fingerprints => ARRAY[idem_fingerprint('1'), '\x00' || sha256('x')],
					  lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'batch', 'f1', '1');
-- the wait is one for all
SELECT outcome, key FROM idem_claim_batch('t', 'batch', '{l1,l2,f1}', wait => '20 milliseconds')
ORDER BY key;

-- Nothing to claim, nothing to complete.
SELECT * FROM idem_claim_batch('t', 'batch', '{}');
SELECT count(*) FROM idem_claim_batch('t', 'batch', '{}', '{}', '{}');
SELECT idem_complete_batch('{}');
SELECT idem_complete_batch('{}', '{}');

-- All or none: one ticket that is not valid takes the others with it.
BEGIN;
SELECT idem_claim('t', 'batch', 'one') AS ticket \gset
SELECT idem_claim('t', 'batch', 'busy') AS ticket \gset busy_
CALL pg_temp.refused(format('SELECT idem_complete_batch(ARRAY[%L, %L]::idem_ticket[])', :'ticket', :'busy_ticket'));
SELECT outcome FROM idem_claim('t', 'batch', 'one');
-- the same ticket twice is a repetition
SELECT idem_complete_batch(ARRAY[:'ticket', :'ticket']::idem_ticket[]);
SELECT pg_temp.code_of(format('SELECT idem_complete_batch(ARRAY[%L]::idem_ticket[], ARRAY[''"other"'']::json[])', :'ticket'));
COMMIT;
-- leased claims, as well
SELECT idem_complete_batch(array_agg(c)) FROM idem_claim_batch('t', 'batch', '{m1,m2}', lease => '1 hour') AS c;
SELECT outcome, key FROM idem_claim_batch('t', 'batch', '{one,m1,m2}');

-- Arrays that do not fit.
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', NULL)$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{a,NULL}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{{a},{b}}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{a,b}', '{1}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{a,b}', fingerprints => '{}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{a}', '{{1}}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch(NULL, 'batch', '{a}')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'batch', '{a}', wait => '2 days')$$);
CALL pg_temp.refused($$SELECT idem_complete_batch(NULL)$$);
CALL pg_temp.refused($$SELECT idem_complete_batch(ARRAY[NULL]::idem_ticket[])$$);
CALL pg_temp.refused(format('SELECT idem_complete_batch(ARRAY[%L]::idem_ticket[], ''{}'')', :'ticket'));

-- A thousand at once, claimed again in the opposite order.
BEGIN;
SELECT idem_complete_batch(array_agg(c), array_agg(to_json(key)))
FROM idem_claim_batch('t', 'batch many', (SELECT array_agg(n::text) FROM generate_series(1, 1000) AS n)) AS c;
SELECT outcome, count(*), bool_and(key = response #>> '{}') AS own
FROM idem_claim_batch('t', 'batch many', (SELECT array_agg(n::text ORDER BY n DESC) FROM generate_series(1, 1000) AS n))
GROUP BY outcome;
COMMIT;
