-- The trail cannot be changed or emptied: not by an application's role whatever
-- functions it may call, not through session_replication_role, and not by a
-- superuser unawares; and what cannot be noted does not happen (case 30).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE ROLE regress_idem_trail;
SELECT idem_release(idem_claim('t', 'trail protect', 'k', lease => '1 hour'), 'why');
CREATE TEMP TABLE before AS SELECT * FROM idem_event WHERE operation = 'trail protect';

-- A role that may call every function.
DO $$
BEGIN
	EXECUTE (SELECT string_agg(format('GRANT EXECUTE ON ROUTINE %s TO regress_idem_trail', objid::regprocedure), ';')
			 FROM pg_depend JOIN pg_extension AS e ON refobjid = e.oid
			 WHERE extname = 'idempotency' AND classid = 'pg_proc'::regclass AND deptype = 'e');
END $$;
CREATE TEMP TABLE attack AS
SELECT command FROM unnest(ARRAY['UPDATE idem_event SET reason = NULL', 'DELETE FROM idem_event', 'TRUNCATE idem_event',
	'TRUNCATE idem_event CASCADE', 'INSERT INTO idem_event DEFAULT VALUES', 'DROP TABLE idem_event',
	'ALTER TABLE idem_event DISABLE TRIGGER ALL', 'ALTER TABLE idem_event DISABLE TRIGGER idem_event_protect',
	'ALTER TABLE idem_event ENABLE REPLICA TRIGGER idem_event_protect', 'ALTER TABLE idem_event RENAME TO other',
	'ALTER TABLE idem_event ALTER COLUMN reason SET DEFAULT ''x''', 'ALTER TABLE idem_event ENABLE ROW LEVEL SECURITY',
	'DROP TRIGGER idem_event_protect ON idem_event', 'DROP FUNCTION idem_event_protect()',
	'CREATE OR REPLACE FUNCTION idem_event_protect() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NULL; END''',
	'CREATE TRIGGER t BEFORE INSERT ON idem_event EXECUTE FUNCTION suppress_redundant_updates_trigger()',
	'CREATE RULE r AS ON INSERT TO idem_event DO INSTEAD NOTHING', 'LOCK TABLE idem_event',
	'SELECT setval(''idem_event_id_seq'', 1)', 'ALTER SEQUENCE idem_event_id_seq RESTART',
	'SET session_replication_role = replica', 'SET LOCAL session_replication_role = replica',
	'SELECT set_config(''session_replication_role'', ''replica'', true)',
	'ALTER ROLE regress_idem_trail SET session_replication_role = replica',
	'COPY idem_event FROM PROGRAM ''true''', 'COPY idem_event TO ''/dev/null''']) AS command;
GRANT SELECT ON attack TO regress_idem_trail;
SET ROLE regress_idem_trail;
SELECT command, pg_temp.code_of(command) AS code FROM attack WHERE pg_temp.code_of(command) <> '42501';
RESET ROLE;

-- With every right on the table that can be granted, a row can be added, but
-- none can be taken away.
GRANT ALL ON idem_event TO regress_idem_trail;
SET ROLE regress_idem_trail;
SELECT command, pg_temp.code_of(command) AS code FROM attack
WHERE command ~ '^(UPDATE|DELETE|TRUNCATE|ALTER TABLE|DROP)' ORDER BY command COLLATE "C";
RESET ROLE;
REVOKE ALL ON idem_event FROM regress_idem_trail;

-- A superuser's mistake is refused as well.
CALL pg_temp.refused('UPDATE idem_event SET reason = NULL');
CALL pg_temp.refused('DELETE FROM idem_event');
CALL pg_temp.refused('TRUNCATE idem_event');

-- What cannot be noted does not happen.
CREATE FUNCTION pg_temp.without_trail(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	code text;
BEGIN
	EXECUTE format('ALTER SEQUENCE idem_event_id_seq MAXVALUE %s', nextval('idem_event_id_seq'));
	code := pg_temp.code_of(command);
	EXECUTE 'ALTER SEQUENCE idem_event_id_seq NO MAXVALUE';
	RETURN code;
END
$$;
SELECT idem_claim('t', 'trail protect', 'live', lease => '1 hour') AS ticket \gset
SELECT md5(string_agg(r::text, '' ORDER BY key)) AS rows FROM idem_record AS r WHERE operation = 'trail protect' \gset before_
SELECT name, pg_temp.without_trail(command) AS code FROM (VALUES
	('claim', $$SELECT idem_claim('t', 'trail protect', 'k', lease => '1 hour')$$),
	('atomic claim', $$SELECT idem_complete(idem_claim('t', 'trail protect', 'k'))$$),
	('release', format('SELECT idem_release(%L::idem_ticket, ''why'')', :'ticket')),
	('unknown', format('SELECT idem_unknown(%L::idem_ticket, ''why'')', :'ticket')),
	('cancel', $$SELECT idem_cancel('t', 'trail protect', 'k', 'why')$$),
	('cancel, new', $$SELECT idem_cancel('t', 'trail protect', 'new', 'why')$$)) AS v (name, command);
SELECT md5(string_agg(r::text, '' ORDER BY key)) = :'before_rows' AS unchanged FROM idem_record AS r WHERE operation = 'trail protect';
SELECT idem_release(:'ticket'::idem_ticket, 'why');

SELECT count(*) AS lost FROM before AS b WHERE NOT EXISTS (SELECT FROM idem_event AS e WHERE e.id = b.id AND e::text = b::text);
DROP OWNED BY regress_idem_trail;
DROP ROLE regress_idem_trail;
