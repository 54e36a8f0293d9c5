-- Sending: an intent is handed out once it is committed, to one worker at a
-- time, and what its worker knows afterwards stays (cases 13 and 24).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE FUNCTION pg_temp.id(name text) RETURNS uuid LANGUAGE sql AS
	$$ SELECT idem_operation_id('t', 'outbox', 'a', name) $$;
CREATE VIEW pg_temp.intents AS
SELECT name, state, tries, worker, token IS NOT NULL AS token,
	   lease_until > clock_timestamp() AS leased, first_sent_at IS NOT NULL AS sent,
	   settled_at IS NOT NULL AS settled, reason, response
FROM idem_intent WHERE operation = 'outbox';

-- What is not committed is not handed out: not by asking for it, not by relay.
SELECT idem_claim('t', 'outbox', 'a', lease => '1 hour') AS ticket \gset
BEGIN;
SELECT state FROM idem_intend(:'ticket', 'one', 'queue', send => true);
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w'', ''1 hour'')', pg_temp.id('one')));
SELECT count(*) AS taken FROM idem_dispatch('queue', 'w', 10, '1 hour');
SAVEPOINT s;
SELECT state FROM idem_intend(:'ticket', 'in a subtransaction', 'queue', send => true);
SELECT pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', pg_temp.id('in a subtransaction')));
SELECT count(*) AS taken FROM idem_dispatch('queue', 'w', 10, '1 hour');
ROLLBACK TO s;
SELECT state FROM idem_intend(:'ticket', 'two', 'queue', send => true);
SELECT state FROM idem_intend(:'ticket', 'three', 'queue', send => true);
SELECT state FROM idem_intend(:'ticket', 'by its owner', 'queue');
SELECT state FROM idem_intend(:'ticket', 'elsewhere', 'other queue', send => true);
COMMIT;
SELECT pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', pg_temp.id('in a subtransaction'))) AS never_noted;

-- The relay gives what is due, the oldest first, at most n, to one worker.
SELECT string_agg(name, ', ' ORDER BY due_at) AS taken FROM idem_dispatch('queue', 'w1', 2, '1 hour');
SELECT name FROM idem_dispatch('queue', 'w2', 10, '1 hour');
SELECT name FROM idem_dispatch('queue', 'w2', 10, '1 hour');
SELECT name FROM idem_dispatch('no queue', 'w2', 10, '1 hour');
SELECT * FROM pg_temp.intents ORDER BY name;
SELECT count(DISTINCT token) AS tokens, bool_and(token > 0) AS positive
FROM idem_intent WHERE operation = 'outbox' AND state = 'in_flight';
SELECT max(token) FILTER (WHERE name = 'one') AS one, max(token) FILTER (WHERE name = 'two') AS two,
	   max(token) FILTER (WHERE name = 'three') AS three
FROM idem_intent WHERE operation = 'outbox' \gset

-- Its owner sends one himself; nobody else gets it.
SELECT name, state, tries, worker FROM idem_send(pg_temp.id('by its owner'), 'owner', '1 hour');
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w'', ''1 hour'')', pg_temp.id('by its owner')));

-- confirm: the same again changes nothing, anything else is refused.
SELECT name, state, token = :one AS token, lease_until, response, settled_at IS NOT NULL AS settled
FROM idem_confirm(pg_temp.id('one'), :one, '{"id" : 1}');
SELECT ctid AS one FROM idem_intent WHERE operation_id = pg_temp.id('one') \gset before_
SELECT count(*) AS events FROM idem_event WHERE operation = 'outbox' \gset before_
SELECT state, response FROM idem_confirm(pg_temp.id('one'), :one, '{"id" : 1}');
CALL pg_temp.refused(format('SELECT idem_confirm(%L, %s, ''{"id":1}'')', pg_temp.id('one'), :one));
CALL pg_temp.refused(format('SELECT idem_reject(%L, %s, ''no'')', pg_temp.id('one'), :one));
CALL pg_temp.refused(format('SELECT idem_defer(%L, %s, ''no'')', pg_temp.id('one'), :one));
CALL pg_temp.refused(format('SELECT idem_retry(%L, ''no'')', pg_temp.id('one')));
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w'', ''1 hour'')', pg_temp.id('one')));
SELECT ctid = :'before_one' AS unchanged FROM idem_intent WHERE operation_id = pg_temp.id('one');
SELECT count(*) = :before_events AS no_event FROM idem_event WHERE operation = 'outbox';

-- reject: it will never happen.
SELECT state, reason, response FROM idem_reject(pg_temp.id('two'), :two, 'no such account', '404');
SELECT state, reason FROM idem_reject(pg_temp.id('two'), :two, 'no such account', '404');
SELECT call, pg_temp.code_of(format('SELECT ' || call, pg_temp.id('two'), :two))
FROM unnest(ARRAY['idem_confirm(%L, %s)', 'idem_defer(%L, %s, ''no'')',
				  'idem_retry(%L, ''no'')', 'idem_send(%L, ''w'', ''1 hour'')']) AS call;

-- A wrong token can do nothing.
CALL pg_temp.refused(format('SELECT idem_confirm(%L, 42)', pg_temp.id('three')));
SELECT DISTINCT call, pg_temp.code_of(format('SELECT ' || call, pg_temp.id('three'), token))
FROM unnest(ARRAY['idem_confirm(%L, %L)', 'idem_reject(%L, %L, ''no'')',
				  'idem_defer(%L, %L, ''no'')', 'idem_settle(%L, %L, ''happened'', ''1'')']) AS call,
	 unnest(ARRAY[NULL, 0, -1, :one, :two]) AS token ORDER BY call;

-- defer: not due yet, and no obstacle to what came after it.
SELECT state, tries, token, lease_until, reason, doubt_since, due_at > clock_timestamp() AS later
FROM idem_defer(pg_temp.id('three'), :three, 'busy');
SELECT state FROM idem_intend(:'ticket', 'four', 'queue', send => true);
SELECT name FROM idem_dispatch('queue', 'w1', 10, '1 hour');
-- it can be made due
SELECT state, tries, due_at <= clock_timestamp() AS due FROM idem_retry(pg_temp.id('three'), 'it is back');
SELECT name, tries FROM idem_dispatch('queue', 'w1', 10, '1 hour');

-- The pauses grow to an hour; after twenty tries it is dead until idem_retry.
SELECT operation_id FROM idem_intend(:'ticket', 'often', 'busy queue', send => true) \gset
CREATE TEMP TABLE pauses (seconds numeric);
DO $$
DECLARE
	id CONSTANT uuid := idem_operation_id('t', 'outbox', 'a', 'often');
	token bigint;
BEGIN
	FOR i IN 1 .. 20 LOOP
		token := (idem_send(id, 'w', '1 hour')).token;
		INSERT INTO pauses
		SELECT CASE WHEN isfinite(due_at) THEN round(extract(epoch FROM due_at - clock_timestamp())) END
		FROM idem_defer(id, token, 'try ' || i);
	END LOOP;
END $$;
SELECT string_agg(coalesce(seconds::text, 'for ever'), ' ' ORDER BY seconds) AS pauses FROM pauses;
SELECT state, tries FROM idem_intent WHERE operation_id = :'operation_id';
SELECT state, since <= clock_timestamp() AS since, reason, next_call FROM idem_stuck
WHERE operation = 'outbox' AND intent = 'often';
SELECT count(*) AS taken FROM idem_dispatch('busy queue', 'w', 10, '1 hour');
SELECT state, tries FROM idem_retry(:'operation_id', 'fixed');
SELECT count(*) AS stuck FROM idem_stuck WHERE operation = 'outbox' AND intent = 'often';
SELECT name, tries FROM idem_dispatch('busy queue', 'w', 10, '1 hour');

-- A lapsed lease is no evidence: who sent it may still tell what happened.
SELECT operation_id FROM idem_intend(:'ticket', 'late', 'late queue', send => true) \gset
SELECT token FROM idem_dispatch('late queue', 'w1', 1, '1 us') \gset
SELECT count(*) AS taken FROM idem_dispatch('late queue', 'w2', 10, '1 hour');
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w2'', ''1 hour'')', :'operation_id'));
SELECT state FROM idem_confirm(:'operation_id', :token);

-- Within resend_safe_for it goes out again, with the same operation id and a
-- new token; the late mark of the first worker is refused (case 24).
SELECT operation_id FROM idem_intend(:'ticket', 'safe', 'safe queue', send => true,
	resend_safe_for => '1 day') \gset
SELECT token, doubt_since FROM idem_dispatch('safe queue', 'w1', 1, '1 us') \gset old_
SELECT operation_id = :'operation_id' AS same_id, state, tries, worker, token <> :old_token AS new_token,
	   doubt_since = :'old_doubt_since' AS same_window
FROM idem_dispatch('safe queue', 'w2', 1, '1 us');
SELECT call, pg_temp.code_of(format('SELECT ' || call, :'operation_id', :old_token))
FROM unnest(ARRAY['idem_confirm(%L, %s)', 'idem_reject(%L, %s, ''no'')', 'idem_defer(%L, %s, ''no'')']) AS call;
SELECT state, tries, worker, doubt_since = :'old_doubt_since' AS same_window
FROM idem_send(:'operation_id', 'w3', '1 hour');
SELECT count(*) AS taken FROM idem_dispatch('safe queue', 'w4', 10, '1 hour');

-- When the window is over only a verdict can move it.
SELECT operation_id FROM idem_intend(:'ticket', 'over', 'over queue', send => true,
	resend_safe_for => '1 us') \gset
SELECT tries FROM idem_dispatch('over queue', 'w1', 1, '1 us');
SELECT count(*) AS taken FROM idem_dispatch('over queue', 'w2', 10, '1 hour');
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w2'', ''1 hour'')', :'operation_id'));
SELECT name, state FROM idem_reconcile('over queue', 'w2', 10, '1 hour');

-- Bad input: nothing is taken.
SELECT state FROM idem_intend(:'ticket', 'bad', 'bad queue', send => true);
CALL pg_temp.refused('SELECT idem_dispatch(''bad queue'', ''w'', 0, ''1 hour'')');
CALL pg_temp.refused('SELECT idem_dispatch(''bad queue'', ''w'', 1000000, ''1 hour'')');
CALL pg_temp.refused('SELECT idem_send(''00000000-0000-0000-0000-000000000000'', ''w'', ''1 hour'')');
SELECT call, pg_temp.code_of(replace('SELECT ' || call, '$', quote_literal(pg_temp.id('bad'))))
FROM unnest(ARRAY[
	'idem_dispatch(NULL, ''w'', 1, ''1 h'')', 'idem_dispatch('''', ''w'', 1, ''1 h'')',
	'idem_dispatch(repeat(''q'', 129), ''w'', 1, ''1 h'')',
	'idem_dispatch(''bad queue'', NULL, 1, ''1 h'')', 'idem_dispatch(''bad queue'', '' '', 1, ''1 h'')',
	'idem_dispatch(''bad queue'', '''', 1, ''1 h'')',
	'idem_dispatch(''bad queue'', repeat(''w'', 256), 1, ''1 h'')',
	'idem_dispatch(''bad queue'', ''w'', NULL, ''1 h'')', 'idem_dispatch(''bad queue'', ''w'', -1, ''1 h'')',
	'idem_dispatch(''bad queue'', ''w'', 10001, ''1 h'')',
	'idem_dispatch(''bad queue'', ''w'', 1, ''0'')', 'idem_dispatch(''bad queue'', ''w'', 1, ''-1 h'')',
	'idem_dispatch(''bad queue'', ''w'', 1, ''1 month'')',
	'idem_send(NULL, ''w'', ''1 h'')', 'idem_send($, NULL, ''1 h'')', 'idem_send($, '' '', ''1 h'')',
	'idem_send($, ''w'', ''0'')', 'idem_send($, ''w'', ''1 month'')', 'idem_send($, ''w'', ''-1 h'')',
	'idem_confirm(NULL, 1)', 'idem_retry(NULL, ''why'')', 'idem_retry($, NULL)', 'idem_retry($, '' '')',
	'idem_retry($, repeat(''r'', 1025))']) AS call;
SELECT state, tries, token FROM idem_intent WHERE operation_id = pg_temp.id('bad');
SELECT token FROM idem_send(pg_temp.id('bad'), repeat('w', 255), '36500 days') \gset
SELECT call, pg_temp.code_of(format('SELECT ' || call, pg_temp.id('bad'), :token))
FROM unnest(ARRAY['idem_reject(%L, %s, NULL)', 'idem_reject(%L, %s, '' '')', 'idem_reject(%L, %s, repeat(''r'', 1025))',
				  'idem_defer(%L, %s, NULL)', 'idem_defer(%L, %s, '' '')', 'idem_defer(%L, %s, repeat(''r'', 1025))']) AS call;
SELECT state, tries FROM idem_intent WHERE operation_id = pg_temp.id('bad');
BEGIN READ ONLY;
SELECT call, pg_temp.code_of(format('SELECT ' || call, pg_temp.id('bad'), :token)) AS read_only
FROM unnest(ARRAY['idem_dispatch(''queue'', ''w'', 1, ''1 h'')', 'idem_send(%L, ''w'', ''1 h'')',
				  'idem_confirm(%L, %s)', 'idem_retry(%L, ''why'')']) AS call;
ROLLBACK;
