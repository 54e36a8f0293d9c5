/*
 * Levels: what a role may call.  This list decides, and nothing else: whatever
 * is not in it, idem_grant and idem_revoke included, is for the extension's
 * owner alone.  A name stands for all functions, or the view or type, of that name.
 */
CREATE FUNCTION idem_levels(OUT level text, OUT includes text[], OUT members text[])
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	VALUES ('client', '{}'::text[], '{
		idem_claim, idem_claim_batch, idem_execute, idem_replay, idem_require,
		idem_complete, idem_complete_batch, idem_fail, idem_release, idem_unknown,
		idem_heartbeat, idem_hold, idem_step, idem_step_done,
		idem_intend, idem_send, idem_confirm, idem_reject, idem_defer,
		idem_fingerprint, idem_operation_id, idem_tenant_allowed,
		idem_ticket, idem_response
	}'::text[]),
	('worker', '{client}', '{
		idem_dispatch, idem_reconcile, idem_settle, idem_recover
	}'),
	('monitor', '{}', '{
		idem_stuck, idem_overview, idem_durability, idem_progress, idem_stat,
		idem_stat_get, idem_tenant_allowed
	}'),
	('operator', '{client, worker, monitor}', '{
		idem_resolve, idem_cancel, idem_retry, idem_define, idem_adopt,
		idem_stat_reset, idem_history, idem_sweep, idem_maintain
	}');
END;
REVOKE ALL ON FUNCTION idem_levels() FROM PUBLIC;
COMMENT ON FUNCTION idem_levels() IS
'Internal: the levels, the levels that each includes, and the functions, views and types that it adds. Errors: none. Tables: none.';

/*
 * Internal: the objects that a level is about, as GRANT names them; NULL: those
 * of all levels.
 */
CREATE FUNCTION idem_level_objects(level text) RETURNS SETOF text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	WITH listed AS (
		SELECT unnest(l.members) AS name
		FROM idem_levels() l
		WHERE idem_level_objects.level IS NULL
		   OR l.level = idem_level_objects.level
		   OR l.level IN (SELECT unnest(i.includes) FROM idem_levels() i
						  WHERE i.level = idem_level_objects.level)
	), own AS (
		SELECT d.classid, d.objid
		FROM pg_depend d
		JOIN pg_extension e ON d.refobjid = e.oid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		  AND e.extname = 'idempotency'
	)
	SELECT 'EXECUTE ON ROUTINE ' || p.oid::regprocedure
	FROM pg_proc p
	JOIN own o ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
	WHERE p.proname IN (SELECT name FROM listed)
	UNION ALL
	SELECT 'SELECT ON TABLE ' || c.oid::regclass
	FROM pg_class c
	JOIN own o ON o.classid = 'pg_class'::regclass AND o.objid = c.oid
	WHERE c.relkind = 'v' AND c.relname IN (SELECT name FROM listed)
	UNION ALL
	SELECT 'USAGE ON TYPE ' || t.oid::regtype
	FROM pg_type t
	JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
	JOIN own o ON o.classid = 'pg_type'::regclass AND o.objid = t.oid
	WHERE t.typname IN (SELECT name FROM listed);
END;
REVOKE ALL ON FUNCTION idem_level_objects(text) FROM PUBLIC;
COMMENT ON FUNCTION idem_level_objects(text) IS
'Internal: rights of a level, or of all levels (NULL), as GRANT spells them. Errors: none. Tables: none.';

/*
 * Internal: refuses what is no role, and who may not grant: without the check a
 * GRANT by somebody else could be no more than a warning.
 */
CREATE FUNCTION idem_check_grant(role regrole) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NOT pg_has_role((SELECT e.extowner FROM pg_extension e
						WHERE e.extname = 'idempotency'), 'USAGE') THEN
		RAISE EXCEPTION 'must be owner of extension idempotency'
			USING ERRCODE = '42501',
				  DETAIL = format('Role "%s" is not.', current_user),
				  HINT = 'Levels are given and taken by the owner or a superuser.';
	ELSIF role IS NULL THEN
		RAISE EXCEPTION 'role must not be NULL'
			USING ERRCODE = '22004',
				  DETAIL = 'It says whose rights are meant.',
				  HINT = 'Name a role, in double quotes where its name needs them.';
	ELSIF NOT EXISTS (SELECT FROM pg_roles r WHERE r.oid = role) THEN
		RAISE EXCEPTION 'role with oid % does not exist', role::oid
			USING ERRCODE = '42704',
				  DETAIL = 'A number and - stand for an oid.',
				  HINT = 'Name a role, in double quotes where its name needs them.';
	END IF;
END
$$;
REVOKE ALL ON FUNCTION idem_check_grant(regrole) FROM PUBLIC;
COMMENT ON FUNCTION idem_check_grant(regrole) IS
'Internal: a role, and the right to grant, checked. Errors: 22004, 42501, 42704. Tables: none.';

/*
 * With the caller's rights, so that EXECUTE on it, given by mistake, gives
 * nothing.
 */
CREATE FUNCTION idem_grant(role regrole, level text) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	levels text[] := ARRAY(SELECT l.level FROM @extschema@.idem_levels() l);
	object text;
BEGIN
	PERFORM @extschema@.idem_check_grant(role);
	IF level IS NULL OR level <> ALL (levels) THEN
		RAISE EXCEPTION 'level must be one of %', array_to_string(levels, ', ')
			USING ERRCODE = CASE WHEN level IS NULL THEN '22004' ELSE '22023' END,
				  DETAIL = format('It is %s.', coalesce(quote_literal(level), 'NULL')),
				  HINT = 'Each of them says in the comment of idem_grant() what it is for.';
	END IF;
	IF NOT has_schema_privilege(role, '@extschema@'::regnamespace, 'USAGE') THEN
		EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', '@extschema@'::regnamespace, role);
	END IF;
	FOR object IN SELECT @extschema@.idem_level_objects(level) LOOP
		EXECUTE format('GRANT %s TO %s', object, role);
	END LOOP;
END
$$;
REVOKE ALL ON FUNCTION idem_grant(regrole, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_grant(regrole, text) IS
'Gives a role what its level needs: functions, views, the two types, and USAGE on the schema where it has none; no right on a table. Levels add up. Again after an upgrade, for what is new. For the extension''s owner and superusers.
Arguments: role. level: client (claims commands and works on them), worker (client, and sends, recovers and reconciles), monitor (sees what is stuck, and figures), operator (all of these, and decides, defines policies and adopts).
Returns: nothing.
Errors: 22004, 22023 unknown level, 25006, 42501 not the owner, 42704 no such role. Tables: none.';

CREATE FUNCTION idem_revoke(role regrole) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	object text;
BEGIN
	PERFORM @extschema@.idem_check_grant(role);
	FOR object IN SELECT @extschema@.idem_level_objects(NULL::text) LOOP
		EXECUTE format('REVOKE %s FROM %s', object, role);
	END LOOP;
END
$$;
REVOKE ALL ON FUNCTION idem_revoke(regrole) FROM PUBLIC;
COMMENT ON FUNCTION idem_revoke(regrole) IS
'Takes from a role what idem_grant gave it, whatever the levels. USAGE on the schema stays. For the extension''s owner and superusers.
Arguments: role.
Returns: nothing.
Errors: 22004, 25006, 42501 not the owner, 42704 no such role. Tables: none.';

/*
 * Default privileges (ALTER DEFAULT PRIVILEGES) have given rights on what was
 * made above.
 */
DO $$
DECLARE
	command text;
BEGIN
	FOR command IN
		WITH own AS (
			SELECT d.classid, d.objid
			FROM pg_depend d
			JOIN pg_extension e ON d.refobjid = e.oid
			WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
			  AND e.extname = 'idempotency'
		), object (name, acl, owner) AS (
			/* views and sequences as well */
			SELECT 'TABLE ' || c.oid::regclass, c.relacl, c.relowner
			FROM pg_class c
			JOIN own o ON o.classid = 'pg_class'::regclass AND o.objid = c.oid
			UNION ALL
			SELECT 'ROUTINE ' || p.oid::regprocedure, p.proacl, p.proowner
			FROM pg_proc p
			JOIN own o ON o.classid = 'pg_proc'::regclass AND o.objid = p.oid
			UNION ALL
			SELECT 'TYPE ' || t.oid::regtype, t.typacl, t.typowner
			FROM pg_type t
			JOIN own o ON o.classid = 'pg_type'::regclass AND o.objid = t.oid
		)
		SELECT DISTINCT format('REVOKE ALL ON %s FROM %s', o.name,
							   CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
		FROM object o
		CROSS JOIN LATERAL aclexplode(o.acl) AS a
		WHERE a.grantee <> o.owner
	LOOP
		EXECUTE command;
	END LOOP;
END
$$;
