-- Rights: a role without grants can do nothing, one with EXECUTE on functions
-- needs no right on tables and can do nothing but through them.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE ROLE regress_idem_nobody;
CREATE ROLE regress_idem_app;

SELECT idem_complete(idem_claim('t', 'privileges', 'done', '1'), '"done"');
CREATE TEMP TABLE command AS
SELECT oid::regprocedure::text AS name,
	   format('%s %s(%s)', CASE prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, oid::regproc,
			  (SELECT string_agg(format('NULL::%s', t::regtype), ', ' ORDER BY n)
			   FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n))) AS command
FROM pg_proc WHERE oid IN (
	SELECT objid FROM pg_depend JOIN pg_extension AS e ON refobjid = e.oid
	WHERE extname = 'idempotency' AND classid = 'pg_proc'::regclass AND deptype = 'e');
INSERT INTO command
SELECT format('%s %s', verb, relname), format(command, relname)
FROM unnest(ARRAY['idem_record', 'idem_policy']) AS relname,
	 (VALUES ('select', 'SELECT FROM %s'), ('insert', 'INSERT INTO %s DEFAULT VALUES'),
			 ('update', 'UPDATE %1$s SET operation = operation'), ('delete', 'DELETE FROM %s'),
			 ('truncate', 'TRUNCATE %s'), ('lock', 'LOCK TABLE %s'),
			 ('alter', 'ALTER TABLE %s DISABLE TRIGGER ALL'), ('drop', 'DROP TABLE %s'),
			 ('reindex', 'REINDEX TABLE %s')) AS v(verb, command);
INSERT INTO command
SELECT 'type ' || t, format('CREATE TEMP TABLE x (a %s)', t)
FROM unnest(ARRAY['idem_ticket', 'idem_response']) AS t;
INSERT INTO command VALUES
	('replication role', 'SET session_replication_role = replica'),
	('drop extension', 'DROP EXTENSION idempotency'),
	('update extension', 'ALTER EXTENSION idempotency UPDATE');
GRANT SELECT ON command TO regress_idem_nobody, regress_idem_app;

-- Without grants.
SET ROLE regress_idem_nobody;
SELECT pg_temp.code_of(command) AS code, count(*) AS commands,
	   string_agg(name, ' ') FILTER (WHERE pg_temp.code_of(command) <> '42501') AS which
FROM command GROUP BY 1 ORDER BY 1;
COPY idem_record TO STDOUT;
COPY idem_policy TO STDOUT;
SELECT idem_claim('t', 'privileges', 'k');
RESET ROLE;

-- With EXECUTE on every function: all of them work, and only they do.
GRANT EXECUTE ON FUNCTION idem_claim, idem_replay, idem_require, idem_execute,
	idem_claim_batch, idem_complete_batch, idem_fingerprint, idem_define,
	idem_complete(idem_ticket, json, int, text, jsonb, bytea),
	idem_complete(text, text, text, bigint, json, int, text, jsonb, bytea),
	idem_fail(idem_ticket, json, int, text, jsonb, bytea),
	idem_release(idem_ticket, text), idem_hold(idem_ticket),
	idem_heartbeat(idem_ticket, interval) TO regress_idem_app;
CREATE FUNCTION privileges_handler(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT '1'::json $$;
SET ROLE regress_idem_app;
SELECT outcome, response FROM idem_claim('t', 'privileges', 'done', '1');
SELECT outcome, response FROM idem_replay('t', 'privileges', 'done', '1');
SELECT version FROM idem_define('privileges', ttl => '1 day', keep_request => true);
SELECT version FROM idem_define('privileges', ttl => '2 days', keep_request => true);
BEGIN;
SELECT idem_claim('t', 'privileges', 'a', '1') AS ticket \gset
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
ROLLBACK TO s;
SELECT idem_complete(:'ticket'::idem_ticket, '"a"');
COMMIT;
SELECT idem_claim('t', 'privileges', 'b', '1', lease => '1 hour') AS ticket \gset
SELECT idem_hold(:'ticket'::idem_ticket);
SELECT idem_heartbeat(:'ticket'::idem_ticket, '2 hours') > now() AS extended;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT outcome, attempt, request FROM idem_claim('t', 'privileges', 'b', '1', lease => '1 hour');
SELECT outcome FROM idem_execute('t', 'privileges', 'c', '1', 'privileges_handler(jsonb)');
SELECT idem_complete_batch(array_agg(c)) FROM idem_claim_batch('t', 'privileges', '{d,e}') AS c;
SELECT outcome FROM idem_require(idem_claim('t', 'privileges', 'd'));
SELECT pg_temp.code_of(command) AS code, count(*) AS commands,
	   string_agg(name, ' ') FILTER (WHERE pg_temp.code_of(command) <> '42501') AS which
FROM command WHERE name NOT LIKE 'idem\_%' GROUP BY 1 ORDER BY 1;
COPY idem_record TO STDOUT;
-- the trigger functions and the verbs that were not granted
SELECT name, pg_temp.code_of(command) AS code
FROM command WHERE name LIKE 'idem\_%' AND pg_temp.code_of(command) = '42501' ORDER BY name COLLATE "C";
RESET ROLE;
SELECT key, state, request, response FROM idem_record WHERE operation = 'privileges' ORDER BY key;

-- A function of somebody who may lends its right, as usual.
CREATE FUNCTION privileges_definer(key text) RETURNS text SECURITY DEFINER
LANGUAGE sql AS $$ SELECT outcome FROM idem_replay('t', 'privileges', key, '1') $$;
SET ROLE regress_idem_nobody;
SELECT privileges_definer('done');
RESET ROLE;

DROP FUNCTION privileges_handler, privileges_definer;
DROP OWNED BY regress_idem_app, regress_idem_nobody;
DROP ROLE regress_idem_app, regress_idem_nobody;
