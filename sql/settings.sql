-- Every setting: its unit, its bounds, who may set it, and what it does.

-- The library is not loaded in a new session; a call loads it.
\c -
SELECT count(*) AS known FROM pg_settings WHERE name LIKE 'idempotency.%';
SELECT outcome FROM idem_replay('t', 'settings', 'a');
SELECT name, setting, unit, vartype, context, min_val, max_val, enumvals
FROM pg_settings WHERE name LIKE 'idempotency.%' ORDER BY name COLLATE "C";
SELECT name FROM pg_settings
WHERE name LIKE 'idempotency.%' AND (short_desc = '' OR extra_desc = '');

-- Units, and both sides of the bounds.
SET idempotency.ttl = '36h';
SHOW idempotency.ttl;
SET idempotency.wait = '1500ms';
SHOW idempotency.wait;
SET idempotency.max_response_size = '64kB';
SHOW idempotency.max_response_size;
SET idempotency.tombstone_retention = '30d';
SHOW idempotency.tombstone_retention;
SET idempotency.ttl = 1;
SET idempotency.ttl = 2147483647;
SET idempotency.wait = 0;
SET idempotency.wait = '1d';
SET idempotency.max_response_size = 0;
SET idempotency.max_response_size = '256MB';
SET idempotency.tombstone_retention = -1;
SET idempotency.durability = 'replicated';
SET idempotency.durability = 'local';
\set VERBOSITY sqlstate
SET idempotency.ttl = 0;
SET idempotency.ttl = -1;
SET idempotency.ttl = '70000d';
SET idempotency.ttl = 'soon';
SET idempotency.wait = -1;
SET idempotency.wait = 86400001;
SET idempotency.max_response_size = -1;
SET idempotency.max_response_size = 268435457;
SET idempotency.tombstone_retention = -2;
SET idempotency.durability = 'none';
-- a misspelt name is refused
SET idempotency.tll = '1h';
\set VERBOSITY default
RESET ALL;

-- What they do; arguments come first, policies second (see policy).
BEGIN;
SET LOCAL idempotency.ttl = '90min';
SELECT idem_complete(idem_claim('t', 'settings', 'ttl'));
COMMIT;
SELECT expires_at - completed_at AS ttl FROM idem_replay('t', 'settings', 'ttl');
SET statement_timeout = '1min';		-- a wait that should end sooner
SET idempotency.wait = '1h';
SELECT outcome FROM idem_claim('t', 'settings', 'wait', lease => '30 milliseconds');
SELECT outcome FROM idem_claim('t', 'settings', 'wait', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'settings', 'wait', wait => '0');
RESET idempotency.wait;
RESET statement_timeout;
SELECT outcome FROM idem_claim('t', 'settings', 'wait');

CREATE FUNCTION settings_handler(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT '1'::json $$;
-- A promise to wait for a standby needs one: nobody gets an answer without.
SET idempotency.durability = replicated;
SELECT idem_claim('t', 'settings', 'durable', lease => '1 hour');
\echo :SQLSTATE
SELECT idem_replay('t', 'settings', 'ttl');
\set VERBOSITY sqlstate
SELECT idem_claim('t', 'settings', 'ttl');
SELECT idem_claim_batch('t', 'settings', '{ttl}');
SELECT idem_complete('t', 'settings', 'ttl', 1);
SELECT idem_execute('t', 'settings', 'ttl', '1', 'settings_handler(jsonb)');
\set VERBOSITY default
RESET idempotency.durability;
DROP FUNCTION settings_handler;
SELECT outcome FROM idem_replay('t', 'settings', 'durable');

-- Values from before the library was loaded count from the first call on; one
-- that has no meaning is replaced, with a warning.
\c -
SET idempotency.ttl = '2h';
SET idempotency.wait = 'long';
SET idempotency.other = 'x';
SELECT idem_complete(idem_claim('t', 'settings', 'early'));
SELECT expires_at - completed_at AS ttl FROM idem_replay('t', 'settings', 'early');
SHOW idempotency.wait;
SHOW idempotency.other;

-- A login role may set what concerns itself, before and after the load.
CREATE ROLE regress_idem_settings;
GRANT EXECUTE ON FUNCTION idem_replay TO regress_idem_settings;
\c -
SET SESSION AUTHORIZATION regress_idem_settings;
SET idempotency.max_response_size = '1GB';
SET idempotency.ttl = '3h';
SELECT outcome FROM idem_replay('t', 'settings', 'a');
SHOW idempotency.max_response_size;
SHOW idempotency.ttl;
SET idempotency.ttl = '4h';
SET idempotency.wait = '1s';
\set VERBOSITY sqlstate
SET idempotency.max_response_size = 1;
SET idempotency.tombstone_retention = 1;
SET idempotency.durability = local;
\set VERBOSITY default
RESET SESSION AUTHORIZATION;
REVOKE EXECUTE ON FUNCTION idem_replay FROM regress_idem_settings;
DROP ROLE regress_idem_settings;
