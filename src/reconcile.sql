/*
 * Reconciliation: finding out about intents whose outcome nobody knows.
 */
CREATE FUNCTION idem_reconcile(target text, worker text, n integer, lease interval) RETURNS SETOF idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_reconcile';
REVOKE ALL ON FUNCTION idem_reconcile(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_reconcile(text, text, integer, interval) IS
'Hands out intents whose outcome nobody knows: the lease of who sent them has lapsed. The worker asks the target, by operation_id, and calls idem_settle. Those that wait longest first. Never waits, whatever is locked.
Arguments: as in idem_dispatch.
Returns: the intents, now unknown, with their tokens.
Errors: 22004, 22023, 25006, ID006 restored copy, ID503. Tables: reads idem_record; writes idem_intent, idem_event.';

CREATE FUNCTION idem_settle(intent uuid, token bigint, verdict text, evidence jsonb, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_settle';
REVOKE ALL ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) IS
'Gives a verdict about an intent whose outcome nobody knew. happened confirms it, absent makes it pending again and notifies the channel of the operation''s policy, unclear leaves it unknown. The same verdict again by the same token is accepted and changes nothing: the first evidence stays. A contradiction is refused, and stands in the server''s log.
Arguments: intent, its operation_id; token, from idem_reconcile. verdict: happened, absent or unclear. evidence: what was found, kept: the first piece and the last 99. response: what the target says it answered.
Returns: the intent.
Errors: as idem_confirm; ID003 contradicts what was said first, or it is not unknown. Tables: as idem_reject; reads idem_policy.';
