/*
 * Recovery of lapsed commands, and what people decide about unknown ones.
 */
CREATE INDEX idem_record_open ON idem_record (state, lease_until, once_more)
	WHERE state IN ('processing', 'unknown', 'released');

/* Internal: takes over one lapsed command, or moves it to unknown. */
CREATE FUNCTION idem_recover_one(tenant text, operation text, key text, worker text, lease interval)
RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_recover_one';
REVOKE ALL ON FUNCTION idem_recover_one(text, text, text, text, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_recover_one(text, text, text, text, interval) IS
'Internal: a ticket with outcome resume or unknown; NULL when the command is not lapsed or is locked. Errors: 22004, 22023, 25006, 53200, ID503. Tables: writes idem_record, idem_event.';

CREATE FUNCTION idem_recover(worker text, n integer, lease interval) RETURNS SETOF idem_ticket
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	released CURSOR FOR
		SELECT r.tenant, r.operation, r.key
		FROM @extschema@.idem_record r
		WHERE r.state = 'released' AND r.once_more
		  AND @extschema@.idem_tenant_allowed(r.tenant);
	lapsed CURSOR (at timestamptz) FOR
		SELECT r.tenant, r.operation, r.key
		FROM @extschema@.idem_record r
		WHERE r.state = 'processing' AND r.lease_until <= at
		  AND @extschema@.idem_tenant_allowed(r.tenant)
		ORDER BY r.lease_until;
	address record;
	ticket @extschema@.idem_ticket;
	taken integer := 0;
	/* each holds a key lock until the end: leave room in the lock table */
	most CONSTANT integer := least(n, greatest(1,
		current_setting('max_locks_per_transaction')::bigint * current_setting('max_connections')::bigint / 8));
BEGIN
	PERFORM @extschema@.idem_require_adopted();
	PERFORM @extschema@.idem_text('worker', worker, 255);
	PERFORM @extschema@.idem_duration('lease', lease, true);
	PERFORM @extschema@.idem_count('n', n);
	/* without names of their own, which may be in use in this session */
	released := NULL;
	lapsed := NULL;
	OPEN released;
	OPEN lapsed(clock_timestamp());
	LOOP
		FETCH released INTO address;
		IF NOT FOUND THEN
			FETCH lapsed INTO address;
			EXIT WHEN NOT FOUND;
		END IF;
		ticket := @extschema@.idem_recover_one(address.tenant, address.operation, address.key, worker, lease);
		IF ticket.outcome = 'resume' THEN
			RETURN NEXT ticket;
		END IF;
		/* what moved to unknown counts too: each call is bounded */
		IF ticket.outcome IS NOT NULL THEN
			taken := taken + 1;
		END IF;
		EXIT WHEN taken = most;
	END LOOP;
	CLOSE released;
	CLOSE lapsed;
END
$$;
REVOKE ALL ON FUNCTION idem_recover(text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_recover(text, integer, interval) IS
'Takes over commands whose lease has lapsed, or that evidence or a decision released: those without an open question are handed to this worker (outcome resume, next attempt, new token), those with an intent in flight move to unknown. Two workers never get the same one, and never wait for each other.
Arguments: worker, the new owner, 1 to 255 characters. n: at most so many, 1 to 10000. lease: of the new owner, more than zero; not longer than max_lease of the operation''s policy, see lease_until of the ticket.
Returns: the tickets: what was released first, then by the time that their lease lapsed. Fewer than n too while there are more: each takes a lock until the transaction ends, and one call takes at most an eighth of the lock table (max_locks_per_transaction x max_connections); call again in the next transaction. Each has the stored request under a policy with keep_request.
Errors: 22004, 22023, 25006, 53200, ID006 restored copy, ID503. Tables: reads idem_policy, idem_intent, idem_origin; writes idem_record, idem_event.';

CREATE FUNCTION idem_unknown(ticket idem_ticket, reason text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_unknown';
REVOKE ALL ON FUNCTION idem_unknown(idem_ticket, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_unknown(idem_ticket, text) IS
'The owner of a leased command cannot tell what became of it: nobody may run it until evidence is in.
Arguments: ticket, from the claim. reason: 1 to 1024 characters.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 atomic claim, or the command has ended, ID503. Tables: writes idem_record, idem_event.';

CREATE FUNCTION idem_resolve(
	tenant text, operation text, key text, state text, reason text,
	response json DEFAULT NULL, code integer DEFAULT NULL, resource text DEFAULT NULL,
	headers jsonb DEFAULT NULL, body bytea DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_resolve';
REVOKE ALL ON FUNCTION idem_resolve(text, text, text, text, text, json, integer, text, jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_resolve(text, text, text, text, text, json, integer, text, jsonb, bytea) IS
'A person''s decision on an unknown command.
Arguments: tenant, operation, key. state: succeeded, failed or released. reason: 1 to 1024 characters. The others as in idem_complete, for succeeded and failed.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID003 the command is not unknown, or an intent of it is in flight or unknown, ID005 answer too large, ID503. Tables: reads idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_cancel(tenant text, operation text, key text, reason text) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_cancel';
REVOKE ALL ON FUNCTION idem_cancel(text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_cancel(text, text, text, text) IS
'Answers "did it happen?" for good: a command that was never claimed becomes cancelled, and a late original is refused.
Arguments: tenant, operation, key. reason: 1 to 1024 characters.
Returns: a ticket without token: cancelled, or what stands there instead: in_progress, unknown, expired, or replay without the response. in_progress with state released: nobody is at it, but it has an intent that was not rejected, so it has to be run to its end.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, ID503, ID006 it was released by evidence or a decision, and this database is a copy. Tables: reads idem_intent, idem_origin; writes idem_record, idem_event.';

/*
 * Everything that needs a hand, with the next call to make.  The clock is
 * read once, in a subquery, so that an index can be searched for its value.
 * A barrier: no condition of the reader sees a row before its tenant was found
 * to be allowed.
 */
CREATE VIEW idem_stuck WITH (security_barrier) AS
WITH command AS (
	SELECT r.tenant, r.operation, r.key, r.state, r.created_at AS since, r.reason,
		   CASE WHEN EXISTS (SELECT FROM idem_intent i
							 WHERE i.tenant = r.tenant AND i.operation = r.operation AND i.key = r.key
							   AND i.state IN ('in_flight', 'unknown'))
				THEN 'settle its open intents: idem_reconcile(), then idem_settle()'
				ELSE 'decide: idem_resolve(tenant, operation, key, state, reason)' END AS next_call
	FROM idem_record r
	WHERE r.state = 'unknown'
	UNION ALL
	SELECT r.tenant, r.operation, r.key, 'lapsed', r.lease_until, r.reason,
		   'idem_recover(worker, n, lease), or claim it again'
	FROM idem_record r
	WHERE r.state = 'processing' AND r.lease_until <= (SELECT pg_catalog.clock_timestamp())
	UNION ALL
	SELECT r.tenant, r.operation, r.key, r.state, r.created_at, r.reason,
		   'idem_recover(worker, n, lease), or claim it again'
	FROM idem_record r
	WHERE r.state = 'released' AND r.once_more
), listed AS (
SELECT c.tenant, c.operation, c.key, NULL::text AS intent, c.state, c.since, c.reason, c.next_call
FROM command c
UNION ALL
SELECT i.tenant, i.operation, i.key, i.name,
	   CASE WHEN i.state = 'in_flight' THEN 'lapsed' ELSE i.state END,
	   coalesce(i.doubt_since, i.created_at), i.reason,
	   'idem_reconcile(target, worker, n, lease), ask the target, then idem_settle()'
FROM idem_intent i
WHERE i.state IN ('in_flight', 'unknown')
  AND (i.lease_until IS NULL OR i.lease_until <= pg_catalog.clock_timestamp())
UNION ALL
SELECT i.tenant, i.operation, i.key, i.name, 'dead', i.created_at, i.reason,
	   'find out why, then idem_retry(operation_id, reason)'
FROM idem_intent i
WHERE i.state = 'pending' AND i.due_at = 'infinity'
UNION ALL
/* its owner was to send it */
SELECT i.tenant, i.operation, i.key, i.name, 'unsent', i.created_at, i.reason,
	   CASE WHEN r.state IN ('succeeded', 'failed')
			THEN 'idem_send(operation_id, worker, lease), call the target and idem_confirm(), or idem_reject() it'
			ELSE c.next_call END
FROM idem_intent i
JOIN idem_record r USING (tenant, operation, key)
LEFT JOIN command c USING (tenant, operation, key)
WHERE i.state = 'pending' AND NOT i.send AND i.due_at < 'infinity' AND r.state <> 'processing'
)
SELECT l.* FROM listed l
WHERE idem_tenant_allowed(l.tenant);
REVOKE ALL ON TABLE idem_stuck FROM PUBLIC;
COMMENT ON VIEW idem_stuck IS
'Every command and intent that needs a hand, and the next call to make: commands that are unknown, lapsed, or released by evidence or a decision; intents whose outcome nobody knows (unknown, lapsed), that were deferred too often (dead), or whose command has no owner who would send them (unsent). Of the tenants that the session may act on. Tables: reads idem_record, idem_intent.';
