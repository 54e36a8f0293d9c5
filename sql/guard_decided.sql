-- Guards of commands that evidence or a decision released: such a command may
-- have done a part of its work, and runs again by itself.  So it keeps its
-- guard until it has run, or is cancelled.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CREATE FUNCTION pg_temp.other(guard text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', outcome, duplicate_of, state)
	FROM idem_claim('t', 'decided', 'other ' || guard, guard => guard)
$$;

-- Its card was charged, it crashed, and the charge was found: a second command
-- with its guard would charge again.
SELECT idem_claim('t', 'decided', 'charged', guard => 'charged', lease => '1 hour') AS ticket \gset
SELECT operation_id AS charge FROM idem_intend(:'ticket', 'charge', 'card network') \gset
SELECT token AS charge_token FROM idem_send(:'charge', 'w', '1 us') \gset
SELECT idem_unknown(:'ticket'::idem_ticket, 'no answer');
SELECT pg_temp.other('charged');
SELECT token AS charge_token FROM idem_reconcile('card network', 'w', 10, '1 hour') WHERE operation_id = :'charge' \gset
SELECT state FROM idem_settle(:'charge', :charge_token, 'happened', '"seen"', '{"paid": 1}');
SELECT state, once_more FROM idem_record WHERE operation = 'decided' AND key = 'charged';
SELECT pg_temp.other('charged');
-- nobody calls it off any more: what stands there is said as it is
SELECT outcome, state, response FROM idem_cancel('t', 'decided', 'charged', 'why');
SELECT next_call FROM idem_stuck WHERE operation = 'decided';
SELECT r AS ticket FROM idem_recover('w', 10000, '1 hour') AS r WHERE operation = 'decided' \gset
SELECT pg_temp.other('charged');
SELECT idem_complete(:'ticket'::idem_ticket, '"paid"');
SELECT pg_temp.other('charged');

-- The same after a person's decision, whoever runs it then, also where its
-- attempts are used up.
SELECT version FROM idem_define('decided', max_attempts => 1);
SELECT idem_unknown(idem_claim('t', 'decided', key, guard => key, lease => '1 hour'), 'why'),
	   idem_resolve('t', 'decided', key, 'released', 'run it again')
FROM unnest(ARRAY['recovered', 'claimed', 'atomic', 'released', 'cancelled', 'copied']) AS key;
SELECT key, pg_temp.other(key), pg_temp.other(key) AS again
FROM idem_record WHERE operation = 'decided' AND state = 'released' ORDER BY key;
BEGIN;
SELECT key, outcome FROM idem_recover('w', 10000, '1 hour') WHERE operation = 'decided' ORDER BY key;
SELECT key, pg_temp.other(key) FROM idem_record WHERE operation = 'decided' ORDER BY key;
ROLLBACK;
SELECT idem_complete(idem_claim('t', 'decided', 'claimed', lease => '1 hour'));
SELECT idem_complete(idem_claim('t', 'decided', 'atomic'));
SELECT idem_release(idem_claim('t', 'decided', 'released', lease => '1 hour'));
SELECT outcome FROM idem_cancel('t', 'decided', 'cancelled', 'done by another');
BEGIN;
SELECT key, pg_temp.other(key)
FROM unnest(ARRAY['recovered', 'claimed', 'atomic', 'released', 'cancelled']) AS key;
ROLLBACK;
-- a claim that ends without a trace changes nothing
BEGIN;
SELECT idem_release(idem_claim('t', 'decided', 'recovered'));
SELECT pg_temp.other('recovered');
COMMIT;
SELECT pg_temp.other('recovered');

-- In a copy nobody knows whether it has run: unknown, with its guard.
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
SELECT pg_temp.other('copied');
SELECT idem_adopt();
SELECT key, state, reason FROM idem_record WHERE operation = 'decided' AND state = 'unknown' ORDER BY key;
SELECT pg_temp.other('copied');
ROLLBACK;

-- Who changes it has the lock of its guard.
BEGIN;
SELECT outcome FROM idem_cancel('t', 'decided', 'copied', 'why');
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK;
