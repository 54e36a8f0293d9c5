-- idem_execute: claim, handler and completion in one call.
CREATE TABLE execute_work (n int);
CREATE FUNCTION execute_json(request jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO execute_work VALUES ((request ->> 'n')::int);
	RETURN '{"n" :  ' || (request ->> 'n') || '}';
END
$$;

-- The handler runs once; everybody else gets its answer, byte for byte.
SELECT outcome, attempt, state, token, response, owner, retry_after,
	   expires_at - completed_at AS ttl
FROM idem_execute('t', 'execute', 'a', '{"n": 1}', 'execute_json(jsonb)', ttl => '2 hours', owner => 'me');
SELECT outcome, attempt, state, token, response
FROM idem_execute('t', 'execute', 'a', '{"n": 1.0}', 'execute_json(jsonb)');
SELECT outcome, response FROM idem_claim('t', 'execute', 'a', '{"n": 1}');
SELECT outcome, response FROM idem_execute('t', 'execute', 'a', '{"n": 2}', 'execute_json(jsonb)');
SELECT * FROM execute_work;

-- jsonb is stored as its text, NULL as no response.
CREATE FUNCTION execute_jsonb(request jsonb) RETURNS jsonb
LANGUAGE sql AS $$ SELECT request || '{"b":1,  "a":2}' $$;
CREATE FUNCTION execute_null(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT NULL::json $$;
SELECT outcome, response FROM idem_execute('t', 'execute', 'jsonb', '{"n": 1}', 'execute_jsonb(jsonb)');
SELECT outcome, response FROM idem_execute('t', 'execute', 'jsonb', '{"n": 1}', 'execute_jsonb(jsonb)');
SELECT outcome, state, response FROM idem_execute('t', 'execute', 'null', NULL, 'execute_null(jsonb)');
SELECT outcome, state, response FROM idem_execute('t', 'execute', 'null', NULL, 'execute_null(jsonb)');

-- idem_response: all of an answer, and a final failure.
CREATE FUNCTION execute_response(request jsonb) RETURNS idem_response
LANGUAGE sql AS $$
	SELECT '{"ok": 1}'::json, 201, 'order 7', '{"h": 1}'::jsonb, '\x00'::bytea, request ->> 'state'
$$;
SELECT key, pass, outcome, state, response, code, resource, headers, body
FROM (VALUES ('none', '{}'::jsonb), ('succeeded', '{"state": "succeeded"}'),
			 ('failed', '{"state": "failed"}')) AS v(k, r),
	 generate_series(1, 2) AS pass,
	 idem_execute('t', 'execute', k || left(pass::text, 0), r, 'execute_response(jsonb)')
ORDER BY key, pass;
SELECT idem_execute('t', 'execute', 'released', '{"state": "released"}', 'execute_response(jsonb)');
CREATE FUNCTION execute_no_row(request jsonb) RETURNS idem_response
LANGUAGE sql AS $$ SELECT NULL::idem_response $$;
SELECT outcome, state, response, code FROM idem_execute('t', 'execute', 'no row', '1', 'execute_no_row(jsonb)');

-- An error of the handler undoes everything, and the next call runs it again.
CREATE FUNCTION execute_once(request jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO execute_work VALUES (100);
	IF (SELECT count(*) FROM execute_work WHERE n = 99) = 0 THEN
		RAISE 'not yet' USING ERRCODE = 'XY001';
	END IF;
	RETURN '"now"';
END
$$;
\set SHOW_CONTEXT never
SELECT idem_execute('t', 'execute', 'once', '1', 'execute_once(jsonb)');
\echo :SQLSTATE
SELECT outcome FROM idem_replay('t', 'execute', 'once', '1');
BEGIN;
SAVEPOINT s;
SELECT idem_execute('t', 'execute', 'once', '1', 'execute_once(jsonb)');
ROLLBACK TO s;
INSERT INTO execute_work VALUES (99);
SELECT outcome, attempt, response FROM idem_execute('t', 'execute', 'once', '1', 'execute_once(jsonb)');
COMMIT;
SELECT n, count(*) FROM execute_work GROUP BY n ORDER BY n;

-- It is atomic also under a policy with a lease; a lapsed command is resumed.
SELECT lease FROM idem_define('execute leased', lease => '1 hour');
SELECT outcome, state, lease_until, response
FROM idem_execute('t', 'execute leased', 'a', '{"n": 3}', 'execute_json(jsonb)');
SELECT outcome FROM idem_claim('t', 'execute leased', 'lapsed', '{"n": 4}', lease => '1 microsecond');
SELECT outcome, attempt, state, response
FROM idem_execute('t', 'execute leased', 'lapsed', '{"n": 4}', 'execute_json(jsonb)');
SELECT outcome FROM idem_claim('t', 'execute leased', 'live', '{"n": 5}', lease => '1 hour');
SELECT outcome, state, response, retry_after
FROM idem_execute('t', 'execute leased', 'live', '{"n": 5}', 'execute_json(jsonb)', wait => '5 milliseconds');

-- A handler may use the extension: other addresses, and its own.
CREATE FUNCTION execute_nested(request jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	RETURN json_build_object(
		'own', (idem_claim('t', 'execute', 'nested', request)).outcome,
		'other', (idem_execute('t', 'execute', 'nested ' || (request ->> 'n'), request, 'execute_json(jsonb)')).response);
END
$$;
SELECT outcome, response FROM idem_execute('t', 'execute', 'nested', '{"n": 6}', 'execute_nested(jsonb)');
SELECT outcome, response FROM idem_claim('t', 'execute', 'nested 6', '{"n": 6}');
SELECT n, count(*) FROM execute_work GROUP BY n ORDER BY n;
DROP TABLE execute_work;
DROP FUNCTION execute_json, execute_jsonb, execute_null, execute_response,
	execute_no_row, execute_once, execute_nested;
