-- Resolve: a person's decision on a command of which nobody knows more.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SELECT key, idem_unknown(idem_claim('t', 'resolve', key, '1', lease => '1 hour', ttl => '2 days'), 'cannot tell')
FROM unnest(ARRAY['succeeded', 'failed', 'released', 'bad']) AS key;

-- succeeded and failed store an answer, which every later claim replays.
SELECT idem_resolve('t', 'resolve', 'succeeded', 'succeeded', 'seen in the ledger',
	'{"id" : 7}', 201, 'order/7', '{"h": 1}', '\x00ff');
SELECT outcome, state, attempt, response, code, resource, headers, body, token, expires_at - completed_at AS ttl
FROM idem_claim('t', 'resolve', 'succeeded', '1');
SELECT idem_resolve('t', 'resolve', 'failed', 'failed', 'never arrived', '"no"', 402);
SELECT outcome, state, response, code FROM idem_claim('t', 'resolve', 'failed', '1');
SELECT outcome FROM idem_claim('t', 'resolve', 'failed', '2');

-- released: the same request may run again.
SELECT idem_resolve('t', 'resolve', 'released', 'released', 'nothing was done');
SELECT state, attempt, reason, completed_at, lease_until FROM idem_record WHERE operation = 'resolve' AND key = 'released';
SELECT outcome FROM idem_claim('t', 'resolve', 'released', '2');
SELECT outcome, attempt FROM idem_claim('t', 'resolve', 'released', '1', lease => '1 hour');
SELECT key, attempt, from_state, to_state, actor = session_user AS actor, reason
FROM idem_event WHERE operation = 'resolve' AND key <> 'bad' ORDER BY id;

-- The operator knows no more than an intent that is in flight or unknown.
SELECT idem_claim('t', 'resolve', 'intent', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'pay', 'resolve bank') \gset
SELECT state FROM idem_send(:'operation_id', 'w', '1 us');
SELECT idem_unknown(:'ticket', 'connection lost');
CALL pg_temp.refused('SELECT idem_resolve(''t'', ''resolve'', ''intent'', ''released'', ''why'')');
SELECT state, pg_temp.code_of(format('SELECT idem_resolve(''t'', ''resolve'', ''intent'', %L, ''why'')', state)) AS in_flight
FROM unnest(ARRAY['succeeded', 'failed', 'released']) AS state;
SELECT token FROM idem_reconcile('resolve bank', 'w', 1, '1 hour') \gset
SELECT state, pg_temp.code_of(format('SELECT idem_resolve(''t'', ''resolve'', ''intent'', %L, ''why'')', state)) AS unknown
FROM unnest(ARRAY['succeeded', 'failed', 'released']) AS state;
SELECT state FROM idem_settle(:'operation_id', :token, 'happened', '1');
SELECT state FROM idem_record WHERE operation = 'resolve' AND key = 'intent';

-- Only an unknown command is decided.
SELECT outcome FROM idem_claim('t', 'resolve', 'processing', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'resolve', 'lapsed', lease => '1 us');
SELECT outcome FROM idem_cancel('t', 'resolve', 'cancelled', 'why');
CALL pg_temp.refused('SELECT idem_resolve(''t'', ''resolve'', ''processing'', ''succeeded'', ''why'')');
SELECT md5(string_agg(ctid || r::text, ';' ORDER BY key)) AS records
FROM idem_record r WHERE operation = 'resolve' \gset before_
SELECT key, pg_temp.code_of(format('SELECT idem_resolve(''t'', ''resolve'', %L, ''failed'', ''why'')', key)) AS failed,
	   pg_temp.code_of(format('SELECT idem_resolve(''t'', ''resolve'', %L, ''released'', ''why'')', key)) AS released
FROM unnest(ARRAY['none', 'processing', 'lapsed', 'succeeded', 'cancelled']) AS key;
SELECT md5(string_agg(ctid || r::text, ';' ORDER BY key)) = :'before_records' AS unchanged
FROM idem_record r WHERE operation = 'resolve';

-- Bad input: the command is still unknown, and can be resolved otherwise.
CALL pg_temp.refused('SELECT idem_resolve(''t'', ''resolve'', ''bad'', ''processing'', ''why'')');
SELECT args, pg_temp.code_of('SELECT idem_resolve(''t'', ''resolve'', ' || args || ')')
FROM unnest(ARRAY['''bad'', NULL, ''why''', '''bad'', '''', ''why''', '''bad'', ''Succeeded'', ''why''',
	'''bad'', ''unknown'', ''why''', '''bad'', ''cancelled'', ''why''', '''bad'', ''none'', ''why''',
	'''bad'', ''failed'', NULL', '''bad'', ''failed'', ''''', '''bad'', ''failed'', repeat(''r'', 1025)',
	'''bad'', ''failed'', ''why'', resource => ''''', '''bad'', ''failed'', ''why'', resource => repeat(''r'', 1025)',
	'NULL, ''failed'', ''why''', ''' '', ''failed'', ''why''', 'repeat(''k'', 256), ''failed'', ''why''']) AS args;
SET idempotency.max_response_size = '10B';
SELECT pg_temp.code_of('SELECT idem_resolve(''t'', ''resolve'', ''bad'', ''succeeded'', ''why'',
		''"12345678 "'')') AS too_large,
	   pg_temp.code_of('SELECT idem_resolve(''t'', ''resolve'', ''bad'', ''succeeded'', ''why'', ''"12345678"'')') AS fits;
RESET idempotency.max_response_size;
SELECT state, response FROM idem_record WHERE operation = 'resolve' AND key = 'bad';
BEGIN READ ONLY;
SELECT pg_temp.code_of('SELECT idem_resolve(''t'', ''resolve'', ''bad'', ''failed'', ''why'')') AS read_only;
ROLLBACK;
