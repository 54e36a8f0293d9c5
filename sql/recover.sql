-- Recovery: lapsed commands go to another worker, unless what they did
-- elsewhere is not known (cases 8 and 9).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
-- what other tests left behind
SELECT count(*) >= 0 AS drained FROM idem_recover('drain', 10000, '1 day');
CREATE VIEW pg_temp.commands AS
SELECT key, state, attempt, owner, lease_until > clock_timestamp() AS leased, reason
FROM idem_record WHERE operation = 'recover';

-- Only what has lapsed, the oldest first, at most n.
SELECT version FROM idem_define('recover', keep_request => true);
SELECT key, (idem_claim('t', 'recover', key, to_jsonb(key), lease => lease, owner => 'first')).outcome
FROM (VALUES ('a', interval '1 us'), ('b', '1 us'), ('c', '1 us'), ('live', '1 hour'), ('released', '1 us'),
			 ('succeeded', '1 us'), ('unknown', '1 us')) AS v (key, lease);
SELECT idem_release('t', 'recover', 'released', token) FROM idem_record WHERE operation = 'recover' AND key = 'released';
SELECT idem_complete('t', 'recover', 'succeeded', token) FROM idem_record WHERE operation = 'recover' AND key = 'succeeded';
SELECT idem_unknown(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'why')
FROM idem_record r WHERE operation = 'recover' AND key = 'unknown';
SELECT token AS a FROM idem_record WHERE operation = 'recover' AND key = 'a' \gset old_
SELECT key, outcome, state, attempt, request, owner, token > 0 AS token, lease_until > clock_timestamp() AS leased
FROM idem_recover('w1', 2, '1 hour');
SELECT key, request FROM idem_recover('w2', 10000, '1 hour');
SELECT count(*) AS taken FROM idem_recover('w3', 10, '1 hour');
SELECT * FROM pg_temp.commands ORDER BY key;
SELECT key, attempt, intent, from_state, to_state, actor = session_user AS actor, reason
FROM idem_event WHERE operation = 'recover' AND key IN ('a', 'b', 'c') ORDER BY id;

-- The first owner is fenced off in every call; the new one goes on.
SELECT to_jsonb(r) AS a, md5(r::text) AS md5 FROM idem_record r WHERE operation = 'recover' AND key = 'a' \gset new_
SELECT call, pg_temp.code_of(format('SELECT ' || call,
		jsonb_populate_record(NULL::idem_ticket, :'new_a' || jsonb_build_object('token', :old_a)))) AS old
FROM unnest(ARRAY['idem_heartbeat(%L::idem_ticket, ''1 day'')', 'idem_hold(%L::idem_ticket)', 'idem_step(%L, ''one'')',
				  'idem_step_done(%L, ''one'')', 'idem_intend(%L, ''one'', ''bank'')', 'idem_unknown(%L, ''why'')',
				  'idem_release(%L::idem_ticket)', 'idem_fail(%L::idem_ticket)', 'idem_complete(%L::idem_ticket, ''"old"'')']) AS call;
SELECT md5(r::text) = :'new_md5' AS unchanged FROM idem_record r WHERE operation = 'recover' AND key = 'a';
SELECT idem_complete(jsonb_populate_record(NULL::idem_ticket, :'new_a'), '"new"');
SELECT pg_temp.code_of(format('SELECT idem_complete(''t'', ''recover'', ''a'', %s, ''"old"'')', :old_a)) AS old;
SELECT outcome, attempt, response FROM idem_replay('t', 'recover', 'a', '"a"');

-- By what an intent of it has come to: in flight or unknown, nobody may run it.
SELECT version FROM idem_define('recover');
SELECT count(idem_intend(idem_claim('t', 'recover', n, lease => '1 us'), n, 'recover bank', send => true))
FROM unnest(ARRAY['pending', 'in_flight', 'asked', 'late', 'confirmed', 'rejected']) AS n;
SELECT count(idem_send(idem_operation_id('t', 'recover', n, n), 'w', lease))
FROM (VALUES ('in_flight', interval '1 hour'), ('asked', '1 us'), ('late', '1 us'), ('confirmed', '1 us'),
	('rejected', '1 us')) AS v (n, lease);
SELECT count(idem_confirm(operation_id, token)) FROM idem_intent WHERE operation = 'recover' AND name = 'confirmed';
SELECT count(idem_reject(operation_id, token, 'no')) FROM idem_intent WHERE operation = 'recover' AND name = 'rejected';
SELECT name FROM idem_reconcile('recover bank', 'w', 1, '1 hour');
SELECT key, outcome, attempt FROM idem_recover('w1', 10, '1 hour') ORDER BY key;
SELECT * FROM pg_temp.commands WHERE key IN (SELECT name FROM idem_intent WHERE operation = 'recover') ORDER BY key;
SELECT key, attempt, from_state, to_state, reason FROM idem_event
WHERE operation = 'recover' AND key IN ('in_flight', 'late', 'asked') AND intent IS NULL ORDER BY key;
SELECT key, outcome, token FROM unnest(ARRAY['in_flight', 'late', 'asked']) AS n,
	idem_claim('t', 'recover', n, lease => '1 hour');

-- max_attempts: to an operator, not to the next worker.
SELECT version FROM idem_define('recover twice', max_attempts => 2);
SELECT outcome FROM idem_claim('t', 'recover twice', 'a', lease => '1 us');
SELECT outcome, attempt FROM idem_recover('w', 10, '1 us');
SELECT outcome, attempt FROM idem_recover('w', 10, '1 us');
SELECT state, attempt, reason FROM idem_record WHERE operation = 'recover twice';
-- n bounds those too: what one call locks and writes has an end
SELECT count(idem_claim('t', 'recover twice', n::text, lease => '1 us')) FROM generate_series(1, 20) AS n;
SELECT version FROM idem_define('recover twice', max_attempts => 1);
SELECT count(*) AS resumed FROM idem_recover('w', 5, '1 hour');
SELECT count(*) <= 5 AS at_most_5 FROM idem_record WHERE operation = 'recover twice' AND state = 'unknown' AND key <> 'a';
SELECT count(*) >= 0 AS drained FROM generate_series(1, 4), idem_recover('drain', 10000, '1 day');

-- Bad input: nothing is taken.
SELECT outcome FROM idem_claim('t', 'recover', 'bad', lease => '1 us');
CALL pg_temp.refused('SELECT idem_recover(''w'', 0, ''1 hour'')');
SELECT call, pg_temp.code_of('SELECT idem_recover(' || call || ')')
FROM unnest(ARRAY['NULL, 1, ''1 h''', ''''', 1, ''1 h''', ''' '', 1, ''1 h''', 'repeat(''w'', 256), 1, ''1 h''',
	'''w'', NULL, ''1 h''', '''w'', -1, ''1 h''', '''w'', 10001, ''1 h''', '''w'', 1000000, ''1 h''',
	'''w'', 1, ''0''', '''w'', 1, ''-1 h''', '''w'', 1, ''1 month''']) AS call;
SELECT state, attempt FROM pg_temp.commands WHERE key = 'bad';
BEGIN READ ONLY;
SELECT pg_temp.code_of('SELECT idem_recover(''w'', 1, ''1 h'')') AS read_only;
ROLLBACK;
SELECT key, attempt FROM idem_recover(repeat('w', 255), 1, '36500 days');
BEGIN;
SELECT idem_claim('t', 'recover', 'atomic') AS ticket \gset
SELECT pg_temp.code_of(format('SELECT idem_unknown(%L, ''why'')', :'ticket')) AS atomic;
ROLLBACK;
SELECT idem_claim('t', 'recover', 'live', '"live"') AS ticket \gset
SELECT pg_temp.code_of(format('SELECT idem_unknown(%L, ''why'')', :'ticket')) AS no_token,
	   pg_temp.code_of('SELECT idem_unknown(NULL, ''why'')') AS no_ticket;
SELECT idem_claim('t', 'recover', 'reason', lease => '1 hour') AS ticket \gset
SELECT reason, pg_temp.code_of(format('SELECT idem_unknown(%L, %L)', :'ticket', reason))
FROM unnest(ARRAY[NULL, '', E'\t']) AS reason;
SELECT pg_temp.code_of(format('SELECT idem_unknown(%L, repeat(''r'', 1025))', :'ticket')) AS too_long,
	   pg_temp.code_of(format('SELECT idem_unknown(%L, repeat(''r'', 1024))', :'ticket')) AS longest,
	   pg_temp.code_of(format('SELECT idem_unknown(%L, ''again'')', :'ticket')) AS again;
SELECT state, length(reason) FROM pg_temp.commands WHERE key = 'reason';

-- What this transaction is about to complete is not handed to a worker.
SELECT count(idem_unknown(idem_claim('t', 'recover own', 'k', lease => '1 hour'), 'cannot tell')) AS unknown;
SELECT count(idem_resolve('t', 'recover own', 'k', 'released', 'nothing happened')) AS resolved;
BEGIN;
SELECT idem_claim('t', 'recover own', 'k') AS ticket \gset
SELECT key FROM idem_recover('w', 1000, '1 hour') WHERE operation = 'recover own';
SELECT count(idem_complete(:'ticket'::idem_ticket, '1')) AS completed;
COMMIT;
SELECT state, attempt, once_more, unknown_at, reason FROM idem_record WHERE operation = 'recover own';

-- A command that was claimed without a request has none to hand on.
SELECT version FROM idem_define('recover keep', keep_request => true);
SELECT outcome FROM idem_claim('t', 'recover keep', 'no request', lease => '1 us');
SELECT outcome, request FROM idem_recover('w', 1000, '1 hour') WHERE key = 'no request';
SELECT request FROM idem_record WHERE operation = 'recover keep' AND key = 'no request';
