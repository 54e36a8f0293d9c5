-- Release: nothing happened, and the same request may run again.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- A released atomic claim is forgotten: no row, and the first attempt again.
BEGIN;
SELECT idem_claim('t', 'release', 'a', '1') AS ticket \gset
SELECT idem_release(:'ticket'::idem_ticket, 'not now');
SELECT count(*) AS rows FROM idem_record WHERE operation = 'release';
-- its ticket can be released again, and nothing else
SELECT idem_release(:'ticket'::idem_ticket);
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'ticket'))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_heartbeat', 'idem_hold'])
	AS verb;
-- claimed again in the same transaction, also with another request
SELECT idem_claim('t', 'release', 'a', '2') AS ticket \gset second_
SELECT (:'second_ticket'::idem_ticket).outcome,
	   (:'second_ticket'::idem_ticket).attempt,
	   (:'second_ticket'::idem_ticket).token
	   <> (:'ticket'::idem_ticket).token AS other_token;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT outcome FROM idem_claim('t', 'release', 'a', '2');
SELECT idem_complete(:'second_ticket'::idem_ticket, '"second"');
COMMIT;
SELECT outcome, attempt, response FROM idem_claim('t', 'release', 'a', '2');

-- The commit of a released claim leaves nothing.
BEGIN;
SELECT idem_release(idem_claim('t', 'release', 'b', '1'));
COMMIT;
SELECT count(*) AS rows FROM idem_record WHERE key = 'b' AND operation = 'release';
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();

-- A leased claim leaves a released record, with its reason.
SELECT idem_claim('t', 'release', 'leased', '1', lease => '1 hour',
				  owner => 'me', ttl => '2 days') AS ticket \gset
SELECT idem_release(:'ticket'::idem_ticket, 'gateway is down');
SELECT state, attempt, lease_until, completed_at, expires_at, owner, reason
FROM idem_record WHERE key = 'leased' AND operation = 'release';
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE key = 'leased' AND operation = 'release' \gset before_
SELECT idem_release(:'ticket'::idem_ticket, 'something else');
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'ticket'))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_heartbeat', 'idem_hold'])
	AS verb;
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE key = 'leased' AND operation = 'release';

-- It stays bound to its request; the next attempt has a token of its own.
SELECT outcome, state, reason FROM idem_claim('t', 'release', 'leased', '2');
SELECT idem_claim('t', 'release', 'leased', '1', lease => '1 hour') AS ticket \gset second_
SELECT outcome, attempt, state, owner, reason,
	   token <> (:'ticket'::idem_ticket).token AS other_token,
	   created_at = (:'ticket'::idem_ticket).created_at AS same_creation
FROM (SELECT (:'second_ticket'::idem_ticket).*) AS second;
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket'));
SELECT idem_release(:'second_ticket'::idem_ticket);

-- An atomic claim of a released record changes it at completion only.
BEGIN;
SELECT idem_claim('t', 'release', 'leased', '1', owner => 'third') AS ticket \gset third_
SELECT (:'third_ticket'::idem_ticket).outcome,
	   (:'third_ticket'::idem_ticket).attempt;
SELECT state, attempt, owner FROM idem_record
WHERE key = 'leased' AND operation = 'release';
SELECT idem_release(:'third_ticket'::idem_ticket, 'no reason is kept');
COMMIT;
SELECT state, attempt, owner, reason FROM idem_record
WHERE key = 'leased' AND operation = 'release';
BEGIN;
SELECT idem_claim('t', 'release', 'leased', '1', owner => 'third') AS ticket \gset third_
SELECT idem_complete(:'third_ticket'::idem_ticket, '"third"');
COMMIT;
SELECT state, attempt, owner, reason, response FROM idem_record
WHERE key = 'leased' AND operation = 'release';

-- However often, without a limit in the policy.
DO $$
BEGIN
	FOR i IN 1 .. 1000 LOOP
		PERFORM idem_release(idem_claim('t', 'release', 'often', '1',
										lease => '1 hour'));
	END LOOP;
END
$$;
SELECT outcome, attempt FROM idem_claim('t', 'release', 'often', '1',
										lease => '1 hour');

-- What was said of an attempt goes when the next one begins, or ends.
SELECT count(idem_release(idem_claim('t', 'release', k, lease => '1 hour'), 'not now'))
FROM unnest(ARRAY['again atomic', 'again leased']) AS k;
SELECT idem_complete(idem_claim('t', 'release', 'again atomic'), '1');
SELECT outcome FROM idem_claim('t', 'release', 'again leased', lease => '1 hour');
SELECT key, state, attempt, reason FROM idem_record
WHERE operation = 'release' AND key LIKE 'again%' ORDER BY key;
