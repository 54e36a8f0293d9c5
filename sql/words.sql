-- What the holder of a token says about an intent is said once: the same again
-- is accepted and changes nothing, another word is refused (ID003), and once
-- somebody else has it the token is stale (ID002, case 24).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- Hands an intent out: to be sent, or for a verdict to be asked about.
SELECT idem_claim('t', 'words', 'k', lease => '1 hour') AS ticket \gset
CREATE PROCEDURE pg_temp.hand_out(ticket idem_ticket, word text) LANGUAGE plpgsql AS $$
DECLARE
	intent idem_intent := idem_intend(ticket, word, 'words ' || word, send => true);
BEGIN
	COMMIT;
	PERFORM idem_send(intent.operation_id, 'w', CASE WHEN word ~ '^(confirm|reject|defer)' THEN interval '1 hour'
																							ELSE '1 us' END);
	IF word !~ '^(confirm|reject|defer)' THEN
		PERFORM idem_reconcile('words ' || word, 'r', 1, '1 hour');
	END IF;
END $$;
CREATE FUNCTION pg_temp.call(word text) RETURNS text LANGUAGE sql AS $$
SELECT CASE word
	WHEN 'confirm' THEN 'SELECT idem_confirm(%L, %s, ''{"id" : 1}'')'
	WHEN 'confirm other' THEN 'SELECT idem_confirm(%L, %s, ''{"id": 1}'')'
	WHEN 'reject' THEN 'SELECT idem_reject(%L, %s, ''no'', ''404'')'
	WHEN 'reject other reason' THEN 'SELECT idem_reject(%L, %s, ''never'', ''404'')'
	WHEN 'reject other response' THEN 'SELECT idem_reject(%L, %s, ''no'', ''410'')'
	WHEN 'reject no response' THEN 'SELECT idem_reject(%L, %s, ''no'')'
	WHEN 'defer' THEN 'SELECT idem_defer(%L, %s, ''busy'')'
	WHEN 'defer other' THEN 'SELECT idem_defer(%L, %s, ''very busy'')'
	WHEN 'happened' THEN 'SELECT idem_settle(%L, %s, ''happened'', ''"seen"'', ''{"id" : 1}'')'
	WHEN 'happened other evidence' THEN 'SELECT idem_settle(%L, %s, ''happened'', ''"seen again"'')'
	WHEN 'happened other response' THEN 'SELECT idem_settle(%L, %s, ''happened'', ''"seen"'', ''{"id": 1}'')'
	WHEN 'absent' THEN 'SELECT idem_settle(%L, %s, ''absent'', ''"not seen"'')'
	WHEN 'unclear' THEN 'SELECT idem_settle(%L, %s, ''unclear'', ''"down"'')'
	WHEN 'unclear other evidence' THEN 'SELECT idem_settle(%L, %s, ''unclear'', ''"still down"'')' END
$$;

-- Every word after every first word, by the same token, each in a transaction
-- that is rolled back.
CREATE TEMP TABLE firsts AS SELECT * FROM unnest(ARRAY['confirm', 'reject', 'defer', 'happened', 'absent', 'unclear'])
	WITH ORDINALITY AS f (first, n);
\set ECHO none
SELECT format('CALL pg_temp.hand_out(%L, %L)', :'ticket', first) FROM firsts \gexec
CREATE TEMP TABLE tokens AS SELECT name, token FROM idem_intent WHERE operation = 'words';
DO $$
DECLARE
	command text;
BEGIN
	FOR command IN SELECT format(pg_temp.call(name), operation_id, token) FROM idem_intent WHERE operation = 'words' LOOP
		EXECUTE command;
	END LOOP;
END $$;
\set ECHO all
SELECT name, state, token IS NOT NULL AS token, past_token IS NOT NULL AS past_token, reason, response, evidence
FROM idem_intent WHERE operation = 'words' ORDER BY name;
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) AS intents,
	   (SELECT count(*) FROM idem_event WHERE operation = 'words') AS events
FROM idem_intent AS i WHERE operation = 'words' \gset before_
SELECT first, string_agg(word, ', ' ORDER BY word) FILTER (WHERE code = 'accepted') AS accepted,
	   string_agg(word, ', ' ORDER BY word) FILTER (WHERE code = 'ID003') AS refused,
	   string_agg(word || ' ' || code, ', ') FILTER (WHERE code NOT IN ('accepted', 'ID003')) AS otherwise
FROM firsts JOIN tokens t ON t.name = first,
	 unnest(ARRAY['confirm', 'confirm other', 'reject', 'reject other reason', 'reject other response',
		'reject no response', 'defer', 'defer other', 'happened', 'happened other evidence',
		'happened other response', 'absent', 'unclear', 'unclear other evidence']) AS word,
	 pg_temp.code_of(format(pg_temp.call(word), idem_operation_id('t', 'words', 'k', first), t.token)) AS code
GROUP BY first, n ORDER BY n;
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) = :'before_intents' AS unchanged,
	   (SELECT count(*) FROM idem_event WHERE operation = 'words') = :before_events AS no_event
FROM idem_intent AS i WHERE operation = 'words';

-- A person's retry does not make the word another one; the next hand-out makes
-- the token stale, and nothing of what it knows is lost on the worker.
SELECT token AS deferred FROM tokens WHERE name = 'defer' \gset
SELECT idem_operation_id('t', 'words', 'k', 'defer') AS id \gset
SELECT state FROM idem_retry(:'id', 'now');
SELECT pg_temp.code_of(format(pg_temp.call('defer'), :'id', :deferred)) AS same,
	   pg_temp.code_of(format(pg_temp.call('confirm'), :'id', :deferred)) AS other;
SELECT state, past_token FROM idem_dispatch('words defer', 'w2', 1, '1 hour');
CALL pg_temp.refused(format(pg_temp.call('defer'), :'id', :deferred));
CALL pg_temp.refused(format(pg_temp.call('confirm'), :'id', :deferred));

-- So does a hand-out to somebody who asks again.
SELECT token AS unclear FROM tokens WHERE name = 'unclear' \gset
SELECT state, past_token FROM idem_reconcile('words unclear', 'r2', 1, '1 hour');
SELECT pg_temp.code_of(format(pg_temp.call('unclear'), idem_operation_id('t', 'words', 'k', 'unclear'), :unclear)) AS unclear;

-- A deferral of what was sent twice leaves the first call in question, until a
-- verdict has said that it did not happen.
SELECT operation_id AS id FROM idem_intend(:'ticket', 'doubt', 'words doubt', resend_safe_for => '1 day') \gset
SELECT doubtful FROM idem_send(:'id', 'w', '1 us');
SELECT doubtful, token FROM idem_send(:'id', 'w', '1 us') \gset
SELECT :'doubtful' AS doubtful, state, doubtful FROM idem_defer(:'id', :token, 'busy');
SELECT token FROM idem_reconcile('words doubt', 'r', 1, '1 hour') \gset
SELECT state, doubtful FROM idem_settle(:'id', :token, 'absent', '1');
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state, doubtful FROM idem_defer(:'id', :token, 'busy');

-- Refusals name the state, and say what to do.
SELECT token AS absent FROM tokens WHERE name = 'absent' \gset
CALL pg_temp.refused(format(pg_temp.call('happened'), idem_operation_id('t', 'words', 'k', 'absent'), :absent));
SELECT token AS confirmed FROM tokens WHERE name = 'confirm' \gset
CALL pg_temp.refused(format(pg_temp.call('absent'), idem_operation_id('t', 'words', 'k', 'confirm'), :confirmed));
SELECT operation_id AS id, token AS w2 FROM idem_intent WHERE operation = 'words' AND name = 'defer' \gset
CALL pg_temp.refused(format(pg_temp.call('absent'), :'id', :w2));
SELECT operation_id AS id, token AS r2 FROM idem_intent WHERE operation = 'words' AND name = 'unclear' \gset
CALL pg_temp.refused(format(pg_temp.call('defer'), :'id', :r2));

-- Evidence of any shape is kept whole, in the order of the verdicts.
SELECT operation_id AS id FROM idem_intend(:'ticket', 'evidence', 'words evidence') \gset
SELECT state FROM idem_send(:'id', 'w', '1 us');
DO $$
DECLARE
	id CONSTANT uuid := idem_operation_id('t', 'words', 'k', 'evidence');
	piece jsonb;
BEGIN
	FOR piece IN SELECT value FROM jsonb_array_elements('[null, [], [1, [2]], {}, {"a": {"b": [3]}}, "s", 4.0, true]') LOOP
		PERFORM idem_settle(id, token, 'unclear', piece) FROM idem_reconcile('words evidence', 'r', 1, '1 us');
	END LOOP;
END $$;
SELECT evidence FROM idem_intent WHERE operation_id = :'id';
