/*
 * idem_origin: the database that this memory belongs to.  A restored dump
 * brings the row of where it came from, a copy made by TEMPLATE keeps it: then
 * nothing is handed out until somebody adopts the copy.
 */
CREATE TABLE idem_origin (
	system_identifier bigint NOT NULL,
	database oid NOT NULL,
	adopted_at timestamptz NOT NULL,
	PRIMARY KEY (system_identifier, database)
);
REVOKE ALL ON TABLE idem_origin FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_origin', '');

COMMENT ON TABLE idem_origin IS 'The database that the records, steps and intents belong to. Written by CREATE EXTENSION and idem_adopt.';
COMMENT ON COLUMN idem_origin.system_identifier IS 'of the cluster';
COMMENT ON COLUMN idem_origin.database IS 'oid of the database within the cluster';
COMMENT ON COLUMN idem_origin.adopted_at IS 'since when';

INSERT INTO idem_origin
SELECT c.system_identifier, d.oid, clock_timestamp()
FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database d
WHERE d.datname = pg_catalog.current_database();

CREATE FUNCTION idem_is_here(system_identifier bigint, database oid) RETURNS boolean
LANGUAGE c STABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_is_here';
REVOKE ALL ON FUNCTION idem_is_here(bigint, oid) FROM PUBLIC;
COMMENT ON FUNCTION idem_is_here(bigint, oid) IS
'Internal: whether this is that database of that cluster. Errors: none. Tables: none.';

/* Internal: refuses what must not be done in a copy. */
CREATE FUNCTION idem_require_adopted() RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT FROM @extschema@.idem_origin o
			   WHERE NOT @extschema@.idem_is_here(o.system_identifier, o.database))
	THEN
		RAISE EXCEPTION 'this database is a copy'
			USING ERRCODE = 'ID006',
				  DETAIL = 'Its commands and intents belong to another database, which may still be at work on them.',
				  HINT = 'When the original is out of use, call idem_adopt().';
	END IF;
END
$$;
REVOKE ALL ON FUNCTION idem_require_adopted() FROM PUBLIC;
COMMENT ON FUNCTION idem_require_adopted() IS
'Internal: refuses to go on in a copy. Errors: ID006. Tables: reads idem_origin.';

CREATE FUNCTION idem_adopt() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM @extschema@.idem_origin;
	INSERT INTO @extschema@.idem_origin
	SELECT c.system_identifier, d.oid, clock_timestamp()
	FROM pg_control_system() AS c, pg_database d
	WHERE d.datname = current_database();
	/* what was in flight when the copy was made: nobody here knows */
	WITH lapsed AS (
		UPDATE @extschema@.idem_intent i
		SET state = 'unknown', lease_until = NULL, token = NULL
		WHERE i.state = 'in_flight'
		RETURNING i.tenant, i.operation, i.key, i.name
	)
	INSERT INTO @extschema@.idem_event
		(at, tenant, operation, key, intent, from_state, to_state, actor, reason)
	SELECT clock_timestamp(), l.tenant, l.operation, l.key, l.name,
		   'in_flight', 'unknown', session_user, 'in flight when the copy was made'
	FROM lapsed l;
END
$$;
REVOKE ALL ON FUNCTION idem_adopt() FROM PUBLIC;
COMMENT ON FUNCTION idem_adopt() IS
'Makes a restored or copied database the place where commands are recovered and intents are sent. Only when the original is out of use: two places must not work on the same commands. What was in flight becomes unknown.
Arguments: none.
Returns: nothing.
Errors: none. Tables: writes idem_origin, idem_intent, idem_event.';
