/*
 * idem_event: the trail.  Every transition is here except those that a row
 * proves by itself: of a command the first claim and the completion, of an
 * intent that it was noted (created_at), first sent (first_sent_at) and
 * confirmed (settled_at).  What is refused raises an error, and stands in the
 * server's log.
 */
CREATE TABLE idem_event (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	attempt integer,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	intent text COLLATE "C",
	from_state text COLLATE "C" NOT NULL,
	to_state text COLLATE "C" NOT NULL,
	actor text COLLATE "C" NOT NULL,
	reason text COLLATE "C"
);
CREATE INDEX idem_event_address ON idem_event (tenant, operation, key);
REVOKE ALL ON TABLE idem_event FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_event', '');
SELECT pg_catalog.pg_extension_config_dump('idem_event_id_seq', '');

COMMENT ON TABLE idem_event IS
'The trail: every transition of a command or an intent that its row does not prove by itself: all but the first claim and the completion of a command, and that an intent was noted, first sent and confirmed by its worker. Written by the idem_ functions only; a purge removes it with its command.';
COMMENT ON COLUMN idem_event.id IS 'order of writing within a session';
COMMENT ON COLUMN idem_event.at IS 'when';
COMMENT ON COLUMN idem_event.attempt IS 'attempt of the command at that time';
COMMENT ON COLUMN idem_event.tenant IS 'first part of the address';
COMMENT ON COLUMN idem_event.operation IS 'second part of the address';
COMMENT ON COLUMN idem_event.key IS 'third part of the address';
COMMENT ON COLUMN idem_event.intent IS 'name of the intent; NULL for the command itself';
COMMENT ON COLUMN idem_event.from_state IS 'state before; none where there was no row';
COMMENT ON COLUMN idem_event.to_state IS 'state after';
COMMENT ON COLUMN idem_event.actor IS 'login role of the session';
COMMENT ON COLUMN idem_event.reason IS 'why';

CREATE FUNCTION idem_event_protect() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'cannot % idem_event', lower(TG_OP)
		USING ERRCODE = 'ID003',
			  DETAIL = 'The trail only grows.',
			  HINT = 'Use the idem_ functions.';
END
$$;
REVOKE ALL ON FUNCTION idem_event_protect() FROM PUBLIC;
COMMENT ON FUNCTION idem_event_protect() IS
'Trigger of idem_event: refuses every UPDATE, DELETE and TRUNCATE.
Errors: ID003. Tables: idem_event.';

CREATE TRIGGER idem_event_protect
	BEFORE UPDATE OR DELETE OR TRUNCATE ON idem_event
	FOR EACH STATEMENT EXECUTE FUNCTION idem_event_protect();
