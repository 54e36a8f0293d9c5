-- Steps: each is done once, by name and not by position, and keeps its result
-- for every later attempt (case 25).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- What is done comes back byte for byte; NULL is a result too.
SELECT idem_claim('t', 'step', 'a', '1', lease => '1 hour') AS ticket \gset
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE operation = 'step' AND key = 'a' \gset before_
SELECT * FROM idem_step(:'ticket', 'reserve', '{"n": 1, "m": 2}');
SELECT idem_step_done(:'ticket', 'reserve', '{"id" : 7,  "id": 8}', '{"n": 1, "m": 2}');
SELECT idem_step_done(:'ticket', 'nothing');
SELECT idem_step_done(:'ticket', 'json null', 'null');
SELECT * FROM idem_step(:'ticket', 'reserve', '{"m": 2.0, "n": 1}');
SELECT name, s.done, s.result, s.result IS NULL AS is_null
FROM unnest(ARRAY['nothing', 'json null', 'Nothing', 'nothing ']) AS name,
	 idem_step(:'ticket', name) AS s;

-- A step is one row of its own; the record is not touched.
SELECT attempt, step, input = idem_fingerprint('{"m": 2, "n": 1}') AS input,
	   result, done_at <= clock_timestamp() AS done
FROM idem_step WHERE operation = 'step' AND key = 'a' ORDER BY step;
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE operation = 'step' AND key = 'a';

-- The same again changes nothing; anything else is refused, nothing is
-- overwritten.
SELECT md5(string_agg(ctid || s::text, ';' ORDER BY step)) AS steps
FROM idem_step AS s WHERE operation = 'step' AND key = 'a' \gset before_
SELECT idem_step_done(:'ticket', 'reserve', '{"id" : 7,  "id": 8}', '{"n": 1, "m": 2}');
SELECT idem_step_done(:'ticket', 'nothing');
CALL pg_temp.refused(format('SELECT idem_step(%L, ''reserve'', ''2'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_step_done(%L, ''reserve'', ''7'')', :'ticket'));
SELECT call, pg_temp.code_of(format('SELECT ' || call, :'ticket'))
FROM unnest(ARRAY[
	'idem_step(%L, ''reserve'')',
	'idem_step(%L, ''nothing'', ''null'')',
	'idem_step(%L, ''json null'', ''1'')',
	'idem_step_done(%L, ''reserve'', ''{"id":7,"id":8}'', ''{"n": 1, "m": 2}'')',
	'idem_step_done(%L, ''reserve'', ''{"id" : 7,  "id": 8}'', ''{"n": 1, "m": 3}'')',
	'idem_step_done(%L, ''reserve'', ''{"id" : 7,  "id": 8}'')',
	'idem_step_done(%L, ''reserve'', NULL, ''{"n": 1, "m": 2}'')',
	'idem_step_done(%L, ''nothing'', ''null'')',
	'idem_step_done(%L, ''nothing'', NULL, ''null'')',
	'idem_step_done(%L, ''json null'')']) AS call;
SELECT md5(string_agg(ctid || s::text, ';' ORDER BY step)) = :'before_steps' AS unchanged
FROM idem_step AS s WHERE operation = 'step' AND key = 'a';

-- Code that was deployed between two attempts finds each step by its name.
SELECT idem_claim('t', 'step', 'deploy', '1', lease => '1 hour') AS ticket \gset first_
SELECT idem_step_done(:'first_ticket', 'reserve', '"R1"', '1');
SELECT idem_step_done(:'first_ticket', 'charge', '"R2"', '2');
SELECT idem_heartbeat(:'first_ticket'::idem_ticket, '1 us') IS NOT NULL AS lapsed;
SELECT idem_claim('t', 'step', 'deploy', '1', lease => '1 hour') AS ticket \gset second_
SELECT (:'second_ticket'::idem_ticket).outcome;
SELECT name, s.* FROM (VALUES ('reserve', '1'), ('discount', NULL), ('charge', '2'))
	AS code (name, input), idem_step(:'second_ticket', name, input::jsonb) AS s;
SELECT idem_step_done(:'second_ticket', 'discount', '"R3"');
SELECT pg_temp.code_of(format('SELECT idem_step(%L, ''charge'', ''3'')', :'second_ticket'));
SELECT attempt, step, result FROM idem_step WHERE operation = 'step' AND key = 'deploy'
ORDER BY done_at;

-- The ticket of the first attempt is stale in every call (case 9).
SELECT md5(string_agg(s::text, ';' ORDER BY step)) AS steps
FROM idem_step AS s WHERE operation = 'step' \gset before_
SELECT call, pg_temp.code_of(format('SELECT ' || call, :'first_ticket'))
FROM unnest(ARRAY['idem_step(%L, ''reserve'', ''1'')', 'idem_step(%L, ''new'')',
				  'idem_step_done(%L, ''new'')',
				  'idem_step_done(%L, ''reserve'', ''"R1"'', ''1'')']) AS call;
SELECT md5(string_agg(s::text, ';' ORDER BY step)) = :'before_steps' AS unchanged
FROM idem_step AS s WHERE operation = 'step';

-- A step shares the fate of the writes beside it, savepoints included.
BEGIN;
SELECT idem_step_done(:'second_ticket', 'rolled back');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT idem_step_done(:'second_ticket', 'to savepoint', '1');
ROLLBACK TO s;
SELECT done FROM idem_step(:'second_ticket', 'to savepoint');
SELECT idem_step_done(:'second_ticket', 'to savepoint', '2');
COMMIT;
SELECT name, s.* FROM unnest(ARRAY['rolled back', 'to savepoint']) AS name,
	idem_step(:'second_ticket', name) AS s;

-- Addresses do not run into each other.
SELECT idem_claim('t', 'step', 'ab', '1', lease => '1 hour') AS ticket \gset
SELECT idem_step_done(:'ticket', 'c', '1');
SELECT idem_claim('t', 'stepa', 'b', '1', lease => '1 hour') AS ticket \gset
SELECT done FROM idem_step(:'ticket', 'c');

-- An atomic claim has no steps, nor has a command that ended.
BEGIN;
SELECT idem_claim('t', 'step', 'atomic', '1') AS ticket \gset
CALL pg_temp.refused(format('SELECT idem_step(%L, ''one'')', :'ticket'));
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''one'')', :'ticket'));
ROLLBACK;
SELECT verb, pg_temp.code_of(format('SELECT idem_step(%L, ''one'')', ticket)) AS step,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, ''one'')', ticket)) AS step_done
FROM unnest(ARRAY['complete(%L)', 'fail(%L)', 'release(%L)', 'unknown(%L, ''why'')']) AS verb,
	 LATERAL idem_claim('t', 'step', 'ended ' || verb, lease => '1 hour') AS ticket,
	 LATERAL pg_temp.code_of(format('SELECT idem_' || replace(verb, '%L', '%L::idem_ticket'), ticket)) AS done
WHERE done = 'accepted';

-- Bad input.
SELECT idem_claim('t', 'step', 'bad', '1', lease => '1 hour') AS ticket \gset
CALL pg_temp.refused(format('SELECT idem_step(%L, NULL)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_step(%L, '''')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_step(%L, repeat(''é'', 129))', :'ticket'));
SELECT name, pg_temp.code_of(format('SELECT idem_step_done(%L, %L)', :'ticket', name))
FROM unnest(ARRAY[NULL, '', E' \t\n\x0b\f\r']) AS name;
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, repeat(''é'', 129))', :'ticket')) AS too_long,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, repeat(''é'', 128))', :'ticket')) AS longest,
	   pg_temp.code_of('SELECT idem_step(NULL, ''one'')') AS no_ticket,
	   pg_temp.code_of('SELECT idem_step_done(NULL, ''one'')') AS no_ticket_either,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, ''one'')',
			idem_claim('t', 'step', 'bad', '1'))) AS no_token;
SET idempotency.max_response_size = '1kB';
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''large'', to_json(repeat(''é'', 512)))', :'ticket')) AS in_bytes,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, ''large'', to_json(repeat(''é'', 511)))', :'ticket')) AS fits;
RESET idempotency.max_response_size;
SELECT octet_length(result::text) FROM idem_step(:'ticket', 'large');
BEGIN READ ONLY;
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''read only'')', :'ticket'));
ROLLBACK;
