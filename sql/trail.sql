-- The trail: every transition that its row does not prove, who made it and
-- why; what was refused leaves none (case 12).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE VIEW pg_temp.trail AS
SELECT key, attempt, intent, from_state, to_state, reason, id FROM idem_event WHERE operation = 'trail';
SELECT version FROM idem_define('trail twice', max_attempts => 1);

-- The first claim and the completion are proven by the record.
SELECT idem_complete(idem_claim('t', 'trail', 'atomic'));
SELECT idem_fail(idem_claim('t', 'trail', 'leased', lease => '1 hour'));
SELECT count(*) AS events FROM idem_event WHERE operation = 'trail';

-- A command's way through its states.
SELECT idem_release(idem_claim('t', 'trail', 'a', lease => '1 hour'), 'not now');
SELECT outcome FROM idem_claim('t', 'trail', 'a', lease => '1 us');
SELECT outcome FROM idem_claim('t', 'trail', 'a', lease => '1 us');
SELECT idem_claim('t', 'trail', 'a', lease => '1 us') AS ticket \gset
SELECT idem_unknown(:'ticket', 'cannot tell');
SELECT idem_resolve('t', 'trail', 'a', 'released', 'looked');
BEGIN;
SELECT idem_complete(idem_claim('t', 'trail', 'a'));
COMMIT;
SELECT attempt, from_state, to_state, reason FROM pg_temp.trail WHERE key = 'a' ORDER BY id;
-- an atomic claim is one only at its completion
SELECT idem_release(idem_claim('t', 'trail', 'b', lease => '1 hour'), 'not now');
BEGIN;
SELECT idem_release(idem_claim('t', 'trail', 'b'), 'forgotten');
COMMIT;
SELECT outcome FROM idem_cancel('t', 'trail', 'c', 'too late');
SELECT outcome FROM idem_claim('t', 'trail twice', 'd', lease => '1 us');
SELECT outcome FROM idem_claim('t', 'trail twice', 'd', lease => '1 us');
SELECT operation, key, attempt, from_state, to_state, reason FROM idem_event
WHERE operation = 'trail' AND key IN ('b', 'c') OR operation = 'trail twice' ORDER BY id;

-- An intent's, and the command that it had made unknown.  That it was noted,
-- first sent and confirmed its row proves.
SELECT idem_claim('t', 'trail', 'i', lease => '1 us') AS ticket \gset
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'trail bank') \gset
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_defer(:'id', :token, 'busy');
SELECT state FROM idem_retry(:'id', 'not busy');
SELECT state FROM idem_send(:'id', 'w', '1 us');
SELECT outcome FROM idem_claim('t', 'trail', 'i', lease => '1 us');
SELECT token FROM idem_reconcile('trail bank', 'w', 1, '1 hour') \gset
SELECT state FROM idem_settle(:'id', :token, 'unclear', '1');
SELECT token FROM idem_reconcile('trail bank', 'w', 1, '1 hour') \gset
SELECT state FROM idem_settle(:'id', :token, 'happened', '1');
SELECT intent, attempt, from_state, to_state, reason FROM pg_temp.trail WHERE key = 'i' ORDER BY id;
SELECT idem_claim('t', 'trail', 'i', lease => '1 hour') AS ticket \gset
SELECT operation_id AS id FROM idem_intend(:'ticket', 'mail', 'trail smtp', send => true, resend_safe_for => '1 hour') \gset
SELECT state FROM idem_dispatch('trail smtp', 'w1', 1, '1 us');
SELECT token, created_at < first_sent_at AS sent_later, first_sent_at = doubt_since AS once
FROM idem_intent WHERE operation_id = :'id' \gset
SELECT token FROM idem_dispatch('trail smtp', 'w2', 1, '1 us') \gset
SELECT token FROM idem_send(:'id', 'w3', '1 hour') \gset
SELECT state, first_sent_at < settled_at AS settled FROM idem_confirm(:'id', :token);
SELECT intent, attempt, from_state, to_state, reason FROM pg_temp.trail WHERE key = 'i' AND intent = 'mail' ORDER BY id;
SELECT operation_id AS mail_id FROM idem_intend(:'ticket', 'no', 'trail smtp') \gset
SELECT token AS mail_token FROM idem_send(:'mail_id', 'w', '1 hour') \gset
SELECT state FROM idem_reject(:'mail_id', :mail_token, 'no such address');
SELECT intent, attempt, from_state, to_state, reason FROM pg_temp.trail WHERE key = 'i' AND intent = 'no' ORDER BY id;

-- Repeated or refused calls leave none, nor does what is rolled back.
SELECT count(*) AS events FROM idem_event \gset before_
SELECT state FROM idem_confirm(:'id', :token);
SELECT pg_temp.code_of(format('SELECT idem_confirm(%L, 42)', :'id')) AS confirm,
	   pg_temp.code_of(format('SELECT idem_reject(%L, %s, ''no'')', :'id', :token)) AS reject,
	   pg_temp.code_of('SELECT idem_resolve(''t'', ''trail'', ''a'', ''failed'', ''why'')') AS resolve,
	   pg_temp.code_of('SELECT idem_complete(''t'', ''trail'', ''a'', 42)') AS complete;
SELECT outcome FROM idem_cancel('t', 'trail', 'c', 'again');
SELECT outcome FROM idem_cancel('t', 'trail', 'a', 'too late');
BEGIN;
SELECT outcome FROM idem_cancel('t', 'trail', 'e', 'no');
ROLLBACK;
SELECT count(*) = :before_events AS unchanged FROM idem_event;

-- Who and when.
SELECT bool_and(actor = session_user) AS actor, bool_and(at BETWEEN now() - interval '1 hour' AND now()) AS at,
	   count(DISTINCT id) = count(*) AS ids
FROM idem_event WHERE operation LIKE 'trail%';

-- It only grows.
CALL pg_temp.refused('UPDATE idem_event SET reason = NULL');
CALL pg_temp.refused('DELETE FROM idem_event');
CALL pg_temp.refused('TRUNCATE idem_event');
SELECT pg_temp.code_of('UPDATE idem_event SET reason = NULL WHERE false') AS no_row;
