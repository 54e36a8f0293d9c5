/*
 * Gives a role what an application needs: every function but idem_define and
 * the triggers, the two types, and the schema.  No right on a table.
 *
 * usage: psql -v role=shop -f examples/grant_client.sql
 */
SELECT format('GRANT USAGE ON SCHEMA %s TO %I', e.extnamespace::regnamespace, :'role')
FROM pg_extension e WHERE e.extname = 'idempotency'
UNION ALL
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', d.objid::regprocedure, :'role')
FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
				AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
JOIN pg_proc p ON p.oid = d.objid
WHERE e.extname = 'idempotency'
  AND p.proname <> 'idem_define' AND p.prorettype <> 'trigger'::regtype
UNION ALL
SELECT format('GRANT USAGE ON TYPE %s TO %I', t.oid::regtype, :'role')
FROM pg_extension e
JOIN pg_type t ON t.typnamespace = e.extnamespace
			  AND t.typname IN ('idem_ticket', 'idem_response')
WHERE e.extname = 'idempotency'
\gexec
