/*
 * idem_origin: the database that this memory belongs to.  A restored dump
 * brings the row of where it came from, a copy made by TEMPLATE keeps it: then
 * nothing is handed out or taken over until somebody adopts the copy.  A dump
 * restored over the database that it was made of brings a second row of the
 * same database, with another time.
 */
CREATE TABLE idem_origin (
	system_identifier bigint NOT NULL,
	database oid NOT NULL,
	adopted_at timestamptz NOT NULL,
	PRIMARY KEY (system_identifier, database, adopted_at)
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

CREATE FUNCTION idem_is_copy() RETURNS boolean
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_is_copy';
REVOKE ALL ON FUNCTION idem_is_copy() FROM PUBLIC;
COMMENT ON FUNCTION idem_is_copy() IS
'Internal: whether what is here belongs to another database. Errors: none. Tables: reads idem_origin.';

CREATE FUNCTION idem_require_adopted() RETURNS void
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_require_adopted';
REVOKE ALL ON FUNCTION idem_require_adopted() FROM PUBLIC;
COMMENT ON FUNCTION idem_require_adopted() IS
'Internal: refuses what must not be done in a copy. Errors: ID006. Tables: reads idem_origin.';

/*
 * What the original did since the copy was made is not known here: it may have
 * sent what was pending, and have ended, or gone on with, what was under way.
 * So that is unknown.  Such a command may have called systems of which there
 * is no intent here: settling those that are does not release it, only a
 * person's decision does (unknown_at is NULL).
 *
 * Locking: two who adopt come one after the other, by the lock on
 * idem_origin.  The lock on idem_record stands for the key locks of all
 * addresses: whoever writes a record has RowExclusiveLock on the table first.
 */
CREATE FUNCTION idem_adopt(nothing_since boolean DEFAULT false, physical boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM @extschema@.idem_require_every_tenant();
	LOCK TABLE @extschema@.idem_origin IN SHARE ROW EXCLUSIVE MODE;
	IF NOT @extschema@.idem_is_copy() AND physical IS NOT TRUE THEN
		RETURN;
	END IF;
	DELETE FROM @extschema@.idem_origin;
	INSERT INTO @extschema@.idem_origin
	SELECT c.system_identifier, d.oid, clock_timestamp()
	FROM pg_control_system() AS c, pg_database d
	WHERE d.datname = current_database();
	/* logical replication brings events, and leaves their sequence behind */
	PERFORM setval(own.sequence, max(e.id))
	FROM pg_get_serial_sequence('@extschema@.idem_event', 'id') AS own (sequence),
		 @extschema@.idem_event e
	GROUP BY own.sequence
	HAVING max(e.id) > coalesce(pg_sequence_last_value(own.sequence::regclass), 0);
	IF nothing_since THEN
		RETURN;
	END IF;

	LOCK TABLE @extschema@.idem_record, @extschema@.idem_intent IN EXCLUSIVE MODE;
	WITH open AS (
		SELECT r.tenant, r.operation, r.key, r.state
		FROM @extschema@.idem_record r
		WHERE r.state IN ('processing', 'released')
		  AND (r.state = 'processing' OR r.once_more)
	), moved AS (
		UPDATE @extschema@.idem_record r
		SET state = 'unknown', token = @extschema@.idem_token(), lease_until = NULL,
			once_more = NULL,
			reason = CASE o.state WHEN 'processing' THEN 'under way when the copy was made'
								  ELSE 'may have run since the copy was made' END
		FROM open o
		WHERE r.tenant = o.tenant AND r.operation = o.operation AND r.key = o.key
		RETURNING r.*, o.state AS was
	)
	INSERT INTO @extschema@.idem_event
		(at, attempt, tenant, operation, key, from_state, to_state, actor, reason)
	SELECT clock_timestamp(), m.attempt, m.tenant, m.operation, m.key, m.was, m.state,
		   session_user, m.reason
	FROM moved m;
	UPDATE @extschema@.idem_record r SET unknown_at = NULL
	WHERE r.state = 'unknown' AND r.unknown_at IS NOT NULL;

	WITH open AS (
		SELECT i.operation_id, i.state
		FROM @extschema@.idem_intent i
		WHERE i.state IN ('pending', 'in_flight')
	), moved AS (
		UPDATE @extschema@.idem_intent i
		SET state = 'unknown', token = NULL, lease_until = NULL,
			/* the earliest time at which it can have been sent */
			doubt_since = coalesce(i.doubt_since, i.created_at),
			reason = CASE o.state WHEN 'pending' THEN 'may have been sent since the copy was made'
							      ELSE 'in flight when the copy was made' END
		FROM open o
		WHERE i.operation_id = o.operation_id
		RETURNING i.*, o.state AS was
	)
	INSERT INTO @extschema@.idem_event
		(at, attempt, tenant, operation, key, intent, from_state, to_state, actor, reason)
	SELECT clock_timestamp(), r.attempt, m.tenant, m.operation, m.key, m.name, m.was, m.state,
		   session_user, m.reason
	FROM moved m
	LEFT JOIN @extschema@.idem_record r USING (tenant, operation, key);
END
$$;
REVOKE ALL ON FUNCTION idem_adopt(boolean, boolean) FROM PUBLIC;
COMMENT ON FUNCTION idem_adopt(boolean, boolean) IS
'Makes a restored or copied database the place where commands are recovered and intents are sent. Only when the original is out of use: two places must not work on the same commands. What cannot be known becomes unknown: commands under way, and released by evidence or a decision, wait for idem_resolve; intents pending or in flight for idem_reconcile. Before clients and workers come: what was begun here meanwhile becomes unknown too.
Arguments: nothing_since: true only if the original was stopped before the copy was made and nothing has run there since (pg_upgrade, a planned move): then all goes on as it was. physical: true for a restored base backup or snapshot or a point-in-time recovery, which are not recognised as copies since they keep the identity of their cluster.
Returns: nothing. In a database that is no copy, without physical, it changes nothing.
Errors: 25006, 42501 bound to some tenants; 53200, 55P03, 57014, 40P01: it waits for open transactions. Tables: writes idem_origin, idem_record, idem_intent, idem_event.';
