-- Heartbeat extends a lease, hold proves it, and both keep everybody else out
-- until their transaction ends.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

SELECT idem_claim('t', 'lease', 'a', '1', lease => '1 hour', owner => 'me') AS ticket \gset
SELECT (:'ticket'::idem_ticket).token AS token \gset

-- A heartbeat counts from now, and tells what it stored.
SELECT idem_heartbeat(:'ticket'::idem_ticket, '2 hours') AS until \gset
SELECT :'until' BETWEEN now() - interval '1 minute' + '2 hours'
				AND clock_timestamp() + '2 hours' AS from_now,
	   lease_until = :'until' AS stored, state, attempt, owner,
	   token = :token AS token
FROM idem_record WHERE operation = 'lease' AND key = 'a';
SELECT idem_heartbeat('t', 'lease', 'a', :token, '3 hours') AS until2 \gset
SELECT :'until2'::timestamptz > :'until' AS extended,
	   lease_until = :'until2' AS stored
FROM idem_record WHERE operation = 'lease' AND key = 'a';
SELECT outcome, lease_until = :'until2' AS told
FROM idem_claim('t', 'lease', 'a', '1');

-- Without an argument it takes the policy's lease, which has to be there.
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket, ''0'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket, ''1 month'')', :'ticket'));
SELECT lease_until = :'until2' AS unchanged
FROM idem_record WHERE operation = 'lease' AND key = 'a';
SELECT (idem_define('lease', lease => '5 hours', max_lease => '6 hours')).version;
SELECT idem_heartbeat(:'ticket'::idem_ticket) - clock_timestamp()
	   BETWEEN '4 hours 59 minutes' AND '5 hours' AS policy_lease;
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket, ''7 hours'')', :'ticket'));
SELECT idem_heartbeat(:'ticket'::idem_ticket, '6 hours') > now() + '5 hours' AS max_lease;

-- Hold changes nothing.
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE operation = 'lease' AND key = 'a' \gset before_
SELECT idem_hold(:'ticket'::idem_ticket);
SELECT idem_hold('t', 'lease', 'a', :token);
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE operation = 'lease' AND key = 'a';

-- Each verb keeps the key lock until the end of its transaction, a look does
-- not.
CREATE VIEW pg_temp.key_locks AS
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 18756 AND pid = pg_backend_pid();
BEGIN;
SELECT outcome FROM idem_claim('t', 'lease', 'a', '1');
SELECT outcome FROM idem_claim('t', 'lease', 'a', '2');
SELECT * FROM pg_temp.key_locks;
-- also next to a new claim, whose lock stays
SELECT outcome FROM idem_claim('t', 'lease', 'b', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'lease', 'a', '1');
SELECT outcome FROM idem_claim('t', 'lease', 'c', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'lease', 'a', '2');
SELECT * FROM pg_temp.key_locks;
ROLLBACK;
BEGIN;
SELECT idem_hold(:'ticket'::idem_ticket);
SELECT * FROM pg_temp.key_locks;
COMMIT;
SELECT * FROM pg_temp.key_locks;
BEGIN;
SELECT idem_heartbeat(:'ticket'::idem_ticket) > now() AS extended;
SELECT * FROM pg_temp.key_locks;
COMMIT;
SELECT * FROM pg_temp.key_locks;

-- A lapsed lease can be extended and held while nobody has taken over.
SELECT idem_claim('t', 'lease', 'lapsed', '1', lease => '1 microsecond') AS ticket \gset lapsed_
SELECT idem_hold(:'lapsed_ticket'::idem_ticket);
SELECT idem_heartbeat(:'lapsed_ticket'::idem_ticket, '1 hour') > now() AS extended;
SELECT outcome, attempt FROM idem_claim('t', 'lease', 'lapsed', '1');
-- after that its ticket is worth nothing
SELECT idem_claim('t', 'lease', 'lapsed 2', '1', lease => '1 microsecond') AS ticket \gset lapsed_
SELECT idem_heartbeat(:'lapsed_ticket'::idem_ticket, '1 microsecond') < clock_timestamp() AS lapsed;
SELECT outcome, attempt FROM idem_claim('t', 'lease', 'lapsed 2', '1', lease => '1 hour');
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'lapsed_ticket'))
FROM unnest(ARRAY['idem_heartbeat', 'idem_hold']) AS verb;

-- An atomic claim lasts as long as its transaction: it can be held, but has
-- no lease.
SELECT (idem_define('lease')).version;
BEGIN;
SELECT idem_claim('t', 'lease', 'atomic') AS ticket \gset atomic_
SELECT idem_hold(:'atomic_ticket'::idem_ticket);
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket, ''1 hour'')', :'atomic_ticket'));
SELECT idem_complete(:'atomic_ticket'::idem_ticket);
COMMIT;

-- After the end there is nothing to hold or extend.
SELECT idem_complete(:'ticket'::idem_ticket);
CALL pg_temp.refused(format('SELECT idem_hold(%L::idem_ticket)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_heartbeat(%L::idem_ticket, ''1 hour'')', :'ticket'));
