/*
 * Sending what was intended: by the owner (idem_send) or a relay
 * (idem_dispatch), and what the sender knows afterwards.
 */
CREATE FUNCTION idem_send(intent uuid, worker text, lease interval) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_send';
REVOKE ALL ON FUNCTION idem_send(uuid, text, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_send(uuid, text, interval) IS
'Takes one pending intent in flight oneself. The call may be made only after this transaction has committed.
Arguments: intent, its operation_id. worker: a name for people to read, 1 to 255 characters. lease: until when the outcome is expected, more than zero; after it the outcome is unknown.
Returns: the intent with its token.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID003 not committed, not pending, or too late to send again, ID006 restored copy, ID503. Tables: reads idem_record; writes idem_intent, and idem_event for what was sent before.';

CREATE FUNCTION idem_dispatch(target text, worker text, n integer, lease interval) RETURNS SETOF idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_dispatch';
REVOKE ALL ON FUNCTION idem_dispatch(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_dispatch(text, text, integer, interval) IS
'Outbox relay: takes intents of a target in flight, each for one worker: what is due, and what was sent, lapsed and may be sent again within its resend_safe_for; the oldest first. Never waits, whatever is locked. The calls may be made only after this transaction has committed.
Arguments: target, 1 to 128 characters. worker: a name for people to read, 1 to 255 characters. n: at most so many, 1 to 10000. lease: as in idem_send.
Returns: the intents with their tokens; none when nothing is due.
Errors: 22004, 22023, 25006, ID006 restored copy, ID503. Tables: reads idem_record; writes idem_intent, and idem_event for what was sent before.';

CREATE FUNCTION idem_confirm(intent uuid, token bigint, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_confirm';
REVOKE ALL ON FUNCTION idem_confirm(uuid, bigint, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_confirm(uuid, bigint, json) IS
'It happened. The same again by the same token is accepted and changes nothing.
Arguments: intent, its operation_id; token, from idem_send, idem_dispatch or idem_reconcile. response: what the target answered, kept byte for byte.
Returns: the intent.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale token: what you know is evidence for idem_settle, ID003 another word was said, ID503. Tables: reads idem_record; writes idem_intent; idem_record and idem_event when it was the last open question of an unknown command.';

CREATE FUNCTION idem_reject(intent uuid, token bigint, reason text, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_reject';
REVOKE ALL ON FUNCTION idem_reject(uuid, bigint, text, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_reject(uuid, bigint, text, json) IS
'It did not happen and never will: the target refused it for good. The same again by the same token is accepted and changes nothing.
Arguments: intent, token: as in idem_confirm. reason: 1 to 1024 characters. response: what the target answered.
Returns: the intent.
Errors: as idem_confirm. Tables: as idem_confirm; writes idem_event.';

CREATE FUNCTION idem_defer(intent uuid, token bigint, reason text) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_defer';
REVOKE ALL ON FUNCTION idem_defer(uuid, bigint, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_defer(uuid, bigint, text) IS
'It did not happen, try later: after 1 second, then 2, 4 ... at most 1 hour; after 20 tries it is dead until idem_retry. Where an earlier try may have happened, the intent stays unknown. The same again by the same token is accepted and changes nothing, until somebody else has the intent.
Arguments: intent, token: as in idem_confirm. reason: 1 to 1024 characters. Only for what is known not to have happened: a lost connection or a timeout is not.
Returns: the intent.
Errors: as idem_confirm; ID003 also when it is not in flight. Tables: as idem_reject.';

CREATE FUNCTION idem_retry(intent uuid, reason text) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_retry';
REVOKE ALL ON FUNCTION idem_retry(uuid, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_retry(uuid, text) IS
'Makes a pending intent due now, and counts its tries from zero: for dead ones, or when the target is back. Notifies the channel of the operation''s policy.
Arguments: intent, its operation_id. reason: 1 to 1024 characters.
Returns: the intent.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID003 not pending, ID503. Tables: reads idem_record, idem_policy; writes idem_intent, idem_event.';
