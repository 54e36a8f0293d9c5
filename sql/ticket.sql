-- Tickets that give no right: every verb refuses them, and the record of the
-- true owner stays as it was.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

SELECT idem_claim('t', 'ticket', 'a', lease => '1 microsecond') AS ticket \gset old_
SELECT idem_claim('t', 'ticket', 'a', lease => '1 hour') AS ticket \gset new_
SELECT idem_claim('t', 'ticket', 'a') AS ticket \gset busy_
SELECT idem_claim('t', 'ticket', 'a', '1') AS ticket \gset mismatch_
SELECT (idem_claim('t', 'ticket', 'b', lease => '1 hour')).token AS token \gset b_
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE operation = 'ticket' AND key = 'a' \gset before_

CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'old_ticket'));
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'busy_ticket'));
CALL pg_temp.refused('SELECT idem_complete(NULL::idem_ticket)');

-- Every verb, in both forms, against each kind of ticket.
CREATE TEMP TABLE ticket (what text, ticket idem_ticket);
INSERT INTO ticket VALUES
	('taken over', :'old_ticket'), ('in_progress', :'busy_ticket'),
	('mismatch', :'mismatch_ticket'), ('token of another', :'new_ticket'),
	('token 0', :'new_ticket'), ('token -1', :'new_ticket'),
	('token NULL', :'new_ticket'), ('no record', :'new_ticket');
UPDATE ticket SET ticket.token = :b_token WHERE what = 'token of another';
UPDATE ticket SET ticket.token = 0 WHERE what = 'token 0';
UPDATE ticket SET ticket.token = -1 WHERE what = 'token -1';
UPDATE ticket SET ticket.token = NULL WHERE what = 'token NULL';
UPDATE ticket SET ticket.key = 'none' WHERE what = 'no record';
SELECT what, count(*) AS verbs,
	   string_agg(DISTINCT pg_temp.code_of(
			format('SELECT %s(%L::idem_ticket)', verb, ticket)), ' ') AS by_ticket,
	   string_agg(DISTINCT pg_temp.code_of(
			format('SELECT %s(%L, %L, %L, %L::bigint)', verb, (ticket).tenant,
				   (ticket).operation, (ticket).key, (ticket).token)), ' ') AS by_token
FROM ticket, unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release',
						  'idem_heartbeat', 'idem_hold']) AS verb
GROUP BY what ORDER BY what COLLATE "C";
-- No ticket at all.
SELECT verb, pg_temp.code_of(format('SELECT %s(NULL::idem_ticket)', verb))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release',
				  'idem_heartbeat', 'idem_hold']) AS verb;

-- The owner notices nothing.
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE operation = 'ticket' AND key = 'a';
SELECT idem_complete(:'new_ticket'::idem_ticket, '"mine"');
-- The old one stays out, also with the same answer.
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''"mine"'')',
							  :'old_ticket'));
SELECT outcome, attempt, response FROM idem_claim('t', 'ticket', 'a');

-- Nor can it do anything in the transaction that takes over.
SELECT idem_claim('t', 'ticket', 'c', lease => '1 microsecond') AS ticket \gset old_
BEGIN;
SELECT idem_claim('t', 'ticket', 'c') AS ticket \gset new_
SELECT (:'new_ticket'::idem_ticket).outcome;
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'old_ticket'))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release',
				  'idem_heartbeat', 'idem_hold']) AS verb;
SELECT idem_complete(:'new_ticket'::idem_ticket, '"taken over"');
COMMIT;
SELECT outcome, attempt, response FROM idem_claim('t', 'ticket', 'c');

-- The ticket of an atomic claim is worth nothing after its transaction.
BEGIN;
SELECT idem_claim('t', 'ticket', 'atomic') AS ticket \gset
ROLLBACK;
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));

-- Within it, only the claim's own address and token count.
BEGIN;
SELECT idem_claim('t', 'ticket', 'atomic') AS ticket \gset
SELECT (:'ticket'::idem_ticket).token AS token \gset
SELECT key, token, pg_temp.code_of(
	format('SELECT idem_complete(''t'', ''ticket'', %L, %s)', key, value))
FROM (VALUES ('atomic', 'another', (:token # 1)::text),
			 ('atomic', 'NULL', 'NULL::bigint'), ('atomic', 'zero', '0'),
			 ('atomic 2', 'the same', :'token')) AS try(key, token, value);
SELECT idem_complete(:'ticket'::idem_ticket, '"still open"');
COMMIT;
SELECT outcome, response FROM idem_claim('t', 'ticket', 'atomic');
