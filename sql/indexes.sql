-- Indexes of every kind are kept up, those that a user adds to idem_record, too:
-- what was inserted and updated is found through each of them, and unique ones
-- refuse what they have to.
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


-- Its error is its own, and the claim is still open.
CREATE UNIQUE INDEX regress_index ON idem_record (owner) WHERE owner = 'unique';
CREATE UNIQUE INDEX regress_index_2 ON idem_record (operation, owner, code, resource) INCLUDE (attempt);
SELECT idem_complete(idem_claim('t', 'indexes', 'unique ' || owner, owner => owner), code => 1, resource => 'one') FROM unnest(ARRAY['unique', 'second']) AS owner;
BEGIN;
SELECT idem_claim('t', 'indexes', 'unique 2', owner => 'second') AS ticket \gset
SAVEPOINT refused;
SELECT idem_complete(:'ticket'::idem_ticket, code => 1, resource => 'one');
ROLLBACK TO refused;
SELECT idem_complete(:'ticket'::idem_ticket, code => 2, resource => 'one');
COMMIT;
SELECT idem_claim('t', 'indexes', 'unique 3', lease => '1 hour', owner => 'unique');
DROP INDEX regress_index, regress_index_2;

-- A constraint that is asked later: at the end of the call, or at COMMIT.  It is
-- broken by an insert, or by an update.
CREATE PROCEDURE regress_deferred(round text, last text) LANGUAGE plpgsql AS $$
DECLARE
	leased idem_ticket := idem_claim('t', 'indexes', round || ' leased', lease => '1 hour', owner => 'deferred');
	atomic idem_ticket := idem_claim('t', 'indexes', round || ' atomic', owner => 'deferred');
BEGIN
	PERFORM idem_complete(CASE last WHEN 'insert' THEN leased ELSE atomic END, code => 3, resource => 'one');
	PERFORM idem_complete(CASE last WHEN 'insert' THEN atomic ELSE leased END, code => 3, resource => 'one');
END $$;
CREATE VIEW regress_codes AS SELECT count(*) FROM idem_record WHERE (owner, code) = ('deferred', 3);
ALTER TABLE idem_record ADD CONSTRAINT regress_unique UNIQUE (operation, owner, code, resource) DEFERRABLE;
CALL regress_deferred('immediate', 'insert');
BEGIN;
SET CONSTRAINTS regress_unique DEFERRED;
CALL regress_deferred('deferred', 'insert');
TABLE regress_codes;
COMMIT;
-- beside an index that is left to the executor
CREATE INDEX regress_index ON idem_record (lower(resource));
CALL regress_deferred('immediate beside', 'update');
BEGIN;
SET CONSTRAINTS regress_unique DEFERRED;
CALL regress_deferred('deferred beside', 'insert');
COMMIT;
DROP INDEX regress_index;
ALTER TABLE idem_record DROP CONSTRAINT regress_unique;
ALTER TABLE idem_record ADD CONSTRAINT regress_excluded EXCLUDE (operation WITH =, owner WITH =, code WITH =, resource WITH =) DEFERRABLE INITIALLY DEFERRED;
CALL regress_deferred('excluded', 'update');
BEGIN;
CALL regress_deferred('excluded early', 'insert');
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
TABLE regress_codes;
ALTER TABLE idem_record DROP CONSTRAINT regress_excluded;

DROP PROCEDURE regress_deferred(text, text);
DROP VIEW regress_codes;
DROP FUNCTION regress_run(text), regress_found(text);
