-- Cancel: "did it happen?" answered for good.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE FUNCTION pg_temp.cancel(key text) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', outcome, state, attempt, token, response, code, headers, body)
	FROM idem_cancel('t', 'cancel', key, 'asked again')
$$;

-- What was never claimed is cancelled; whatever comes late is refused.
SELECT outcome, state, attempt, token, reason, completed_at IS NOT NULL AS completed, expires_at > completed_at AS expires
FROM idem_cancel('t', 'cancel', 'none', 'client gave up');
SELECT outcome, token FROM idem_claim('t', 'cancel', 'none', '1');
SELECT outcome, token FROM idem_claim('t', 'cancel', 'none', lease => '1 hour');
SELECT outcome FROM idem_replay('t', 'cancel', 'none', '2');
CALL pg_temp.refused('SELECT idem_require(idem_claim(''t'', ''cancel'', ''none'', ''1''))');
SELECT ctid AS none FROM idem_record WHERE operation = 'cancel' AND key = 'none' \gset before_
SELECT pg_temp.cancel('none');
SELECT ctid = :'before_none' AS unchanged, reason FROM idem_record WHERE operation = 'cancel' AND key = 'none';
SELECT attempt, from_state, to_state, actor = session_user AS actor, reason FROM idem_event WHERE operation = 'cancel';

-- Rolled back it never was.
BEGIN;
SELECT pg_temp.cancel('rolled back');
SELECT outcome FROM idem_claim('t', 'cancel', 'rolled back');
ROLLBACK;
BEGIN;
SELECT outcome FROM idem_claim('t', 'cancel', 'rolled back');
ROLLBACK;

-- What stands there already stays, and its answer is not shown to somebody who
-- does not say what he asked for.
BEGIN;
SELECT idem_claim('t', 'cancel', 'atomic', '1') AS ticket \gset
SELECT pg_temp.cancel('atomic');
SELECT idem_complete(:'ticket'::idem_ticket, '"secret"');
SELECT pg_temp.cancel('atomic');
COMMIT;
SELECT key, (idem_claim('t', 'cancel', key, '1', lease => lease, ttl => ttl)).outcome
FROM (VALUES ('live', interval '1 hour', NULL::interval), ('lapsed', '1 us', NULL), ('succeeded', '1 hour', NULL),
			 ('failed', '1 hour', NULL), ('expired', '1 hour', '1 us'), ('unknown', '1 hour', NULL)) AS v (key, lease, ttl);
SELECT idem_complete('t', 'cancel', key, token, '"secret"', 1, headers => '"secret"', body => 'secret')
FROM idem_record WHERE operation = 'cancel' AND key IN ('succeeded', 'expired');
SELECT idem_fail('t', 'cancel', key, token, '"secret"', 1, headers => '"secret"', body => 'secret')
FROM idem_record WHERE operation = 'cancel' AND key = 'failed';
SELECT idem_unknown(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'why')
FROM idem_record r WHERE operation = 'cancel' AND key = 'unknown';
SELECT md5(string_agg(ctid || r::text, ';' ORDER BY key)) AS records
FROM idem_record r WHERE operation = 'cancel' \gset before_
SELECT key, pg_temp.cancel(key)
FROM unnest(ARRAY['live', 'lapsed', 'succeeded', 'failed', 'expired', 'unknown']) AS key;
SELECT md5(string_agg(ctid || r::text, ';' ORDER BY key)) = :'before_records' AS unchanged
FROM idem_record r WHERE operation = 'cancel';
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();

-- A cancellation expires like an answer, and stays a refusal.
SELECT version FROM idem_define('cancel soon', ttl => '1 us');
SELECT outcome FROM idem_cancel('t', 'cancel soon', 'a', 'why');
SELECT outcome, token FROM idem_claim('t', 'cancel soon', 'a');

-- Bad input.
SELECT args, pg_temp.code_of('SELECT idem_cancel(' || args || ')')
FROM unnest(ARRAY['NULL, ''cancel'', ''bad'', ''why''', '''t'', NULL, ''bad'', ''why''', '''t'', ''cancel'', NULL, ''why''',
	''' '', ''cancel'', ''bad'', ''why''', '''t'', '''', ''bad'', ''why''', '''t'', ''cancel'', E''\n'', ''why''',
	'''t'', ''cancel'', repeat(''k'', 256), ''why''', '''t'', ''cancel'', ''bad'', NULL',
	'''t'', ''cancel'', ''bad'', '' ''', '''t'', ''cancel'', ''bad'', repeat(''r'', 1025)']) AS args;
SELECT count(*) AS records FROM idem_record WHERE operation = 'cancel' AND key = 'bad';
SELECT outcome FROM idem_cancel('t', 'cancel', 'bad', repeat('r', 1024));
BEGIN READ ONLY;
SELECT pg_temp.code_of('SELECT idem_cancel(''t'', ''cancel'', ''read only'', ''why'')') AS read_only;
ROLLBACK;

-- What it cannot cancel it lets go of at once.
SELECT idem_complete(idem_claim('t', 'cancel', 'let go'), '1');
BEGIN;
SELECT outcome FROM idem_cancel('t', 'cancel', 'let go', 'why');
SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
ROLLBACK;
