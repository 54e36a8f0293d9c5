-- What the logs of the clients and the tables have to agree on: a comment with
-- the number of the invariant, and a query that must find nothing.  A statement
-- ends with a semicolon and an empty line; those without a comment prepare.
--
-- Calls go in pipelines: the answers to COMMIT and to the calls before it may be
-- lost together.  Where the transaction is there, these calls succeeded, too.
CREATE TEMP TABLE told AS
SELECT c.*, t.status, t.ended, n.id IS NOT NULL AND NOT undone AND coalesce(error, 'lost') = 'lost' AS kept,
       f IN ('CLAIM', 'BATCH', 'EXECUTE', 'REPLAY') AND error IS NULL AS asked
FROM call c JOIN transaction t USING (tx) LEFT JOIN txn n ON n.id = c.tx;

CREATE TEMP TABLE ended AS
SELECT * FROM told WHERE kept AND key IS NOT NULL
AND (f IN ('COMPLETE', 'FAIL', 'ALL') OR f = 'EXECUTE' AND outcome IN ('execute', 'resume'));

-- What was leased for certain; a release, or a heartbeat, may bring the end nearer.
CREATE TEMP TABLE leased AS
SELECT g.*, least(lease_until, nearer) AS until
FROM told g LEFT JOIN (
    SELECT token, min(least(s, nullif(lease_until, 0))) AS nearer FROM told
    WHERE f IN ('RELEASE', 'HEARTBEAT', 'COMPLETE', 'FAIL') GROUP BY 1) l USING (token)
WHERE kept AND token <> 0 AND lease_ms > 0 AND f IN ('CLAIM', 'RECOVER');

-- Since when it is certain that an address is ended.
CREATE TEMP TABLE known AS
SELECT key, min(since) AS since FROM (
    SELECT key, ended AS since FROM ended WHERE status = 'acked'
    UNION ALL
    SELECT key, e FROM told WHERE asked AND outcome = 'replay') s
WHERE operation_of(key) <> 'gone' GROUP BY key;

CREATE TEMP TABLE taken AS
SELECT intent, token, lease_until, lease_until - lease_ms * 1000 AS since, said
FROM told LEFT JOIN (
    SELECT intent, token, min(s) AS said FROM told WHERE f IN ('CONFIRM', 'SETTLE') GROUP BY 1, 2) w USING (intent, token)
WHERE kept AND f IN ('DISPATCH', 'RECONCILE') AND intent IS NOT NULL;

CREATE INDEX ON ended (key);

CREATE INDEX ON known (key);

CREATE INDEX ON leased (key, attempt);

ANALYZE told, ended, leased, known, taken;

-- 1: what was acknowledged is there, nothing else
SELECT t.* FROM transaction t LEFT JOIN txn n ON n.id = t.tx
WHERE writes AND status IN ('acked', 'aborted') AND (status = 'acked') <> (n.id IS NOT NULL);

-- 1: nothing was committed with an unfinished claim
SELECT c.* FROM told c WHERE kept AND f IN ('CLAIM', 'BATCH') AND token <> 0 AND lease_until = 0 AND NOT EXISTS (
    SELECT FROM told w WHERE w.tx = c.tx AND w.token = c.token AND w.f IN ('COMPLETE', 'FAIL', 'ALL', 'RELEASE') AND w.kept);

-- 1: each success had its effect once, all others none
WITH had AS (
    SELECT operation, key, count(*) AS n, min(token) AS token, min(response) AS response
    FROM effect WHERE kind = 'end' AND operation <> 'gone' GROUP BY 1, 2)
SELECT key, r.state, n, r.response::text, had.response
FROM (SELECT * FROM idem_record WHERE operation <> 'gone') r FULL JOIN had USING (operation, key)
WHERE r.state IS NULL OR coalesce(n, 0) <> (r.state = 'succeeded')::int
   OR n = 1 AND (had.token <> r.token OR r.response::text <> had.response);

-- 1: what was purged was new only after its time
SELECT * FROM (SELECT key, at, lag(at) OVER (PARTITION BY key ORDER BY at) AS before
               FROM effect WHERE kind = 'end' AND operation = 'gone') s
WHERE at < before + interval '0.3 s';

-- 1: of the commands with one guard one succeeded
SELECT guard, count(*) FROM idem_record WHERE state = 'succeeded' AND guard IS NOT NULL GROUP BY 1 HAVING count(*) > 1
UNION ALL
SELECT 'g' || substr(key, 5)::int / 4, count(*) FROM effect WHERE operation = 'once' AND kind = 'end'
GROUP BY 1 HAVING count(*) > 1;

-- 1: each step was done once
SELECT key, kind, e.response, s.result::text
FROM (SELECT * FROM effect WHERE kind LIKE 'step %') e
FULL JOIN (SELECT *, 'step ' || step AS kind FROM idem_step) s USING (operation, key, kind)
WHERE e.response IS DISTINCT FROM s.result::text
UNION ALL
SELECT key, kind, NULL, count(*)::text FROM effect WHERE kind LIKE 'step %' GROUP BY 1, 2 HAVING count(*) > 1;

-- 2: each replay told what was stored, byte for byte
SELECT r.* FROM told r WHERE asked AND outcome = 'replay' AND NOT EXISTS (
    SELECT FROM ended e WHERE e.key = r.key AND e.response = r.response AND e.code = r.code
    UNION ALL
    SELECT FROM effect e WHERE tx IS NULL AND e.key = r.key AND e.response = r.response AND r.code = 200);

-- 2: there is one end of each, and it is stored
SELECT e.key, e.response, e.token, r.state, r.response::text, r.token FROM ended e LEFT JOIN idem_record r USING (operation, key)
WHERE operation <> 'gone' AND (r.state IS NULL OR r.response::text <> e.response OR r.code <> e.code
                               OR r.token <> nullif(e.token, 0))
UNION ALL
SELECT key, count(*)::text, NULL, NULL, min(response), NULL FROM ended WHERE operation <> 'gone' GROUP BY 1
HAVING count(DISTINCT response) > 1;

-- 2: no final state changed
SELECT c.key, c.state, r.state FROM told c LEFT JOIN idem_record r USING (operation, key)
WHERE asked AND c.outcome = 'replay' AND operation <> 'gone' AND c.state IS DISTINCT FROM r.state;

-- 3: each token was given once
SELECT token, count(*) FROM told WHERE token <> 0 AND error IS NULL AND f IN ('CLAIM', 'BATCH', 'EXECUTE', 'RECOVER')
GROUP BY 1 HAVING count(*) > 1;

-- 3: each attempt was given once
SELECT key, attempt, count(*) FROM leased GROUP BY 1, 2 HAVING count(*) > 1;

-- 3: nobody wrote for a command he had lost
SELECT e.key, e.kind, e.attempt, e.at, t.attempt, t.at FROM effect e JOIN idem_event t USING (operation, key)
WHERE e.token IS NOT NULL AND t.intent IS NULL AND t.to_state = 'processing' AND e.attempt < t.attempt AND e.at > t.at
AND operation <> 'gone';

-- 4: once the end was known, nothing else was told
SELECT c.* FROM told c JOIN known k USING (key)
WHERE asked AND c.s > k.since AND outcome NOT IN ('replay', 'mismatch', 'expired');

-- 4: an answer is replayed until it expires, and no longer
SELECT c.* FROM told c JOIN ended e ON e.key = c.key AND e.status = 'acked'
WHERE c.asked AND c.operation <> 'gone'
AND (c.outcome = 'replay' AND c.s > e.ended + 402000 AND c.operation = 'brief'
     OR c.outcome = 'expired' AND (c.operation <> 'brief' OR c.e < e.s + 398000));

-- 4: what was purged was granted only after its time
SELECT c.* FROM told c JOIN ended e ON e.key = c.key AND e.status = 'acked'
WHERE c.asked AND c.operation = 'gone' AND c.token <> 0 AND e.ended < c.s AND c.e < e.s + 298000;

-- 5: a fingerprint is that of a request, each command has one
SELECT key, state FROM idem_record r WHERE fingerprint <> ALL (ARRAY[
    idem_fingerprint(jsonb_build_object('key', key, 'variant', 0)),
    idem_fingerprint(jsonb_build_object('key', key, 'variant', 1))]);

-- 5: another request is told mismatch, nothing else
SELECT c.* FROM told c JOIN known k USING (key) JOIN idem_record r USING (operation, key)
WHERE asked AND c.s > k.since AND (outcome = 'mismatch') <> (
    r.fingerprint <> idem_fingerprint(jsonb_build_object('key', key, 'variant', c.variant)));

-- 5: nobody else is shown the response
SELECT * FROM told WHERE asked AND f <> 'EXECUTE' AND response IS NOT NULL AND outcome NOT IN ('replay', 'duplicate');

-- 6: each lease began when it was granted
SELECT * FROM told WHERE token <> 0 AND error IS NULL AND lease_ms > 0 AND f IN ('CLAIM', 'RECOVER')
AND lease_until - lease_ms * 1000 NOT BETWEEN s - 2000 AND e + 2000;

-- 6: nobody took over before the end of a lease
SELECT c.*, l.until FROM told c JOIN leased l ON l.key = c.key AND l.attempt = c.attempt - 1
WHERE c.f IN ('CLAIM', 'RECOVER') AND c.token <> 0 AND c.error IS NULL AND c.e < l.until - 2000;

-- 6: a lease is finite, and what is unknown is listed by idem_stuck
SELECT key, state, lease_until FROM idem_record WHERE state = 'processing' AND NOT coalesce(isfinite(lease_until), false)
UNION ALL
SELECT key, state, NULL FROM idem_record r WHERE state = 'unknown' AND NOT EXISTS (
    SELECT FROM idem_stuck s WHERE s.intent IS NULL
    AND (s.tenant, s.operation, s.key) = (r.tenant, r.operation, r.key));

-- 7: an intent is with one worker at a time
SELECT * FROM (SELECT *, lead(since) OVER (PARTITION BY intent ORDER BY since) AS next FROM taken) t
WHERE next < least(lease_until, said) - 2000;

-- 7: nothing is handed out before it is committed
SELECT t.intent, t.since, n.sent FROM (SELECT intent, min(since) AS since FROM taken GROUP BY 1) t
JOIN (SELECT min(intent) AS intent, min(x.sent) AS sent FROM told c JOIN transaction x USING (tx)
      WHERE f = 'INTEND' AND kept GROUP BY key, state) n USING (intent)
WHERE t.since < n.sent - 2000;

-- 7: each intent has one operation id
SELECT key, state, count(DISTINCT intent) FROM told WHERE f = 'INTEND' AND kept GROUP BY 1, 2
HAVING count(DISTINCT intent) > 1;

-- 8: each attempt after the first is in the trail
SELECT key, state, r.attempt FROM idem_record r
LEFT JOIN (SELECT tenant, operation, key, count(*) AS n FROM idem_event
           WHERE intent IS NULL AND to_state = 'processing' GROUP BY 1, 2, 3) e USING (tenant, operation, key)
WHERE r.attempt <> 1 + coalesce(n, 0);

-- 9: no lock is left
SELECT pid, mode FROM pg_locks WHERE locktype = 'advisory';
