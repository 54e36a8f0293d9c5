-- Guards, expiry, tenants and copies together: what one room promises holds
-- while another one is at work on the same command.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CREATE FUNCTION pg_temp.other(tenant text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', outcome, duplicate_of, state, resource, response)
	FROM idem_claim(tenant, 'interplay', 'other', guard => 'g')
$$;
SET client_min_messages = warning;
CALL idem_maintain();
RESET client_min_messages;

-- A guard outlives the response, and goes with the tombstone: not before that
-- is committed, and not if it is rolled back.
SELECT idem_complete(idem_claim('t', 'interplay', 'first', guard => 'g', ttl => '1 us'), '"secret"', resource => 'r');
SELECT pg_temp.other('t');
SELECT swept, purged FROM idem_sweep();
SELECT swept, purged FROM idem_sweep();
SELECT pg_temp.other('t');
SELECT what, from_state, to_state, attempt FROM idem_history('t', 'interplay', 'first');
SELECT version FROM idem_define('interplay', tombstone_retention => '1 us');
BEGIN;
SELECT swept, purged FROM idem_sweep();
SELECT pg_temp.other('t');
ROLLBACK;
SELECT pg_temp.other('t');
SELECT version FROM idem_define('interplay', tombstone_retention => '36500 days');
SELECT swept, purged FROM idem_sweep();
SELECT pg_temp.other('t');
SELECT version FROM idem_define('interplay', tombstone_retention => '1 us');
SELECT swept, purged FROM idem_sweep();
BEGIN;
SELECT idem_complete(idem_claim('t', 'interplay', 'second', guard => 'g'), '"second"', resource => 's');
COMMIT;
SELECT pg_temp.other('t');
-- the purged one is new, and now it is the one that comes second
SELECT outcome, duplicate_of, attempt FROM idem_claim('t', 'interplay', 'first', guard => 'g');
SELECT count(*) FROM idem_history('t', 'interplay', 'first');

-- What the transaction itself completed is left: a savepoint may take it back.
BEGIN;
SELECT idem_complete(idem_claim('t', 'interplay', 'own', guard => 'own', ttl => '1 us'), '"own"');
SELECT swept, purged FROM idem_sweep();
COMMIT;
SELECT swept, purged FROM idem_sweep(10000);

-- A login role that is bound has no part in what concerns every tenant, and
-- a guard of another tenant is none for it.
SELECT idem_complete(idem_claim('u', 'interplay', 'first', guard => 'g', ttl => '1 us'), '"secret"');
CREATE ROLE regress_idem_interplay;
SELECT idem_grant('regress_idem_interplay', 'operator');
ALTER ROLE regress_idem_interplay SET idempotency.allowed_tenants = 'v';
SET SESSION AUTHORIZATION regress_idem_interplay;
CALL pg_temp.refused('SELECT idem_sweep()');
CALL idem_maintain();
CALL pg_temp.refused($$SELECT idem_history('u', 'interplay', 'first')$$);
CALL pg_temp.refused($$SELECT idem_history('no such', 'interplay', 'first')$$);
SELECT count(*) FROM idem_progress;
BEGIN;
SELECT pg_temp.other('v');
ROLLBACK;
RESET SESSION AUTHORIZATION;
SELECT response FROM idem_record WHERE tenant = 'u' AND operation = 'interplay';
DROP OWNED BY regress_idem_interplay;
DROP ROLE regress_idem_interplay;

-- In a copy all that is final goes on: duplicates are told, records swept and
-- purged.  Who lapsed in the original keeps its guard, and is not taken over.
SELECT outcome FROM idem_claim('t', 'interplay', 'lapsed', guard => 'lapsed', lease => '1 us');
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
SELECT pg_temp.other('u');
SELECT outcome, duplicate_of, state FROM idem_claim('t', 'interplay', 'other', guard => 'lapsed');
CALL pg_temp.refused($$SELECT idem_claim('t', 'interplay', 'lapsed')$$);
SELECT swept, purged FROM idem_sweep();
SELECT count(*) FROM idem_history('t', 'interplay', 'lapsed');
ROLLBACK;
SELECT outcome FROM idem_claim('t', 'interplay', 'lapsed', lease => '1 hour');

-- After all this every row is in each index whose condition it meets.
CREATE EXTENSION amcheck;
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid,
	 LATERAL bt_index_check(i.indexrelid, true)
WHERE i.indrelid IN ('idem_record'::regclass, 'idem_event'::regclass, 'idem_intent'::regclass, 'idem_step'::regclass)
ORDER BY c.relname COLLATE "C";
DROP EXTENSION amcheck;

-- nothing of this is for other tests to purge
SELECT version FROM idem_define('interplay');
