-- Proves that PUBLIC, and so a fresh role, has no right on anything of the
-- extension, and that all of it lies in its own schema.  The row types of the
-- tables are left as they are: a right taken from one of them makes pg_dump
-- warn (unsupported pg_init_privs entry), and the type alone opens nothing.
\ir setup.psql
SELECT plan(9);

CREATE ROLE idem_fresh;
GRANT USAGE ON SCHEMA idem_only, tap_only TO idem_fresh;

-- From 17 on the types that come with a table or a type are members as well:
-- left out.
CREATE VIEW pg_temp.members AS
SELECT d.classid::regclass AS class, d.objid, i.type COLLATE "default",
	   i.schema, i.identity
FROM pg_depend d,
	 pg_identify_object(d.classid, d.objid, 0) AS i
WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
AND NOT EXISTS (SELECT FROM pg_depend i
	WHERE (i.classid, i.objid, i.deptype) = (d.classid, d.objid, 'i'));

SELECT results_eq(
	'SELECT type, count(*) FROM pg_temp.members GROUP BY type ORDER BY type',
	$$VALUES ('function', 59::bigint), ('procedure', 1), ('table', 7),
		  ('type', 2), ('view', 4)$$,
	'the extension has types, functions and tables only');
SELECT is_empty(
	$$SELECT identity FROM pg_temp.members
	  WHERE schema IS DISTINCT FROM 'idem_only'$$,
	'all of it lies in its schema');

SELECT is_empty(
	$$SELECT identity FROM pg_temp.members WHERE class = 'pg_proc'::regclass
	  AND has_function_privilege('idem_fresh', objid, 'EXECUTE')$$,
	'no function');
SELECT is_empty(
	$$SELECT c.relname, privilege FROM pg_class c,
	  unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'
			 ::text[]) AS privilege
	  WHERE c.relnamespace = 'idem_only'::regnamespace AND c.relkind IN ('r', 'v', 'S')
	  AND has_table_privilege('idem_fresh', c.oid, privilege)$$,
	'no table, view or sequence');
SELECT is_empty(
	$$SELECT c.relname, privilege FROM pg_class c,
	  unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) AS privilege
	  WHERE c.relnamespace = 'idem_only'::regnamespace AND c.relkind IN ('r', 'v')
	  AND has_any_column_privilege('idem_fresh', c.oid, privilege)$$,
	'no column of a table or view');
SELECT is_empty(
	$$SELECT identity FROM pg_temp.members WHERE class = 'pg_type'::regclass
	  AND has_type_privilege('idem_fresh', objid, 'USAGE')$$,
	'no type');

SET LOCAL ROLE idem_fresh;
SELECT throws_ok($$SELECT idem_claim('t', 'o', 'k')$$, '42501', NULL,
	'a fresh role cannot claim');
SELECT throws_ok('SELECT FROM idem_record', '42501', NULL,
	'a fresh role cannot read records');
SELECT throws_ok($$SELECT idem_fingerprint('{}')$$, '42501', NULL,
	'a fresh role cannot even compute a fingerprint');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
