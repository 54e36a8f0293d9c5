/*
 * Reconciliation: finding out about intents whose outcome nobody knows.
 */
CREATE FUNCTION idem_reconcile(target text, worker text, n integer, lease interval) RETURNS SETOF idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_reconcile';
REVOKE ALL ON FUNCTION idem_reconcile(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_reconcile(text, text, integer, interval) IS
'Hands out intents whose outcome nobody knows: the lease of who sent them has lapsed. The worker asks the target, by operation_id, and calls idem_settle.
Arguments: as in idem_dispatch.
Returns: the intents, now unknown, with their tokens.
Errors: 22004, 22023, ID006 restored copy. Tables: writes idem_intent, idem_event.';

CREATE FUNCTION idem_settle(intent uuid, token bigint, verdict text, evidence jsonb, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_settle';
REVOKE ALL ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) IS
'Gives a verdict about an intent whose outcome nobody knew. happened confirms it, absent makes it pending again, unclear leaves it unknown.
Arguments: intent, its operation_id; token, from idem_reconcile. verdict: happened, absent or unclear. evidence: what was found, kept. response: what the target says it answered.
Returns: the intent.
Errors: 22004, 22023, ID002 stale token, ID003 contradicts what was settled. Tables: as idem_confirm.';
