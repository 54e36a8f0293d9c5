-- What a claim answers, whom it makes the owner, and what it writes.
SET statement_timeout = '1min';		-- a wait that should end at once

-- An atomic claim writes nothing, takes a lock of its own class, and gives
-- this transaction the right to run.
BEGIN;
SELECT outcome, tenant, operation, key, attempt, state, owner,
	   token BETWEEN 1 AND 9223372036854775807 AS token,
	   created_at BETWEEN now() AND clock_timestamp() AS created_now
FROM idem_claim('t', 'claim', 'a', '{"n": 1}', owner => 'me');
SELECT count(*) AS rows FROM idem_record WHERE operation = 'claim';
SELECT mode, granted, objsubid FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
-- Within its own transaction it answers as everybody else's would: at once,
-- whatever the wait.
SELECT outcome, state, attempt, token, retry_after, owner, response
FROM idem_claim('t', 'claim', 'a', '{"n": 1.0}', wait => '1 day');
SELECT outcome, state, attempt, token, retry_after, owner, response
FROM idem_claim('t', 'claim', 'a', '{"n": 2}', wait => '1 day');
SELECT outcome, state, attempt, token, retry_after
FROM idem_claim('t', 'claim', 'a', '{"n": 1}', lease => '1 hour');
ROLLBACK;

-- A rollback forgets it, and gives the lock back.
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
BEGIN;
SELECT outcome, attempt FROM idem_claim('t', 'claim', 'a') \gset
\echo :outcome :attempt
SELECT idem_complete(idem_claim('t', 'claim', 'b'), '"done"');
ROLLBACK;
SELECT count(*) AS rows FROM idem_record WHERE operation = 'claim';

-- Completed, it is replayed: later in the transaction, and after it.
BEGIN;
SELECT token FROM idem_claim('t', 'claim', 'a', '{"n": 1}') \gset
SELECT idem_complete('t', 'claim', 'a', :token, '"done"');
SELECT outcome, attempt, state, token, response
FROM idem_claim('t', 'claim', 'a', '{"n": 1}');
COMMIT;
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT outcome, attempt, state, token, response, lease_until, retry_after
FROM idem_claim('t', 'claim', 'a', '{"n": 1}', lease => '1 hour',
				wait => '1 day');

-- A leased claim is a row at once, and outlives its transaction.
SELECT outcome, attempt, state, owner, token > 0 AS token,
	   lease_until - created_at AS lease, retry_after, expires_at
FROM idem_claim('t', 'claim', 'leased', '{"n": 1}', lease => '1 hour',
				owner => 'me');
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT state, attempt, token > 0 AS token, lease_until - created_at AS lease,
	   owner, fingerprint = idem_fingerprint('{"n": 1}') AS bound,
	   ttl, request, completed_at, expires_at, policy_version
FROM idem_record WHERE operation = 'claim' AND key = 'leased';
SELECT outcome, attempt, state, token, retry_after, owner,
	   lease_until > now() AS lease_told
FROM idem_claim('t', 'claim', 'leased', '{"n": 1}', owner => 'other');
SELECT outcome, attempt, state, token, retry_after
FROM idem_claim('t', 'claim', 'leased', '{"n": 2}');
SELECT outcome, attempt, state, token
FROM idem_claim('t', 'claim', 'leased');
-- also in the transaction that made it, lapsed or not, and without waiting
BEGIN;
SELECT outcome FROM idem_claim('t', 'claim', 'leased too', lease => '1 hour');
SELECT outcome, token FROM idem_claim('t', 'claim', 'leased too', wait => '1 day');
SELECT outcome FROM idem_claim('t', 'claim', 'own lapsed', lease => '1 microsecond');
SELECT outcome, token FROM idem_claim('t', 'claim', 'own lapsed', wait => '1 day');
SELECT outcome FROM idem_claim('t', 'claim', 'own lapsed', '1');
COMMIT;
SELECT outcome, attempt FROM idem_claim('t', 'claim', 'own lapsed', lease => '1 hour');

-- retry_after is what is left of the lease, where that is less than a second.
SELECT a.outcome, b.outcome,
	   b.retry_after BETWEEN '0' AND '0.9 seconds' AS retry_after
FROM idem_claim('t', 'claim', 'short', lease => '0.9 seconds') AS a,
	 idem_claim(a.tenant, a.operation, a.key) AS b;

-- A lapsed lease is taken over: the next attempt, with another token.
SELECT token, created_at
FROM idem_claim('t', 'claim', 'lapsed', '1', lease => '1 microsecond',
				owner => 'first') \gset old_
SELECT outcome FROM idem_claim('t', 'claim', 'lapsed', '2');
SELECT outcome, attempt, state, owner, token <> :old_token AS other_token,
	   created_at = :'old_created_at' AS same_creation
FROM idem_claim('t', 'claim', 'lapsed', '1', lease => '1 hour');
SELECT outcome, attempt, owner FROM idem_claim('t', 'claim', 'lapsed', '1');
-- by an atomic claim, too, which changes the record only at completion
SELECT outcome FROM idem_claim('t', 'claim', 'lapsed 2',
							   lease => '1 microsecond', owner => 'first');
BEGIN;
SELECT outcome, attempt, state, lease_until, owner
FROM idem_claim('t', 'claim', 'lapsed 2', owner => 'second');
SELECT state, attempt, owner FROM idem_record
WHERE operation = 'claim' AND key = 'lapsed 2';
ROLLBACK;
SELECT outcome, attempt FROM idem_claim('t', 'claim', 'lapsed 2',
										lease => '1 hour');

-- Waiting for a lease ends with the lease, or with the wait.
SELECT outcome FROM idem_claim('t', 'claim', 'wait', lease => '50 milliseconds');
SELECT outcome, attempt FROM idem_claim('t', 'claim', 'wait', wait => '1 hour',
										lease => '1 hour');
SELECT outcome, retry_after FROM idem_claim('t', 'claim', 'wait',
											wait => '50 milliseconds');

-- Leases count from the moment of the claim, not of its transaction.
BEGIN;
SELECT outcome FROM idem_claim('t', 'claim', 'wait', wait => '50 milliseconds');
SELECT lease_until > now() + '1 hour 50 milliseconds' AS from_claim
FROM idem_claim('t', 'claim', 'clock', lease => '1 hour');
COMMIT;

-- The whole address counts: tenant, operation and key, and where one part
-- ends and the next begins.
SELECT tenant, operation, key, outcome, response
FROM (VALUES ('t', 'claim', 'a'), ('t2', 'claim', 'a'), ('t', 'claim2', 'a'),
			 ('t', 'claim', 'A'), ('t', 'claim', 'a '), ('tc', 'laim', 'a'),
			 ('t', 'claima', 'b'), ('t', 'claim', '"a"'))
	 AS address(t, o, k),
	 idem_claim(t, o, k, '{"n": 1}', lease => '1 hour');
