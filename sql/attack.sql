-- An attacker who may create objects and has been given the strongest level:
-- nothing but the functions lets him touch a row, a right, or the trail (case
-- 30), and a change whose trail cannot be written is not made.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
-- The SQLSTATE of a command, or 'accepted'; nothing of it stays.
CREATE FUNCTION pg_temp.try(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RAISE SQLSTATE 'TRIED';
EXCEPTION WHEN OTHERS THEN
	RETURN CASE sqlstate WHEN 'TRIED' THEN 'accepted' ELSE sqlstate END;
END
$$;
CREATE ROLE regress_idem_attacker;
CREATE SCHEMA attack AUTHORIZATION regress_idem_attacker;
GRANT CREATE ON SCHEMA public TO regress_idem_attacker;
SELECT current_database() AS database \gset
GRANT CREATE, TEMPORARY ON DATABASE :"database" TO regress_idem_attacker;
SELECT idem_grant('regress_idem_attacker', 'operator');
SELECT idem_complete(idem_claim('t', 'attack', 'done', '1'), '"done"');
SELECT outcome FROM idem_claim('t', 'attack', 'open', lease => '1 hour');
SELECT outcome FROM idem_cancel('t', 'attack', 'cancelled', 'why');

-- Every relation and every function, with whatever could be tried on it.
CREATE TEMP TABLE relation AS
SELECT c.oid, c.relname AS name, c.relkind AS kind, quote_ident(a.attname) AS attribute
FROM pg_class AS c JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'idempotency'
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 2;
CREATE TEMP TABLE attempt AS
SELECT r.name || ': ' || v.command AS name, format(v.command, r.name, r.attribute) AS command
FROM relation AS r, (VALUES
	('r', 'SELECT FROM %s'), ('r', 'SELECT %2$s FROM %1$s'), ('r', 'SELECT count(*) FROM ONLY %s'),
	('r', 'INSERT INTO %s DEFAULT VALUES'), ('r', 'UPDATE %1$s SET %2$s = NULL'), ('r', 'DELETE FROM %s'),
	('r', 'MERGE INTO %s AS t USING (SELECT) AS s ON true WHEN MATCHED THEN DELETE'),
	('r', 'TRUNCATE %s'), ('r', 'TRUNCATE ONLY %s CASCADE'), ('r', 'LOCK TABLE %s IN ACCESS SHARE MODE'),
	('r', 'CREATE INDEX ON %1$s (%2$s)'), ('r', 'REINDEX TABLE %s'), ('r', 'CLUSTER %1$s USING %1$s_pkey'),
	('r', 'CREATE TRIGGER x BEFORE INSERT ON %s EXECUTE FUNCTION suppress_redundant_updates_trigger()'),
	('r', 'CREATE RULE x AS ON INSERT TO %s DO INSTEAD NOTHING'), ('r', 'CREATE POLICY x ON %s'),
	('r', 'CREATE STATISTICS attack.x (ndistinct) ON tenant, key FROM %s'),
	('r', 'CREATE TABLE attack.x () INHERITS (%s)'), ('r', 'CREATE TABLE attack.x (LIKE %s INCLUDING ALL)'),
	('r', 'CREATE TABLE attack.x (a text REFERENCES %s)'),
	('r', 'CREATE PUBLICATION x FOR TABLE %s'), ('r', 'CREATE MATERIALIZED VIEW attack.x AS SELECT FROM %s'),
	('r', 'ALTER TABLE %s DISABLE TRIGGER ALL'), ('r', 'ALTER TABLE %s ADD x int'),
	('r', 'ALTER TABLE %1$s ALTER %2$s DROP NOT NULL'), ('r', 'ALTER TABLE %s SET UNLOGGED'),
	('r', 'ALTER TABLE %s ENABLE ROW LEVEL SECURITY'), ('r', 'ALTER TABLE %s REPLICA IDENTITY NOTHING'),
	('r', 'ALTER TABLE %s RENAME TO x'), ('r', 'ALTER TABLE %s SET SCHEMA attack'),
	('r', 'ALTER TABLE %s OWNER TO CURRENT_USER'), ('r', 'DROP TABLE %s'), ('r', 'COMMENT ON TABLE %s IS NULL'),
	('S', 'SELECT FROM %s'), ('S', 'SELECT nextval(''%s'')'), ('S', 'SELECT setval(''%s'', 1)'),
	('S', 'ALTER SEQUENCE %s MAXVALUE 2'), ('S', 'DROP SEQUENCE %s'),
	('v', 'INSERT INTO %s DEFAULT VALUES'), ('v', 'DELETE FROM %s'),
	('v', 'CREATE OR REPLACE VIEW %s AS SELECT'), ('v', 'ALTER VIEW %s SET (security_barrier = off)'),
	('v', 'DROP VIEW %s'), ('v', 'CREATE RULE x AS ON DELETE TO %s DO INSTEAD NOTHING')) AS v (kind, command)
WHERE r.kind = v.kind::"char";
INSERT INTO attempt
SELECT p.name || ': ' || v.command, format(v.command, p.name)
FROM (SELECT p.oid::regprocedure::text AS name FROM pg_proc AS p
	  JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
	  JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'idempotency') AS p,
	 (VALUES ('ALTER ROUTINE %s OWNER TO CURRENT_USER'), ('ALTER ROUTINE %s RESET ALL'),
			 ('ALTER ROUTINE %s SET search_path = attack'), ('ALTER ROUTINE %s SET SCHEMA attack'),
			 ('ALTER ROUTINE %s RENAME TO x'), ('DROP ROUTINE %s')) AS v (command);
INSERT INTO attempt SELECT command, command FROM unnest(ARRAY[
	'SET session_replication_role = replica', 'SET ROLE ' || quote_ident(session_user),
	'ALTER EXTENSION idempotency UPDATE', 'ALTER EXTENSION idempotency DROP TABLE idem_event',
	'ALTER EXTENSION idempotency SET SCHEMA attack', 'DROP EXTENSION idempotency CASCADE',
	'CREATE EVENT TRIGGER x ON sql_drop EXECUTE FUNCTION idem_event_protect()',
	'CREATE FUNCTION attack.x(text, text, text) RETURNS void LANGUAGE c AS ''idempotency'', ''idem_lock''',
	'CREATE OR REPLACE FUNCTION public.idem_hold(ticket idem_ticket) RETURNS void LANGUAGE sql AS ''''',
	'DROP TYPE idem_ticket CASCADE', 'ALTER TYPE idem_ticket ADD ATTRIBUTE x int',
	'ALTER TYPE idem_ticket RENAME ATTRIBUTE token TO x',
	'SELECT idem_grant(''regress_idem_attacker'', ''operator'')', 'SELECT FROM pg_statistic',
	'SELECT pg_read_file(pg_relation_filepath(''idem_record''))',
	'SET idempotency.durability = local']) AS command;
GRANT SELECT ON attempt TO regress_idem_attacker;

SET SESSION AUTHORIZATION regress_idem_attacker;
CREATE TEMP TABLE tried AS SELECT name, pg_temp.try(command) AS code FROM attempt;
SELECT count(*) > 200 AS many, count(*) FILTER (WHERE name LIKE 'idem\_event:%') > 30 AS trail FROM tried WHERE code = '42501';
SELECT name, code FROM tried WHERE code <> '42501' ORDER BY name COLLATE "C";
\set VERBOSITY sqlstate
COPY idem_record TO STDOUT;
COPY idem_event TO STDOUT;
COPY (SELECT FROM idem_event) TO STDOUT;
\set VERBOSITY default
-- the statistics of what he may not read are not shown to him
SELECT count(*) FROM pg_stats WHERE tablename LIKE 'idem\_%';
-- a view or function of his own reads with his own rights
CREATE VIEW attack.trail AS SELECT * FROM idem_event;
CALL pg_temp.refused('SELECT FROM attack.trail');
CREATE FUNCTION attack.definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM idem_event';
CALL pg_temp.refused('SELECT attack.definer()');
-- what he was given he cannot pass on
SET client_min_messages = error;
GRANT EXECUTE ON FUNCTION idem_claim TO PUBLIC;
GRANT SELECT ON idem_stuck TO PUBLIC;
RESET client_min_messages;
RESET SESSION AUTHORIZATION;
SELECT count(*) FROM pg_proc AS p, aclexplode(proacl) AS a WHERE proname LIKE 'idem\_%' AND a.grantee = 0;
SELECT count(*) FROM pg_class AS c, aclexplode(relacl) AS a WHERE relname LIKE 'idem\_%' AND a.grantee = 0;

-- Functions of the same names in the extension's schema are not its members:
-- no level gives them to anybody, and none of its own calls finds them.
SET SESSION AUTHORIZATION regress_idem_attacker;
CREATE FUNCTION public.idem_claim(integer) RETURNS text LANGUAGE sql AS $$ SELECT 'decoy' $$;
CREATE FUNCTION public.idem_text(what varchar, value varchar, max_chars bigint) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'decoy';
END
$$;
CREATE FUNCTION public.idem_tenant_allowed(varchar) RETURNS boolean LANGUAGE sql AS 'SELECT true';
REVOKE ALL ON FUNCTION public.idem_claim(integer) FROM PUBLIC;
RESET SESSION AUTHORIZATION;
CREATE ROLE regress_idem_other;
SELECT idem_grant('regress_idem_other', 'operator');
SELECT has_function_privilege('regress_idem_other', 'public.idem_claim(integer)', 'EXECUTE');
BEGIN;
SET LOCAL idempotency.allowed_tenants = '';
SELECT count(*) FROM idem_dispatch('attack', 'w', 1, '1 hour');
SELECT count(*) FROM idem_recover('w', 1, '1 hour');
SELECT count(*) FROM idem_stuck;
ROLLBACK;

-- The trail cannot be written: here its sequence has come to its end.  What it
-- would speak of has not happened.
SELECT outcome FROM idem_claim('t', 'attack', 'lapsed', lease => '1 us');
SELECT idem_release(c) FROM idem_claim('t', 'attack', 'free', lease => '1 hour') AS c;
SELECT idem_unknown(c, 'why') FROM idem_claim('t', 'attack', 'unknown', lease => '1 hour') AS c;
SELECT idem_claim('t', 'attack', 'owned', lease => '1 hour') AS ticket \gset
SELECT idem_claim('t', 'attack', 'owned too', lease => '1 hour') AS ticket2 \gset
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'attack bank') \gset
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT md5(string_agg(r::text, '' ORDER BY key)) AS records FROM idem_record AS r WHERE operation = 'attack' \gset before_
SELECT md5(string_agg(i::text, '' ORDER BY key)) AS intents FROM idem_intent AS i WHERE operation = 'attack' \gset before_
BEGIN;
DO $$
BEGIN
	PERFORM setval('idem_event_id_seq', max(id)) FROM idem_event;
	EXECUTE format('ALTER SEQUENCE idem_event_id_seq MAXVALUE %s', (SELECT max(id) FROM idem_event));
END
$$;
SELECT substring(command FROM '\w+(?=\()') AS call, pg_temp.try(command) AS code
FROM unnest(ARRAY[
	'SELECT idem_cancel(''t'', ''attack'', ''new'', ''why'')',
	'SELECT idem_claim(''t'', ''attack'', ''lapsed'', lease => ''1 hour'')',
	'SELECT idem_claim(''t'', ''attack'', ''free'', lease => ''1 hour'')',
	'SELECT idem_recover(''w'', 10, ''1 hour'')',
	'SELECT idem_resolve(''t'', ''attack'', ''unknown'', ''failed'', ''why'')',
	format('SELECT idem_release(%L::idem_ticket)', :'ticket2'),
	format('SELECT idem_unknown(%L, ''why'')', :'ticket'),
	format('SELECT idem_defer(%L, %s, ''why'')', :'id', :'token')]) AS command;
SELECT md5(string_agg(r::text, '' ORDER BY key)) = :'before_records' AS records_as_before
FROM idem_record AS r WHERE operation = 'attack';
SELECT md5(string_agg(i::text, '' ORDER BY key)) = :'before_intents' AS intents_as_before
FROM idem_intent AS i WHERE operation = 'attack';
ROLLBACK;
SELECT outcome FROM idem_cancel('t', 'attack', 'new', 'why');

\set VERBOSITY terse
SET client_min_messages = warning;
DROP OWNED BY regress_idem_attacker, regress_idem_other CASCADE;
DROP ROLE regress_idem_attacker, regress_idem_other;
