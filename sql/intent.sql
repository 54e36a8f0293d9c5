-- Intents: noted once per name, with an operation id that every attempt
-- shares, and committed or rolled back with the rest.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- The operation id depends on address and name alone (case 13).
SELECT idem_operation_id('t', 'intent', 'a', 'pay');
SELECT count(DISTINCT idem_operation_id(a, b, c, d)) AS different
FROM (VALUES ('t', 'intent', 'a', 'pay'), ('tintent', 'a', 'pay', ''),
			 ('ti', 'ntent', 'a', 'pay'), ('t', 'intenta', '', 'pay'),
			 ('t', 'intent', 'ap', 'ay'), ('t', 'intent', 'a', 'Pay'),
			 ('t', 'intent', 'a', 'pay ')) AS parts (a, b, c, d);
SELECT idem_operation_id('é', 'intent', 'a', '支払い')::text
	   ~ '^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' AS version_8;

SELECT idem_claim('t', 'intent', 'a', '1', lease => '1 hour') AS ticket \gset
SELECT operation_id = idem_operation_id('t', 'intent', 'a', 'pay') AS operation_id,
	   tenant, operation, key, name, target, state, request, send, resend_safe_for,
	   tries, token, worker, lease_until, first_sent_at, settled_at, response, evidence,
	   created_at <= clock_timestamp() AND due_at <= clock_timestamp() AS due
FROM idem_intend(:'ticket', 'pay', 'bank', '{"amount": 10, "for": "a"}',
				 send => true, resend_safe_for => '24 hours');
SELECT send, resend_safe_for, request IS NULL AS no_request
FROM idem_intend(:'ticket', 'mail', 'smtp');
SELECT send FROM idem_intend(:'ticket', 'other mail', 'smtp', send => NULL);

-- Called again it returns what is there, and changes nothing.
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) AS intents
FROM idem_intent AS i WHERE operation = 'intent' \gset before_
SELECT name, state, request
FROM idem_intend(:'ticket', 'pay', 'bank', '{"for": "a", "amount": 10.0}', true, '24 hours');
CALL pg_temp.refused(format('SELECT idem_intend(%L, ''pay'', ''other bank'', ''{"amount": 10, "for": "a"}'')', :'ticket'));
SELECT call, pg_temp.code_of(format('SELECT idem_intend(%L, ' || call || ')', :'ticket'))
FROM unnest(ARRAY['''pay'', ''bank''', '''pay'', ''bank'', ''null''',
				  '''pay'', ''bank'', ''{"amount": 11, "for": "a"}''',
				  '''mail'', ''smtp'', ''null''', '''mail'', ''SMTP''']) AS call;
SELECT md5(string_agg(ctid || i::text, ';' ORDER BY name)) = :'before_intents' AS unchanged
FROM idem_intent AS i WHERE operation = 'intent';

-- The next attempt finds the same intent with what became of it.
SELECT operation_id, token FROM idem_send(idem_operation_id('t', 'intent', 'a', 'pay'), 'me', '1 hour') \gset
SELECT state FROM idem_confirm(:'operation_id', :token, '{"id" :  "x1"}');
SELECT idem_heartbeat(:'ticket'::idem_ticket, '1 us') IS NOT NULL AS lapsed;
SELECT idem_claim('t', 'intent', 'a', '1', lease => '1 hour') AS ticket \gset second_
SELECT (:'second_ticket'::idem_ticket).outcome, (:'second_ticket'::idem_ticket).attempt;
SELECT operation_id = :'operation_id' AS same_id, state, response
FROM idem_intend(:'second_ticket', 'pay', 'bank', '{"amount": 10, "for": "a"}');
-- the old one's ticket is stale
SELECT pg_temp.code_of(format('SELECT idem_intend(%L, ''pay'', ''bank'', ''{"amount": 10, "for": "a"}'')',
		:'ticket')) AS noted,
	   pg_temp.code_of(format('SELECT idem_intend(%L, ''new'', ''bank'')', :'ticket')) AS new,
	   pg_temp.code_of(format('SELECT idem_unknown(%L, ''why'')', :'ticket')) AS unknown;

-- With an atomic claim: an outbox that commits or rolls back with it.
BEGIN;
SELECT idem_claim('t', 'intent', 'atomic', '1') AS ticket \gset
SELECT state FROM idem_intend(:'ticket', 'mail', 'smtp', '1', send => true);
ROLLBACK;
SELECT count(*) AS intents FROM idem_intent WHERE operation = 'intent' AND key = 'atomic';
BEGIN;
SELECT idem_claim('t', 'intent', 'atomic', '1') AS ticket \gset
SAVEPOINT s;
SELECT state FROM idem_intend(:'ticket', 'mail', 'smtp', '1', send => true);
ROLLBACK TO s;
SELECT state, request FROM idem_intend(:'ticket', 'mail', 'smtp', '2', send => true);
-- what will be sent cannot be called "nothing happened"
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket)', :'ticket'));
SELECT idem_complete(:'ticket'::idem_ticket, '"done"');
COMMIT;
SELECT r.state AS command, i.state, i.request FROM idem_record r JOIN idem_intent i USING (tenant, operation, key)
WHERE operation = 'intent' AND key = 'atomic';

-- A replay creates no intents, nor does any other ticket without a right.
SELECT idem_claim('t', 'intent', 'atomic', '1') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome,
	   pg_temp.code_of(format('SELECT idem_intend(%L, ''mail'', ''smtp'', ''2'')', :'ticket')) AS noted,
	   pg_temp.code_of(format('SELECT idem_intend(%L, ''more'', ''smtp'')', :'ticket')) AS new;
SELECT verb, pg_temp.code_of(format('SELECT idem_intend(%L, ''late'', ''smtp'')', ticket)) AS intend
FROM unnest(ARRAY['complete(%L)', 'fail(%L)', 'release(%L)', 'unknown(%L, ''why'')']) AS verb,
	 LATERAL idem_claim('t', 'intent', 'ended ' || verb, lease => '1 hour') AS ticket,
	 LATERAL pg_temp.code_of(format('SELECT idem_' || replace(verb, '%L', '%L::idem_ticket'), ticket)) AS done
WHERE done = 'accepted';

-- Release says that nothing happened: refused unless every intent is rejected.
SELECT idem_claim('t', 'intent', 'release', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'pay', 'release bank') \gset
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS pending;
SELECT token FROM idem_send(:'operation_id', 'me', '1 us') \gset
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS in_flight;
SELECT token FROM idem_reconcile('release bank', 'me', 1, '1 hour') \gset
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS unknown;
SELECT state FROM idem_reject(:'operation_id', :token, 'card is blocked');
SELECT pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS rejected;

-- A confirmed one has happened: were its command released, another one with its
-- guard would do the same again, and nobody would run the first to its end.
SELECT idem_claim('t', 'intent', 'confirmed', '1', guard => 'cart', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'pay', 'release bank') \gset
SELECT token FROM idem_send(:'operation_id', 'me', '1 hour') \gset
SELECT state FROM idem_confirm(:'operation_id', :token);
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_release(''t'', ''intent'', ''confirmed'', %L)',
							(:'ticket'::idem_ticket).token));
SELECT outcome, duplicate_of FROM idem_claim('t', 'intent', 'twin', '2', guard => 'cart');
-- who takes over goes on from there, and cannot give it back either
SELECT idem_heartbeat(:'ticket'::idem_ticket, '1 us') IS NOT NULL AS lapsed;
BEGIN;
SELECT idem_claim('t', 'intent', 'confirmed', '1') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome, pg_temp.code_of(format('SELECT idem_release(%L::idem_ticket)', :'ticket')) AS release;
SELECT state FROM idem_intend(:'ticket', 'pay', 'release bank');
SELECT idem_complete(:'ticket'::idem_ticket, '"paid"');
COMMIT;

-- Bad input.
SELECT idem_claim('t', 'intent', 'bad', lease => '1 hour') AS ticket \gset
CALL pg_temp.refused(format('SELECT idem_intend(%L, repeat(''n'', 129), ''x'')', :'ticket'));
SELECT call, pg_temp.code_of(format('SELECT idem_intend(%L, ' || call || ')', :'ticket'))
FROM unnest(ARRAY['NULL, ''x''', ''''', ''x''', ''' '', ''x''', '''n'', NULL', '''n'', ''''', '''n'', '' ''',
				  '''n'', repeat(''é'', 129)',
				  '''n'', ''x'', resend_safe_for => ''0''',
				  '''n'', ''x'', resend_safe_for => ''-1 s''',
				  '''n'', ''x'', resend_safe_for => ''1 month''',
				  '''n'', ''x'', resend_safe_for => ''36501 days''']) AS call;
SELECT count(*) AS intents FROM idem_intent WHERE operation = 'intent' AND key = 'bad';
SELECT length(name), length(target), resend_safe_for
FROM idem_intend(:'ticket', repeat('é', 128), repeat('é', 128), resend_safe_for => '36500 days');
SELECT pg_temp.code_of('SELECT idem_intend(NULL, ''n'', ''x'')') AS no_ticket;
BEGIN READ ONLY;
SELECT pg_temp.code_of(format('SELECT idem_intend(%L, ''n'', ''x'')', :'ticket')) AS read_only;
ROLLBACK;
