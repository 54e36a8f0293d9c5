/*
 * idem_stat: counters per operation, kept in shared memory by stat.c.
 *
 * The columns after stats_reset are those of IdemStat, in its order.  The
 * library fills as many as are declared here, whichever of the two is newer.
 */
CREATE FUNCTION idem_stat_get(
	OUT operation text, OUT stats_reset timestamptz,
	OUT execute bigint, OUT resume bigint, OUT replay bigint,
	OUT in_progress bigint, OUT mismatch bigint, OUT expired bigint,
	OUT unknown bigint, OUT duplicate bigint, OUT cancelled bigint,
	OUT waits bigint, OUT wait_us bigint,
	OUT lookups bigint, OUT lookups_absent bigint,
	OUT completed bigint, OUT failed bigint, OUT released bigint,
	OUT heartbeats bigint, OUT stale_tickets bigint,
	OUT recovered bigint, OUT became_unknown bigint, OUT resolved bigint,
	OUT cancellations bigint,
	OUT sent bigint, OUT dispatched bigint, OUT confirmed bigint,
	OUT rejected bigint, OUT deferred bigint, OUT happened bigint,
	OUT absent bigint, OUT unclear bigint,
	OUT swept bigint, OUT purged bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100
AS 'MODULE_PATHNAME', 'idem_stat_get';
REVOKE ALL ON FUNCTION idem_stat_get() FROM PUBLIC;
COMMENT ON FUNCTION idem_stat_get() IS
'What the view idem_stat shows, without its sums. Who reads the view needs EXECUTE on it.
Arguments: none.
Returns: a row for each operation of this database of which something was counted; the times in microseconds.
Errors: 42501 bound to some tenants, 55000 the library is not in shared_preload_libraries. Tables: none.';

CREATE VIEW idem_stat AS
SELECT s.operation,
	   s.execute + s.resume + s.replay + s.in_progress + s.mismatch + s.expired
	   + s.unknown + s.duplicate + s.cancelled AS claims,
	   s.execute, s.resume, s.replay, s.in_progress, s.mismatch, s.expired,
	   s.unknown, s.duplicate, s.cancelled,
	   s.replay + s.in_progress + s.expired + s.unknown + s.duplicate AS intercepted,
	   s.waits, s.wait_us / 1000.0::double precision AS wait_time,
	   s.lookups, s.lookups_absent,
	   s.completed, s.failed, s.released, s.heartbeats, s.stale_tickets,
	   s.resume + s.recovered AS takeovers,
	   s.recovered, s.became_unknown, s.resolved, s.cancellations,
	   s.sent, s.dispatched, s.confirmed, s.rejected, s.deferred,
	   s.happened, s.absent, s.unclear,
	   s.swept, s.purged,
	   s.stats_reset
FROM idem_stat_get() AS s;
REVOKE ALL ON TABLE idem_stat FROM PUBLIC;
COMMENT ON VIEW idem_stat IS
'Figures of this database since the server started, one row per operation, counted when it happens: a rollback takes nothing back. (others) stands for what found no room under idempotency.stat_operations, in whatever database. Errors: 55000 the library is not in shared_preload_libraries. Tables: none.';
COMMENT ON COLUMN idem_stat.operation IS 'the operation, or (others)';
COMMENT ON COLUMN idem_stat.claims IS 'answered claims, the sum of the next nine; one for each key of a batch, and for each idem_execute';
COMMENT ON COLUMN idem_stat.execute IS 'claims answered execute';
COMMENT ON COLUMN idem_stat.resume IS 'claims answered resume';
COMMENT ON COLUMN idem_stat.replay IS 'claims answered replay';
COMMENT ON COLUMN idem_stat.in_progress IS 'claims answered in_progress';
COMMENT ON COLUMN idem_stat.mismatch IS 'claims answered mismatch';
COMMENT ON COLUMN idem_stat.expired IS 'claims answered expired';
COMMENT ON COLUMN idem_stat.unknown IS 'claims answered unknown';
COMMENT ON COLUMN idem_stat.duplicate IS 'claims answered duplicate';
COMMENT ON COLUMN idem_stat.cancelled IS 'claims answered cancelled';
COMMENT ON COLUMN idem_stat.intercepted IS 'duplicates intercepted: claims of a command that had run, was running, or may have: replay, in_progress, expired, unknown, duplicate';
COMMENT ON COLUMN idem_stat.waits IS 'claims that waited for another owner, those at it included';
COMMENT ON COLUMN idem_stat.wait_time IS 'how long they waited, in milliseconds; without waits that an error ended';
COMMENT ON COLUMN idem_stat.lookups IS 'answers of idem_replay';
COMMENT ON COLUMN idem_stat.lookups_absent IS 'of these, absent';
COMMENT ON COLUMN idem_stat.completed IS 'commands completed; repetitions are not counted';
COMMENT ON COLUMN idem_stat.failed IS 'commands ended as failed';
COMMENT ON COLUMN idem_stat.released IS 'claims given back';
COMMENT ON COLUMN idem_stat.heartbeats IS 'leases extended';
COMMENT ON COLUMN idem_stat.stale_tickets IS 'calls refused with ID002: a stale, foreign or missing ticket or token';
COMMENT ON COLUMN idem_stat.takeovers IS 'resume and recovered';
COMMENT ON COLUMN idem_stat.recovered IS 'commands handed out by idem_recover';
COMMENT ON COLUMN idem_stat.became_unknown IS 'commands that became unknown';
COMMENT ON COLUMN idem_stat.resolved IS 'decisions of idem_resolve';
COMMENT ON COLUMN idem_stat.cancellations IS 'commands that idem_cancel called off';
COMMENT ON COLUMN idem_stat.sent IS 'intents taken by idem_send';
COMMENT ON COLUMN idem_stat.dispatched IS 'intents handed out by idem_dispatch';
COMMENT ON COLUMN idem_stat.confirmed IS 'intents confirmed by idem_confirm';
COMMENT ON COLUMN idem_stat.rejected IS 'intents rejected';
COMMENT ON COLUMN idem_stat.deferred IS 'intents deferred';
COMMENT ON COLUMN idem_stat.happened IS 'verdicts happened';
COMMENT ON COLUMN idem_stat.absent IS 'verdicts absent';
COMMENT ON COLUMN idem_stat.unclear IS 'verdicts unclear';
COMMENT ON COLUMN idem_stat.swept IS 'records whose response was dropped';
COMMENT ON COLUMN idem_stat.purged IS 'tombstones removed';
COMMENT ON COLUMN idem_stat.stats_reset IS 'since when these figures are counted';

CREATE FUNCTION idem_stat_reset(operation text DEFAULT NULL) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_stat_reset';
REVOKE ALL ON FUNCTION idem_stat_reset(text) FROM PUBLIC;
COMMENT ON FUNCTION idem_stat_reset(text) IS
'Sets the figures of this database to zero, at once and whatever becomes of the transaction.
Arguments: operation: of this one only, or (others); one without figures is no error. NULL: of all, (others) included.
Returns: nothing.
Errors: 42501 bound to some tenants, 55000 the library is not in shared_preload_libraries. Tables: none.';
