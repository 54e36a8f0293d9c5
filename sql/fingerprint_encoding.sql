-- The encoding behind a fingerprint never changes: an independent encoder in
-- SQL agrees with it, and known digests stay what they are.

-- Digits of a number in base 10000, without zeroes at either end, and the
-- power of 10000 of the first: from its decimal text alone.
CREATE FUNCTION pg_temp.encode_number(number numeric) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	whole text := split_part(abs(number)::text, '.', 1);
	fraction text := split_part(abs(number)::text, '.', 2);
	digits text;
	zeroes int;
	weight int;
	bytes bytea := '';
BEGIN
	whole := repeat('0', (4 - length(whole) % 4) % 4) || whole;
	fraction := fraction || repeat('0', (4 - length(fraction) % 4) % 4);
	digits := whole || fraction;
	zeroes := (length(digits) - length(ltrim(digits, '0'))) / 4;
	digits := substr(digits, zeroes * 4 + 1);
	digits := left(digits, length(digits)
				   - (length(digits) - length(rtrim(digits, '0'))) / 4 * 4);
	weight := length(whole) / 4 - 1 - zeroes;
	FOR i IN 0 .. length(digits) / 4 - 1 LOOP
		bytes := bytes || int2send(substr(digits, i * 4 + 1, 4)::int2);
	END LOOP;
	RETURN '#' || int2send(CASE WHEN number < 0 THEN 16384 ELSE 0 END::int2)
		|| int2send(CASE WHEN digits = '' THEN 0 ELSE weight END::int2)
		|| '#'::bytea || int4send(length(bytes)) || bytes;
END
$$;

CREATE FUNCTION pg_temp.encode_text(tag bytea, value text) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$
	SELECT tag || int4send(octet_length(convert_to(value, 'UTF8')))
		|| convert_to(value, 'UTF8')
$$;

CREATE FUNCTION pg_temp.encode(value jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	CASE jsonb_typeof(value)
		WHEN 'null' THEN RETURN 'n';
		WHEN 'boolean' THEN RETURN CASE WHEN value::bool THEN 't' ELSE 'f' END;
		WHEN 'string' THEN RETURN pg_temp.encode_text('s', value #>> '{}');
		WHEN 'number' THEN RETURN pg_temp.encode_number(value::numeric);
		WHEN 'array' THEN
			RETURN '['::bytea || coalesce((
				SELECT string_agg(pg_temp.encode(e), '' ORDER BY place)
				FROM jsonb_array_elements(value) WITH ORDINALITY AS a(e, place)),
				'') || ']'::bytea;
		WHEN 'object' THEN
			RETURN '{'::bytea || coalesce((
				SELECT string_agg(pg_temp.encode_text('k', k) || pg_temp.encode(v),
								  '' ORDER BY octet_length(k), k COLLATE "C")
				FROM jsonb_each(value) AS o(k, v)), '') || '}'::bytea;
	END CASE;
END
$$;

CREATE TEMP TABLE value (place serial, v jsonb);
INSERT INTO value (v) VALUES
	('null'), ('true'), ('false'), ('""'), ('"a"'), ('"é😀"'), ('0'), ('-0.0'),
	('1'), ('-1'), ('10000'), ('9999'), ('0.0001'), ('0.5'), ('-12345.678900'),
	('100000000000000000001'), ('1e400'), ('-1e-400'), ('1e131071'),
	('1e-16383'), ('[]'), ('{}'), ('[[]]'), ('[null, {}]'), ('{"": []}'),
	('{"b": 1, "a": [true, "x", {"z": null}], "aa": {"y": 1.50, "x": []}}');
INSERT INTO value (v)
VALUES (to_jsonb(repeat('x', 5000))),
	   (to_jsonb((repeat('1234567890', 300) || '.' || repeat('5', 300))::numeric)),
	   ((SELECT jsonb_agg(n) FROM generate_series(1, 2000) AS n)),
	   ((SELECT jsonb_object_agg('key' || n, n / 8.0) FROM generate_series(1, 500) AS n)),
	   ((repeat('[', 100) || repeat(']', 100))::jsonb);
SELECT count(*) AS values,
	   count(*) FILTER (WHERE idem_fingerprint(v)
						= '\x01' || sha256(pg_temp.encode(v))) AS as_encoded
FROM value;

-- By hand, to see that the encoder above is no copy.
SELECT idem_fingerprint('{"a": 1}') = '\x01' || sha256(
	'{k\000\000\000\001a#\000\000\000\000#\000\000\000\002\000\001}')
	AS by_hand;

SELECT CASE WHEN length(v::text) < 80 THEN v::text
			ELSE left(v::text, 20) || ' ...' END AS value,
	   idem_fingerprint(v) AS fingerprint
FROM value ORDER BY place;
