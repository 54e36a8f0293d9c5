-- A publication FOR ALL TABLES is in nobody's way: every table has a replica
-- identity, so rows can be changed and, by hand, would be refused as before.  One
-- that could not tell a subscriber of a change is refused that change.
SET client_min_messages = error;	-- wal_level may be too low to publish
CREATE PUBLICATION regress_idem_publication FOR ALL TABLES;
RESET client_min_messages;
SELECT tablename FROM pg_publication_tables
WHERE pubname = 'regress_idem_publication' AND tablename LIKE 'idem\_%' ORDER BY tablename;

SELECT idem_claim('t', 'publication', 'a', '1', lease => '1 hour') AS ticket \gset
SELECT idem_heartbeat(:'ticket'::idem_ticket, '2 hours') > now() AS extended;
SELECT idem_release(:'ticket'::idem_ticket);
SELECT idem_complete(idem_claim('t', 'publication', 'a', '1'), '"done"');
SELECT outcome, attempt, response FROM idem_claim('t', 'publication', 'a', '1');
SELECT version FROM idem_define('publication', ttl => '1 day');
SELECT version FROM idem_define('publication', ttl => '2 days');
SELECT outcome FROM idem_claim('t', 'publication', 'b', lease => '1 us');
SELECT idem_claim('t', 'publication', 'b', lease => '1 hour', ttl => '1 us') AS ticket \gset
SELECT idem_step_done(:'ticket', 'one');
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'publication bank', send => true) \gset
SELECT state FROM idem_dispatch('publication bank', 'w', 1, '1 us');
SELECT token FROM idem_reconcile('publication bank', 'w', 1, '1 hour') \gset
SELECT state FROM idem_settle(:'id', :token, 'absent', '1');
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_confirm(:'id', :token);
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT outcome FROM idem_cancel('t', 'publication', 'c', 'why');
-- swept and purged, with its step, its intent and its trail
SELECT version FROM idem_define('publication', tombstone_retention => '1 us');
SELECT purged > 0 AS purged FROM idem_sweep(10000);
SELECT outcome, (SELECT count(*) FROM idem_history('t', 'publication', 'b')) AS events
FROM idem_replay('t', 'publication', 'b');
-- as in a copy that is adopted
BEGIN;
SELECT idem_claim('t', 'publication', 'd', lease => '1 hour') AS ticket \gset
SELECT state FROM idem_intend(:'ticket', 'pay', 'publication bank');
UPDATE idem_origin SET system_identifier = system_identifier + 1;
SELECT idem_adopt();
SELECT r.state AS command, i.state AS intent FROM idem_record r JOIN idem_intent i USING (tenant, operation, key)
WHERE operation = 'publication' AND key = 'd';
ROLLBACK;
DELETE FROM idem_policy WHERE operation = 'publication';
UPDATE idem_record SET state = 'failed' WHERE operation = 'publication';

DROP PUBLICATION regress_idem_publication;

-- What has no way to a subscriber is refused, as the server refuses it to all.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET client_min_messages = error;
CREATE PUBLICATION regress_idem_publication FOR TABLE idem_record WHERE (state = 'succeeded'), idem_step WHERE (attempt = 1), idem_intent (name);
RESET client_min_messages;
SELECT version FROM idem_define('publication', ttl => '1 us', tombstone_retention => '1 us');
SELECT idem_claim('t', 'publication', 'e', lease => '1 hour') AS ticket \gset
SELECT idem_step_done(:'ticket', 'one');
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'publication bank') \gset
CALL pg_temp.refused(format('SELECT idem_send(%L, ''w'', ''1 hour'')', :'id'));
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
SELECT r.state AS command, i.state AS intent FROM idem_record r JOIN idem_intent i USING (tenant, operation, key) WHERE key = 'e';
ALTER PUBLICATION regress_idem_publication SET TABLE idem_record, idem_step WHERE (attempt = 1), idem_intent;
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_confirm(:'id', :token);
SELECT idem_complete(:'ticket'::idem_ticket);
CALL pg_temp.refused('SELECT idem_sweep(10000)');
ALTER PUBLICATION regress_idem_publication SET TABLE idem_record WHERE (tenant = 't'), idem_step;
SELECT purged > 0 AS purged FROM idem_sweep(10000);
SELECT outcome FROM idem_replay('t', 'publication', 'e');
DROP PUBLICATION regress_idem_publication;
DELETE FROM idem_policy WHERE operation = 'publication';
