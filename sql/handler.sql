-- What cannot be a handler of idem_execute is refused before anything runs.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CREATE SCHEMA handler;
CREATE FUNCTION handler.fine(jsonb) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.strict(jsonb) RETURNS json STRICT LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.no_argument() RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.two(jsonb, int DEFAULT 1) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.takes_json(json) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.returns_text(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT '1' $$;
CREATE FUNCTION handler.returns_record(jsonb, OUT a int, OUT b int) LANGUAGE sql AS $$ SELECT 1, 2 $$;
CREATE FUNCTION handler.returns_ticket(jsonb) RETURNS idem_ticket LANGUAGE sql AS $$ SELECT NULL::idem_ticket $$;
CREATE FUNCTION handler.returns_set(jsonb) RETURNS SETOF json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION handler.any_element(anyelement) RETURNS anyelement LANGUAGE sql AS $$ SELECT $1 $$;
CREATE AGGREGATE handler.aggregate(jsonb) (sfunc = jsonb_concat, stype = jsonb);
CREATE PROCEDURE handler.a_procedure(jsonb) LANGUAGE sql AS $$ SELECT 1 $$;

CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.returns_text(jsonb)')$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.takes_json(json)')$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.returns_set(jsonb)')$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.aggregate(jsonb)')$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', NULL)$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', '1', 1::regprocedure)$$);
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'k', NULL, 'handler.strict(jsonb)')$$);
SELECT p.oid::regprocedure AS handler,
	   pg_temp.code_of(format($$SELECT idem_execute('t', 'handler', 'k', '1', %s::oid)$$, p.oid))
FROM pg_proc AS p WHERE pronamespace = 'handler'::regnamespace
	 AND proname NOT IN ('fine', 'strict') ORDER BY proname COLLATE "C";

-- A name that means nothing.
SELECT pg_temp.code_of($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.none(jsonb)')$$) AS none,
	   pg_temp.code_of($$SELECT idem_execute('t', 'handler', 'k', '1', 0::oid)$$) AS zero;

-- Also where it would not be called: a replay tells nothing about a handler.
SELECT outcome FROM idem_execute('t', 'handler', 'done', '1', 'handler.strict(jsonb)');
SELECT outcome FROM idem_execute('t', 'handler', 'done', '1', 'handler.fine(jsonb)');
SELECT pg_temp.code_of($$SELECT idem_execute('t', 'handler', 'done', '1', 'handler.returns_text(jsonb)')$$);
SELECT outcome FROM idem_execute('t', 'handler', 'no request', NULL, 'handler.fine(jsonb)');

-- An answer that is too large undoes the handler's work.
CREATE FUNCTION handler.large(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT to_json(repeat('x', 100)) $$;
SET idempotency.max_response_size = 101;
CALL pg_temp.refused($$SELECT idem_execute('t', 'handler', 'large', '1', 'handler.large(jsonb)')$$);
SELECT outcome FROM idem_replay('t', 'handler', 'large', '1');
SET idempotency.max_response_size = 102;
SELECT outcome, length(response::text)
FROM idem_execute('t', 'handler', 'large', '1', 'handler.large(jsonb)');
RESET idempotency.max_response_size;

-- The caller needs EXECUTE on it, and it runs with the caller's rights.
CREATE ROLE regress_idem_handler;
GRANT USAGE ON SCHEMA handler TO regress_idem_handler;
GRANT EXECUTE ON FUNCTION idem_execute TO regress_idem_handler;
CREATE FUNCTION handler.who(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT to_json(current_user::text) $$;
CREATE FUNCTION handler.reads(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT to_json(count(*)) FROM idem_record $$;
REVOKE EXECUTE ON FUNCTION handler.fine FROM PUBLIC;
SET ROLE regress_idem_handler;
SELECT outcome, response FROM idem_execute('t', 'handler', 'who', '1', 'handler.who(jsonb)');
SELECT pg_temp.code_of($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.fine(jsonb)')$$) AS no_execute,
	   pg_temp.code_of($$SELECT idem_execute('t', 'handler', 'k', '1', 'handler.reads(jsonb)')$$) AS reads;
RESET ROLE;
SELECT key, state FROM idem_record WHERE operation = 'handler' ORDER BY key;

\set VERBOSITY terse
DROP SCHEMA handler CASCADE;
REVOKE EXECUTE ON FUNCTION idem_execute FROM regress_idem_handler;
DROP ROLE regress_idem_handler;
