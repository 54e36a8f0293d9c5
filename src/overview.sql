/*
 * idem_overview: what is going on, from the tables.
 *
 * Final records are not counted: there are millions of them, and idem_stat
 * knows how many came to be.  Everything else has a partial index.
 */
CREATE FUNCTION idem_durability(
	OUT level text, OUT standbys_required integer, OUT standbys_connected integer
) RETURNS record
LANGUAGE c STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_durability';
REVOKE ALL ON FUNCTION idem_durability() FROM PUBLIC;
COMMENT ON FUNCTION idem_durability() IS
'What a commit of this session waits for.
Arguments: none.
Returns: level: idempotency.durability. standbys_required: so many synchronous standbys a replicated commit waits for; 0 where none is configured, and replicated raises ID503. standbys_connected: so many of them are streaming.
Errors: none. Tables: none.';

CREATE VIEW idem_overview WITH (security_barrier) AS
SELECT t.operation,
	   t.processing, t.lapsed, t.released, t.unknown, t.oldest_open,
	   pg_catalog.clock_timestamp() - t.oldest_open AS oldest_open_age,
	   t.intents_pending, t.intents_in_flight, t.intents_lapsed,
	   t.intents_unknown, t.intents_dead, t.oldest_intent,
	   CASE WHEN t.is_total AND idem_tenant_allowed(NULL) THEN
		(SELECT CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint END
		 FROM pg_catalog.pg_class c
		 WHERE c.oid = 'idem_record'::pg_catalog.regclass) END AS records,
	   CASE WHEN t.is_total AND idem_tenant_allowed(NULL) THEN
		(SELECT count(*)
		 FROM (SELECT FROM idem_record r
			   WHERE r.completed_at IS NOT NULL
				 AND (r.response IS NOT NULL OR r.headers IS NOT NULL OR r.body IS NOT NULL
					  OR r.request IS NOT NULL)
				 AND r.expires_at <= pg_catalog.now() LIMIT 10000) AS b) END AS unswept,
	   d.level AS durability, d.standbys_required, d.standbys_connected
FROM (
	SELECT i.operation, GROUPING(i.operation) = 1 AS is_total,
		   count(*) FILTER (WHERE i.command = 'processing') AS processing,
		   count(*) FILTER (WHERE i.command = 'processing' AND i.lapsed) AS lapsed,
		   count(*) FILTER (WHERE i.command = 'released') AS released,
		   count(*) FILTER (WHERE i.command = 'unknown') AS unknown,
		   min(i.since) FILTER (WHERE i.command IS NOT NULL) AS oldest_open,
		   count(*) FILTER (WHERE i.intent = 'pending') AS intents_pending,
		   count(*) FILTER (WHERE i.intent = 'in_flight') AS intents_in_flight,
		   count(*) FILTER (WHERE i.intent = 'in_flight' AND i.lapsed) AS intents_lapsed,
		   count(*) FILTER (WHERE i.intent = 'unknown') AS intents_unknown,
		   count(*) FILTER (WHERE i.intent = 'dead') AS intents_dead,
		   min(i.since) FILTER (WHERE i.intent IS NOT NULL) AS oldest_intent
	FROM (
		SELECT p.operation, NULL::text AS command, NULL::text AS intent,
			   false AS lapsed, NULL::timestamptz AS since
		FROM idem_policy p
		UNION ALL
		SELECT r.operation, r.state, NULL,
			   r.lease_until <= pg_catalog.clock_timestamp(), r.created_at
		FROM idem_record r
		WHERE r.state IN ('processing', 'unknown', 'released')
		  AND idem_tenant_allowed(r.tenant)
		UNION ALL
		SELECT n.operation, NULL, n.state,
			   n.lease_until <= pg_catalog.clock_timestamp(), n.created_at
		FROM idem_intent n
		WHERE n.state IN ('in_flight', 'unknown')
		  AND idem_tenant_allowed(n.tenant)
		UNION ALL
		SELECT n.operation, NULL,
			   CASE WHEN n.due_at = 'infinity' THEN 'dead' ELSE 'pending' END,
			   false, n.created_at
		FROM idem_intent n
		WHERE n.state = 'pending' AND n.send
		  AND idem_tenant_allowed(n.tenant)
	) AS i
	GROUP BY GROUPING SETS ((i.operation), ())
) AS t
CROSS JOIN idem_durability() AS d;
REVOKE ALL ON TABLE idem_overview FROM PUBLIC;
COMMENT ON VIEW idem_overview IS
'What is open, by operation, with one row for all together, whose operation is NULL. An operation has a row when it has a policy or something open. Cost: reads every open record and every open intent through their partial indexes, and at most 10000 expired records; final ones are not counted. Tables: reads idem_record, idem_intent, idem_policy.';
COMMENT ON COLUMN idem_overview.operation IS 'the operation; NULL: all of them';
COMMENT ON COLUMN idem_overview.processing IS 'leased commands at work, the lapsed ones included';
COMMENT ON COLUMN idem_overview.lapsed IS 'of these, whose lease is over';
COMMENT ON COLUMN idem_overview.released IS 'commands given back and not claimed again';
COMMENT ON COLUMN idem_overview.unknown IS 'commands of which nobody knows what became of them';
COMMENT ON COLUMN idem_overview.oldest_open IS 'when the oldest of the commands that are processing, released or unknown was first claimed';
COMMENT ON COLUMN idem_overview.oldest_open_age IS 'how long ago that was';
COMMENT ON COLUMN idem_overview.intents_pending IS 'intents that idem_dispatch has to hand out, now or when they are due';
COMMENT ON COLUMN idem_overview.intents_in_flight IS 'intents that a worker has, the lapsed ones included';
COMMENT ON COLUMN idem_overview.intents_lapsed IS 'of these, whose lease is over';
COMMENT ON COLUMN idem_overview.intents_unknown IS 'intents to be reconciled';
COMMENT ON COLUMN idem_overview.intents_dead IS 'intents deferred too often: idem_retry';
COMMENT ON COLUMN idem_overview.oldest_intent IS 'when the oldest of these intents was noted';
COMMENT ON COLUMN idem_overview.records IS 'of all: about how many records there are, as of the last VACUUM or ANALYZE; NULL before it';
COMMENT ON COLUMN idem_overview.unswept IS 'of all: expired records whose response is still stored; 10000 stands for 10000 or more';
COMMENT ON COLUMN idem_overview.durability IS 'idempotency.durability in this session';
COMMENT ON COLUMN idem_overview.standbys_required IS 'so many synchronous standbys a replicated commit waits for; 0: none is configured, and replicated raises ID503';
COMMENT ON COLUMN idem_overview.standbys_connected IS 'so many of them are streaming; below the required number replicated commits wait';
