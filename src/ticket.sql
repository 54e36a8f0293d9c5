/*
 * idem_ticket: what every claim and every replay answers, and what the owner
 * of a claim passes back.  Columns are only ever added at the end: C code and
 * clients read the first five by position.
 */
CREATE TYPE idem_ticket AS (
	outcome text,
	tenant text,
	operation text,
	key text,
	token bigint,
	attempt integer,
	state text,
	created_at timestamptz,
	completed_at timestamptz,
	expires_at timestamptz,
	lease_until timestamptz,
	retry_after interval,
	code integer,
	resource text,
	response json,
	headers jsonb,
	body bytea,
	request jsonb,
	owner text,
	reason text,
	duplicate_of text
);
REVOKE ALL ON TYPE idem_ticket FROM PUBLIC;

COMMENT ON TYPE idem_ticket IS
'The answer to a claim or a replay, and the proof of ownership that is passed back to complete it.';
COMMENT ON COLUMN idem_ticket.outcome IS
'what the caller has to do: execute, resume, replay, in_progress, mismatch, expired, unknown, duplicate, cancelled; absent from idem_replay only';
COMMENT ON COLUMN idem_ticket.tenant IS 'first part of the address';
COMMENT ON COLUMN idem_ticket.operation IS 'second part of the address';
COMMENT ON COLUMN idem_ticket.key IS 'third part of the address';
COMMENT ON COLUMN idem_ticket.token IS
'random number valid for this attempt only; NULL unless the outcome is execute or resume';
COMMENT ON COLUMN idem_ticket.attempt IS '1, 2, 3 ...: grows with every new claim or takeover';
COMMENT ON COLUMN idem_ticket.state IS
'state of the record: processing, released, succeeded, failed, unknown, cancelled; NULL where there is no record';
COMMENT ON COLUMN idem_ticket.created_at IS 'when the address was first claimed';
COMMENT ON COLUMN idem_ticket.completed_at IS 'when the command reached its final state';
COMMENT ON COLUMN idem_ticket.expires_at IS 'from this instant on the address answers expired';
COMMENT ON COLUMN idem_ticket.lease_until IS 'end of the lease of a leased claim';
COMMENT ON COLUMN idem_ticket.retry_after IS
'in_progress only: how long to wait before asking again';
COMMENT ON COLUMN idem_ticket.code IS 'stored code, an HTTP status for instance; replay and duplicate only';
COMMENT ON COLUMN idem_ticket.resource IS 'stored name of what the command made';
COMMENT ON COLUMN idem_ticket.response IS 'stored response, byte for byte; replay and duplicate only';
COMMENT ON COLUMN idem_ticket.headers IS 'stored headers; replay and duplicate only';
COMMENT ON COLUMN idem_ticket.body IS 'stored binary body; replay and duplicate only';
COMMENT ON COLUMN idem_ticket.request IS
'stored request, for resume under a policy with keep_request';
COMMENT ON COLUMN idem_ticket.owner IS 'who holds or held the claim, as told by the claimer';
COMMENT ON COLUMN idem_ticket.reason IS 'why the record was released or became unknown';
COMMENT ON COLUMN idem_ticket.duplicate_of IS
'duplicate only: key of the first command with the guard; attempt, state, times, code, resource, response and so on are then those of that one';

/*
 * idem_response: what a handler of idem_execute may return instead of a bare
 * json: the arguments of idem_complete in their order, then the final state.
 */
CREATE TYPE idem_response AS (
	response json,
	code integer,
	resource text,
	headers jsonb,
	body bytea,
	state text
);
REVOKE ALL ON TYPE idem_response FROM PUBLIC;

COMMENT ON TYPE idem_response IS
'The full answer of a handler of idem_execute: what idem_complete stores.';
COMMENT ON COLUMN idem_response.response IS 'stored and replayed byte for byte';
COMMENT ON COLUMN idem_response.code IS 'an HTTP status for instance';
COMMENT ON COLUMN idem_response.resource IS 'name of what the command made, 1 to 1024 characters';
COMMENT ON COLUMN idem_response.headers IS 'stored and replayed';
COMMENT ON COLUMN idem_response.body IS 'for anything that is not json';
COMMENT ON COLUMN idem_response.state IS
'succeeded (also when NULL), or failed: a final business failure, replayed as it is';
