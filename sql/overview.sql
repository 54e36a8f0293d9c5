-- idem_overview: what is open, by operation and in all, without reading what
-- is final.
CREATE VIEW overview AS
SELECT operation, processing AS proc, lapsed, released AS rel, unknown AS unk,
	   intents_pending AS pend, intents_in_flight AS flight,
	   intents_lapsed AS ilapsed, intents_unknown AS iunk, intents_dead AS dead
FROM idem_overview WHERE operation LIKE 'over%';

-- What is in all counts others as well: compared with the tables.
CREATE VIEW overview_total AS
SELECT o.processing = r.processing AND o.lapsed = r.lapsed AND o.released = r.released
	   AND o.unknown = r.unknown AND o.oldest_open IS NOT DISTINCT FROM r.oldest AS commands,
	   o.intents_pending + o.intents_dead = i.pending AND o.intents_in_flight = i.in_flight
	   AND o.intents_unknown = i.unknown AND o.oldest_intent IS NOT DISTINCT FROM i.oldest AS intents
FROM idem_overview AS o,
	 (SELECT count(*) FILTER (WHERE state = 'processing') AS processing,
			 count(*) FILTER (WHERE state = 'processing' AND lease_until <= now()) AS lapsed,
			 count(*) FILTER (WHERE state = 'released') AS released,
			 count(*) FILTER (WHERE state = 'unknown') AS unknown,
			 min(created_at) FILTER (WHERE completed_at IS NULL) AS oldest FROM idem_record) AS r,
	 (SELECT count(*) FILTER (WHERE state = 'pending' AND send) AS pending,
			 count(*) FILTER (WHERE state = 'in_flight') AS in_flight,
			 count(*) FILTER (WHERE state = 'unknown') AS unknown,
			 min(created_at) FILTER (WHERE settled_at IS NULL AND (send OR state <> 'pending')) AS oldest
	  FROM idem_intent) AS i
WHERE o.operation IS NULL;
SELECT * FROM overview;
SELECT * FROM overview_total;

-- One of each; final ones make no row, a policy does.
SELECT idem_complete(idem_claim('t', 'over final', 'k'));
SELECT version FROM idem_define('over policy');
SELECT outcome FROM idem_claim('t', 'over a', 'live', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'over a', 'lapsed', lease => '1us');
SELECT idem_release(idem_claim('t', 'over a', 'released', lease => '1 hour'));
SELECT idem_unknown(idem_claim('t', 'over b', 'unknown', lease => '1 hour'), 'why');
SELECT idem_claim('t', 'over b', 'intents', lease => '1 hour') AS ticket \gset
SELECT name, send FROM unnest('{a,b,c,d,e,f}'::text[]) AS n,
	LATERAL idem_intend(:'ticket', n, 'overview', send => n <> 'f');
SELECT name, state FROM idem_dispatch('overview', 'w', 1, '1 hour');
SELECT operation_id, token, name FROM idem_dispatch('overview', 'w', 1, '1us') \gset
SELECT name, state FROM idem_reconcile('overview', 'w', 1, '1 hour');
SELECT name, state FROM idem_dispatch('overview', 'w', 1, '1us');
UPDATE idem_intent SET due_at = 'infinity' WHERE target = 'overview' AND name = 'd';
SELECT * FROM overview ORDER BY operation;
SELECT * FROM overview_total;
SELECT o.oldest_open = r.created_at AS oldest, o.oldest_open_age BETWEEN '0' AND now() - r.created_at + '1min' AS age
FROM idem_overview AS o, idem_record AS r
WHERE o.operation = 'over a' AND r.operation = 'over a' AND r.key = 'live';

-- All records, about; counted in all alone.
ANALYZE idem_record;
SELECT o.records = r.n AS records
FROM idem_overview AS o, (SELECT count(*) AS n FROM idem_record) AS r WHERE o.operation IS NULL;
SELECT count(records) AS records, count(unswept) AS unswept FROM idem_overview WHERE operation IS NOT NULL;

-- Expired and not swept.
SELECT unswept AS before FROM idem_overview WHERE operation IS NULL \gset
SELECT idem_complete(idem_claim('t', 'over expired', k, ttl => '1us'), '1')
FROM unnest('{a,b}'::text[]) AS k;
SELECT idem_complete(idem_claim('t', 'over expired', 'empty', ttl => '1us'));
SELECT idem_complete(idem_claim('t', 'over expired', 'valid'), '1');
SELECT unswept - :before AS unswept FROM idem_overview WHERE operation IS NULL;
-- not counted without end
BEGIN;
INSERT INTO idem_record (created_at, completed_at, expires_at, token, attempt,
						 tenant, operation, key, state, response)
SELECT now(), now(), now(), 1, 1, 't', 'over many', i, 'succeeded', '1'
FROM generate_series(1, 10001) AS i;
SELECT unswept FROM idem_overview WHERE operation IS NULL;
ROLLBACK;

-- Durability: of this session; no standby is configured here.
SELECT durability, standbys_required, standbys_connected
FROM idem_overview WHERE operation IS NULL;
SET idempotency.durability = replicated;
SELECT durability FROM idem_overview WHERE operation IS NULL;
RESET idempotency.durability;

-- Records that are final are not read for what is open: each part has a
-- partial index.
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.scans() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXPLAIN (COSTS off) SELECT processing FROM idem_overview LOOP
		RETURN QUERY SELECT substring(line, '(Seq Scan on \w+|idem_(?:record|intent)_\w+)');
	END LOOP;
END $$;
SELECT scan FROM pg_temp.scans() AS scan WHERE scan IS NOT NULL;
RESET enable_seqscan;
DROP VIEW overview, overview_total;
