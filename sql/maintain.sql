-- idem_maintain: sweeps, purges and gives up what nobody may take over, in
-- transactions of its own.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET client_min_messages = warning;
SELECT count(*) >= 0 AS drained FROM idem_recover('drain', 10000, '1 day');
CALL idem_maintain();
RESET client_min_messages;

-- All of it, whatever the batch; nothing to do is no news.
SELECT version FROM idem_define('maintain', ttl => '1 us');
SELECT count(idem_complete(idem_claim('t', 'maintain', n::text), '1')) FROM generate_series(1, 25) AS n;
CALL idem_maintain(batch => 10);
CALL idem_maintain();
SELECT version FROM idem_define('maintain', ttl => '1 us', tombstone_retention => '1 us');
CALL idem_maintain('1 day', 7);
SELECT count(*) FROM idem_record WHERE operation = 'maintain';
-- after max_time no batch is begun
SELECT count(idem_complete(idem_claim('t', 'maintain', n::text), '1')) FROM generate_series(1, 25) AS n;
CALL idem_maintain('1 us', 10);
SELECT count(response) AS left FROM idem_record WHERE operation = 'maintain';
-- nor a rest that would outlast it
CALL idem_maintain('2 ms', 10, 0.01);
SELECT count(response) AS left FROM idem_record WHERE operation = 'maintain';
CALL idem_maintain(effort => 1);

-- It is no worker: what somebody may take over stays as it is.
SELECT version FROM idem_define('maintain once', max_attempts => 1);
SELECT (idem_claim('t', 'maintain once', 'used up', lease => '1 us')).outcome;
SELECT (idem_claim('t', 'maintain once', 'at work', lease => '1 hour')).outcome;
SELECT (idem_claim('t', 'maintain open', 'free', lease => '1 us')).outcome;
SELECT count(idem_intend(idem_claim('t', 'maintain open', n, lease => lease), 'pay', 'maintain bank'))
FROM (VALUES ('noted', interval '1 us'), ('sent', '1 us'), ('at work', '1 hour')) AS v(n, lease);
SELECT count(idem_send(idem_operation_id('t', 'maintain open', n, 'pay'), 'w', '1 hour'))
FROM unnest(ARRAY['sent', 'at work']) AS n;
CALL idem_maintain();
SELECT operation, key, state, attempt, reason FROM idem_record WHERE operation LIKE 'maintain o%' ORDER BY 1, 2;
SELECT operation, key, attempt, from_state, to_state, reason FROM idem_event
WHERE operation LIKE 'maintain o%' AND intent IS NULL ORDER BY 1, 2;
CALL idem_maintain();
SELECT key FROM idem_recover('w', 10, '1 hour') ORDER BY key;

-- In a copy, whose original may be at work on them, commands stay as they are.
SELECT (idem_claim('t', 'maintain once', 'copied', lease => '1 us')).outcome;
SELECT idem_complete(idem_claim('t', 'maintain', 'copied'), '1');
UPDATE idem_origin SET database = 1;
CALL idem_maintain();
UPDATE idem_origin SET database = (SELECT oid FROM pg_database WHERE datname = current_database());
SELECT state FROM idem_record WHERE operation = 'maintain once' AND key = 'copied';
CALL idem_maintain();
SELECT state FROM idem_record WHERE operation = 'maintain once' AND key = 'copied';

-- Nothing of it is left in the session.
SELECT current_setting('application_name') AS application_name, count(*) AS progress FROM idem_progress;
SELECT count(*) AS locks FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory';

-- Only where it can commit.
BEGIN;
CALL idem_maintain();
ROLLBACK;
CALL pg_temp.refused('CALL idem_maintain()');
-- as in a procedure that can
CREATE PROCEDURE pg_temp.nightly(n integer) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM idem_complete(idem_claim('t', 'maintain nightly', i::text, ttl => '1 us'), '1') FROM generate_series(1, n) AS i;
	COMMIT;
	CALL idem_maintain(batch => 10);
	PERFORM idem_complete(idem_claim('t', 'maintain nightly', 'after it', ttl => '1 us'), '1');
END $$;
CALL pg_temp.nightly(25);
CALL idem_maintain();
-- Bad input.
SELECT args, pg_temp.code_of(format('CALL idem_maintain(%s)', args))
FROM unnest(ARRAY['NULL', '''0''', '''-1 s''', '''1 month''', '''36501 days''', '''1 s'', 0', '''1 s'', NULL', '''1 s'', 10001', '''36500 days'', 10000',
	'effort => NULL', 'effort => 0', 'effort => -1', 'effort => 0.009', 'effort => 1.001', 'effort => ''NaN''', 'effort => ''inf''', 'effort => 0.01']) AS args;
CALL idem_maintain(effort => 50);
SET default_transaction_read_only = on;
CALL idem_maintain();
RESET default_transaction_read_only;
