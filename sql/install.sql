-- Installation: into any schema, adopting nothing that was there, leaving the
-- session as it was.
\set back :DBNAME
-- What an attacker could have made before: anything of a name of its own.
SELECT json_agg(CASE i.type
		WHEN 'function' THEN format('CREATE FUNCTION "Weird-Schema".%s(%s) RETURNS int LANGUAGE sql AS ''SELECT 1''',
									proname, oidvectortypes(proargtypes))
		WHEN 'procedure' THEN format('CREATE PROCEDURE "Weird-Schema".%s(%s) LANGUAGE sql AS ''SELECT 1''',
									 proname, oidvectortypes(proargtypes))
		WHEN 'type' THEN format('CREATE TYPE "Weird-Schema".%s AS (a int)', i.name)
		WHEN 'sequence' THEN format('CREATE SEQUENCE "Weird-Schema".%s', i.name)
		WHEN 'view' THEN format('CREATE VIEW "Weird-Schema".%s AS SELECT 1', i.name)
		ELSE format('CREATE %s "Weird-Schema".%s (a int)', i.type, i.name) END) AS commands
FROM pg_depend AS d JOIN pg_extension AS e ON d.refobjid = e.oid
LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid,
	 pg_identify_object(d.classid, d.objid, 0) AS i
WHERE e.extname = 'idempotency' AND d.deptype = 'e' AND i.type <> 'sequence'
	-- the server finds another name for the type of arrays
	AND t.typcategory IS DISTINCT FROM 'A'
	AND (proargtypes IS NULL OR NOT EXISTS (SELECT FROM unnest(proargtypes) AS t WHERE t >= 16384)) \gset
CREATE DATABASE regress_idem_install TEMPLATE template0;
\c regress_idem_install
CREATE SCHEMA "Weird-Schema";

-- What has a name of its own already is not adopted.  From 18 on the context
-- of the error quotes the script.
\set SHOW_CONTEXT never
CREATE TABLE "Weird-Schema".idem_record (a int);
CREATE EXTENSION idempotency SCHEMA "Weird-Schema";
DROP TABLE "Weird-Schema".idem_record;
CREATE FUNCTION "Weird-Schema".idem_fingerprint(jsonb, text[]) RETURNS bytea
LANGUAGE sql AS $$ SELECT ''::bytea $$;
CREATE EXTENSION idempotency SCHEMA "Weird-Schema";
DROP FUNCTION "Weird-Schema".idem_fingerprint(jsonb, text[]);
SELECT count(*) AS left_over FROM pg_depend AS d JOIN pg_extension AS e ON refobjid = e.oid
WHERE extname = 'idempotency';

CREATE FUNCTION pg_temp.made_before(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	CREATE EXTENSION idempotency SCHEMA "Weird-Schema";
	RAISE SQLSTATE 'ADOPT';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || CASE WHEN sqlstate IN ('42P07', '42723', '42710') THEN '' ELSE ' ' || sqlerrm END;
END
$$;
SELECT made AS code, count(*) > 1 AS many
FROM json_array_elements_text(:'commands') AS command, pg_temp.made_before(command) AS made GROUP BY 1 ORDER BY 1;

-- Tables of the same names elsewhere are nobody's business.
CREATE TABLE public.idem_record (a int);
CREATE TABLE public.idem_policy (a int);
SET search_path = public, pg_catalog;
CREATE EXTENSION idempotency SCHEMA "Weird-Schema";
SHOW search_path;
SET search_path = '';
SELECT (c).outcome, (c).key
FROM (SELECT "Weird-Schema".idem_claim('t', 'o', 'k', '1', lease => '1 hour') AS c) AS claim;
SELECT "Weird-Schema".idem_complete(c, '"done"')
FROM "Weird-Schema".idem_claim('t', 'o', 'k2', '1') AS c;
SELECT outcome, response FROM "Weird-Schema".idem_replay('t', 'o', 'k2', '1');
SELECT outcome, key FROM "Weird-Schema".idem_claim_batch('t', 'o', '{k,k2}', '{1,1}');
SELECT "Weird-Schema".idem_complete_batch(array_agg(c))
FROM "Weird-Schema".idem_claim_batch('t', 'o', '{b1,b2}') AS c;
SELECT version FROM "Weird-Schema".idem_define('o', ttl => '2 days', ignore_paths => '{/at}');
CREATE FUNCTION public.handler(jsonb) RETURNS "Weird-Schema".idem_response
LANGUAGE sql AS $$ SELECT '"handled"'::json, 201, NULL, NULL::jsonb, NULL::bytea, NULL $$;
SELECT outcome, response, expires_at - completed_at AS ttl
FROM "Weird-Schema".idem_execute('t', 'o', 'k3', '1', 'public.handler(jsonb)');
SELECT pg_catalog.count(*) FROM "Weird-Schema".idem_record;

-- Every function and view finds what it needs, whatever it is asked.
CREATE FUNCTION pg_temp.try(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RAISE SQLSTATE 'TRIED';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || CASE WHEN sqlstate LIKE '42%' OR sqlstate LIKE '3F%' THEN ' ' || sqlerrm ELSE '' END;
END
$$;
SELECT c AS ticket FROM "Weird-Schema".idem_claim('t', 'o', 'k4', lease => '1 hour') AS c \gset
SELECT operation_id AS intent FROM "Weird-Schema".idem_intend(:'ticket', 'pay', 'bank', send => true) \gset
SELECT "Weird-Schema".idem_unknown(c, 'why') FROM "Weird-Schema".idem_claim('t', 'o', 'k5', lease => '1 hour') AS c;
SELECT outcome FROM "Weird-Schema".idem_claim('t', 'o', 'k6', lease => '1 us');
CREATE TEMP TABLE tried AS
SELECT oid::regprocedure::text AS what, pg_temp.try(format('SELECT %s(%s)', oid::regproc, arguments)) AS code
FROM (SELECT p.oid, (
		SELECT string_agg(quote_nullable(CASE t
				WHEN '"Weird-Schema".idem_ticket'::regtype THEN :'ticket'
				WHEN '"Weird-Schema".idem_ticket[]'::regtype THEN ARRAY[:'ticket']::text
				WHEN 'uuid'::regtype THEN :'intent'
				ELSE jsonb_build_object('tenant', 't', 'operation', 'o', 'key', 'k5', 'keys', '{a,b}', 'token', 1,
					'n', 5, 'lease', '1 hour', 'worker', 'w', 'reason', 'why', 'step', 's', 'name', 'n',
					'target', 'bank', 'verdict', 'happened', 'evidence', 1, 'state', 'failed',
					'handler', 'public.handler(jsonb)', 'role', CURRENT_USER, 'level', 'operator', 'physical', true)->>name
				END) || '::' || t::regtype, ', ' ORDER BY i)
		FROM unnest(proargtypes::oid[], proargnames[1:pronargs]) WITH ORDINALITY AS a (t, name, i)) AS arguments
	  FROM pg_proc AS p
	  WHERE pronamespace = '"Weird-Schema"'::regnamespace AND prokind = 'f' AND prorettype <> 'trigger'::regtype) AS f
UNION ALL
SELECT oid::regclass::text, pg_temp.try(format('SELECT * FROM %s', oid::regclass))
FROM pg_class WHERE relnamespace = '"Weird-Schema"'::regnamespace AND relkind = 'v';
SELECT what, code FROM tried WHERE code ~ '^(42|3F|XX)' ORDER BY what COLLATE "C";
SELECT count(*) > 50 AS many, count(*) FILTER (WHERE code = 'TRIED') > 40 AS most_done FROM tried;
SET client_min_messages = warning;
CALL "Weird-Schema".idem_maintain();
RESET client_min_messages;

-- It stays where it is.
ALTER EXTENSION idempotency SET SCHEMA public;

-- Objects lie in its schema, all of them.
SELECT pg_catalog.count(*) > 20 AS many,
	   pg_catalog.count(*) FILTER (WHERE (o).schema <> '"Weird-Schema"') AS elsewhere
FROM (SELECT pg_catalog.pg_identify_object(classid, objid, objsubid) AS o
	  FROM pg_catalog.pg_depend JOIN pg_catalog.pg_extension AS e ON refobjid = e.oid
	  WHERE extname = 'idempotency' AND deptype = 'e') AS member;

-- What an application depends on is not dropped with it unasked.
CREATE VIEW public.keys AS SELECT key FROM "Weird-Schema".idem_record;
\set VERBOSITY terse
DROP EXTENSION idempotency;
\set VERBOSITY default
DROP VIEW public.keys;

-- Dropped and made again in a session that has used it.
SELECT pg_catalog.count(*) FROM "Weird-Schema".idem_claim_batch('t', 'o', '{b1,b2}');
DROP FUNCTION public.handler;
DROP EXTENSION idempotency;
\set VERBOSITY terse
SELECT "Weird-Schema".idem_claim('t', 'o', 'k');
\set VERBOSITY default
SELECT pg_catalog.count(*) AS left_over FROM pg_catalog.pg_class
WHERE relnamespace = '"Weird-Schema"'::pg_catalog.regnamespace;
CREATE SCHEMA other;
CREATE EXTENSION idempotency SCHEMA other;
SELECT outcome FROM other.idem_replay('t', 'o', 'k2', '1');
SELECT other.idem_complete(c) FROM other.idem_claim('t', 'o', 'k2', '{"at": 1}') AS c;
SELECT outcome FROM other.idem_claim('t', 'o', 'k2', '{"at": 2}');
SELECT expires_at - completed_at AS ttl FROM other.idem_replay('t', 'o', 'k2', '{"at": 1}');

-- A name that format() would read.
DROP EXTENSION idempotency;
CREATE SCHEMA "50%s";
CREATE EXTENSION idempotency SCHEMA "50%s";
CREATE ROLE regress_idem_percent;
SELECT "50%s".idem_grant('regress_idem_percent', 'client');
SELECT pg_catalog.has_schema_privilege('regress_idem_percent', '50%s', 'USAGE') AS usage;
SELECT "50%s".idem_revoke('regress_idem_percent');
REVOKE USAGE ON SCHEMA "50%s" FROM regress_idem_percent;
DROP ROLE regress_idem_percent;

-- Default privileges give no right on what it makes, of whatever kind.
DROP EXTENSION idempotency;
CREATE SCHEMA given;
CREATE ROLE regress_idem_given;
CREATE ROLE "regress idem Given";
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_idem_given, "regress idem Given", PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA given GRANT SELECT ON TABLES TO regress_idem_given WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_idem_given, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON ROUTINES TO regress_idem_given;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_idem_given;
CREATE EXTENSION idempotency SCHEMA given;
SELECT a.grantee::pg_catalog.regrole, pg_catalog.count(*)
FROM (SELECT relacl AS acl FROM pg_catalog.pg_class WHERE relnamespace = 'given'::pg_catalog.regnamespace
	  UNION ALL
	  SELECT proacl FROM pg_catalog.pg_proc WHERE pronamespace = 'given'::pg_catalog.regnamespace
	  UNION ALL
	  SELECT typacl FROM pg_catalog.pg_type WHERE typnamespace = 'given'::pg_catalog.regnamespace) AS o,
	 pg_catalog.aclexplode(o.acl) AS a
WHERE a.grantee <> CURRENT_USER::pg_catalog.regrole
GROUP BY 1;
DROP OWNED BY regress_idem_given, "regress idem Given";
DROP ROLE regress_idem_given, "regress idem Given";

\c :back
DROP DATABASE regress_idem_install;
