/*
 * The verbs of the owner of a claim, each for a ticket and for its four parts
 * (for clients without row types).
 */

CREATE FUNCTION idem_complete(
	ticket idem_ticket,
	response json DEFAULT NULL,
	code integer DEFAULT NULL,
	resource text DEFAULT NULL,
	headers jsonb DEFAULT NULL,
	body bytea DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_complete';
REVOKE ALL ON FUNCTION idem_complete(idem_ticket, json, integer, text,
	jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_complete(idem_ticket, json, integer, text,
	jsonb, bytea) IS
'Ends a claimed command as succeeded and stores its answer, which every later claim of the address replays. The same answer again is accepted and changes nothing.
Arguments: ticket: from the claim. response: kept and replayed byte for byte. code: an HTTP status for instance. resource: name of what was made, 1 to 1024 characters. headers: stored with it. body: for what is not json. response, headers and body each at most idempotency.max_response_size bytes; a refused answer leaves the claim open.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_complete(
	tenant text,
	operation text,
	key text,
	token bigint,
	response json DEFAULT NULL,
	code integer DEFAULT NULL,
	resource text DEFAULT NULL,
	headers jsonb DEFAULT NULL,
	body bytea DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_complete_by_token';
REVOKE ALL ON FUNCTION idem_complete(text, text, text, bigint, json, integer, text,
	jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_complete(text, text, text, bigint, json, integer, text,
	jsonb, bytea) IS
'Ends a claimed command as succeeded and stores its answer, which every later claim of the address replays. The same answer again is accepted and changes nothing.
Arguments: tenant, operation, key, token: from the ticket of the claim. response: kept and replayed byte for byte. code: an HTTP status for instance. resource: name of what was made, 1 to 1024 characters. headers: stored with it. body: for what is not json. response, headers and body each at most idempotency.max_response_size bytes; a refused answer leaves the claim open.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_fail(
	ticket idem_ticket,
	response json DEFAULT NULL,
	code integer DEFAULT NULL,
	resource text DEFAULT NULL,
	headers jsonb DEFAULT NULL,
	body bytea DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_fail';
REVOKE ALL ON FUNCTION idem_fail(idem_ticket, json, integer, text,
	jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_fail(idem_ticket, json, integer, text,
	jsonb, bytea) IS
'Ends a claimed command as failed for good and stores its answer, which every later claim of the address replays. Not for what may be tried again: that is idem_release. Called after ROLLBACK TO SAVEPOINT, or it vanishes with the writes it reports on.
Arguments: ticket: from the claim. The others as in idem_complete.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_fail(
	tenant text,
	operation text,
	key text,
	token bigint,
	response json DEFAULT NULL,
	code integer DEFAULT NULL,
	resource text DEFAULT NULL,
	headers jsonb DEFAULT NULL,
	body bytea DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_fail_by_token';
REVOKE ALL ON FUNCTION idem_fail(text, text, text, bigint, json, integer, text,
	jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_fail(text, text, text, bigint, json, integer, text,
	jsonb, bytea) IS
'Ends a claimed command as failed for good and stores its answer, which every later claim of the address replays. Not for what may be tried again: that is idem_release. Called after ROLLBACK TO SAVEPOINT, or it vanishes with the writes it reports on.
Arguments: tenant, operation, key, token: from the ticket of the claim. The others as in idem_complete.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_release(
	ticket idem_ticket,
	reason text DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_release';
REVOKE ALL ON FUNCTION idem_release(idem_ticket, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_release(idem_ticket, text) IS
'Gives a claim back: nothing happened, the next claim of the same request may run it. Refused while the command has an intent that was not rejected: it has happened, or may have, or will. Then complete or fail the command, or leave it to whoever takes over.
Arguments: ticket: from the claim. reason: for people to read, 1 to 1024 characters.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_release(
	tenant text,
	operation text,
	key text,
	token bigint,
	reason text DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_release_by_token';
REVOKE ALL ON FUNCTION idem_release(text, text, text, bigint, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_release(text, text, text, bigint, text) IS
'Gives a claim back: nothing happened, the next claim of the same request may run it. Refused while the command has an intent that was not rejected: it has happened, or may have, or will. Then complete or fail the command, or leave it to whoever takes over.
Arguments: tenant, operation, key, token: from the ticket of the claim. reason: for people to read, 1 to 1024 characters.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_heartbeat(
	ticket idem_ticket,
	lease interval DEFAULT NULL
) RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_heartbeat';
REVOKE ALL ON FUNCTION idem_heartbeat(idem_ticket, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_heartbeat(idem_ticket, interval) IS
'Extends the lease of a leased claim, counted from now. A lease that has lapsed is extended too, as long as nobody has taken over.
Arguments: ticket: from the claim. lease: as in idem_claim; NULL means the policy''s. A policy without one needs the argument.
Returns: the new lease_until.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_heartbeat(
	tenant text,
	operation text,
	key text,
	token bigint,
	lease interval DEFAULT NULL
) RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_heartbeat_by_token';
REVOKE ALL ON FUNCTION idem_heartbeat(text, text, text, bigint, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_heartbeat(text, text, text, bigint, interval) IS
'Extends the lease of a leased claim, counted from now. A lease that has lapsed is extended too, as long as nobody has taken over.
Arguments: tenant, operation, key, token: from the ticket of the claim. lease: as in idem_claim; NULL means the policy''s. A policy without one needs the argument.
Returns: the new lease_until.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_hold(
	ticket idem_ticket
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_hold';
REVOKE ALL ON FUNCTION idem_hold(idem_ticket) FROM PUBLIC;
COMMENT ON FUNCTION idem_hold(idem_ticket) IS
'Proves that the ticket is still valid and keeps it so: until this transaction ends nobody can take over. Called before the writes of a leased command, so that a worker that lost its lease cannot commit them. Every function that takes a ticket does this by itself.
Arguments: ticket: from the claim.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';

CREATE FUNCTION idem_hold(
	tenant text,
	operation text,
	key text,
	token bigint
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_hold_by_token';
REVOKE ALL ON FUNCTION idem_hold(text, text, text, bigint) FROM PUBLIC;
COMMENT ON FUNCTION idem_hold(text, text, text, bigint) IS
'Proves that the ticket is still valid and keeps it so: until this transaction ends nobody can take over. Called before the writes of a leased command, so that a worker that lost its lease cannot commit them. Every function that takes a ticket does this by itself.
Arguments: tenant, operation, key, token: from the ticket of the claim.
Returns: nothing.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';
