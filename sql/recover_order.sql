-- Recovery finds what has lapsed without walking over live leases, takes the
-- longest lapsed first, after what was released, and gives nobody a longer
-- lease than the policy allows.
SELECT count(*) >= 0 AS drained FROM generate_series(1, 9), idem_recover('drain', 10000, '1 day');

-- What was read of idem_record so far in this transaction.
CREATE VIEW pg_temp.read AS
SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) AS rows
FROM pg_stat_xact_user_tables WHERE relid = 'idem_record'::regclass;

-- Among many live leases, released and completed commands, three lapsed.
SELECT count(idem_claim('t', 'recover order', 'live ' || n, lease => '1 day')) FROM generate_series(1, 1000) AS n;
SELECT count(idem_release(idem_claim('t', 'recover order', 'released ' || n, lease => '1 day'))) FROM generate_series(1, 1000) AS n;
SELECT count(idem_complete(idem_claim('t', 'recover order', 'done ' || n))) FROM generate_series(1, 1000) AS n;
SELECT count(idem_claim('t', 'recover order', 'lapsed ' || n, lease => '1 us')) FROM generate_series(1, 3) AS n;
ANALYZE idem_record;
BEGIN;
SELECT coalesce(sum(rows), 0) AS before FROM pg_temp.read \gset
SELECT key, attempt FROM idem_recover('w', 100, '1 hour') ORDER BY key;
SELECT rows - :before BETWEEN 6 AND 20 AS few_rows FROM pg_temp.read;
ROLLBACK;
BEGIN;
SELECT coalesce(sum(rows), 0) AS before FROM pg_temp.read \gset
SELECT key, state FROM idem_stuck WHERE operation = 'recover order' ORDER BY key;
SELECT key, state FROM idem_stuck WHERE operation = 'recover order' AND state <> 'lapsed';
SELECT rows - :before BETWEEN 6 AND 500 AS few_rows FROM pg_temp.read;
ROLLBACK;
SELECT count(*) AS taken FROM idem_recover('w', 100, '1 day');

-- By the end of the lease, not by the age of the command; what was released
-- by evidence or a decision has waited before.
SELECT count(idem_claim('t', 'recover order', key, lease => '1 hour'))
FROM unnest(ARRAY['old', 'lost', 'middle', 'young']) AS key;
SELECT count(idem_unknown(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'cannot tell'))
FROM idem_record r WHERE operation = 'recover order' AND key = 'lost';
SELECT idem_resolve('t', 'recover order', 'lost', 'released', 'nothing happened');
UPDATE idem_record SET lease_until = clock_timestamp() - CASE key WHEN 'middle' THEN interval '3 h' WHEN 'young' THEN '2 h' ELSE '1 h' END
WHERE operation = 'recover order' AND key IN ('young', 'old', 'middle');
-- no index has to bring the order
SET enable_indexscan = off;
SELECT n, key FROM generate_series(1, 5) AS n, idem_recover('w' || n, 1, '1 hour');
RESET enable_indexscan;

-- A policy's max_lease shortens the lease; other operations are not affected.
SELECT version FROM idem_define('recover brief', max_lease => '1 min');
SELECT count(idem_claim('t', operation, 'k', lease => '1 us')) FROM unnest(ARRAY['recover brief', 'recover order']) AS operation;
SELECT operation, lease_until - clock_timestamp() > '59 min' AS an_hour,
	   lease_until - clock_timestamp() BETWEEN '30 s' AND '1 min' AS a_minute
FROM idem_recover('w', 10, '1 hour');
SELECT count(idem_heartbeat(tenant, operation, key, token, '1 us')) FROM idem_record WHERE key = 'k' AND operation IN ('recover brief', 'recover order');
SELECT operation, lease_until - clock_timestamp() <= '10 s' AS ten_seconds
FROM idem_recover('w', 10, '10 s');

-- A session may have cursors of these names.
BEGIN;
DECLARE released CURSOR FOR SELECT 1;
DECLARE lapsed CURSOR FOR SELECT 1;
SELECT count(*) AS taken FROM idem_recover('w', 10, '1 hour');
SELECT count(*) AS taken FROM idem_recover('w', 10, '1 hour');
COMMIT;
SELECT count(idem_complete(tenant, operation, key, token)) FROM idem_record WHERE key = 'k' AND operation IN ('recover brief', 'recover order');
