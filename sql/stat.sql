-- Figures need a preloaded library.  Without it the view says so, and
-- everything that is counted works as ever.  What is counted stands in
-- test/t/050_stat.pl.
SELECT * FROM idem_stat;
\echo :SQLSTATE
SELECT idem_stat_reset();
\echo :SQLSTATE
\set VERBOSITY sqlstate
SELECT idem_stat_reset('stat');
SELECT count(*) FROM idem_stat_get();
\set VERBOSITY default

-- The setting can stand in the file, changed by nobody.
\c -
LOAD 'idempotency';
SHOW idempotency.stat_operations;
SET idempotency.stat_operations = 5;
\echo :SQLSTATE

-- Every event that is counted.
CREATE FUNCTION stat_handler(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT '1'::json $$;
SELECT outcome FROM idem_replay('t', 'stat', 'k');
SELECT outcome FROM idem_claim('t', 'stat', 'k', lease => '1us');
SELECT outcome FROM idem_claim('t', 'stat', 'k', wait => '1ms', lease => '1us');
SELECT outcome FROM idem_recover('w', 10000, '1h') WHERE operation = 'stat';
SELECT outcome FROM idem_claim('t', 'stat', 'k', wait => '1ms');
SELECT outcome FROM idem_execute('t', 'stat', 'e', '1', 'stat_handler(jsonb)');
SELECT idem_complete_batch(array_agg(c)) FROM idem_claim_batch('t', 'stat', '{a,b}') AS c;
SELECT idem_fail(idem_claim('t', 'stat', 'f'));
SELECT idem_release(idem_claim('t', 'stat', 'r', lease => '1h'));
SELECT idem_heartbeat(idem_claim('t', 'stat', 'h', lease => '1h'), '2h') > now() AS extended;
SELECT idem_unknown(idem_claim('t', 'stat', 'u', lease => '1h'), 'why');
SELECT idem_resolve('t', 'stat', 'u', 'failed', 'seen');
SELECT outcome FROM idem_cancel('t', 'stat', 'c', 'why');
SELECT idem_complete('t', 'stat', 'k', 1);
\echo :SQLSTATE
DROP FUNCTION stat_handler;
