-- Purging: tombstones go when their retention is over, by default never, with
-- all that belongs to them; then the address is new (cases 21 and 22).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET client_min_messages = warning;
CALL idem_maintain();
RESET client_min_messages;
CREATE VIEW pg_temp.left_over AS
SELECT k.key, (SELECT count(*) FROM idem_record r WHERE (operation, r.key) = ('purge', k.key)) AS records,
	   (SELECT count(*) FROM idem_step s WHERE (operation, s.key) = ('purge', k.key)) AS steps,
	   (SELECT count(*) FROM idem_intent i WHERE (operation, i.key) = ('purge', k.key)) AS intents,
	   (SELECT count(*) FROM idem_event e WHERE (operation, e.key) = ('purge', k.key)) AS events
FROM unnest(ARRAY['plain', 'story', 'pending', 'in_flight', 'unknown']) AS k(key);

-- A plain command, one with everything, and some with a question still open.
SELECT version FROM idem_define('purge', ttl => '1 us');
BEGIN;
SELECT idem_claim('t', 'purge', 'plain', '1') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket, '1');
COMMIT;
SELECT outcome FROM idem_claim('t', 'purge', 'story', lease => '1 us');
SELECT idem_claim('t', 'purge', 'story', lease => '1 hour') AS story \gset
SELECT idem_step_done(:'story', 'one'), idem_step_done(:'story', 'two');
SELECT operation_id AS id FROM idem_intend(:'story', 'pay', 'purge bank') \gset
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_confirm(:'id', :token);
SELECT operation_id AS id FROM idem_intend(:'story', 'mail', 'purge post') \gset
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_reject(:'id', :token, 'no');
SELECT idem_complete(:'story'::idem_ticket, '1');
SELECT count(idem_intend(idem_claim('t', 'purge', n, lease => '1 hour'), 'pay', 'purge bank'))
FROM unnest(ARRAY['pending', 'in_flight', 'unknown']) AS n;
SELECT count(idem_send(idem_operation_id('t', 'purge', n, 'pay'), 'w', lease))
FROM (VALUES ('in_flight', interval '1 hour'), ('unknown', '1 us')) AS v (n, lease);
SELECT key, state FROM idem_reconcile('purge bank', 'w', 10, '1 hour');
SELECT idem_complete('t', 'purge', key, token) FROM idem_record WHERE operation = 'purge' AND state = 'processing';

-- By default nothing is purged, ever.
SHOW idempotency.tombstone_retention;
SELECT * FROM idem_sweep();
SELECT * FROM idem_sweep();
-- A policy says otherwise, also about what is a tombstone already.
SELECT version FROM idem_define('purge', ttl => '1 us', tombstone_retention => '1 day');
SELECT * FROM idem_sweep();
SELECT key, records, steps, intents, events > 0 AS events FROM pg_temp.left_over;
SELECT version FROM idem_define('purge', ttl => '1 us', tombstone_retention => '1 us');
-- in the end it holds the addresses that it purged, and no others
BEGIN;
SELECT swept, purged, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) - purged AS other_locks
FROM idem_sweep();
ROLLBACK;
SELECT * FROM idem_sweep();
SELECT key, records, steps, intents, events > 0 AS events FROM pg_temp.left_over;

-- The address is new: a late retry runs it again.  That is what a purge means.
SELECT outcome FROM idem_replay('t', 'purge', 'plain', '1');
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''1'')', :'ticket')) AS old_ticket,
	   pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''1'')', :'story')) AS old_lease,
	   pg_temp.code_of(format('SELECT idem_hold(%L::idem_ticket)', :'story')) AS old_hold,
	   pg_temp.code_of($$SELECT idem_resolve('t', 'purge', 'story', 'failed', 'why')$$) AS resolve,
	   pg_temp.code_of(format('SELECT idem_confirm(%L, %s)', :'id', :token)) AS intent;
BEGIN;
SELECT outcome, attempt FROM idem_claim('t', 'purge', 'plain', '2');
ROLLBACK;
SELECT outcome, attempt FROM idem_cancel('t', 'purge', 'plain', 'did it happen?');
SELECT outcome, attempt FROM idem_claim('t', 'purge', 'story', '2', lease => '1 hour');
SELECT count(*) AS events FROM idem_event WHERE operation = 'purge' AND key = 'story';

-- A question that is still open keeps its command until it is answered.
SELECT purged FROM idem_sweep();
SELECT state FROM idem_settle(idem_operation_id('t', 'purge', 'unknown', 'pay'),
	(SELECT token FROM idem_intent WHERE operation = 'purge' AND key = 'unknown'), 'happened', '"asked"');
SELECT purged FROM idem_sweep();
SELECT key, records, intents FROM pg_temp.left_over;

-- The setting is for operations whose policy says nothing; zero is at once.
SELECT count(idem_complete(idem_claim('t', 'purge ' || o, n::text, ttl => '1 us')))
FROM unnest(ARRAY['a', 'b', 'c', 'd']) AS o, generate_series(1, 3) AS n;
SELECT count(idem_complete(idem_claim('t', 'purge d', n::text, ttl => '1 day'))) FROM generate_series(4, 5) AS n;
SELECT count(idem_define('purge ' || o, tombstone_retention => r))
FROM (VALUES ('a', interval '1 us'), ('b', '36500 days'), ('c', NULL)) AS v (o, r);
CREATE VIEW pg_temp.counts AS SELECT operation, count(*) FROM idem_record WHERE operation LIKE 'purge _' GROUP BY 1;
SELECT * FROM idem_sweep();
SELECT * FROM pg_temp.counts ORDER BY 1;
SET idempotency.tombstone_retention = '1h';
SELECT * FROM idem_sweep();
SET idempotency.tombstone_retention = 0;
BEGIN;
SELECT purged > 0 AS purged FROM idem_sweep();
SELECT * FROM pg_temp.counts ORDER BY 1;
ROLLBACK;
RESET idempotency.tombstone_retention;

-- At most n in all operations together.
SELECT count(idem_complete(idem_claim('t', 'purge ' || o, n::text, ttl => '1 us')))
FROM unnest(ARRAY['a', 'e']) AS o, generate_series(11, 13) AS n;
SELECT count(idem_define('purge ' || o, tombstone_retention => '1 us')) FROM unnest(ARRAY['a', 'e']) AS o;
SELECT * FROM idem_sweep(4);
SELECT * FROM idem_sweep(4);

-- What is no retention is refused before anything is written.
SELECT r, pg_temp.code_of(format('SELECT idem_define(''purge'', tombstone_retention => %L)', r)) AS policy
FROM unnest(ARRAY['0', '-1 day', '36501 days', '1 month', '1 month -40 days']) AS r;
SELECT s, pg_temp.code_of(format('SET LOCAL idempotency.tombstone_retention = %L', s)) AS setting
FROM unnest(ARRAY['-2', '-1', '0', '1 day', 'infinity', '']) AS s;
SELECT tombstone_retention FROM idem_policy WHERE operation = 'purge';
