-- Claims follow savepoints: what is rolled back is undone, a completion too.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE VIEW pg_temp.key_locks AS
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();

-- A claim made in a savepoint that is rolled back is gone, and so is its lock.
BEGIN;
SAVEPOINT s;
SELECT idem_claim('t', 'savepoint', 'a', '1') AS ticket \gset
ROLLBACK TO s;
SELECT * FROM pg_temp.key_locks;
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT outcome, attempt FROM idem_replay('t', 'savepoint', 'a', '1');
-- it can be claimed again, for another request
SELECT idem_claim('t', 'savepoint', 'a', '2') AS ticket2 \gset
SELECT (:'ticket2'::idem_ticket).outcome, (:'ticket2'::idem_ticket).attempt,
	   (:'ticket2'::idem_ticket).token <> (:'ticket'::idem_ticket).token AS other_token;
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT idem_complete(:'ticket2'::idem_ticket, '"a"');
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'savepoint', 'a', '2');

-- Made in a released savepoint, it belongs to the transaction.
BEGIN;
SAVEPOINT s;
SELECT idem_claim('t', 'savepoint', 'b') AS ticket \gset
RELEASE s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'b');
SELECT idem_complete(:'ticket'::idem_ticket, '"b"');
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'savepoint', 'b');

-- A completion rolled back leaves the claim open again.
BEGIN;
SELECT idem_claim('t', 'savepoint', 'c') AS ticket \gset
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
SELECT outcome, response FROM idem_claim('t', 'savepoint', 'c');
ROLLBACK TO s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'c');
SELECT outcome FROM idem_replay('t', 'savepoint', 'c');
SELECT count(*) AS rows FROM idem_record WHERE operation = 'savepoint' AND key = 'c';
SAVEPOINT s2;
COMMIT;
SELECT outcome FROM idem_replay('t', 'savepoint', 'c');
BEGIN;
SELECT idem_claim('t', 'savepoint', 'c') AS ticket \gset
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
ROLLBACK TO s;
SELECT idem_complete(:'ticket'::idem_ticket, '"kept"');
COMMIT;
SELECT outcome, attempt, response FROM idem_claim('t', 'savepoint', 'c');

-- In a released savepoint it stays, until an outer one is rolled back.
BEGIN;
SELECT idem_claim('t', 'savepoint', 'd') AS ticket \gset
SAVEPOINT outer_s;
SAVEPOINT inner_s;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
RELEASE inner_s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'd');
ROLLBACK TO outer_s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'd');
SAVEPOINT third;
SELECT idem_complete(:'ticket'::idem_ticket, '"kept"');
RELEASE third;
RELEASE outer_s;
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'savepoint', 'd');

-- A release rolled back leaves the claim open again.
BEGIN;
SELECT idem_claim('t', 'savepoint', 'e', '1') AS ticket \gset
SAVEPOINT s;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT outcome FROM idem_replay('t', 'savepoint', 'e', '1');
-- claimed and completed in between, by another request
SELECT idem_complete(idem_claim('t', 'savepoint', 'e', '2'), '"lost"');
ROLLBACK TO s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'e', '1');
SELECT outcome FROM idem_claim('t', 'savepoint', 'e', '2');
SELECT * FROM pg_temp.key_locks;
SELECT idem_complete(:'ticket'::idem_ticket, '"e"');
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'savepoint', 'e', '1');

-- Claim and completion in one savepoint, rolled back: nothing was.
BEGIN;
SAVEPOINT s;
SELECT idem_complete(idem_claim('t', 'savepoint', 'f'), '"lost"');
ROLLBACK TO s;
SELECT outcome, attempt FROM idem_replay('t', 'savepoint', 'f');
SELECT * FROM pg_temp.key_locks;
COMMIT;
SELECT outcome FROM idem_replay('t', 'savepoint', 'f');

-- Leased claims are rows, and follow as rows do.
BEGIN;
SAVEPOINT s;
SELECT outcome FROM idem_claim('t', 'savepoint', 'g', lease => '1 hour');
ROLLBACK TO s;
SELECT idem_claim('t', 'savepoint', 'g', lease => '1 hour') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome, (:'ticket'::idem_ticket).attempt;
SAVEPOINT s2;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
ROLLBACK TO s2;
SELECT outcome FROM idem_claim('t', 'savepoint', 'g');
SELECT idem_release(:'ticket'::idem_ticket);
COMMIT;
SELECT outcome, attempt FROM idem_claim('t', 'savepoint', 'g', lease => '1 hour');
