-- Calls need no subtransaction of their own, and what writes nothing assigns
-- no transaction id.
CREATE VIEW pg_temp.xids AS
SELECT count(*) AS xids FROM pg_locks
WHERE locktype = 'transactionid' AND pid = pg_backend_pid();

SELECT idem_complete(idem_claim('t', 'xids', 'done', '1'));
SELECT outcome FROM idem_claim('t', 'xids', 'leased', '1', lease => '1 hour');
SELECT idem_complete(idem_claim('t', 'xids', 'expired', '1', ttl => '1 microsecond'));

-- Every outcome that gives no right to run, an atomic claim, its release, and
-- a wait that ends in vain.
BEGIN;
SELECT k, (idem_claim('t', 'xids', k, request)).outcome, count(*)
FROM generate_series(1, 100) AS n,
	 unnest(ARRAY['done', 'leased', 'expired']) AS k,
	 (VALUES ('1'::jsonb), ('2')) AS r(request)
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT (idem_replay('t', 'xids', 'done', '1')).outcome, count(*)
FROM generate_series(1, 100) AS n GROUP BY 1;
SELECT outcome FROM idem_claim('t', 'xids', 'leased', '1', wait => '20 milliseconds');
SELECT idem_release(idem_claim('t', 'xids', 'atomic'));
SELECT * FROM pg_temp.xids;
COMMIT;

-- A hundred commands done, a hundred replayed, a hundred mismatches: one id.
BEGIN;
SELECT idem_complete(idem_claim('t', 'xids', 'many ' || n, '1')) IS NOT NULL AS done,
	   count(*)
FROM generate_series(1, 100) AS n GROUP BY 1;
SELECT outcome, count(*)
FROM generate_series(1, 100) AS n, (VALUES ('1'::jsonb), ('2')) AS r(request),
	 idem_claim('t', 'xids', 'many ' || n, r.request)
GROUP BY outcome ORDER BY outcome;
SELECT * FROM pg_temp.xids;
COMMIT;
SELECT count(*) AS rows, count(DISTINCT xmin::text) AS writers
FROM idem_record WHERE operation = 'xids' AND key LIKE 'many %';

-- No lock of the extension is left in the session.
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
