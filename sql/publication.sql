-- A publication FOR ALL TABLES is in nobody's way: every table has a replica
-- identity, so rows can be changed and, by hand, would be refused as before.
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
DELETE FROM idem_policy WHERE operation = 'publication';
UPDATE idem_record SET state = 'failed' WHERE operation = 'publication';

DROP PUBLICATION regress_idem_publication;
