-- No transaction commits with an unfinished atomic claim (ID001), and whatever
-- runs before that check may still finish it.
CREATE TABLE commit_work (what text);

BEGIN;
INSERT INTO commit_work VALUES ('lost');
SELECT outcome FROM idem_claim('t', 'commit', 'a');
COMMIT;
\echo :SQLSTATE
SELECT count(*) AS work FROM commit_work;
SELECT outcome FROM idem_replay('t', 'commit', 'a');
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();

-- Several are counted; which one is named is left open.
\set VERBOSITY terse
BEGIN;
SELECT count(*) FROM idem_claim_batch('t', 'commit', '{a,b,c,d}');
SELECT idem_complete(idem_claim('t', 'commit', 'e'));
SELECT idem_release(idem_claim('t', 'commit', 'f'));
COMMIT;
\echo :SQLSTATE
SELECT count(*) AS rows FROM idem_record WHERE operation = 'commit';
\set VERBOSITY default

-- A statement of its own is a transaction, too.
SELECT outcome FROM idem_claim('t', 'commit', 'a');
\echo :SQLSTATE
-- PREPARE is refused alike.
BEGIN;
SELECT outcome FROM idem_claim('t', 'commit', 'a');
PREPARE TRANSACTION 'commit a';
\echo :SQLSTATE
-- COMMIT within a procedure, and the end of a DO.
CREATE PROCEDURE pg_temp.commits(finish bool) LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket := idem_claim('t', 'commit', 'procedure');
BEGIN
	IF finish THEN
		PERFORM idem_complete(ticket, '"done"');
	END IF;
	COMMIT;
	RAISE NOTICE 'after it: %', (idem_claim('t', 'commit', 'procedure')).outcome;
END
$$;
\set SHOW_CONTEXT never
CALL pg_temp.commits(false);
\echo :SQLSTATE
CALL pg_temp.commits(true);
DO $$ BEGIN PERFORM idem_claim('t', 'commit', 'do'); END $$;
\echo :SQLSTATE
-- The session goes on as before.
SELECT idem_complete(idem_claim('t', 'commit', 'a'), '"done"');
SELECT outcome, attempt, response FROM idem_claim('t', 'commit', 'a');

-- A deferred constraint trigger may complete the claim ...
CREATE TABLE commit_ticket (ticket idem_ticket, response json);
CREATE FUNCTION commit_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF new.what = 'complete' THEN
		PERFORM idem_complete(ticket, response) FROM commit_ticket;
	ELSE
		PERFORM idem_claim('t', 'commit', 'by trigger');
	END IF;
	RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER commit_trigger AFTER INSERT ON commit_work
	DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION commit_trigger();
BEGIN;
INSERT INTO commit_ticket VALUES (idem_claim('t', 'commit', 'trigger'), '"deferred"');
INSERT INTO commit_work VALUES ('complete');
SELECT outcome FROM idem_claim('t', 'commit', 'trigger');
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'commit', 'trigger');
-- ... and is refused when it leaves one open.
BEGIN;
INSERT INTO commit_work VALUES ('claim');
COMMIT;
\echo :SQLSTATE
SELECT * FROM commit_work;

-- A held cursor runs to its end at commit: it may complete ...
BEGIN;
TRUNCATE commit_ticket;
INSERT INTO commit_ticket VALUES (idem_claim('t', 'commit', 'cursor'), '"held"');
DECLARE held CURSOR WITH HOLD FOR
	SELECT idem_complete(ticket, response) FROM commit_ticket;
COMMIT;
CLOSE held;
SELECT outcome, response FROM idem_claim('t', 'commit', 'cursor');
-- ... or claim, in vain.
BEGIN;
DECLARE held CURSOR WITH HOLD FOR
	SELECT outcome FROM idem_claim('t', 'commit', 'cursor claims');
COMMIT;
\echo :SQLSTATE
SELECT outcome FROM idem_replay('t', 'commit', 'cursor claims');

DROP TABLE commit_work, commit_ticket;
DROP FUNCTION commit_trigger;
