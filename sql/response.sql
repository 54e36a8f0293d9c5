-- Responses of every size: kept byte for byte, or refused as a whole.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- The limit is one of bytes; one below, on, and one above it.
SET idempotency.max_response_size = 1000;
CREATE FUNCTION pg_temp.try(what text, response json DEFAULT NULL,
							headers jsonb DEFAULT NULL, body bytea DEFAULT NULL)
RETURNS TABLE (stored text, same bool) LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket := idem_claim('t', 'response', what);
BEGIN
	BEGIN
		PERFORM idem_complete(ticket, response, NULL, NULL, headers, body);
		stored := 'stored';
	EXCEPTION WHEN SQLSTATE 'ID005' THEN
		stored := sqlstate;
		PERFORM idem_complete(ticket, resource => 'elsewhere');
	END;
	SELECT r.response::text IS NOT DISTINCT FROM try.response::text
		   AND r.headers IS NOT DISTINCT FROM try.headers
		   AND r.body IS NOT DISTINCT FROM try.body
	INTO same FROM idem_replay('t', 'response', what) AS r;
	RETURN NEXT;
END
$$;
SELECT what, octet_length(value) AS bytes, stored, same
FROM (VALUES
	('below', to_json(repeat('x', 997))::text), ('on', to_json(repeat('x', 998))::text),
	('above', to_json(repeat('x', 999))::text),
	('2 bytes below', to_json('x' || repeat('ж', 498))::text),
	('2 bytes on', to_json(repeat('ж', 499))::text),
	('2 bytes above', to_json(repeat('ж', 499) || 'x')::text),
	('4 bytes on', to_json('xx' || repeat('😀', 249))::text),
	('4 bytes above', to_json('xxx' || repeat('😀', 249))::text),
	('blanks above', repeat(' ', 1000) || '1'))
	AS v(what, value), pg_temp.try(what, value::json);
SELECT what, octet_length(value) AS bytes, stored, same
FROM (VALUES ('body below', decode(repeat('00', 999), 'hex')),
			 ('body on', decode(repeat('00', 1000), 'hex')),
			 ('body above', decode(repeat('00', 1001), 'hex')), ('body empty', ''))
	 AS v(what, value), pg_temp.try(what, body => value);
SELECT what, stored, same
FROM (VALUES ('headers', to_jsonb(repeat('x', 900))), ('headers above', to_jsonb(repeat('x', 1001))))
	 AS v(what, value), pg_temp.try(what, headers => value);
-- each of the three on its own
SELECT stored, same FROM pg_temp.try('all three', to_json(repeat('x', 998)), to_jsonb(repeat('x', 900)),
									 decode(repeat('ff', 1000), 'hex'));
SELECT outcome, response, resource FROM idem_replay('t', 'response', 'above');

-- Zero allows nothing but an empty body.
SET idempotency.max_response_size = 0;
SELECT what, stored, same
FROM (VALUES ('zero', '1'::json, NULL::bytea), ('zero none', NULL, NULL), ('zero body', NULL, ''))
	 AS v(what, r, b), pg_temp.try(what, r, NULL, b);

-- Sizes that are compressed, moved out of line, or both; kept to the byte.
SET idempotency.max_response_size = '8MB';
SELECT what, octet_length(value) AS bytes, stored, same
FROM (SELECT what, to_json(value)::text
	  FROM (VALUES ('2 kB', repeat('x', 2000)), ('100 kB', repeat('ab', 50000)),
				   ('4 MB', repeat('abcd', 1024 * 1024)),
				   ('random', (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 3000) AS n)))
		   AS v(what, value)) AS v(what, value), pg_temp.try(what, value::json);
SELECT what, octet_length(value) AS bytes, stored, same
FROM (VALUES ('body random', (SELECT string_agg(sha256(n::text::bytea), '') FROM generate_series(1, 3000) AS n)))
	 AS v(what, value), pg_temp.try(what, body => value);
-- from a column where it is compressed or out of line already
CREATE TABLE response_source (name text, response json, body bytea);
ALTER TABLE response_source ALTER response SET STORAGE EXTERNAL;
INSERT INTO response_source
SELECT 'source ' || n, to_json(repeat(md5(n::text), 2000)), repeat('x', n * 3000)::bytea
FROM generate_series(1, 2) AS n;
SELECT name, stored, same FROM response_source, pg_temp.try(name, response, NULL, body);
-- also a repetition is compared by what it says, however it is stored
SELECT idem_claim('t', 'response', 'repeat', lease => '1 hour') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket, response, body => body) FROM response_source WHERE name = 'source 1';
SELECT idem_complete(:'ticket'::idem_ticket, to_json(repeat(md5('1'), 2000)), body => repeat('x', 3000)::bytea);
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, response, body => body) FROM response_source WHERE name = ''source 2''', :'ticket'));
-- the source may go, the record stays
DROP TABLE response_source;
VACUUM FULL idem_record;
SELECT key, md5(response::text) = md5(to_json(repeat(md5(n::text), 2000))::text) AS response,
	   body = repeat('x', n * 3000)::bytea AS body
FROM generate_series(1, 2) AS n, idem_replay('t', 'response', 'source ' || n) ORDER BY key;

-- A shorter limit does not hide what is stored.
SET idempotency.max_response_size = 10;
SELECT outcome, octet_length(response::text) FROM idem_claim('t', 'response', '4 MB');
RESET idempotency.max_response_size;

-- The default is 1 MB.
SELECT what, stored, same
FROM (VALUES ('1 MB', 1024 * 1024 - 2), ('1 MB + 1', 1024 * 1024 - 1),
			 ('50 MB', 50 * 1024 * 1024)) AS v(what, n),
	 pg_temp.try(what, to_json(repeat('x', n)));
