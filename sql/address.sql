-- Limits of an address: both sides of each, in characters, before any write.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CALL pg_temp.refused($$SELECT idem_claim(NULL, 'address', 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', NULL, 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'address', NULL)$$);
CALL pg_temp.refused($$SELECT idem_claim('', 'address', 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', ' ', 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'address', E'\t\n ')$$);
CALL pg_temp.refused($$SELECT idem_claim(repeat('t', 129), 'address', 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', repeat('ж', 129), 'k')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'address', repeat('😀', 256))$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'address', repeat('k', 1024 * 1024))$$);

-- Each part, in every function that takes an address: the same answer.
CREATE FUNCTION pg_temp.handler(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE TEMP TABLE text_case (place serial, what text, value text);
INSERT INTO text_case (what, value) VALUES
	('NULL', NULL), ('empty', ''), ('blanks', '   '),
	('white space', E'\t\n\x0b\f\r '), ('a control character', E'\x01'),
	('no-break space', U&'\00A0'), ('blank inside', ' a b '),
	('letters', repeat('a', 128)), ('letters + 1', repeat('a', 129)),
	('2 bytes', repeat('ж', 128)), ('2 bytes + 1', repeat('ж', 129)),
	('4 bytes', repeat('😀', 128)), ('4 bytes + 1', repeat('😀', 129)),
	('mixed', repeat('a', 127) || '😀'), ('mixed + 1', repeat('a', 128) || '😀'),
	('key letters', repeat('a', 255)), ('key letters + 1', repeat('a', 256)),
	('key 2 bytes', repeat('ж', 255)), ('key 2 bytes + 1', repeat('ж', 256)),
	('key 4 bytes', repeat('😀', 255)), ('key 4 bytes + 1', repeat('😀', 256)),
	('blank and long', repeat(' ', 300));
SELECT what,
	   string_agg(DISTINCT pg_temp.code_of(format(command, value, 'address', 'k')), ' ') AS tenant,
	   string_agg(DISTINCT pg_temp.code_of(format(command, 't', value, 'k')), ' ') AS operation,
	   string_agg(DISTINCT pg_temp.code_of(format(command, 't', 'address', value)), ' ') AS key
FROM text_case, unnest(ARRAY[
	'SELECT idem_claim(%L, %L, %L, lease => ''1 hour'')',
	'SELECT idem_replay(%L, %L, %L)',
	'SELECT idem_execute(%L, %L, %L, ''1'', ''pg_temp.handler(jsonb)'')',
	'SELECT idem_claim_batch(%L, %L, ARRAY[%L], lease => ''1 hour'')']) AS command
GROUP BY place, what ORDER BY place;
SELECT what, string_agg(DISTINCT pg_temp.code_of(format(command, 't', 'address', value)), ' ') AS key
FROM text_case, unnest(ARRAY[
	'SELECT idem_complete(%L, %L, %L, 1::bigint)',
	'SELECT idem_fail(%L, %L, %L, 1::bigint)', 'SELECT idem_release(%L, %L, %L, 1::bigint)',
	'SELECT idem_heartbeat(%L, %L, %L, 1::bigint, ''1 hour'')',
	'SELECT idem_hold(%L, %L, %L, 1::bigint)']) AS command
WHERE what LIKE '%letters%' OR what IN ('NULL', 'empty', 'blanks')
GROUP BY place, what ORDER BY place;

-- What was refused is not there.
SELECT count(*) AS rows,
	   count(*) FILTER (WHERE length(tenant) > 128 OR length(operation) > 128
						OR length(key) > 255 OR tenant ~ '^[ \t-\r]*$'
						OR operation ~ '^[ \t-\r]*$'
						OR key ~ '^[ \t-\r]*$') AS illegal
FROM idem_record WHERE operation = 'address' OR tenant = 't' AND key = 'k';

-- Bytes count: quotes, case, accents and blanks are part of a key.
SELECT key, outcome, octet_length(key) AS bytes
FROM unnest(ARRAY['abc', '"abc"', '"a\"b"', 'ABC', ' abc', 'abc ',
				  U&'\00E9', U&'e\0301', E'a\nb', E'\x01', '%', '_']) AS k,
	 idem_claim('t', 'address 2', k, lease => '1 hour');
SELECT outcome, count(*) FROM unnest(ARRAY['abc', '"abc"', 'ABC', U&'\00E9', '%']) AS k,
	 idem_claim('t', 'address 2', k, lease => '1 hour') GROUP BY outcome;

-- The largest address there can be, of characters that do not compress,
-- works in the index.
SELECT string_agg(chr(65536 + (hashint4(n) & 524287)), '' ORDER BY n)
	   FILTER (WHERE n <= 128) AS tenant,
	   string_agg(chr(65536 + (hashint4(n) & 524287)), '' ORDER BY n)
	   FILTER (WHERE n BETWEEN 129 AND 256) AS operation,
	   string_agg(chr(65536 + (hashint4(n) & 524287)), '' ORDER BY n)
	   FILTER (WHERE n BETWEEN 257 AND 511) AS key
FROM generate_series(1, 511) AS n \gset
SELECT octet_length(:'tenant') AS tenant, octet_length(:'operation') AS operation,
	   octet_length(:'key') AS key;
SELECT idem_complete(idem_claim(:'tenant', :'operation', :'key', '1'), '"largest"');
SELECT outcome, response, tenant = :'tenant' AS tenant,
	   operation = :'operation' AS operation, key = :'key' AS key
FROM idem_claim(:'tenant', :'operation', :'key', '1');
SELECT outcome, response FROM idem_replay(:'tenant', :'operation', :'key', '1');
SELECT (idem_define(:'operation', ttl => '1 hour')).version;
SELECT idem_complete(idem_claim(:'tenant', :'operation', left(:'key', 254)));
SELECT expires_at - completed_at AS ttl
FROM idem_claim(:'tenant', :'operation', left(:'key', 254));
