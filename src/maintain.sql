/*
 * Maintenance by the clock, and how far it is.
 */
CREATE PROCEDURE idem_maintain(
	max_time interval DEFAULT '10 minutes',
	batch integer DEFAULT 50,
	effort double precision DEFAULT 0.1
)
LANGUAGE c AS 'MODULE_PATHNAME', 'idem_maintain';
REVOKE ALL ON PROCEDURE idem_maintain(interval, integer, double precision) FROM PUBLIC;
COMMENT ON PROCEDURE idem_maintain(interval, integer, double precision) IS
'Sweeps and purges as idem_sweep does, until nothing is left that had expired when it began, and moves lapsed commands that nobody may take over to unknown: those with an intent in flight, and those whose max_attempts are reached (in a restored copy none). It commits after each batch, without waiting for the flush, and can be cancelled at any time. Several at once share the work. To be called by pg_cron, as its only statement.
Arguments: max_time, begins no batch after that, more than zero. batch: as n in idem_sweep. effort: the share of the time that it works, 0.01 to 1; it rests between batches, 1 never.
Returns: nothing; a notice says what was done, if anything was. While it runs, idem_progress shows how far it is.
Errors: 22004, 22023, 25001 inside a transaction block, 25006, 42501 bound to some tenants. Tables: as idem_sweep; reads idem_intent, idem_origin.';

CREATE VIEW idem_progress AS
SELECT a.pid, a.usename, a.query_start AS started_at,
	   p.counts[1]::bigint AS rows_done, p.counts[2]::bigint AS rows_left
FROM pg_catalog.pg_stat_activity a,
	 pg_catalog.regexp_match(a.application_name, '^idem_maintain: ([0-9]{1,18}) done, ([0-9]{1,18}) left$') AS p (counts)
WHERE a.datname = pg_catalog.current_database() AND p.counts IS NOT NULL;
REVOKE ALL ON TABLE idem_progress FROM PUBLIC;
COMMENT ON VIEW idem_progress IS
'Each idem_maintain at work in this database: how many records it has swept and purged, and about how many are left (at most 10 million). started_at is for those who may see the activity of others. The same text stands in application_name of pg_stat_activity. Tables: none.';
