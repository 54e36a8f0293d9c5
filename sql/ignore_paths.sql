-- Parts of a request that do not count for its fingerprint.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- Leaving out is as good as not being there.
SELECT request, paths,
	   idem_fingerprint(request, paths) = idem_fingerprint(rest) AS left_out
FROM (VALUES
	('{"a": 1, "b": 2}'::jsonb, '{/a}'::text[], '{"b": 2}'::jsonb),
	('{"a": {"x": 1}, "b": 2}', '{/a}', '{"b": 2}'),
	('{"a": [1, 2], "b": 2}', '{/a}', '{"b": 2}'),
	('{"a": {"x": 1, "y": 2}, "b": {"x": 3}}', '{/a/x}', '{"a": {"y": 2}, "b": {"x": 3}}'),
	('{"a": {"x": 1}}', '{/a/x}', '{"a": {}}'),
	('{"a": 1}', '{/a}', '{}'),
	('{"a": 1, "b": 2, "c": 3}', '{/a,/c}', '{"b": 2}'),
	('{"a": {"x": 1, "y": 2}, "b": 2}', '{/a,/a/x}', '{"b": 2}'),
	('{"a": {"x": 1, "y": 2}, "b": 2}', '{/a/x,/a/y}', '{"a": {}, "b": 2}'),
	('{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1, "j": 2}}}}}}}}}',
	 '{/a/b/c/d/e/f/g/h/i}', '{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"j": 2}}}}}}}}}'),
	('[1, 2, 3]', '{/0}', '[2, 3]'),
	('[1, 2, 3]', '{/1}', '[1, 3]'),
	('[1, 2, 3]', '{/2}', '[1, 2]'),
	('[[1, 2], [3, 4]]', '{/1/0}', '[[1, 2], [4]]'),
	('[{"at": 1, "n": 1}, {"at": 2, "n": 2}]', '{/0/at,/1/at}', '[{"n": 1}, {"n": 2}]'),
	('{"items": [{"at": 1}, {"at": 2}], "n": 1}', '{/items/1}', '{"items": [{"at": 1}], "n": 1}'),
	('{"items": [[], {}, {"at": 2}]}', '{/items/2/at}', '{"items": [[], {}, {}]}'),
	('{"a/b": 1, "c": 2}', '{/a~1b}', '{"c": 2}'),
	('{"a~b": 1, "c": 2}', '{/a~0b}', '{"c": 2}'),
	('{"~1": 1, "/": 2}', '{/~01}', '{"/": 2}'),
	('{"": 1, "c": 2}', '{/}', '{"c": 2}'),
	('{"a": {"": 1}}', '{/a/}', '{"a": {}}'),
	('{"é": 1, "c": 2}', '{/é}', '{"c": 2}'),
	('{"0": 1, "c": 2}', '{/0}', '{"c": 2}'),
	-- a path that leads nowhere is no error
	('{"a": 1}', '{/b,/a/b,/a/0,/A}', '{"a": 1}'),
	('{"a": 1}', '{}', '{"a": 1}'),
	('[1, 2]', '{/2,/01,/-,/+1,/a,/-1}', '[1, 2]'),
	('5', '{/0,/a}', '5'), ('"a"', '{/0}', '"a"'), ('null', '{/0}', 'null'),
	('[]', '{/0}', '[]'), ('{}', '{/a}', '{}'))
	AS v(request, paths, rest);

-- What is left still counts.
SELECT idem_fingerprint('{"a": 1, "b": 2}', '{/a}')
	   = idem_fingerprint('{"a": 9, "b": 2}', '{/a}') AS same,
	   idem_fingerprint('{"a": 1, "b": 2}', '{/a}')
	   = idem_fingerprint('{"a": 1, "b": 3}', '{/a}') AS rest_differs,
	   idem_fingerprint('{"a": {"t": 1, "b": 2}}', '{/a/t}')
	   = idem_fingerprint('{"a": {"b": 2}, "t": 1}', '{/a/t}') AS place_differs,
	   idem_fingerprint('{"a": 1}', NULL) = idem_fingerprint('{"a": 1}') AS no_paths;
-- 64 paths at once
SELECT idem_fingerprint(jsonb_object_agg('k' || n, n), array_agg('/k' || n)
						FILTER (WHERE n <= 64))
	   = idem_fingerprint('{"k65": 65, "k66": 66}') AS all_64
FROM generate_series(1, 66) AS n;

CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{""}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{a/b}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{/a~}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{/a~2}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{/a,NULL}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', '{{/a},{/b}}')$$);
CALL pg_temp.refused($$SELECT idem_fingerprint('1', array_agg('/k' || n)) FROM generate_series(1, 65) AS n$$);

-- A policy's paths hold for claims, replays and batches of its operation.
SELECT ignore_paths FROM idem_define('ignore_paths', ignore_paths => '{/trace,/meta/at}');
SELECT idem_complete(idem_claim('t', 'ignore_paths', 'a',
	'{"n": 1, "trace": "x", "meta": {"at": 1, "by": "me"}}'), '"done"');
SELECT outcome, (idem_replay('t', 'ignore_paths', 'a', v.request)).outcome AS replay
FROM (VALUES (1, '{"n": 1, "trace": "y", "meta": {"at": 2, "by": "me"}}'::jsonb),
			 (2, '{"n": 1, "meta": {"by": "me"}}'),
			 (3, '{"n": 2, "trace": "x", "meta": {"at": 1, "by": "me"}}'),
			 (4, '{"n": 1, "trace": "x", "meta": {"at": 1, "by": "you"}}'))
	 AS v(place, request), idem_claim('t', 'ignore_paths', 'a', v.request)
ORDER BY place;
SELECT outcome FROM idem_claim_batch('t', 'ignore_paths', '{a}',
	ARRAY['{"n": 1, "trace": "z", "meta": {"by": "me"}}'::jsonb]);
-- of other operations they do not
SELECT outcome FROM idem_claim('t', 'ignore_paths 2', 'a', '{"trace": 1}', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'ignore_paths 2', 'a', '{"trace": 2}');
