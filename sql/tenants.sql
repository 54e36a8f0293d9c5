-- idempotency.allowed_tenants: a login role that is bound acts on its tenants
-- only, in every function and view, and learns nothing of others (case 18).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SELECT idem_complete(idem_claim('t1', 'tenants', 'k', '1'), '"secret"');
SELECT idem_complete(idem_claim('t2', 'tenants', 'k', '1'), '"own"');
SELECT outcome FROM idem_claim('t1', 'tenants', 'lapsed', lease => '1 us');
SELECT outcome FROM idem_claim('t2', 'tenants', 'lapsed', lease => '1 us');
SELECT idem_unknown(c, 'why') FROM idem_claim('t1', 'tenants', 'released', lease => '1 hour') AS c;
SELECT idem_unknown(c, 'why') FROM idem_claim('t2', 'tenants', 'released', lease => '1 hour') AS c;
SELECT idem_resolve(tenant, 'tenants', 'released', 'released', 'why') FROM unnest('{t1,t2}'::text[]) AS tenant;
ANALYZE idem_record;
CREATE TEMP TABLE intent AS SELECT c.tenant, i.operation_id AS id FROM
	idem_claim_batch('t1', 'tenants', '{i1,i2,i3,i4}', lease => '1 hour') AS c,
	idem_intend(c, 'pay', 'tenants bank', send => c.key <> 'i3',
				resend_safe_for => CASE c.key WHEN 'i1' THEN interval '1 hour' END) AS i;
INSERT INTO intent SELECT c.tenant, i.operation_id FROM
	idem_claim_batch('t2', 'tenants', '{i1,i2,i3,i4}', lease => '1 hour') AS c,
	idem_intend(c, 'pay', 'tenants bank', send => c.key <> 'i3',
				resend_safe_for => CASE c.key WHEN 'i1' THEN interval '1 hour' END) AS i;
-- two have an outcome that nobody knows, of which one may be sent again, one of
-- each tenant is dead, and the others wait to be sent
SELECT count(*) FROM idem_dispatch('tenants bank', 'w', 2, '1 us');
UPDATE idem_intent SET due_at = 'infinity' WHERE operation = 'tenants' AND key = 'i3';

-- The syntax of the list, and what it allows.
CREATE FUNCTION pg_temp.allowed(list text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before text := current_setting('idempotency.allowed_tenants');
	answer text;
BEGIN
	PERFORM set_config('idempotency.allowed_tenants', list, true);
	SELECT concat_ws(' ', CASE WHEN idem_tenant_allowed(NULL) THEN 'all' END,
					 string_agg(quote_literal(name), ' ' ORDER BY n) FILTER (WHERE idem_tenant_allowed(name)))
	INTO answer
	FROM unnest(ARRAY['a', 'A', 'b', 'a b', 'a,b', 'a"b', '"a"', '"', '*', 'é', '', ' ', repeat('é', 128)])
		 WITH ORDINALITY AS t (name, n);
	PERFORM set_config('idempotency.allowed_tenants', before, true);
	RETURN answer;
EXCEPTION WHEN invalid_parameter_value THEN
	RETURN sqlstate;
END
$$;
SELECT CASE WHEN length(list) > 100 THEN left(list, 1) || '...' ELSE list END AS list, pg_temp.allowed(list)
FROM unnest(ARRAY['*', ' * ', '', '  ', 'a', 'A', ' a , b ', 'a,b', E'\ta\n,\nb', 'b,b', '"a"', '"A", "a b"', '"a,b",b',
				  '"a""b"', '"""a""", """"', '"*"', 'é', repeat('é', 128), '"' || repeat('é', 128) || '"',
				  'c', '**', '\a',
				  -- malformed
				  ',', 'a,', ',a', 'a,,b', 'a b', '"a', '"a""', 'a"', 'a"b"', '"a"b', '"a" b', '""', '" "', '"a", ""',
				  '*, a', 'a, *', '* *', repeat('a', 513), '"' || repeat('a', 513) || '"']) AS list;
CALL pg_temp.refused($$SET idempotency.allowed_tenants = 'a b'$$);
CALL pg_temp.refused($$ALTER ROLE CURRENT_USER SET idempotency.allowed_tenants = '"a'$$);
CALL pg_temp.refused($$ALTER DATABASE postgres SET idempotency.allowed_tenants = 'a,'$$);

-- A bound role with every level.
CREATE ROLE regress_idem_bound;
SELECT idem_grant('regress_idem_bound', 'operator');
GRANT SELECT ON intent TO regress_idem_bound;
ALTER ROLE regress_idem_bound SET idempotency.allowed_tenants = 't2, "t 3"';
SET SESSION AUTHORIZATION regress_idem_bound;
SELECT idem_tenant_allowed('t1') AS t1, idem_tenant_allowed('t2') AS t2, idem_tenant_allowed('t 3') AS t3,
	   idem_tenant_allowed(NULL) AS every, idem_tenant_allowed('no such') AS none;

-- Every function, sorted by how it is told what to act on: one that is in no
-- group below has to be put there.
CREATE TEMP TABLE call AS
SELECT p.proname::text AS name,
	   CASE WHEN 'tenant' = ANY (proargnames[1:pronargs]) THEN 'address'
			WHEN 'idem_ticket'::regtype = ANY (proargtypes) THEN 'ticket'
			WHEN 'idem_ticket[]'::regtype = ANY (proargtypes) THEN 'ticket'
			WHEN 'uuid'::regtype = ANY (proargtypes) THEN 'intent'
			ELSE 'other' END AS kind,
	   format('SELECT %s(%s)', p.proname,
			  (SELECT string_agg(CASE WHEN t = 'idem_ticket'::regtype THEN 'ROW(''execute'', ''t1'', ''tenants'', ''k'', 1, '
									|| repeat('NULL, ', (SELECT count(*)::int - 6 FROM pg_attribute
														 WHERE attrelid = 'idem_ticket'::regclass AND attnum > 0)) || 'NULL)::idem_ticket'
								  WHEN t = 'idem_ticket[]'::regtype THEN 'ARRAY[idem_replay(''t2'', ''tenants'', ''k''), ROW(''execute'', ''t1'', ''tenants'', ''k'', 1, '
									|| repeat('NULL, ', (SELECT count(*)::int - 6 FROM pg_attribute
														 WHERE attrelid = 'idem_ticket'::regclass AND attnum > 0)) || 'NULL)::idem_ticket]'
								  WHEN name = 'tenant' THEN '''t1'''
								  WHEN name = 'keys' THEN '''{k,lapsed,new}'''
								  WHEN name = 'intent' THEN quote_literal((SELECT id FROM intent WHERE tenant = 't1' LIMIT 1)) || '::uuid'
								  WHEN name = 'operation' THEN '''tenants'''
								  WHEN name = 'key' THEN '''k'''
								  WHEN name = 'token' THEN '1'
								  WHEN name = 'lease' THEN 'interval ''1 hour'''
								  WHEN name = 'verdict' THEN '''happened'''
								  WHEN name = 'evidence' THEN '''1''::jsonb'
								  WHEN name IN ('worker', 'reason', 'step', 'name', 'target') THEN '''' || name || ''''
								  WHEN name = 'handler' THEN '''pg_catalog.to_json(anyelement)''::regprocedure'
								  ELSE format('NULL::%s', t::regtype) END, ', ' ORDER BY n)
			   FROM unnest(proargtypes::oid[], proargnames[1:pronargs]) WITH ORDINALITY AS a (t, name, n))) AS command
FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'idempotency'
WHERE has_function_privilege(p.oid, 'EXECUTE');
SELECT name FROM call WHERE kind = 'other' ORDER BY name COLLATE "C";
SELECT kind, pg_temp.code_of(command) AS code, count(*) > 1 AS many,
	   string_agg(name, ' ' ORDER BY name) FILTER (WHERE kind <> 'intent' AND pg_temp.code_of(command) <> '42501') AS allowed
FROM call WHERE kind <> 'other' GROUP BY 1, 2 ORDER BY 1, 2;
-- The error says what was asked for, and that is all.
CALL pg_temp.refused($$SELECT idem_claim('t1', 'tenants', 'k', '1')$$);
CALL pg_temp.refused($$SELECT idem_claim('no such', 'tenants', 'k', '1')$$);
CALL pg_temp.refused($$SELECT idem_replay('t1', 'tenants', 'k', '1')$$);
CALL pg_temp.refused($$SELECT idem_claim_batch('t1', 'tenants', '{k}')$$);
SELECT format('SELECT idem_retry(%L, ''why'')', id) AS command FROM intent WHERE tenant = 't1' ORDER BY id LIMIT 1 \gset
CALL pg_temp.refused(:'command');
CALL pg_temp.refused($$SELECT idem_retry('00000000-0000-0000-0000-000000000000', 'why')$$);

-- The others concern every tenant, or hand out and show those that are allowed.
CALL pg_temp.refused('SELECT idem_adopt()');
CALL pg_temp.refused('SELECT idem_sweep()');
CALL pg_temp.refused($$SELECT idem_define('tenants')$$);
CALL pg_temp.refused('SELECT FROM idem_stat');
CALL pg_temp.refused('SELECT idem_stat_reset()');
SELECT lapsed, intents_pending, intents_lapsed, intents_dead FROM idem_overview WHERE operation = 'tenants';
SELECT records, unswept FROM idem_overview WHERE operation IS NULL;
SELECT tenant, key, intent, state FROM idem_stuck WHERE operation = 'tenants' ORDER BY 1, 2, 3;
BEGIN;
SELECT tenant, key FROM idem_dispatch('tenants bank', 'w', 100, '1 hour') ORDER BY key;
SELECT tenant, key FROM idem_reconcile('tenants bank', 'w', 100, '1 hour') ORDER BY key;
SELECT tenant, key, outcome FROM idem_recover('w', 100, '1 hour') WHERE operation = 'tenants' ORDER BY key;
ROLLBACK;
SELECT outcome, response FROM idem_claim('t2', 'tenants', 'k', '1');
SELECT idem_complete(c, '"done"') FROM idem_claim('t 3', 'tenants', 'k', '1') AS c;
-- A condition of the reader sees no row that is not his.
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	RAISE INFO 'seen: %', $1;
	RETURN false;
END
$$;
SELECT FROM idem_stuck WHERE operation = 'tenants' AND intent IS NULL AND pg_temp.leak(tenant);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT FROM idem_stuck WHERE operation = 'tenants' AND intent IS NULL AND pg_temp.leak(tenant);
RESET enable_seqscan;
RESET enable_bitmapscan;

-- Whatever the session does, it stays bound.
CALL pg_temp.refused($$SET idempotency.allowed_tenants = '*'$$);
CALL pg_temp.refused($$SET LOCAL idempotency.allowed_tenants = 't1'$$);
CALL pg_temp.refused($$SELECT set_config('idempotency.allowed_tenants', 't1', true)$$);
CALL pg_temp.refused('RESET idempotency.allowed_tenants');
CALL pg_temp.refused($$ALTER ROLE CURRENT_USER SET idempotency.allowed_tenants = '*'$$);
CALL pg_temp.refused('ALTER ROLE CURRENT_USER RESET idempotency.allowed_tenants');
ALTER ROLE CURRENT_USER RESET ALL;
RESET ALL;
SELECT pg_temp.code_of($$SELECT idem_claim('t1', 'tenants', 'k')$$);
CALL pg_temp.refused($$CREATE FUNCTION pg_temp.wide() RETURNS text LANGUAGE sql SET idempotency.allowed_tenants = '*'
	AS 'SELECT outcome FROM idem_replay(''t1'', ''tenants'', ''k'', ''1'')'$$);
CALL pg_temp.refused($$UPDATE pg_settings SET setting = '*' WHERE name = 'idempotency.allowed_tenants'$$);
RESET SESSION AUTHORIZATION;
SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'regress_idem_bound'::regrole;
-- Nor does the right of somebody else help: the login role counts.
CREATE ROLE regress_idem_free;
SELECT idem_grant('regress_idem_free', 'client');
GRANT regress_idem_free TO regress_idem_bound;
CREATE FUNCTION tenants_definer() RETURNS text LANGUAGE sql SECURITY DEFINER
AS $$ SELECT outcome FROM idem_replay('t1', 'tenants', 'k', '1') $$;
CREATE FUNCTION tenants_definer_set() RETURNS text LANGUAGE sql SECURITY DEFINER SET idempotency.allowed_tenants = '*'
AS $$ SELECT outcome FROM idem_replay('t1', 'tenants', 'k', '1') $$;
SET SESSION AUTHORIZATION regress_idem_bound;
CALL pg_temp.refused('SELECT tenants_definer()');
CALL pg_temp.refused('SELECT tenants_definer_set()');
SET ROLE regress_idem_free;
CALL pg_temp.refused($$SELECT idem_replay('t1', 'tenants', 'k', '1')$$);
RESET ROLE;
RESET SESSION AUTHORIZATION;
SELECT tenants_definer();
-- SET by a superuser narrows, also in a function's SET clause; it never widens.
CREATE FUNCTION tenants_narrow() RETURNS text LANGUAGE sql SECURITY DEFINER SET idempotency.allowed_tenants = 't1'
AS $$ SELECT idem_tenant_allowed('t1') || ' ' || idem_tenant_allowed('t2') $$;
SELECT tenants_narrow(), idem_tenant_allowed('t2');
SET SESSION AUTHORIZATION regress_idem_bound;
SELECT tenants_narrow(), idem_tenant_allowed('t2');
RESET SESSION AUTHORIZATION;
BEGIN;
SET LOCAL idempotency.allowed_tenants = '';
CALL pg_temp.refused($$SELECT idem_claim('t1', 'tenants', 'k')$$);
SELECT count(*) FROM idem_stuck;
ROLLBACK;
SELECT idem_tenant_allowed(NULL);
-- A change while a statement runs counts from the next call on.
SELECT n, idem_tenant_allowed('t1'), CASE WHEN n = 2 THEN set_config('idempotency.allowed_tenants', 't2', false) END AS set
FROM generate_series(1, 3) AS n;
RESET idempotency.allowed_tenants;

-- The most specific value of the catalogue counts, as for any setting; one
-- that cannot be read allows nothing, in whatever spelling.
CREATE VIEW tenants_seen AS
SELECT session_user, idem_tenant_allowed('t1') AS t1, idem_tenant_allowed('t2') AS t2,
	   idem_tenant_allowed('t3') AS t3, idem_tenant_allowed(NULL) AS every;
GRANT SELECT ON tenants_seen TO PUBLIC;
SELECT current_database() AS database \gset
BEGIN;
ALTER ROLE ALL SET idempotency.allowed_tenants = 't1, t2';
SET SESSION AUTHORIZATION regress_idem_bound;
TABLE tenants_seen;
SET SESSION AUTHORIZATION regress_idem_free;
TABLE tenants_seen;
RESET SESSION AUTHORIZATION;
ALTER DATABASE :"database" SET idempotency.allowed_tenants = 't3';
ALTER ROLE regress_idem_bound IN DATABASE :"database" SET idempotency.allowed_tenants = 't1';
SET SESSION AUTHORIZATION regress_idem_bound;
TABLE tenants_seen;
SET SESSION AUTHORIZATION regress_idem_free;
TABLE tenants_seen;
RESET SESSION AUTHORIZATION;
ALTER ROLE regress_idem_free SET idempotency.allowed_tenants = '*';
ALTER ROLE regress_idem_bound IN DATABASE :"database" RESET idempotency.allowed_tenants;
ALTER ROLE regress_idem_bound RESET idempotency.allowed_tenants;
SET SESSION AUTHORIZATION regress_idem_bound;
TABLE tenants_seen;
SET SESSION AUTHORIZATION regress_idem_free;
TABLE tenants_seen;
RESET SESSION AUTHORIZATION;
ROLLBACK;
\c -
ALTER ROLE regress_idem_bound SET "Idempotency.Allowed_Tenants" = '"t2';
SET SESSION AUTHORIZATION regress_idem_bound;
TABLE tenants_seen;
RESET SESSION AUTHORIZATION;
TABLE tenants_seen;

DROP VIEW tenants_seen;
DROP FUNCTION tenants_definer, tenants_definer_set, tenants_narrow;
DROP OWNED BY regress_idem_bound, regress_idem_free;
DROP ROLE regress_idem_bound, regress_idem_free;
