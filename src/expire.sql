/*
 * Expiry: a record has something to drop, or it is a tombstone; each terminal
 * one is in exactly one of these indexes.  The second begins with the
 * operation because each has a retention of its own.
 */
CREATE INDEX idem_record_expiring ON idem_record (expires_at)
	WHERE completed_at IS NOT NULL
		AND (response IS NOT NULL OR headers IS NOT NULL OR body IS NOT NULL OR request IS NOT NULL);
CREATE INDEX idem_record_tombstone ON idem_record (operation, expires_at)
	WHERE completed_at IS NOT NULL
		AND response IS NULL AND headers IS NULL AND body IS NULL AND request IS NULL;

CREATE FUNCTION idem_sweep(n integer DEFAULT 1000, OUT swept integer, OUT purged integer, OUT more boolean)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_sweep';
REVOKE ALL ON FUNCTION idem_sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION idem_sweep(integer) IS
'Drops response, headers, body and request of expired commands; address, fingerprint, state, attempt, code, resource, reason, owner and times stay, so the address goes on to answer expired. Purges what was swept before and whose tombstone_retention is over (by default never), with its steps, settled intents and trail: its address is new from then on. Not purged are commands with an unsettled intent, and those that a foreign key of the application refers to, unless it says ON DELETE CASCADE, SET NULL or SET DEFAULT. The oldest go first; what somebody holds is skipped, and left for the next call.
Arguments: n, so many are swept at most, and so many purged, 1 to 10000; also at most a tenth of the lock table each.
Returns: swept and purged, how many; more, whether a limit was reached, so that the caller goes on after a COMMIT.
Errors: 22004, 22023, 25006, 42501 bound to some tenants. Tables: reads idem_policy; writes idem_record, idem_step, idem_intent, idem_event.';
