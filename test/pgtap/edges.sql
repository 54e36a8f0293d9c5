-- Proves single promises about steps, intents and recovery, each by the
-- situation that is most likely to break it.
\ir setup.psql
SELECT plan(20);

CREATE FUNCTION pg_temp.code_of(command text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'accepted';
EXCEPTION WHEN others THEN
	RETURN SQLSTATE;
END $$;

-- Notes intents of a command of its own, as if by an earlier transaction.
CREATE FUNCTION pg_temp.noted(key text, n integer) RETURNS idem_ticket
LANGUAGE plpgsql AS $$
DECLARE
	ticket CONSTANT idem_ticket := idem_claim('t', 'edges', key, lease => '1h');
BEGIN
	PERFORM idem_intend(ticket, 'i' || i, key, send => true)
	FROM generate_series(1, n) AS i;
	UPDATE idem_intent SET created_by = '1';
	RETURN ticket;
END $$;
CREATE FUNCTION pg_temp.state(wanted text) RETURNS text LANGUAGE sql AS
	$$ SELECT state FROM idem_record WHERE operation = 'edges' AND key = wanted $$;

-- n is a limit, whatever the planner thinks of a queue that VACUUM found
-- nearly empty.
SELECT count(pg_temp.noted('burst', 300)) \gset _
UPDATE pg_class SET relpages = 100, reltuples = 1
WHERE oid = 'idem_intent'::regclass;
SELECT lives_ok($$SELECT idem_dispatch('burst', 'w', 3, '1us')$$,
	'a burst after an empty queue is dispatched');
SELECT is((SELECT count(*) FROM idem_intent WHERE state = 'in_flight'), 3::bigint,
	'a burst after an empty queue: n are taken');
SELECT is((SELECT count(*) FROM idem_reconcile('burst', 'w', 2, '1us')), 2::bigint,
	'a burst after an empty queue: n are reconciled');

-- A setting in bytes.
SELECT pg_temp.noted('size', 0) AS ticket \gset
SET LOCAL idempotency.max_response_size = '10B';
SELECT is(pg_temp.code_of(format('SELECT idem_step_done(%L, ''fits'', ''"12345678"'')', :'ticket')),
	'accepted', 'a result of max_response_size bytes is stored');
SELECT is(pg_temp.code_of(format('SELECT idem_step_done(%L, ''large'', ''"123456789"'')', :'ticket')),
	'ID005', 'one of a byte more is not');
RESET idempotency.max_response_size;

-- A policy that was removed and defined anew.
SELECT count(idem_define('edges again', steps => '{one}')) \gset _
DELETE FROM idem_policy WHERE operation = 'edges again';
SELECT count(idem_define('edges again', steps => '{two}')) \gset _
SELECT idem_claim('t', 'edges again', 'k', lease => '1h') AS ticket \gset
SELECT is(pg_temp.code_of(format('SELECT idem_step(%L, ''two'')', :'ticket')),
	'accepted', 'a policy defined anew has its new steps');

-- The policy's names hold for an atomic claim too.
SELECT count(idem_define('edges atomic', steps => '{pay}')) \gset _
SELECT idem_claim('t', 'edges atomic', 'k') AS ticket \gset
SELECT is(pg_temp.code_of(format('SELECT idem_intend(%L, ''pray'', ''bank'')', :'ticket')),
	'22023', 'an atomic claim has no other intents than its policy names');
SELECT count(idem_complete(:'ticket'::idem_ticket)) \gset _

-- Repeating a transition with the same result is accepted, with another not.
SELECT count(idem_unknown(pg_temp.noted('twice', 0), 'why')) \gset _
SELECT count(idem_resolve('t', 'edges', 'twice', 'succeeded', 'seen', '1')) \gset _
SELECT is(pg_temp.code_of($$SELECT idem_resolve('t', 'edges', 'twice', 'succeeded', 'seen', '1')$$),
	'accepted', 'the same decision again is accepted');
SELECT is(pg_temp.code_of($$SELECT idem_resolve('t', 'edges', 'twice', 'succeeded', 'seen', '2')$$),
	'ID003', 'with another answer it is refused');

-- What is cancelled does not happen later.
SELECT pg_temp.noted('cancel', 1) AS ticket \gset
SELECT operation_id, token FROM idem_dispatch('cancel', 'w', 1, '1us') \gset
SELECT count(idem_unknown(:'ticket', 'connection lost')) \gset _
SELECT token FROM idem_reconcile('cancel', 'w', 1, '1h') \gset
SELECT count(idem_settle(:'operation_id', :token, 'absent', '1')) \gset _
SELECT is(pg_temp.state('cancel'), 'released', 'released with an intent to be sent');
SELECT is(outcome || ' ' || state, 'in_progress released', 'what is to be sent is not cancelled')
FROM idem_cancel('t', 'edges', 'cancel', 'too late');
SELECT is(count(*), 1::bigint, 'so it is sent')
FROM idem_dispatch('cancel', 'w', 1, '1h');

-- A command of which its owner cannot tell stays unknown until evidence about
-- it is in; that a letter was sent is none.
SELECT pg_temp.noted('letter', 1) AS ticket \gset
SELECT count(idem_unknown(:'ticket', 'cannot tell')) \gset _
SELECT operation_id, token FROM idem_dispatch('letter', 'w', 1, '1h') \gset
SELECT count(idem_confirm(:'operation_id', :token)) \gset _
SELECT is(pg_temp.state('letter'), 'unknown', 'an intent that was never in question releases no command');

-- What was sent after the command became unknown was never its question.
SELECT pg_temp.noted('later', 2) AS ticket \gset
SELECT operation_id AS early, token AS early_token FROM idem_dispatch('later', 'w', 1, '1h') \gset
SELECT count(idem_unknown(:'ticket', 'connection lost')) \gset _
SELECT operation_id AS late, token AS late_token FROM idem_dispatch('later', 'w', 1, '1h') \gset
SELECT count(idem_confirm(:'early', :early_token)) \gset _
SELECT count(idem_confirm(:'late', :late_token)) \gset _
SELECT is(pg_temp.state('later'), 'released', 'one sent later does not keep a command unknown for ever');

-- Due again is not dead.
SELECT count(pg_temp.noted('alive', 1)) \gset _
UPDATE idem_intent SET tries = 19 WHERE target = 'alive';
SELECT operation_id FROM idem_dispatch('alive', 'w', 1, '1us') \gset
SELECT token FROM idem_reconcile('alive', 'w', 1, '1h') \gset
SELECT count(idem_settle(:'operation_id', :token, 'absent', '1')) \gset _
SELECT is((SELECT count(*) FROM idem_stuck WHERE key = 'alive' AND state = 'dead'),
	(SELECT 1 - count(*) FROM idem_dispatch('alive', 'w', 1, '1us')),
	'an intent is listed as dead if and only if it is not dispatched');

-- Something that stays unclear does not keep others from being asked about.
SELECT pg_temp.noted('unclear', 2) AS ticket \gset
SELECT count(*) FROM idem_dispatch('unclear', 'w', 2, '1us') \gset _
SELECT operation_id, token, name AS first FROM idem_reconcile('unclear', 'w', 1, '1us') \gset
SELECT count(idem_settle(:'operation_id', :token, 'unclear', '1')) \gset _
SELECT isnt((SELECT name FROM idem_reconcile('unclear', 'w', 1, '1us')), :'first',
	'after an unclear verdict the other one is asked about');

-- An operator's release lets a command run, whatever made it unknown.
SELECT count(idem_define('edges last', max_attempts => 1)) \gset _
SELECT idem_claim('t', 'edges last', 'k', lease => '1h') AS ticket \gset
SELECT count(idem_unknown(:'ticket', 'cannot tell')) \gset _
SELECT count(idem_resolve('t', 'edges last', 'k', 'released', 'nothing happened')) \gset _
SELECT is((SELECT outcome FROM idem_claim('t', 'edges last', 'k', lease => '1h')), 'execute',
	'what an operator released may run, also after its last attempt');

-- A try that did not happen says nothing about an earlier one: deferred, it
-- would be sent once more after the target has forgotten it (a double payment).
SELECT idem_claim('t', 'edges', 'doubt', lease => '1h') AS ticket \gset
SELECT count(idem_intend(:'ticket', 'pay', 'doubt', send => true, resend_safe_for => '1h')) \gset _
UPDATE idem_intent SET created_by = '1' WHERE target = 'doubt';
SELECT count(*) FROM idem_dispatch('doubt', 'w', 1, '1us') \gset _
SELECT operation_id, token FROM idem_dispatch('doubt', 'w', 1, '1h') \gset
SELECT is((SELECT state FROM idem_defer(:'operation_id', :token, 'target is down')),
	'unknown', 'a second try that did not happen leaves the first in question');

-- A lease is never left open.
SELECT is(pg_temp.code_of(format('SELECT idem_%s NULL)', call)), '22004', call || ' NULL)')
FROM unnest(ARRAY['dispatch(''alive'', ''w'', 1,', 'recover(''w'', 1,']) AS call;

SELECT * FROM finish();
ROLLBACK;
