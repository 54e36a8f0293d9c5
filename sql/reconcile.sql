-- Reconciliation: intents whose outcome nobody knows are handed out to be
-- asked about, and a verdict with its evidence moves them (case 13).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CREATE FUNCTION pg_temp.state(key text) RETURNS text LANGUAGE sql AS
	$$ SELECT state FROM idem_record WHERE operation = 'reconcile' AND idem_record.key = state.key $$;

-- Only what was sent and whose lease has lapsed, to one worker at a time.
SELECT idem_claim('t', 'reconcile', 'a', lease => '1 hour') AS ticket \gset
SELECT count(idem_intend(:'ticket', name, 'bank a', send => true))
FROM unnest(ARRAY['one', 'two', 'three', 'live', 'pending']) AS name;
SELECT max(operation_id::text) FILTER (WHERE name = 'one') AS one,
	   max(operation_id::text) FILTER (WHERE name = 'two') AS two,
	   max(operation_id::text) FILTER (WHERE name = 'three') AS three,
	   max(operation_id::text) FILTER (WHERE name = 'live') AS live
FROM idem_intent WHERE operation = 'reconcile' \gset
SELECT token AS one, doubt_since FROM idem_send(:'one', 'sender', '1 us') \gset sent_
SELECT state FROM idem_send(:'two', 'sender', '1 us');
SELECT state FROM idem_send(:'three', 'sender', '1 us');
SELECT state FROM idem_send(:'live', 'sender', '1 hour');
SELECT count(*) AS taken FROM idem_reconcile('no bank', 'r', 10, '1 hour');
SELECT string_agg(name, ', ' ORDER BY first_sent_at) AS taken FROM idem_reconcile('bank a', 'r1', 2, '1 hour');
SELECT name, state, tries, worker, reason FROM idem_reconcile('bank a', 'r2', 10, '1 us');
SELECT name, state, worker FROM idem_reconcile('bank a', 'r3', 10, '1 hour');
SELECT count(*) AS taken FROM idem_reconcile('bank a', 'r4', 10, '1 hour');
SELECT name, state, tries, worker, first_sent_at IS NOT NULL AS sent, lease_until > clock_timestamp() AS leased
FROM idem_intent WHERE operation = 'reconcile' ORDER BY created_at;
-- who sent it has nothing to say any more, but its outcome is no failure
SELECT call, pg_temp.code_of(format('SELECT ' || call, :'one', :sent_one))
FROM unnest(ARRAY['idem_confirm(%L, %s)', 'idem_reject(%L, %s, ''no'')', 'idem_defer(%L, %s, ''no'')',
				  'idem_settle(%L, %s, ''happened'', ''1'')']) AS call;
SELECT pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', :'one')) AS send,
	   pg_temp.code_of(format('SELECT idem_retry(%L, ''why'')', :'one')) AS retry,
	   pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS release;

-- happened: confirmed, with evidence and the answer that was found.
SELECT token AS one FROM idem_intent WHERE operation_id = :'one' \gset token_
SELECT token AS two FROM idem_intent WHERE operation_id = :'two' \gset token_
SELECT token AS three FROM idem_intent WHERE operation_id = :'three' \gset token_
SELECT state, reason, response, evidence, lease_until, settled_at IS NOT NULL AS settled
FROM idem_settle(:'one', :token_one, 'happened', '{"asked": "bank", "found": 1}', '{"id" : 1}');
SELECT ctid AS one FROM idem_intent WHERE operation_id = :'one' \gset before_
SELECT state FROM idem_settle(:'one', :token_one, 'happened', '{"asked": "bank", "found": 1}', '{"id" : 1}');
SELECT ctid = :'before_one' AS unchanged FROM idem_intent WHERE operation_id = :'one';

-- absent: pending again, to be sent with the same operation id and a new window.
SELECT state, reason, evidence, token, lease_until, doubt_since, tries, due_at <= clock_timestamp() AS due
FROM idem_settle(:'two', :token_two, 'absent', '"not there"');
SELECT operation_id = :'two' AS same_id, tries, doubt_since > :'sent_doubt_since' AS new_window
FROM idem_send(:'two', 'sender', '1 us');
-- the evidence of every verdict is kept
SELECT token AS two FROM idem_reconcile('bank a', 'r1', 1, '1 hour') \gset token_
SELECT state, evidence FROM idem_settle(:'two', :token_two, 'happened', '"there now"');

-- unclear: still unknown, and handed out again at once.
SELECT state, reason, evidence, token FROM idem_settle(:'three', :token_three, 'unclear', '"bank is down"');
SELECT pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', :'three')) AS send;
SELECT token AS three FROM idem_reconcile('bank a', 'r1', 10, '1 hour') \gset token_
-- a reconciler may also know better
SELECT state, reason, evidence FROM idem_reject(:'three', :token_three, 'refused by the bank');

-- A contradicting verdict is refused and changes nothing.
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) AS intents
FROM idem_intent AS i WHERE operation = 'reconcile' \gset before_
CALL pg_temp.refused(format('SELECT idem_settle(%L, %s, ''absent'', ''1'')', :'one', :token_one));
SELECT name, pg_temp.code_of(format('SELECT idem_settle(%L, %s, ''absent'', ''1'')', operation_id, token))
FROM idem_intent WHERE operation = 'reconcile' AND state = 'confirmed' ORDER BY name;
SELECT pg_temp.code_of(format('SELECT idem_settle(%L, %s, ''happened'', ''1'')', :'three', :token_three)) AS rejected,
	   pg_temp.code_of(format('SELECT idem_confirm(%L, %s)', :'three', :token_three)) AS rejected_too;
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) = :'before_intents' AS unchanged
FROM idem_intent AS i WHERE operation = 'reconcile';

-- The last open question of an unknown command releases it; one before does not.
SELECT idem_claim('t', 'reconcile', 'b', '1', lease => '1 us') AS ticket \gset
SELECT operation_id AS one FROM idem_intend(:'ticket', 'one', 'bank b') \gset
SELECT operation_id AS two FROM idem_intend(:'ticket', 'two', 'bank b') \gset
SELECT state FROM idem_send(:'one', 'sender', '1 us');
SELECT state FROM idem_send(:'two', 'sender', '1 us');
SELECT outcome, state, reason FROM idem_claim('t', 'reconcile', 'b', '1');
SELECT outcome FROM idem_replay('t', 'reconcile', 'b', '1');
SELECT count(*) AS taken FROM idem_reconcile('bank b', 'r1', 10, '1 hour');
SELECT token AS one FROM idem_intent WHERE operation_id = :'one' \gset token_
SELECT token AS two FROM idem_intent WHERE operation_id = :'two' \gset token_
SELECT state FROM idem_settle(:'one', :token_one, 'absent', '1');
SELECT pg_temp.state('b') AS command;
SELECT state FROM idem_settle(:'two', :token_two, 'unclear', '1');
SELECT pg_temp.state('b') AS command;
SELECT token AS two FROM idem_reconcile('bank b', 'r1', 10, '1 hour') \gset token_
SELECT state FROM idem_settle(:'two', :token_two, 'happened', '1', '"charged"');
SELECT state, reason, lease_until, unknown_at FROM idem_record WHERE operation = 'reconcile' AND key = 'b';
-- it may run again, by the same request only, and finds what happened
SELECT outcome FROM idem_claim('t', 'reconcile', 'b', '2');
SELECT idem_claim('t', 'reconcile', 'b', '1', lease => '1 hour') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome, (:'ticket'::idem_ticket).attempt;
SELECT i.name, i.state, i.response FROM unnest(ARRAY['one', 'two']) AS n,
	idem_intend(:'ticket', n, 'bank b') AS i;

-- A live command stays what it is, and so does one that ended.
SELECT idem_claim('t', 'reconcile', 'c', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'one', 'bank c') \gset
SELECT state FROM idem_send(:'operation_id', 'sender', '1 us');
SELECT token FROM idem_reconcile('bank c', 'r1', 10, '1 us') \gset
SELECT state FROM idem_settle(:'operation_id', :token, 'absent', '1');
SELECT pg_temp.state('c') AS command;
SELECT state FROM idem_send(:'operation_id', 'sender', '1 us');
SELECT idem_complete(:'ticket'::idem_ticket, '"done"');
SELECT token FROM idem_reconcile('bank c', 'r1', 10, '1 us') \gset
SELECT state FROM idem_settle(:'operation_id', :token, 'happened', '1');
SELECT pg_temp.state('c') AS command;

-- Bad input.
SELECT idem_claim('t', 'reconcile', 'bad', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'one', 'bad bank') \gset
SELECT state FROM idem_send(:'operation_id', 'sender', '1 us');
SELECT call, pg_temp.code_of('SELECT idem_reconcile(' || call || ')')
FROM unnest(ARRAY['NULL, ''r'', 1, ''1 h''', ''' '', ''r'', 1, ''1 h''', 'repeat(''b'', 129), ''r'', 1, ''1 h''',
	'''bad bank'', NULL, 1, ''1 h''', '''bad bank'', '''', 1, ''1 h''', '''bad bank'', repeat(''r'', 256), 1, ''1 h''',
	'''bad bank'', ''r'', NULL, ''1 h''', '''bad bank'', ''r'', 0, ''1 h''', '''bad bank'', ''r'', 1000000, ''1 h''',
	'''bad bank'', ''r'', 1, ''0''', '''bad bank'', ''r'', 1, ''1 month''']) AS call;
SELECT state FROM idem_intent WHERE operation_id = :'operation_id';
SELECT token FROM idem_reconcile('bad bank', 'r1', 1, '1 hour') \gset
CALL pg_temp.refused(format('SELECT idem_settle(%L, %s, ''Happened'', ''1'')', :'operation_id', :token));
CALL pg_temp.refused(format('SELECT idem_settle(%L, %s, ''absent'', NULL)', :'operation_id', :token));
SELECT pg_temp.code_of(format('SELECT idem_settle(%L, %s, NULL, ''1'')', :'operation_id', :token)) AS no_verdict,
	   pg_temp.code_of(format('SELECT idem_settle(%L, %s, '''', ''1'')', :'operation_id', :token)) AS blank_verdict,
	   pg_temp.code_of(format('SELECT idem_settle(%L, NULL, ''happened'', ''1'')', :'operation_id')) AS no_token,
	   pg_temp.code_of(format('SELECT idem_settle(%L, 42, ''happened'', ''1'')', :'operation_id')) AS wrong_token,
	   pg_temp.code_of('SELECT idem_settle(NULL, 42, ''happened'', ''1'')') AS no_intent,
	   pg_temp.code_of('SELECT idem_settle(''00000000-0000-0000-0000-000000000000'',
		42, ''happened'', ''1'')') AS unknown_intent;
SELECT state, evidence FROM idem_intent WHERE operation_id = :'operation_id';

-- A target that cannot say for a long time: the first evidence and the last stay.
SELECT operation_id AS id FROM idem_intend(idem_claim('t', 'reconcile', 'for long', lease => '1 hour'), 'pay', 'reconcile long') \gset
SELECT state FROM idem_send(:'id', 'w', '1 us');
DO $$
DECLARE
	asked idem_intent;
BEGIN
	FOR n IN 1..103 LOOP
		asked := idem_reconcile('reconcile long', 'w', 1, '1 hour');
		PERFORM idem_settle(asked.operation_id, asked.token, 'unclear', jsonb_build_object('asked', n));
	END LOOP;
END
$$;
SELECT state, jsonb_array_length(evidence), evidence -> 0 AS first, evidence -> 1 AS second, evidence -> -1 AS last
FROM idem_intent WHERE operation_id = :'id';
