/*
 * VOLATILE, though it only reads: it answers with what is true when it is
 * called, not with what its statement began with.  The planner must not call
 * it in advance, nor once more for each column that is asked of its ticket.
 */
CREATE FUNCTION idem_replay(
	tenant text,
	operation text,
	key text,
	request jsonb DEFAULT NULL,
	fingerprint bytea DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_replay';
REVOKE ALL ON FUNCTION idem_replay(text, text, text, jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_replay(text, text, text, jsonb, bytea) IS
'Asks for the answer of a command without claiming it. Reads only: works in a READ ONLY transaction and on a standby, and assigns no transaction id.
Arguments: as in idem_claim; the request has to be the one that was claimed, otherwise the outcome is mismatch. Guards are not asked.
Returns: a ticket without token: replay, in_progress, mismatch, expired, unknown, cancelled, or absent: no result is known here, which is no proof that there is none, least of all on a standby.
Errors: 22004, 22023, 42501 tenant not allowed, ID503. Tables: reads idem_policy, idem_record.';

/*
 * VOLATILE, because what it does is to raise an error: where nobody reads what
 * it returns, the planner would leave it out.
 */
CREATE FUNCTION idem_require(ticket idem_ticket) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_require';
REVOKE ALL ON FUNCTION idem_require(idem_ticket) FROM PUBLIC;
COMMENT ON FUNCTION idem_require(idem_ticket) IS
'Raises an error unless the ticket says execute, resume or replay: for callers who want the other outcomes as errors.
Arguments: ticket, from idem_claim, idem_execute or idem_replay.
Returns: the ticket unchanged.
Errors: ID409 in_progress, ID422 mismatch, ID410 expired, ID424 unknown, ID208 duplicate, ID499 cancelled, ID404 absent; 22004, 22023, 42501 tenant not allowed. Tables: none.';
