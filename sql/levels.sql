-- Levels: who may call what, once idem_grant has given it, and that nothing
-- else decides; bad input; what revoking takes.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE ROLE regress_idem_none;
CREATE ROLE regress_idem_client;
CREATE ROLE regress_idem_worker;
CREATE ROLE regress_idem_monitor;
CREATE ROLE regress_idem_operator;
SELECT idem_grant('regress_idem_client', 'client'), idem_grant('regress_idem_worker', 'worker'),
	   idem_grant('regress_idem_monitor', 'monitor'), idem_grant('regress_idem_operator', 'operator');

-- Every function, view, type and table of the extension, from the catalogues.
CREATE TEMP TABLE member AS
SELECT d.classid, d.objid, i.type, coalesce(p.proname, c.relname, t.typname) AS name,
	   CASE WHEN d.classid = 'pg_proc'::regclass THEN proname ELSE i.type || ' ' || i.name END COLLATE "C" AS shown,
	   coalesce(obj_description(d.objid, d.classid::regclass::name), '') AS comment,
	   p.prorettype = 'trigger'::regtype AS is_trigger
FROM pg_depend AS d JOIN pg_extension AS e ON d.refobjid = e.oid
CROSS JOIN pg_identify_object(d.classid, d.objid, 0) AS i
LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
WHERE e.extname = 'idempotency' AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
	-- not the types that come with a table: from 17 on they are members, too
	AND (t.oid IS NULL OR t.typname IN ('idem_ticket', 'idem_response'));
CREATE FUNCTION pg_temp.may(role name, member) RETURNS boolean LANGUAGE sql AS $$
	SELECT CASE $2.classid
		WHEN 'pg_proc'::regclass THEN has_function_privilege(role, $2.objid, 'EXECUTE')
		WHEN 'pg_type'::regclass THEN has_type_privilege(role, $2.objid, 'USAGE')
		WHEN 'pg_class'::regclass THEN $2.type = 'sequence' AND has_sequence_privilege(role, $2.objid, 'USAGE, SELECT, UPDATE')
			OR $2.type <> 'sequence' AND has_any_column_privilege(role, $2.objid, 'SELECT, INSERT, UPDATE, REFERENCES')
			OR $2.type <> 'sequence' AND has_table_privilege(role, $2.objid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') END
$$;
CREATE TEMP VIEW matrix AS
SELECT m AS member, m.shown,
	   pg_temp.may('regress_idem_none', m) AS none, pg_temp.may('regress_idem_client', m) AS client,
	   pg_temp.may('regress_idem_worker', m) AS worker, pg_temp.may('regress_idem_monitor', m) AS monitor,
	   pg_temp.may('regress_idem_operator', m) AS operator
FROM member AS m;

-- Who may call what; all forms of a function alike.
SELECT DISTINCT shown, CASE WHEN none THEN 'x' ELSE '' END AS none, CASE WHEN client THEN 'x' ELSE '' END AS client,
	   CASE WHEN worker THEN 'x' ELSE '' END AS worker, CASE WHEN monitor THEN 'x' ELSE '' END AS monitor,
	   CASE WHEN operator THEN 'x' ELSE '' END AS operator
FROM pg_temp.matrix WHERE none OR client OR worker OR monitor OR operator ORDER BY shown;
-- For the owner alone: tables, and what no level names.
SELECT shown FROM pg_temp.matrix WHERE NOT (none OR client OR worker OR monitor OR operator)
AND (member).comment NOT LIKE 'Internal:%' AND (member).is_trigger IS NOT true ORDER BY shown;
-- Nothing internal is in a level, nor a trigger; no name in the list is misspelt.
SELECT shown FROM pg_temp.matrix WHERE (client OR worker OR monitor OR operator)
AND ((member).comment LIKE 'Internal:%' OR (member).is_trigger);
SELECT level, name FROM idem_levels() AS l, unnest(members) AS name
WHERE name NOT IN (SELECT m.name FROM member AS m);

-- Calls agree with it.  With NULLs: what may be called refuses them.
CREATE TEMP TABLE command AS
SELECT m.objid, m.shown, CASE WHEN m.type = 'view' THEN format('SELECT FROM %s', m.name)
	ELSE format('%s %s(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, m.name, (SELECT string_agg(format('NULL::%s', t::regtype), ', ' ORDER BY n)
										FROM unnest(proargtypes) WITH ORDINALITY AS a(t, n))) END AS command
FROM member AS m LEFT JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE m.classid = 'pg_proc'::regclass OR m.type = 'view';
GRANT SELECT ON command TO PUBLIC;
CREATE TEMP TABLE called (role name DEFAULT current_user, objid oid, may boolean);
GRANT INSERT ON called TO PUBLIC;
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL ROLE regress_idem_none;
INSERT INTO called (objid, may) SELECT objid, pg_temp.code_of(command) <> '42501' FROM command;
SET LOCAL ROLE regress_idem_client;
INSERT INTO called (objid, may) SELECT objid, pg_temp.code_of(command) <> '42501' FROM command;
SET LOCAL ROLE regress_idem_worker;
INSERT INTO called (objid, may) SELECT objid, pg_temp.code_of(command) <> '42501' FROM command;
SET LOCAL ROLE regress_idem_monitor;
INSERT INTO called (objid, may) SELECT objid, pg_temp.code_of(command) <> '42501' FROM command;
SET LOCAL ROLE regress_idem_operator;
INSERT INTO called (objid, may) SELECT objid, pg_temp.code_of(command) <> '42501' FROM command;
RESET ROLE;
SELECT role, count(*) > 50 AS many, count(*) FILTER (WHERE c.may <> pg_temp.may(c.role, m)) AS differ,
	   string_agg(m.shown, ', ') FILTER (WHERE c.may <> pg_temp.may(c.role, m)) AS which
FROM called AS c JOIN member AS m USING (objid) GROUP BY role ORDER BY role;
ROLLBACK;

-- Levels add up; the same again changes nothing; revoking takes all of them.
SELECT md5(string_agg(m::text, ',' ORDER BY m::text)) AS before FROM pg_temp.matrix AS m \gset
SELECT idem_grant('regress_idem_none', 'monitor'), idem_grant('regress_idem_none', 'client');
SELECT idem_grant('regress_idem_none', 'client');
SELECT count(*) FILTER (WHERE none <> (client OR monitor)) AS differ FROM pg_temp.matrix;
SELECT idem_revoke('regress_idem_none');
SELECT idem_revoke('regress_idem_none');
SELECT md5(string_agg(m::text, ',' ORDER BY m::text)) = :'before' AS as_before FROM pg_temp.matrix AS m;
-- other grants of a role are not touched
GRANT SELECT ON idem_policy TO regress_idem_none;
SELECT idem_grant('regress_idem_none', 'operator'), idem_revoke('regress_idem_none');
SELECT shown FROM pg_temp.matrix WHERE none;
REVOKE SELECT ON idem_policy FROM regress_idem_none;

-- Names of any kind.
CREATE ROLE "Regress idem ""odd""; DROP";
SELECT idem_grant('"Regress idem ""odd""; DROP"', 'client');
SELECT has_function_privilege('Regress idem "odd"; DROP', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'idem_claim';
SELECT idem_revoke('"Regress idem ""odd""; DROP"');
DROP ROLE "Regress idem ""odd""; DROP";

-- Bad input.
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_none', 'owner')$$);
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_none', 'Client')$$);
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_none', '')$$);
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_none', NULL)$$);
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_nobody', 'client')$$);
CALL pg_temp.refused($$SELECT idem_grant('PUBLIC', 'client')$$);
CALL pg_temp.refused($$SELECT idem_grant('-', 'client')$$);
CALL pg_temp.refused($$SELECT idem_grant('1', 'client')$$);
CALL pg_temp.refused($$SELECT idem_grant(NULL, 'client')$$);
CALL pg_temp.refused($$SELECT idem_revoke('regress_idem_nobody')$$);
CALL pg_temp.refused($$SELECT idem_revoke('1')$$);
CALL pg_temp.refused($$SELECT idem_revoke(NULL)$$);

-- For the owner and superusers: EXECUTE on it, given by mistake, gives nothing.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_idem_none;
GRANT USAGE ON SCHEMA public TO regress_idem_none;
SET ROLE regress_idem_operator;
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_operator', 'operator')$$);
SET ROLE regress_idem_none;
CALL pg_temp.refused($$SELECT idem_grant('regress_idem_none', 'monitor')$$);
CALL pg_temp.refused('SELECT FROM idem_stuck');
CALL pg_temp.refused($$SELECT idem_revoke('regress_idem_client')$$);
RESET ROLE;
SELECT has_function_privilege('regress_idem_client', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'idem_claim';

DROP OWNED BY regress_idem_none, regress_idem_client, regress_idem_worker, regress_idem_monitor, regress_idem_operator;
DROP ROLE regress_idem_none, regress_idem_client, regress_idem_worker, regress_idem_monitor, regress_idem_operator;
