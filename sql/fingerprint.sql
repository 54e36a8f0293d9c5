-- Two requests share a fingerprint if and only if they are equal as jsonb.

-- What does not count, and what does.
SELECT a, b, idem_fingerprint(a::jsonb) = idem_fingerprint(b::jsonb) AS same
FROM (VALUES
	('{"a":{"b":{"x":1,"y":2},"c":3},"d":4}',
	 E'\t{ "d": 4, "a": { "c": 3,\n "b": { "y": 2, "x": 1 } } } '),
	('1', '1.0'), ('1', '1.00'), ('1', '1e0'), ('100', '1E+2'),
	('1000000000000', '1e12'), ('0.5', '5e-1'), ('0', '-0'), ('0', '0.000'),
	('0', '-0e10'), ('123456.789', '123456789e-3'),
	('"é"', '"\u00e9"'), ('"/"', '"\/"'), ('"\ud83d\ude00"', '"😀"'),
	('{"a":1,"a":2}', '{"a":2}'), ('{"\u0061":1}', '{"a":1}'),
	('true', '"true"'), ('true', '1'), ('true', 'false'), ('1', '"1"'),
	('1', '-1'), ('1', '10000'), ('1', '0.0001'), ('10', '1'),
	('null', '"null"'), ('null', 'false'), ('null', '0'), ('null', '""'),
	('[1,2]', '[2,1]'), ('[1,2]', '[1,2,2]'), ('[[1],2]', '[1,[2]]'),
	('[1]', '1'), ('[[1]]', '[1]'), ('[]', '{}'), ('[]', '[[]]'),
	('[]', '[null]'), ('{}', '{"a":null}'), ('{}', '{"a":{}}'),
	('{"a":{}}', '{"a":[]}'), ('{"a":1,"a":2}', '{"a":1}'),
	('{"a":"b"}', '["a","b"]'), ('{"ab":"c"}', '{"a":"bc"}'),
	('{"a":1,"b":2}', '{"a":2,"b":1}'), ('{"a":{"b":1}}', '{"a":1,"b":1}'),
	('{"":1}', '{" ":1}'), ('"a"', '"A"'), ('"a"', '"a "'),
	('"é"', '"e\u0301"'), ('["a","b"]', '["ab"]'), ('["ab",""]', '["","ab"]'),
	('0.1', '0.10000000000000000000000000000000000001'),
	('12345678901234567890', '12345678901234567891'),
	('1e131071', '1e131070'), ('1e-16383', '1e-16382'), ('1e-16383', '0'))
	AS v(a, b);

-- NULL is no request, and has no fingerprint.
SELECT idem_fingerprint(NULL) IS NULL AS "NULL",
	   idem_fingerprint(NULL, '{/a}') IS NULL AS "NULL with paths",
	   idem_fingerprint('null') IS NOT NULL AS "JSON null";

-- The same rule for every pair out of a table of values.
CREATE TEMP TABLE value AS
WITH scalar(s) AS (
	VALUES ('null'), ('true'), ('false'), ('""'), ('"a"'), ('"null"'), ('"1"'),
		   ('0'), ('1'), ('1.0'), ('-1'), ('1e4'), ('10000'), ('1e-4'),
		   ('0.00010'), ('99999999'), ('1e8'), ('1e400'), ('1e-400'),
		   ('123456789012345678901234567890.5'), ('[]'), ('{}'))
SELECT format(f, s)::jsonb AS v
FROM scalar, (VALUES ('%s'), ('[%s]'), ('[[%s]]'), ('[%s, 1]'), ('[1, %s]'),
					 ('{"a": %s}'), ('{"b": %s}'), ('{"a": {"a": %s}}'),
					 ('{"a": [%s]}'), ('[{"a": %s}]'), ('{"a": %s, "b": 1}'),
					 ('{"a": 1, "b": %s}')) AS shape(f);
SELECT count(*) AS pairs, count(*) FILTER (WHERE a.v = b.v) AS equal,
	   count(*) FILTER (WHERE (idem_fingerprint(a.v) = idem_fingerprint(b.v))
							  <> (a.v = b.v)) AS wrong
FROM value AS a, value AS b;

-- Deep nesting and large values: one digit, or one level, makes another.
SELECT count(DISTINCT idem_fingerprint(
		(repeat('[', n) || repeat(']', n))::jsonb)) AS arrays,
	   count(DISTINCT idem_fingerprint(
		(repeat('{"a":', n) || '1' || repeat('}', n))::jsonb)) AS objects
FROM generate_series(1, 500) AS n;
SELECT count(DISTINCT idem_fingerprint(to_jsonb(repeat('x', n)))) AS strings
FROM generate_series(1000, 1100) AS n;
SELECT idem_fingerprint(('1' || repeat('0', 5000))::jsonb)
	   = idem_fingerprint('1e5000') AS same,
	   idem_fingerprint(('1' || repeat('0', 4999) || '1')::jsonb)
	   = idem_fingerprint('1e5000') AS last_digit,
	   idem_fingerprint(('0.' || repeat('0', 4999) || '1')::jsonb)
	   = idem_fingerprint('1e-5000') AS same_small;

-- No setting counts.
SELECT idem_fingerprint('{"a": 1.50, "b": "é"}') AS before \gset
SET extra_float_digits = -15;
SET client_encoding = 'LATIN1';
SELECT idem_fingerprint('{"a": 1.50, "b": "\u00e9"}') = :'before' AS same;
RESET ALL;

-- A claim is bound by it: to the request, or to a fingerprint of the caller's.
SELECT outcome FROM idem_claim('t', 'fingerprint', 'a', '{"n": 1, "m": 2}', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'fingerprint', 'a', '{"m": 2.0, "n": 1e0}');
SELECT outcome FROM idem_claim('t', 'fingerprint', 'a',
							   fingerprint => idem_fingerprint('{"n": 1, "m": 2}'));
SELECT outcome FROM idem_claim('t', 'fingerprint', 'a', '{"n": 1, "m": 2, "o": null}');
SELECT outcome FROM idem_claim('t', 'fingerprint', 'own',
							   fingerprint => '\x00' || sha256('body'), lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'fingerprint', 'own',
							   fingerprint => '\x00' || sha256('body'));
SELECT outcome FROM idem_claim('t', 'fingerprint', 'own',
							   fingerprint => '\x00' || sha256('other'));
-- NULL matches only NULL; JSON's null is a request like any other
SELECT key, outcome
FROM (VALUES (1, 'no request', NULL), (2, 'no request', NULL),
			 (3, 'no request', 'null'), (4, 'null', 'null'),
			 (5, 'null', 'null'), (6, 'null', NULL)) AS v(place, k, request),
	 idem_claim('t', 'fingerprint', k, v.request::jsonb, lease => '1 hour')
ORDER BY place;

-- A number that was computed is digested like the same one that was written.
SELECT written, idem_fingerprint(to_jsonb(n)) = idem_fingerprint(written::jsonb) AS same
FROM (VALUES ('12340000', 12345678.00000000 - 5678), ('0', 0.5 - 0.5000), ('-0.0001', -0.00010000 * 1),
			 ('33333333333300000000', trunc(1e20 / 3, -8)), ('1e4', 10000::numeric(12, 4)),
			 ('20000', 9999.5 + 10000.5), ('1e-8', 1 / 1e8)) AS v (written, n);

-- A large request does not keep a cancel waiting.
CREATE TEMP TABLE large AS SELECT jsonb_agg(n) AS request FROM generate_series(1, 1000000) AS n;
SELECT clock_timestamp() AS begun \gset
SELECT length(idem_fingerprint(request)) FROM large;
SELECT clock_timestamp() - :'begun' AS took, clock_timestamp() AS begun \gset
SET statement_timeout = '20 ms';
SELECT length(idem_fingerprint(request)) FROM large;
SET statement_timeout = 0;
SELECT clock_timestamp() - :'begun' AS once, clock_timestamp() AS begun \gset
SET statement_timeout = '20 ms';
SELECT length(idem_fingerprint(request)) FROM large;
RESET statement_timeout;
-- twice, since the machine may be busy
SELECT least(:'once', clock_timestamp() - :'begun') < interval :'took' / 2 AS at_once;
