-- Policies: what each column does, and what it may hold.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET statement_timeout = '1min';		-- a wait that should end sooner

-- Each definition is a whole: what is left out returns to its default. The
-- version counts changes, but not those of the comment.
SELECT * FROM idem_define('policy', '2 days', '1 hour', '2 hours', '1 second',
						  '90 days', 3, '{/at}', true, '{reserve,charge}', 'first');
SELECT version, comment FROM idem_define('policy', '48:00', '1 hour', '2 hours', '1 second',
										 '90 days', 3, '{/at}', true, '{reserve,charge}', 'second');
SELECT version FROM idem_define('policy', '2 days', '1 hour', '2 hours', '1 second',
								'90 days', 3, '{/at}', true, '{charge,reserve}', 'second');
SELECT * FROM idem_define('policy');
SELECT version FROM idem_define('policy');
SELECT version FROM idem_define('policy', keep_request => NULL);
SELECT version FROM idem_define('policy', max_attempts => 1);
SELECT count(*) FROM idem_policy WHERE operation = 'policy';

-- ttl, wait and lease: the argument, else the policy, else the setting.
SELECT version FROM idem_define('policy lease', ttl => '2 days', lease => '1 hour', max_lease => '2 hours');
SELECT outcome, lease_until - created_at AS lease FROM idem_claim('t', 'policy lease', 'a');
SELECT outcome, lease_until - created_at AS lease
FROM idem_claim('t', 'policy lease', 'b', lease => '2 hours');
CALL pg_temp.refused($$SELECT idem_claim('t', 'policy lease', 'c', lease => '2 hours 1 microsecond')$$);
SELECT idem_complete(idem_claim('t', 'policy lease', 'd'));
SELECT idem_complete(idem_claim('t', 'policy lease', 'e', ttl => '1 hour'));
SELECT key, expires_at - completed_at AS ttl, policy_version FROM idem_record
WHERE operation = 'policy lease' ORDER BY key;
SELECT version FROM idem_define('policy wait', wait => '1 hour');
SELECT outcome FROM idem_claim('t', 'policy wait', 'a', lease => '30 milliseconds');
SELECT outcome FROM idem_claim('t', 'policy wait', 'a', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'policy wait', 'a', wait => '0');
SET idempotency.wait = '1h';
SELECT version FROM idem_define('policy wait', wait => '0');
SELECT outcome FROM idem_claim('t', 'policy wait', 'a');
RESET idempotency.wait;

-- A record keeps the version that it began with.
SELECT outcome FROM idem_claim('t', 'policy version', 'before', lease => '1 microsecond');
SELECT version FROM idem_define('policy version', ttl => '1 hour');
SELECT outcome FROM idem_claim('t', 'policy version', 'one', lease => '1 microsecond');
SELECT version FROM idem_define('policy version', ttl => '2 hours');
SELECT idem_complete(idem_claim('t', 'policy version', k))
FROM unnest(ARRAY['before', 'one', 'two']) AS k;
SELECT key, attempt, policy_version, expires_at - completed_at AS ttl
FROM idem_record WHERE operation = 'policy version' ORDER BY key;

-- keep_request: leased claims store it, and whoever goes on gets it.
SELECT version FROM idem_define('policy keep', keep_request => true);
SELECT outcome, request FROM idem_claim('t', 'policy keep', 'a', '{"n": 1}', lease => '1 microsecond');
SELECT outcome, request FROM idem_claim('t', 'policy keep', 'a', '{"n": 2}');
SELECT outcome, request FROM idem_claim('t', 'policy keep', 'a', '{"n": 1.0}', lease => '1 hour');
SELECT outcome, request FROM idem_claim('t', 'policy keep', 'a', '{"n": 1}');
SELECT outcome, request FROM idem_replay('t', 'policy keep', 'a', '{"n": 1}');
SELECT idem_complete(idem_claim('t', 'policy keep', 'atomic', '{"n": 1}'));
SELECT outcome, request FROM idem_claim('t', 'policy', 'none', '{"n": 1}', lease => '1 hour');
SELECT operation, key, request FROM idem_record
WHERE operation = 'policy keep' OR key = 'none' AND operation = 'policy' ORDER BY key;

-- max_attempts: the claim after the last attempt moves the record to unknown,
-- and fences the last owner off.
SELECT version FROM idem_define('policy attempts', max_attempts => 2);
SELECT idem_release(idem_claim('t', 'policy attempts', 'a', '1', lease => '1 hour'));
SELECT idem_claim('t', 'policy attempts', 'a', '1', lease => '1 microsecond') AS ticket \gset
SELECT (:'ticket'::idem_ticket).attempt;
SELECT outcome FROM idem_claim('t', 'policy attempts', 'a', '2');
SELECT outcome, state, attempt, token, lease_until, reason
FROM idem_claim('t', 'policy attempts', 'a', '1');
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT outcome, attempt FROM idem_claim('t', 'policy attempts', 'a', '1', lease => '1 hour');
SELECT outcome FROM idem_replay('t', 'policy attempts', 'a', '1');
SELECT state, attempt, lease_until, reason FROM idem_record WHERE operation = 'policy attempts';
-- also for a released record, and for an atomic claim
SELECT idem_release(idem_claim('t', 'policy attempts', 'b', lease => '1 hour'))
FROM generate_series(1, 2);
SELECT outcome, attempt FROM idem_claim('t', 'policy attempts', 'b');
-- atomic attempts that were rolled back or given back do not count
DO $$
BEGIN
	FOR i IN 1 .. 5 LOOP
		PERFORM idem_release(idem_claim('t', 'policy attempts', 'c'));
	END LOOP;
END
$$;
SELECT idem_complete(idem_claim('t', 'policy attempts', 'c'));
