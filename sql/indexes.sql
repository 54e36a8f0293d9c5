-- Indexes of every kind are kept up, those that a user adds to idem_record, too:
-- what was inserted and updated is found through each of them.
CREATE FUNCTION regress_run(round text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM idem_complete(idem_claim('t', 'indexes', round || ' atomic', owner => 'indexes'), resource => 'X ' || round);
	PERFORM idem_fail(idem_claim('t', 'indexes', round || ' leased', lease => '1 hour', owner => 'indexes'), resource => 'X ' || round);
	PERFORM idem_release(idem_claim('t', 'indexes', round || ' released', lease => '1 hour', owner => 'indexes'));
	PERFORM idem_claim('t', 'indexes', round || ' open', lease => '1 hour', owner => 'indexes');
END $$;
-- There is no other index than the one in question to find these rows by.
CREATE FUNCTION regress_found(condition text) RETURNS TABLE (key text, state text)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
	RETURN QUERY EXECUTE format('SELECT key, state FROM idem_record WHERE %s ORDER BY key', condition);
END $$;
\set open '$$state IN (''processing'', ''unknown'', ''released'') AND created_at > ''2020-01-01'' AND owner = ''indexes''$$'

-- What is open is found by when it began, everything by its address.
SELECT regress_run('none');
SELECT * FROM regress_found(:open);
SELECT * FROM regress_found($$tenant = 't' AND operation = 'indexes'$$);

CREATE INDEX regress_index ON idem_record (resource) INCLUDE (code);
SELECT regress_run('plain');
SELECT * FROM regress_found($$resource = 'X plain'$$);
-- While it is under construction, it is left alone.
UPDATE pg_index SET indisready = false WHERE indexrelid = 'regress_index'::regclass;
SELECT regress_run('not ready');
UPDATE pg_index SET indisready = true WHERE indexrelid = 'regress_index'::regclass;
SELECT * FROM regress_found($$resource = 'X not ready'$$);
DROP INDEX regress_index;

-- One whose predicate the extension does not know; the others are kept up
-- beside it.
CREATE INDEX regress_index ON idem_record (resource) WHERE state = 'failed';
SELECT regress_run('partial');
SELECT * FROM regress_found($$resource = 'X partial' AND state = 'failed'$$);
SELECT * FROM regress_found(:open);
SELECT * FROM regress_found($$tenant = 't' AND operation = 'indexes' AND key LIKE 'partial%'$$);
DROP INDEX regress_index;

CREATE INDEX regress_index ON idem_record (lower(resource));
SELECT regress_run('expression');
SELECT * FROM regress_found($$lower(resource) = 'x expression'$$);
DROP INDEX regress_index;

CREATE INDEX regress_index ON idem_record USING hash (resource);
SELECT regress_run('hash');
SELECT * FROM regress_found($$resource = 'X hash'$$);
DROP INDEX regress_index;

CREATE INDEX regress_index ON idem_record USING brin (resource);
SELECT regress_run('brin');
SELECT * FROM regress_found($$resource = 'X brin'$$);
DROP INDEX regress_index;

-- What such an index refuses is not written.
BEGIN;
SET LOCAL session_replication_role = replica;
DELETE FROM idem_record;
SET LOCAL session_replication_role = origin;
ALTER TABLE idem_record ADD EXCLUDE (resource WITH =);
SELECT idem_complete(idem_claim('t', 'indexes', 'first'), resource => 'only one');
SAVEPOINT second;
SELECT idem_complete(idem_claim('t', 'indexes', 'second'), resource => 'only one');
ROLLBACK TO second;
SELECT idem_complete(idem_claim('t', 'indexes', 'second'), resource => 'another one');
SELECT * FROM regress_found($$tenant = 't' AND operation = 'indexes'$$);
ROLLBACK;

DROP FUNCTION regress_run(text), regress_found(text);
