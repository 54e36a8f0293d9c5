-- A final business failure: stored with what survives the rollback of the
-- failed work, and replayed as it is.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE TEMP TABLE work (key text, CHECK (key <> 'impossible'));

-- A rollback of the whole transaction leaves no mark: the next may run it.
BEGIN;
SELECT (idem_claim('t', 'fail', 'a', '1')).outcome;
INSERT INTO work VALUES ('impossible');
ROLLBACK;
SELECT count(*) AS rows FROM idem_record WHERE operation = 'fail';

-- Back to a savepoint, then fail: the failure stays, the work is gone.
BEGIN;
SELECT idem_claim('t', 'fail', 'a', '1') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome, (:'ticket'::idem_ticket).attempt;
SAVEPOINT s;
INSERT INTO work VALUES ('a');
INSERT INTO work VALUES ('impossible');
ROLLBACK TO s;
SELECT idem_fail(:'ticket', '{"error": "impossible"}', 422, 'problem 1',
				 '{"retry": false}', '\x01');
COMMIT;
SELECT count(*) AS work FROM work;
SELECT outcome, state, attempt, token, response, code, resource, headers, body
FROM idem_claim('t', 'fail', 'a', '1');
SELECT state, completed_at >= created_at AS completed,
	   expires_at - completed_at AS ttl
FROM idem_record WHERE operation = 'fail' AND key = 'a';
SELECT outcome, response, code FROM idem_claim('t', 'fail', 'a', '2');

-- The same for a leased claim, in a transaction of its own.
SELECT idem_claim('t', 'fail', 'leased', '1', lease => '1 hour') AS ticket \gset leased_
BEGIN;
INSERT INTO work VALUES ('leased');
INSERT INTO work VALUES ('impossible');
ROLLBACK;
SELECT idem_fail('t', 'fail', 'leased', (:'leased_ticket'::idem_ticket).token,
				 '"no"', 500);
SELECT outcome, state, attempt, response, code, lease_until
FROM idem_claim('t', 'fail', 'leased', '1', lease => '1 hour');

-- Repeating it is accepted, turning it into something else is not.
SELECT idem_fail(:'leased_ticket'::idem_ticket, '"no"', 500);
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, ''"no"'', 500)', :'leased_ticket'));
CALL pg_temp.refused(format('SELECT idem_fail(%L::idem_ticket, ''"other"'', 500)', :'leased_ticket'));
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket)', :'leased_ticket'));
SELECT outcome, response, code FROM idem_claim('t', 'fail', 'leased', '1');

-- A failure undone is no failure.
BEGIN;
SELECT idem_claim('t', 'fail', 'undone') AS ticket \gset
SAVEPOINT s;
SELECT idem_fail(:'ticket'::idem_ticket, '"no"');
ROLLBACK TO s;
SELECT idem_complete(:'ticket'::idem_ticket, '"yes"');
COMMIT;
SELECT outcome, state, response FROM idem_claim('t', 'fail', 'undone');
