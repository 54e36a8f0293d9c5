-- idem_stuck: whatever needs a hand, with the next call to make; that call
-- takes it off the list.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE VIEW pg_temp.stuck AS
SELECT key, intent, state, reason, next_call, since BETWEEN now() - interval '1 hour' AND clock_timestamp() AS since
FROM idem_stuck WHERE operation = 'stuck';

-- What goes its way is not on it.
SELECT key, (idem_claim('t', 'stuck', key, lease => '1 hour')).outcome
FROM unnest(ARRAY['live', 'released', 'succeeded']) AS key;
SELECT idem_release('t', 'stuck', key, token, 'why') FROM idem_record WHERE operation = 'stuck' AND key = 'released';
SELECT idem_complete('t', 'stuck', key, token) FROM idem_record WHERE operation = 'stuck' AND key = 'succeeded';
SELECT outcome FROM idem_cancel('t', 'stuck', 'cancelled', 'why');
SELECT idem_claim('t', 'stuck', 'live intents', lease => '1 hour') AS ticket \gset
SELECT count(idem_intend(:'ticket', name, 'stuck bank', send => true))
FROM unnest(ARRAY['pending', 'in_flight', 'confirmed', 'rejected', 'deferred']) AS name;
SELECT count(idem_send(operation_id, 'w', '1 hour')) FROM idem_intent WHERE operation = 'stuck' AND name <> 'pending';
SELECT (idem_confirm(operation_id, token)).state FROM idem_intent WHERE operation = 'stuck' AND name = 'confirmed';
SELECT (idem_reject(operation_id, token, 'no')).state FROM idem_intent WHERE operation = 'stuck' AND name = 'rejected';
SELECT (idem_defer(operation_id, token, 'busy')).state FROM idem_intent WHERE operation = 'stuck' AND name = 'deferred';
SELECT * FROM pg_temp.stuck;

-- A lapsed command.
SELECT outcome FROM idem_claim('t', 'stuck', 'lapsed', lease => '1 us');
SELECT * FROM pg_temp.stuck;
SELECT outcome FROM idem_claim('t', 'stuck', 'lapsed', lease => '1 hour');
SELECT * FROM pg_temp.stuck;

-- An unknown one without open intents.
SELECT idem_unknown(idem_claim('t', 'stuck', 'unknown', lease => '1 hour'), 'cannot tell');
SELECT * FROM pg_temp.stuck;
SELECT idem_resolve('t', 'stuck', 'unknown', 'failed', 'looked');
SELECT * FROM pg_temp.stuck;

-- A lapsed one with an intent in flight, first in flight itself, then unknown.
SELECT idem_claim('t', 'stuck', 'pay', lease => '1 us') AS ticket \gset
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'stuck bank') \gset
SELECT state FROM idem_send(:'id', 'w', '1 us');
SELECT * FROM pg_temp.stuck ORDER BY intent NULLS FIRST;
SELECT outcome FROM idem_claim('t', 'stuck', 'pay', lease => '1 us');
SELECT * FROM pg_temp.stuck ORDER BY intent NULLS FIRST;
-- while a worker asks, only the command is on it
SELECT token FROM idem_reconcile('stuck bank', 'w', 1, '1 hour') \gset
SELECT * FROM pg_temp.stuck ORDER BY intent NULLS FIRST;
SELECT state FROM idem_settle(:'id', :token, 'unclear', '1');
SELECT * FROM pg_temp.stuck ORDER BY intent NULLS FIRST;
SELECT token FROM idem_reconcile('stuck bank', 'w', 1, '1 hour') \gset
SELECT state FROM idem_settle(:'id', :token, 'happened', '1');
SELECT * FROM pg_temp.stuck;

-- What its owner was to send, and did not before the command ended: it is sent
-- now, or called off.
SELECT idem_claim('t', 'stuck', 'ended', lease => '1 hour') AS ticket \gset
SELECT count(idem_intend(:'ticket', name, 'stuck mail', send => name = 'relayed'))
FROM unnest(ARRAY['late', 'not wanted', 'relayed']) AS name;
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT token FROM idem_send(idem_operation_id('t', 'stuck', 'ended', 'late'), 'w', '1 hour') \gset
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT state FROM idem_confirm(idem_operation_id('t', 'stuck', 'ended', 'late'), :token);
SELECT token FROM idem_send(idem_operation_id('t', 'stuck', 'ended', 'not wanted'), 'w', '1 hour') \gset
SELECT state FROM idem_reject(idem_operation_id('t', 'stuck', 'ended', 'not wanted'), :token, 'called off');
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;

-- As long as nobody knows what became of the command: its next owner sends it.
SELECT idem_claim('t', 'stuck', 'lost', lease => '1 hour') AS ticket \gset
SELECT name FROM idem_intend(:'ticket', 'mail', 'stuck mail');
SELECT idem_unknown(:'ticket', 'cannot tell');
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT idem_resolve('t', 'stuck', 'lost', 'released', 'looked');
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT key, outcome FROM idem_recover('w', 1000, '1 hour') WHERE operation = 'stuck' ORDER BY key;
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT idem_complete('t', 'stuck', 'lost', token) FROM idem_record WHERE operation = 'stuck' AND key = 'lost';
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;

-- Deferred too often, it is dead; and unsent when it has been woken.
DO $$
DECLARE
	id CONSTANT uuid := idem_operation_id('t', 'stuck', 'lost', 'mail');
BEGIN
	FOR n IN 1 .. 20 LOOP
		PERFORM idem_defer(id, (idem_send(id, 'w', '1 hour')).token, 'busy');
	END LOOP;
END $$;
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT state FROM idem_retry(idem_operation_id('t', 'stuck', 'lost', 'mail'), 'it works again');
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
SELECT token FROM idem_send(idem_operation_id('t', 'stuck', 'lost', 'mail'), 'w', '1 hour') \gset
SELECT state FROM idem_confirm(idem_operation_id('t', 'stuck', 'lost', 'mail'), :token);
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;

-- Unknown commands of an adopted copy: their intents first, then a decision.
SELECT idem_claim('t', 'stuck', 'copied', lease => '1 hour') AS ticket \gset
SELECT name FROM idem_intend(:'ticket', 'mail', 'stuck mail');
BEGIN;
SELECT idem_adopt(physical => true);
SELECT * FROM pg_temp.stuck WHERE key = 'copied' ORDER BY intent NULLS FIRST;
SELECT (idem_settle(operation_id, token, 'happened', '1')).state FROM idem_reconcile('stuck mail', 'w', 10, '1 hour') WHERE key = 'copied';
SELECT * FROM pg_temp.stuck WHERE key = 'copied';
SELECT idem_resolve('t', 'stuck', 'copied', 'succeeded', 'looked');
SELECT * FROM pg_temp.stuck WHERE key = 'copied';
ROLLBACK;
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT state FROM idem_reject(idem_operation_id('t', 'stuck', 'copied', 'mail'),
	(idem_send(idem_operation_id('t', 'stuck', 'copied', 'mail'), 'w', '1 hour')).token, 'called off');
SELECT * FROM pg_temp.stuck ORDER BY key, intent NULLS FIRST;
