\echo Use "CREATE EXTENSION idempotency VERSION '0.9'" to load this file. \quit
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
	reason text
);
REVOKE ALL ON TYPE idem_ticket FROM PUBLIC;

COMMENT ON TYPE idem_ticket IS
'The answer to a claim or a replay, and the proof of ownership that is passed back to complete it.';
COMMENT ON COLUMN idem_ticket.outcome IS
'what the caller has to do: execute, resume, replay, in_progress, mismatch, expired, unknown, cancelled; absent from idem_replay only';
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
COMMENT ON COLUMN idem_ticket.code IS 'stored code, an HTTP status for instance; replay only';
COMMENT ON COLUMN idem_ticket.resource IS 'stored name of what the command made';
COMMENT ON COLUMN idem_ticket.response IS 'stored response, byte for byte; replay only';
COMMENT ON COLUMN idem_ticket.headers IS 'stored headers; replay only';
COMMENT ON COLUMN idem_ticket.body IS 'stored binary body; replay only';
COMMENT ON COLUMN idem_ticket.request IS
'stored request, for resume under a policy with keep_request';
COMMENT ON COLUMN idem_ticket.owner IS 'who holds or held the claim, as told by the claimer';
COMMENT ON COLUMN idem_ticket.reason IS 'why the record was released or became unknown';

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
/*
 * idem_record: one row per address.  C code inserts and updates it directly,
 * with the address's key lock held (see record.c); everybody else is held to
 * the state machine by the triggers below.
 *
 * Fixed-width columns come first: no padding, cheap access.
 */
CREATE TABLE idem_record (
	created_at timestamptz NOT NULL,
	completed_at timestamptz,
	expires_at timestamptz,
	lease_until timestamptz,
	token bigint NOT NULL,
	attempt integer NOT NULL,
	policy_version integer,
	code integer,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	state text COLLATE "C" NOT NULL,
	fingerprint bytea,
	resource text COLLATE "C",
	response json,
	headers jsonb,
	body bytea,
	ttl interval,
	request jsonb,
	owner text COLLATE "C",
	reason text COLLATE "C",
	PRIMARY KEY (tenant, operation, key),
	CONSTRAINT idem_record_state_known
		CHECK (state IN ('processing', 'released', 'succeeded', 'failed',
						 'unknown', 'cancelled')),
	CONSTRAINT idem_record_attempt_positive CHECK (attempt >= 1),
	CONSTRAINT idem_record_token_positive CHECK (token > 0),
	CONSTRAINT idem_record_fingerprint_size
		CHECK (octet_length(fingerprint) = 33),
	CONSTRAINT idem_record_times_finite
		CHECK (isfinite(created_at) AND isfinite(completed_at) IS NOT false
			   AND isfinite(expires_at) IS NOT false
			   AND isfinite(lease_until) IS NOT false),
	CONSTRAINT idem_record_lease_while_processing
		CHECK ((state = 'processing') = (lease_until IS NOT NULL)),
	CONSTRAINT idem_record_end_when_terminal
		CHECK ((state IN ('succeeded', 'failed', 'cancelled'))
			   = (completed_at IS NOT NULL)
			   AND (completed_at IS NOT NULL) = (expires_at IS NOT NULL))
);
REVOKE ALL ON TABLE idem_record FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_record', '');

COMMENT ON TABLE idem_record IS
'One row per address (tenant, operation, key) that was ever claimed and not purged. Written by the idem_ functions only.';
COMMENT ON COLUMN idem_record.created_at IS 'when the address was first claimed';
COMMENT ON COLUMN idem_record.completed_at IS 'when the record reached its terminal state';
COMMENT ON COLUMN idem_record.expires_at IS 'completed_at plus ttl; from then on the address answers expired';
COMMENT ON COLUMN idem_record.lease_until IS 'end of the lease, while processing';
COMMENT ON COLUMN idem_record.token IS 'fence of the current attempt';
COMMENT ON COLUMN idem_record.attempt IS '1, 2, 3 ...: grows with every new claim or takeover';
COMMENT ON COLUMN idem_record.policy_version IS 'version of the policy the record began with; NULL without a policy';
COMMENT ON COLUMN idem_record.code IS 'stored code, an HTTP status for instance';
COMMENT ON COLUMN idem_record.tenant IS 'first part of the address, 1 to 128 characters';
COMMENT ON COLUMN idem_record.operation IS 'second part of the address, 1 to 128 characters';
COMMENT ON COLUMN idem_record.key IS 'third part of the address, 1 to 255 characters';
COMMENT ON COLUMN idem_record.state IS 'processing, released, succeeded, failed, unknown or cancelled';
COMMENT ON COLUMN idem_record.fingerprint IS 'version byte and 32 bytes of digest of the request; NULL for a claim without request';
COMMENT ON COLUMN idem_record.resource IS 'name of what the command made';
COMMENT ON COLUMN idem_record.response IS 'stored response, byte for byte';
COMMENT ON COLUMN idem_record.headers IS 'stored headers';
COMMENT ON COLUMN idem_record.body IS 'stored binary body';
COMMENT ON COLUMN idem_record.ttl IS 'ttl asked for by a leased claim, until it is completed';
COMMENT ON COLUMN idem_record.request IS 'request of a leased claim under a policy with keep_request';
COMMENT ON COLUMN idem_record.owner IS 'who claimed, as told by the claimer';
COMMENT ON COLUMN idem_record.reason IS 'why the record was released or became unknown';

CREATE FUNCTION idem_record_protect() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'idem_record_protect';
REVOKE ALL ON FUNCTION idem_record_protect() FROM PUBLIC;
COMMENT ON FUNCTION idem_record_protect() IS
'Trigger of idem_record: refuses every UPDATE that the state machine does not know, and every DELETE and TRUNCATE.
Errors: ID003. Tables: idem_record.';

CREATE TRIGGER idem_record_protect_row
	BEFORE UPDATE OR DELETE ON idem_record
	FOR EACH ROW EXECUTE FUNCTION idem_record_protect();
CREATE TRIGGER idem_record_protect_all
	BEFORE TRUNCATE ON idem_record
	FOR EACH STATEMENT EXECUTE FUNCTION idem_record_protect();
/*
 * idem_policy: the defaults of an operation, and what it allows.  Backends
 * cache it; the trigger checks every row, however it is written, and tells
 * every backend to read it again.
 */
CREATE TABLE idem_policy (
	operation text COLLATE "C" PRIMARY KEY,
	ttl interval,
	lease interval,
	max_lease interval,
	wait interval,
	tombstone_retention interval,
	max_attempts integer,
	ignore_paths text[],
	keep_request boolean NOT NULL DEFAULT false,
	steps text[],
	version integer NOT NULL DEFAULT 1,
	comment text
);
REVOKE ALL ON TABLE idem_policy FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_policy', '');

COMMENT ON TABLE idem_policy IS
'Defaults and limits of an operation. Written by idem_define. An operation without a row follows the settings.';
COMMENT ON COLUMN idem_policy.operation IS 'the operation, 1 to 128 characters';
COMMENT ON COLUMN idem_policy.ttl IS 'how long a completed command is replayed; NULL: idempotency.ttl';
COMMENT ON COLUMN idem_policy.lease IS 'lease of claims that name none; NULL: such claims are atomic';
COMMENT ON COLUMN idem_policy.max_lease IS 'longest lease a claim or heartbeat may ask for; NULL: 100 years';
COMMENT ON COLUMN idem_policy.wait IS 'how long a claim waits for another owner; NULL: idempotency.wait';
COMMENT ON COLUMN idem_policy.tombstone_retention IS 'how long an expired record is remembered; NULL: idempotency.tombstone_retention';
COMMENT ON COLUMN idem_policy.max_attempts IS 'attempts before the record goes to unknown; NULL: no limit';
COMMENT ON COLUMN idem_policy.ignore_paths IS 'parts of the request left out of the fingerprint, as JSON Pointers (RFC 6901)';
COMMENT ON COLUMN idem_policy.keep_request IS 'whether leased claims store their request';
COMMENT ON COLUMN idem_policy.steps IS 'legal steps of the operation in their order';
COMMENT ON COLUMN idem_policy.version IS 'grows by one with every change';
COMMENT ON COLUMN idem_policy.comment IS 'free text';

CREATE FUNCTION idem_policy_check() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'idem_policy_check';
REVOKE ALL ON FUNCTION idem_policy_check() FROM PUBLIC;
COMMENT ON FUNCTION idem_policy_check() IS
'Trigger of idem_policy: refuses values without meaning, and makes every session read the policies again.
Errors: 22004, 22023. Tables: idem_policy.';

CREATE TRIGGER idem_policy_check_row
	BEFORE INSERT OR UPDATE OR DELETE ON idem_policy
	FOR EACH ROW EXECUTE FUNCTION idem_policy_check();
CREATE TRIGGER idem_policy_check_all
	BEFORE TRUNCATE ON idem_policy
	FOR EACH STATEMENT EXECUTE FUNCTION idem_policy_check();

/* also for rows that logical replication applies */
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_row;
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_all;

/* Runs with the owner's rights; its body was resolved when it was made. */
CREATE FUNCTION idem_define(
	operation text,
	ttl interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	max_lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	tombstone_retention interval DEFAULT NULL,
	max_attempts integer DEFAULT NULL,
	ignore_paths text[] DEFAULT NULL,
	keep_request boolean DEFAULT false,
	steps text[] DEFAULT NULL,
	comment text DEFAULT NULL
) RETURNS idem_policy
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	INSERT INTO idem_policy AS p (operation, ttl, lease, max_lease, wait,
								  tombstone_retention, max_attempts,
								  ignore_paths, keep_request, steps, comment)
	VALUES (idem_define.operation, idem_define.ttl, idem_define.lease,
			idem_define.max_lease, idem_define.wait,
			idem_define.tombstone_retention, idem_define.max_attempts,
			idem_define.ignore_paths,
			coalesce(idem_define.keep_request, false),
			idem_define.steps, idem_define.comment)
	ON CONFLICT ON CONSTRAINT idem_policy_pkey DO UPDATE
	SET ttl = excluded.ttl, lease = excluded.lease,
		max_lease = excluded.max_lease, wait = excluded.wait,
		tombstone_retention = excluded.tombstone_retention,
		max_attempts = excluded.max_attempts,
		ignore_paths = excluded.ignore_paths,
		keep_request = excluded.keep_request,
		steps = excluded.steps, comment = excluded.comment,
		version = p.version
			+ ((p.ttl, p.lease, p.max_lease, p.wait, p.tombstone_retention,
				p.max_attempts, p.ignore_paths, p.keep_request, p.steps)
			   IS DISTINCT FROM
			   (excluded.ttl, excluded.lease, excluded.max_lease,
				excluded.wait, excluded.tombstone_retention,
				excluded.max_attempts, excluded.ignore_paths,
				excluded.keep_request, excluded.steps))::integer
	RETURNING p.*;
END;
REVOKE ALL ON FUNCTION idem_define(text, interval, interval, interval,
	interval, interval, integer, text[], boolean, text[], text) FROM PUBLIC;
COMMENT ON FUNCTION idem_define(text, interval, interval, interval,
	interval, interval, integer, text[], boolean, text[], text) IS
'Defines the policy of an operation as a whole: an argument left out returns to its default. Every session follows it from its commit on.
Arguments: operation, 1 to 128 characters. ttl, lease, max_lease, tombstone_retention: more than zero, at most 36500 days, without months. wait: zero to 1 day. max_attempts: 1 or more. ignore_paths: JSON Pointers (RFC 6901) left out of the fingerprint. keep_request: leased claims store their request. steps: legal steps in their order, each 1 to 128 characters. comment: free text. NULL means the default.
Returns: the policy; its version grows by one when anything but the comment changed.
Errors: 22004, 22023, 42501. Tables: writes idem_policy.';
CREATE FUNCTION idem_fingerprint(
	request jsonb,
	ignore_paths text[] DEFAULT NULL
) RETURNS bytea
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_fingerprint';
REVOKE ALL ON FUNCTION idem_fingerprint(jsonb, text[]) FROM PUBLIC;
COMMENT ON FUNCTION idem_fingerprint(jsonb, text[]) IS
'Digest that binds an address to one request: equal for two requests if and only if they are equal as jsonb.
Arguments: request, any jsonb. ignore_paths: JSON Pointers (RFC 6901) of parts to leave out, at most 64; one that leads nowhere is no error.
Returns: 33 bytes, the version of the encoding (1) and a SHA-256; NULL for a NULL request.
Errors: 22004, 22023. Tables: none.';
CREATE FUNCTION idem_claim(
	tenant text,
	operation text,
	key text,
	request jsonb DEFAULT NULL,
	fingerprint bytea DEFAULT NULL,
	wait interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_claim';
REVOKE ALL ON FUNCTION idem_claim(text, text, text, jsonb, bytea, interval,
	interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_claim(text, text, text, jsonb, bytea, interval,
	interval, interval, text) IS
'Claims a command. The outcome of the ticket says what to do: run it (execute, resume), or not (replay, in_progress, mismatch, expired, unknown, cancelled). Without a lease the claim is atomic: this transaction has to complete, fail or release it before it commits. With a lease it outlives its transaction, and whoever holds the ticket may go on.
Arguments: tenant and operation, 1 to 128 characters; key, 1 to 255 characters; none blank. request: what the address is bound to. fingerprint: instead of request, 33 bytes as from idem_fingerprint, or a zero byte and 32 bytes of the caller''s own digest. wait: how long to wait for another owner, zero to 1 day. lease: more than zero, at most the policy''s max_lease. ttl: how long the answer is replayed, more than zero. Durations have no months; at most 36500 days; NULL means the policy''s value, else the setting''s. owner: a name for people to read, 1 to 255 characters.
Returns: a ticket.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID503. Tables: reads idem_policy, idem_record; writes idem_record for a leased claim.';
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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy; writes idem_record.';

CREATE FUNCTION idem_release(
	ticket idem_ticket,
	reason text DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_release';
REVOKE ALL ON FUNCTION idem_release(idem_ticket, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_release(idem_ticket, text) IS
'Gives a claim back: nothing happened, the next claim of the same request may run it.
Arguments: ticket: from the claim. reason: for people to read, 1 to 1024 characters.
Returns: nothing.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';

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
'Gives a claim back: nothing happened, the next claim of the same request may run it.
Arguments: tenant, operation, key, token: from the ticket of the claim. reason: for people to read, 1 to 1024 characters.
Returns: nothing.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';

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
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID503. Tables: reads idem_policy; writes idem_record.';
CREATE FUNCTION idem_replay(
	tenant text,
	operation text,
	key text,
	request jsonb DEFAULT NULL,
	fingerprint bytea DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c STABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_replay';
REVOKE ALL ON FUNCTION idem_replay(text, text, text, jsonb, bytea) FROM PUBLIC;
COMMENT ON FUNCTION idem_replay(text, text, text, jsonb, bytea) IS
'Asks for the answer of a command without claiming it. Reads only: works in a READ ONLY transaction and on a standby, and assigns no transaction id.
Arguments: as in idem_claim; the request has to be the one that was claimed, otherwise the outcome is mismatch.
Returns: a ticket without token: replay, in_progress, mismatch, expired, unknown, cancelled, or absent: no result is known here, which is no proof that there is none, least of all on a standby.
Errors: 22004, 22023, ID503. Tables: reads idem_policy, idem_record.';

CREATE FUNCTION idem_require(ticket idem_ticket) RETURNS idem_ticket
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'idem_require';
REVOKE ALL ON FUNCTION idem_require(idem_ticket) FROM PUBLIC;
COMMENT ON FUNCTION idem_require(idem_ticket) IS
'Raises an error unless the ticket says execute, resume or replay: for callers who want the other outcomes as errors.
Arguments: ticket, from idem_claim, idem_execute or idem_replay.
Returns: the ticket unchanged.
Errors: ID409 in_progress, ID422 mismatch, ID410 expired, ID424 unknown, ID208 duplicate, ID499 cancelled, ID404 absent; 22004, 22023. Tables: none.';
CREATE FUNCTION idem_execute(
	tenant text,
	operation text,
	key text,
	request jsonb,
	handler regprocedure,
	wait interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_execute';
REVOKE ALL ON FUNCTION idem_execute(text, text, text, jsonb, regprocedure,
	interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_execute(text, text, text, jsonb, regprocedure,
	interval, interval, text) IS
'Claim, work and completion in one call: claims atomically (also under a policy with a lease), calls the handler with the request if the outcome is execute or resume, and stores what it returned. An error of the handler propagates and undoes everything, the claim included.
Arguments: handler, a function of one jsonb argument that returns json, jsonb or idem_response; the caller needs EXECUTE on it. The others as in idem_claim.
Returns: a ticket; its outcome is execute or resume when the handler ran now, and its response is what the handler returned.
Errors: as idem_claim and idem_complete; 42883 no such handler, 42P13 wrong signature, 42501 no EXECUTE on the handler, 22004 NULL handler, or NULL request for a strict one. Tables: reads idem_policy; writes idem_record.';
CREATE FUNCTION idem_claim_batch(
	tenant text,
	operation text,
	keys text[],
	requests jsonb[] DEFAULT NULL,
	fingerprints bytea[] DEFAULT NULL,
	wait interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS SETOF idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100
AS 'MODULE_PATHNAME', 'idem_claim_batch';
REVOKE ALL ON FUNCTION idem_claim_batch(text, text, text[], jsonb[], bytea[],
	interval, interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_claim_batch(text, text, text[], jsonb[], bytea[],
	interval, interval, interval, text) IS
'Claims many commands of one operation, as idem_claim does each. Locks are taken in one global order, so two batches never deadlock, whatever the order of their keys.
Arguments: keys, with requests or fingerprints as long as keys (or NULL: no requests). A key given twice is claimed by its first place; the second answers in_progress. wait: for the whole batch. The others as in idem_claim.
Returns: one ticket per key, in the order of keys.
Errors: as idem_claim; 22023 for arrays of different lengths. Tables: as idem_claim.';

CREATE FUNCTION idem_complete_batch(
	tickets idem_ticket[],
	responses json[] DEFAULT NULL
) RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_complete_batch';
REVOKE ALL ON FUNCTION idem_complete_batch(idem_ticket[], json[]) FROM PUBLIC;
COMMENT ON FUNCTION idem_complete_batch(idem_ticket[], json[]) IS
'Completes many claims, as idem_complete does each; all or, on an error, none. Locks are taken in one global order, so two batches never deadlock.
Arguments: tickets, from claims that answered execute or resume. responses: as long as tickets, or NULL: no responses.
Returns: the number of tickets.
Errors: 22004, 22023, 25006, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy; writes idem_record.';
/*
 * idem_event: the trail.  Every transition is here except the two that the
 * record itself proves, the first claim and the completion.  What is refused
 * raises an error, and stands in the server's log.
 */
CREATE TABLE idem_event (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	attempt integer,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	intent text COLLATE "C",
	from_state text COLLATE "C" NOT NULL,
	to_state text COLLATE "C" NOT NULL,
	actor text COLLATE "C" NOT NULL,
	reason text COLLATE "C"
);
CREATE INDEX idem_event_address ON idem_event (tenant, operation, key);
REVOKE ALL ON TABLE idem_event FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_event', '');
SELECT pg_catalog.pg_extension_config_dump('idem_event_id_seq', '');

COMMENT ON TABLE idem_event IS
'The trail: every transition of a command or an intent that its row does not prove by itself. Written by the idem_ functions only.';
COMMENT ON COLUMN idem_event.id IS 'order of writing within a session';
COMMENT ON COLUMN idem_event.at IS 'when';
COMMENT ON COLUMN idem_event.attempt IS 'attempt of the command that is affected';
COMMENT ON COLUMN idem_event.tenant IS 'first part of the address';
COMMENT ON COLUMN idem_event.operation IS 'second part of the address';
COMMENT ON COLUMN idem_event.key IS 'third part of the address';
COMMENT ON COLUMN idem_event.intent IS 'name of the intent; NULL for the command itself';
COMMENT ON COLUMN idem_event.from_state IS 'state before; none where there was no row';
COMMENT ON COLUMN idem_event.to_state IS 'state after';
COMMENT ON COLUMN idem_event.actor IS 'login role of the session';
COMMENT ON COLUMN idem_event.reason IS 'why';

CREATE FUNCTION idem_event_protect() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'cannot % idem_event', lower(TG_OP)
		USING ERRCODE = 'ID003',
			  DETAIL = 'The trail only grows.',
			  HINT = 'Use the idem_ functions.';
END
$$;
REVOKE ALL ON FUNCTION idem_event_protect() FROM PUBLIC;
COMMENT ON FUNCTION idem_event_protect() IS
'Trigger of idem_event: refuses every UPDATE, DELETE and TRUNCATE.
Errors: ID003. Tables: idem_event.';

CREATE TRIGGER idem_event_protect
	BEFORE UPDATE OR DELETE OR TRUNCATE ON idem_event
	FOR EACH STATEMENT EXECUTE FUNCTION idem_event_protect();
/*
 * idem_origin: the database that this memory belongs to.  A restored dump
 * brings the row of where it came from, a copy made by TEMPLATE keeps it: then
 * nothing is handed out until somebody adopts the copy.
 */
CREATE TABLE idem_origin (
	system_identifier bigint NOT NULL,
	database oid NOT NULL,
	adopted_at timestamptz NOT NULL,
	PRIMARY KEY (system_identifier, database)
);
REVOKE ALL ON TABLE idem_origin FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_origin', '');

COMMENT ON TABLE idem_origin IS 'The database that the records, steps and intents belong to. Written by CREATE EXTENSION and idem_adopt.';
COMMENT ON COLUMN idem_origin.system_identifier IS 'of the cluster';
COMMENT ON COLUMN idem_origin.database IS 'oid of the database within the cluster';
COMMENT ON COLUMN idem_origin.adopted_at IS 'since when';

INSERT INTO idem_origin
SELECT c.system_identifier, d.oid, clock_timestamp()
FROM pg_catalog.pg_control_system() AS c, pg_catalog.pg_database d
WHERE d.datname = pg_catalog.current_database();

/* Internal: refuses what must not be done in a copy. */
CREATE FUNCTION idem_require_adopted() RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF EXISTS (SELECT FROM @extschema@.idem_origin o
			   WHERE NOT @extschema@.idem_is_here(o.system_identifier, o.database))
	THEN
		RAISE EXCEPTION 'this database is a copy'
			USING ERRCODE = 'ID006',
				  DETAIL = 'Its commands and intents belong to another database, which may still be at work on them.',
				  HINT = 'When the original is out of use, call idem_adopt().';
	END IF;
END
$$;
REVOKE ALL ON FUNCTION idem_require_adopted() FROM PUBLIC;
COMMENT ON FUNCTION idem_require_adopted() IS
'Internal: refuses to go on in a copy. Errors: ID006. Tables: reads idem_origin.';

CREATE FUNCTION idem_adopt() RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	DELETE FROM @extschema@.idem_origin;
	INSERT INTO @extschema@.idem_origin
	SELECT c.system_identifier, d.oid, clock_timestamp()
	FROM pg_control_system() AS c, pg_database d
	WHERE d.datname = current_database();
	/* what was in flight when the copy was made: nobody here knows */
	WITH lapsed AS (
		UPDATE @extschema@.idem_intent i
		SET state = 'unknown', lease_until = NULL, token = NULL
		WHERE i.state = 'in_flight'
		RETURNING i.tenant, i.operation, i.key, i.name
	)
	INSERT INTO @extschema@.idem_event
		(at, tenant, operation, key, intent, from_state, to_state, actor, reason)
	SELECT clock_timestamp(), l.tenant, l.operation, l.key, l.name,
		   'in_flight', 'unknown', session_user, 'in flight when the copy was made'
	FROM lapsed l;
END
$$;
REVOKE ALL ON FUNCTION idem_adopt() FROM PUBLIC;
COMMENT ON FUNCTION idem_adopt() IS
'Makes a restored or copied database the place where commands are recovered and intents are sent. Only when the original is out of use: two places must not work on the same commands. What was in flight becomes unknown.
Arguments: none.
Returns: nothing.
Errors: none. Tables: writes idem_origin, idem_intent, idem_event.';
/*
 * Steps: named units of a leased command, each done at most once, committed
 * together with the local writes that belong to it.
 */
CREATE TABLE idem_step (
	done_at timestamptz NOT NULL,
	attempt integer NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	step text COLLATE "C" NOT NULL,
	input bytea,
	result json,
	PRIMARY KEY (tenant, operation, key, step)
);
REVOKE ALL ON TABLE idem_step FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_step', '');

COMMENT ON TABLE idem_step IS 'Steps that are done. Written by idem_step_done only.';
COMMENT ON COLUMN idem_step.done_at IS 'when it was done';
COMMENT ON COLUMN idem_step.attempt IS 'attempt that did it';
COMMENT ON COLUMN idem_step.tenant IS 'first part of the address';
COMMENT ON COLUMN idem_step.operation IS 'second part of the address';
COMMENT ON COLUMN idem_step.key IS 'third part of the address';
COMMENT ON COLUMN idem_step.step IS 'name, 1 to 128 characters';
COMMENT ON COLUMN idem_step.input IS 'fingerprint of its input; NULL without one';
COMMENT ON COLUMN idem_step.result IS 'what it gave, byte for byte; NULL is a result too';

/*
 * Internal: the number of a step or intent among the legal ones of the version
 * that the record began with; NULL where any name is legal.  All before it have
 * to be done, or noted.
 */
CREATE FUNCTION idem_step_place(ticket idem_ticket, name text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	legal text[];
	place integer;
	missing text;
BEGIN
	IF name IS NULL OR name !~ '[^ \t\n\v\f\r]' OR length(name) > 128 THEN
		RAISE EXCEPTION 'name of a step or intent must have 1 to 128 characters'
			USING ERRCODE = CASE WHEN name IS NULL THEN '22004' ELSE '22023' END,
				  DETAIL = CASE WHEN name IS NULL THEN 'It is NULL.'
								WHEN length(name) > 128 THEN format('It has %s.', length(name))
								ELSE 'It is blank.' END,
				  HINT = 'Name it after what it does, not after its position.';
	END IF;
	SELECT s.steps INTO legal
	FROM @extschema@.idem_record r
	JOIN @extschema@.idem_policy_steps s
	  ON s.operation = r.operation AND s.version = r.policy_version
	WHERE r.tenant = ticket.tenant AND r.operation = ticket.operation
	  AND r.key = ticket.key;
	IF NOT FOUND AND NOT EXISTS (
		SELECT FROM @extschema@.idem_record r
		WHERE r.tenant = ticket.tenant AND r.operation = ticket.operation
		  AND r.key = ticket.key)
	THEN
		/* an atomic claim began in this transaction */
		SELECT p.steps INTO legal
		FROM @extschema@.idem_policy p WHERE p.operation = ticket.operation;
	END IF;
	IF legal IS NULL THEN
		RETURN NULL;
	END IF;
	place := array_position(legal, name);
	IF place IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no step "%"', ticket.operation, name
			USING ERRCODE = '22023',
				  DETAIL = format('Its steps are %s.', array_to_string(legal, ', ')),
				  HINT = 'Add it with idem_define(); commands that began before keep their steps.';
	END IF;
	SELECT l.name INTO missing
	FROM @extschema@.idem_policy_steps s
	JOIN @extschema@.idem_record r ON r.operation = s.operation AND r.policy_version = s.version,
		 unnest(s.steps) WITH ORDINALITY AS l (name, n)
	WHERE r.tenant = ticket.tenant AND r.operation = ticket.operation
	  AND r.key = ticket.key AND l.n < place
	  AND NOT EXISTS (SELECT FROM @extschema@.idem_step d
					  WHERE d.tenant = ticket.tenant AND d.operation = ticket.operation
						AND d.key = ticket.key AND d.step = l.name)
	  AND NOT EXISTS (SELECT FROM @extschema@.idem_intent i
					  WHERE i.tenant = ticket.tenant AND i.operation = ticket.operation
						AND i.key = ticket.key AND i.name = l.name)
	ORDER BY l.n LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'step "%" comes before step "%"', missing, name
			USING ERRCODE = 'ID004',
				  DETAIL = format('The address is tenant "%s", operation "%s", key "%s".',
								  ticket.tenant, ticket.operation, ticket.key),
				  HINT = 'Do the steps in the order of the policy.';
	END IF;
	RETURN place;
END
$$;
REVOKE ALL ON FUNCTION idem_step_place(idem_ticket, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_step_place(idem_ticket, text) IS
'Internal: place of a step among the legal ones. Errors: 22004, 22023, ID004. Tables: reads idem_record, idem_policy_steps, idem_step, idem_intent.';

/*
 * Internal: proves the ticket, and that the step may be asked for now.
 */
CREATE FUNCTION idem_step_enter(ticket idem_ticket, step text) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	current_attempt integer;
BEGIN
	PERFORM @extschema@.idem_hold(ticket);
	SELECT r.attempt INTO current_attempt
	FROM @extschema@.idem_record r
	WHERE r.tenant = ticket.tenant AND r.operation = ticket.operation
	  AND r.key = ticket.key AND r.state = 'processing';
	IF NOT FOUND THEN
		RAISE EXCEPTION 'steps need a leased claim'
			USING ERRCODE = 'ID003',
				  DETAIL = format('The address is tenant "%s", operation "%s", key "%s".',
								  ticket.tenant, ticket.operation, ticket.key),
				  HINT = 'An atomic claim is one step by itself.';
	END IF;
	PERFORM @extschema@.idem_step_place(ticket, step);
	RETURN current_attempt;
END
$$;
REVOKE ALL ON FUNCTION idem_step_enter(idem_ticket, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_step_enter(idem_ticket, text) IS
'Internal: proves the ticket and the order of steps. Errors: 22004, 22023, ID002, ID003, ID004. Tables: reads idem_record, idem_policy_steps, idem_step, idem_intent.';

CREATE FUNCTION idem_step(
	ticket idem_ticket,
	step text,
	input jsonb DEFAULT NULL,
	OUT done boolean,
	OUT result json
)
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	before @extschema@.idem_step;
BEGIN
	PERFORM @extschema@.idem_step_enter(ticket, step);
	SELECT s.* INTO before
	FROM @extschema@.idem_step s
	WHERE s.tenant = ticket.tenant AND s.operation = ticket.operation
	  AND s.key = ticket.key AND s.step = idem_step.step;
	done := FOUND;
	IF done AND before.input IS DISTINCT FROM @extschema@.idem_fingerprint(input) THEN
		RAISE EXCEPTION 'step "%" was done with another input', step
			USING ERRCODE = 'ID004',
				  DETAIL = format('The address is tenant "%s", operation "%s", key "%s".',
								  ticket.tenant, ticket.operation, ticket.key),
				  HINT = 'Its result stays. A step that does something else needs another name.';
	END IF;
	result := before.result;
END
$$;
REVOKE ALL ON FUNCTION idem_step(idem_ticket, text, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION idem_step(idem_ticket, text, jsonb) IS
'Asks whether a step of a leased command is done, in this attempt or an earlier one.
Arguments: ticket, from the claim. step: its name, 1 to 128 characters; under a policy with steps one of them, with all before it done. input: what it works on.
Returns: done, and the stored result, which may be NULL.
Errors: 22004, 22023, ID002 stale ticket, ID003 atomic claim, ID004 other input or order. Tables: reads idem_record, idem_step, idem_intent, idem_policy_steps.';

CREATE FUNCTION idem_step_done(
	ticket idem_ticket,
	step text,
	result json DEFAULT NULL,
	input jsonb DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	current_attempt integer := @extschema@.idem_step_enter(ticket, step);
	before @extschema@.idem_step;
	digest bytea := @extschema@.idem_fingerprint(input);
BEGIN
	PERFORM @extschema@.idem_check_size(ticket, 'result', result);
	INSERT INTO @extschema@.idem_step AS s (done_at, attempt, tenant, operation, key, step, input, result)
	VALUES (clock_timestamp(), current_attempt, ticket.tenant, ticket.operation,
			ticket.key, idem_step_done.step, digest, idem_step_done.result)
	ON CONFLICT ON CONSTRAINT idem_step_pkey DO NOTHING;
	IF FOUND THEN
		PERFORM @extschema@.idem_flush();
		RETURN;
	END IF;
	SELECT s.* INTO before
	FROM @extschema@.idem_step s
	WHERE s.tenant = ticket.tenant AND s.operation = ticket.operation
	  AND s.key = ticket.key AND s.step = idem_step_done.step;
	IF before.input IS DISTINCT FROM digest OR before.result::text IS DISTINCT FROM result::text THEN
		RAISE EXCEPTION 'step "%" was done with another input or result', step
			USING ERRCODE = 'ID004',
				  DETAIL = format('The address is tenant "%s", operation "%s", key "%s".',
								  ticket.tenant, ticket.operation, ticket.key),
				  HINT = 'Ask idem_step() before doing a step.';
	END IF;
END
$$;
REVOKE ALL ON FUNCTION idem_step_done(idem_ticket, text, json, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION idem_step_done(idem_ticket, text, json, jsonb) IS
'Notes that a step of a leased command is done, in the transaction of its own writes. The same again is accepted and changes nothing.
Arguments: ticket, step, input: as in idem_step. result: kept byte for byte, at most idempotency.max_response_size bytes; NULL is a result.
Returns: nothing.
Errors: as idem_step; ID004 also for another result, ID005 too large. Tables: reads idem_record, idem_intent, idem_policy_steps; writes idem_step.';
/*
 * Intents: "I am about to call TARGET with this operation id", committed
 * before the call, and what became of it.
 *
 * Locking: whoever changes an intent holds the key lock of its command first,
 * then the row.  Only idem_dispatch and idem_reconcile take rows without it;
 * they skip what is locked and so never wait.
 */
CREATE TABLE idem_intent (
	operation_id uuid PRIMARY KEY,
	created_at timestamptz NOT NULL,
	created_by xid8 NOT NULL,
	due_at timestamptz NOT NULL,
	first_sent_at timestamptz,
	lease_until timestamptz,
	settled_at timestamptz,
	token bigint,
	tries integer NOT NULL DEFAULT 0,
	send boolean NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	name text COLLATE "C" NOT NULL,
	target text COLLATE "C" NOT NULL,
	state text COLLATE "C" NOT NULL,
	resend_safe_for interval,
	request jsonb,
	worker text COLLATE "C",
	reason text COLLATE "C",
	response json,
	evidence jsonb,
	doubtful boolean NOT NULL DEFAULT false,
	CONSTRAINT idem_intent_state_known
		CHECK (state IN ('pending', 'in_flight', 'confirmed', 'rejected', 'unknown')),
	CONSTRAINT idem_intent_lease_in_flight
		CHECK (state <> 'in_flight' OR (lease_until IS NOT NULL AND token IS NOT NULL))
);
CREATE INDEX idem_intent_address ON idem_intent (tenant, operation, key);
CREATE INDEX idem_intent_due ON idem_intent (target, due_at)
	WHERE state = 'pending' AND send;
CREATE INDEX idem_intent_open ON idem_intent (target, lease_until)
	WHERE state IN ('in_flight', 'unknown');
REVOKE ALL ON TABLE idem_intent FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_intent', '');

COMMENT ON TABLE idem_intent IS 'Calls to other systems, each noted before it is made. Written by the idem_ functions only.';
COMMENT ON COLUMN idem_intent.operation_id IS 'derived from address and name alone: the idempotency key to send downstream, the same in every attempt';
COMMENT ON COLUMN idem_intent.created_at IS 'when it was noted';
COMMENT ON COLUMN idem_intent.created_by IS 'transaction that noted it';
COMMENT ON COLUMN idem_intent.due_at IS 'not handed out before; infinity: dead, see idem_retry';
COMMENT ON COLUMN idem_intent.first_sent_at IS 'when it was first handed out since it was last known not to have happened';
COMMENT ON COLUMN idem_intent.lease_until IS 'until when its worker has it';
COMMENT ON COLUMN idem_intent.settled_at IS 'when it was confirmed or rejected';
COMMENT ON COLUMN idem_intent.token IS 'fence of the worker that has it';
COMMENT ON COLUMN idem_intent.tries IS 'how often it was handed out to be sent';
COMMENT ON COLUMN idem_intent.send IS 'whether idem_dispatch hands it out; else its owner sends it';
COMMENT ON COLUMN idem_intent.tenant IS 'first part of the address';
COMMENT ON COLUMN idem_intent.operation IS 'second part of the address';
COMMENT ON COLUMN idem_intent.key IS 'third part of the address';
COMMENT ON COLUMN idem_intent.name IS 'name within the command, 1 to 128 characters';
COMMENT ON COLUMN idem_intent.target IS 'the system that is called, 1 to 128 characters';
COMMENT ON COLUMN idem_intent.state IS 'pending, in_flight, confirmed, rejected or unknown';
COMMENT ON COLUMN idem_intent.resend_safe_for IS 'how long the target remembers operation ids; NULL: it does not, only a verdict makes it sendable again';
COMMENT ON COLUMN idem_intent.request IS 'what is sent';
COMMENT ON COLUMN idem_intent.worker IS 'who has it, or had it last';
COMMENT ON COLUMN idem_intent.reason IS 'why it was deferred, rejected or is unknown';
COMMENT ON COLUMN idem_intent.response IS 'what the target answered, byte for byte';
COMMENT ON COLUMN idem_intent.evidence IS 'what reconciliation found';
COMMENT ON COLUMN idem_intent.doubtful IS 'sent again while an earlier call may have happened';

CREATE FUNCTION idem_count(what text, value integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF value IS NULL OR value < 1 OR value > 10000 THEN
		RAISE EXCEPTION '% is out of range', what
			USING ERRCODE = CASE WHEN value IS NULL THEN '22004' ELSE '22023' END,
				  DETAIL = format('It is %s; it must be 1 to 10000.', coalesce(value::text, 'NULL')),
				  HINT = 'Call again for more.';
	END IF;
END
$$;
REVOKE ALL ON FUNCTION idem_count(text, integer) FROM PUBLIC;
COMMENT ON FUNCTION idem_count(text, integer) IS
'Internal: a number of rows, checked. Errors: 22004, 22023. Tables: none.';

CREATE FUNCTION idem_operation_id(tenant text, operation text, key text, name text) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	/* 16 bytes of a digest over length-prefixed parts, as a UUID of version 8 */
	SELECT encode(set_byte(set_byte(d, 6, (get_byte(d, 6) & 15) | 128),
						   8, (get_byte(d, 8) & 63) | 128), 'hex')::uuid
	FROM (SELECT substr(sha256(int4send(octet_length(tenant)) || convert_to(tenant, 'UTF8')
							   || int4send(octet_length(operation)) || convert_to(operation, 'UTF8')
							   || int4send(octet_length(key)) || convert_to(key, 'UTF8')
							   || convert_to(name, 'UTF8')), 1, 16)) AS digest (d);
END;
REVOKE ALL ON FUNCTION idem_operation_id(text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_operation_id(text, text, text, text) IS
'The operation id of an intent, derived from its address and name alone.
Arguments: tenant, operation, key, name.
Returns: a UUID (version 8).
Errors: none. Tables: none.';

CREATE FUNCTION idem_intend(
	ticket idem_ticket,
	name text,
	target text,
	request jsonb DEFAULT NULL,
	send boolean DEFAULT false,
	resend_safe_for interval DEFAULT NULL
) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	id uuid;
	intent @extschema@.idem_intent;
BEGIN
	PERFORM @extschema@.idem_hold(ticket);
	PERFORM @extschema@.idem_step_place(ticket, name);
	PERFORM @extschema@.idem_text('target', target, 128);
	id := @extschema@.idem_operation_id(ticket.tenant, ticket.operation, ticket.key, name);
	INSERT INTO @extschema@.idem_intent AS i
		(operation_id, created_at, created_by, due_at, send, tenant, operation, key,
		 name, target, state, resend_safe_for, request)
	VALUES (id, clock_timestamp(), pg_current_xact_id(), clock_timestamp(),
			coalesce(idem_intend.send, false), ticket.tenant, ticket.operation, ticket.key,
			idem_intend.name, idem_intend.target, 'pending',
			@extschema@.idem_duration('resend_safe_for', idem_intend.resend_safe_for, false),
			idem_intend.request)
	ON CONFLICT ON CONSTRAINT idem_intent_pkey DO NOTHING
	RETURNING i.* INTO intent;
	IF FOUND THEN
		PERFORM @extschema@.idem_flush();
		RETURN intent;
	END IF;

	SELECT i.* INTO intent FROM @extschema@.idem_intent i WHERE i.operation_id = id;
	IF intent.target <> target OR intent.request IS DISTINCT FROM request THEN
		RAISE EXCEPTION 'intent "%" was noted with another target or request', name
			USING ERRCODE = 'ID004',
				  DETAIL = format('The address is tenant "%s", operation "%s", key "%s".',
								  ticket.tenant, ticket.operation, ticket.key),
				  HINT = 'It stays as it is. Another call needs another name.';
	END IF;
	RETURN intent;
END
$$;
REVOKE ALL ON FUNCTION idem_intend(idem_ticket, text, text, jsonb, boolean, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_intend(idem_ticket, text, text, jsonb, boolean, interval) IS
'Notes that another system is about to be called. The call may be made only after this transaction has committed, with operation_id as idempotency key. Called again, it returns what became of it. With an atomic claim it is a transactional outbox.
Arguments: ticket, from the claim. name: 1 to 128 characters, unique within the command; under a policy with steps one of them. target: the system, 1 to 128 characters. request: what is sent. send: true for the relay (idem_dispatch), false when the owner sends it (idem_send). resend_safe_for: how long the target remembers operation ids, more than zero: so long what is unknown may be sent again; NULL: never without a verdict.
Returns: the intent.
Errors: 22004, 22023, ID002 stale ticket, ID004 other target or request. Tables: reads idem_record, idem_policy_steps; writes idem_intent.';

/*
 * Internal: an intent by its operation id, with the key lock of its command
 * and the lock of its row.
 */
CREATE FUNCTION idem_intent_lock(intent uuid) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	found_intent @extschema@.idem_intent;
BEGIN
	SELECT i.* INTO found_intent FROM @extschema@.idem_intent i WHERE i.operation_id = intent;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'intent % does not exist', coalesce(intent::text, 'NULL')
			USING ERRCODE = CASE WHEN intent IS NULL THEN '22004' ELSE '22023' END,
				  DETAIL = 'No committed intent has this operation id.',
				  HINT = 'Pass the operation_id that idem_intend() returned.';
	END IF;
	PERFORM @extschema@.idem_lock(found_intent.tenant, found_intent.operation, found_intent.key);
	SELECT i.* INTO found_intent FROM @extschema@.idem_intent i
	WHERE i.operation_id = intent FOR UPDATE;
	RETURN found_intent;
END
$$;
REVOKE ALL ON FUNCTION idem_intent_lock(uuid) FROM PUBLIC;
COMMENT ON FUNCTION idem_intent_lock(uuid) IS
'Internal: locks an intent. Errors: 22004, 22023, 40001, 40P01, 55P03. Tables: locks idem_intent.';

/* Internal: refuses a change of an intent. */
CREATE FUNCTION idem_intent_refuse(intent idem_intent, code text, message text, hint text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '%', message
		USING ERRCODE = code,
			  DETAIL = format('The intent is "%s" (%s) of tenant "%s", operation "%s", key "%s".',
							  intent.name, intent.state, intent.tenant, intent.operation, intent.key),
			  HINT = hint;
END
$$;
REVOKE ALL ON FUNCTION idem_intent_refuse(idem_intent, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_intent_refuse(idem_intent, text, text, text) IS
'Internal: raises. Errors: the given one. Tables: none.';

/*
 * Internal: moves an intent, writes the trail, and releases its command when
 * that was its last open question.
 */
CREATE FUNCTION idem_intent_move(
	intent idem_intent, to_state text, why text,
	new_response json DEFAULT NULL, new_evidence jsonb DEFAULT NULL,
	pause interval DEFAULT '0'	/* NULL: dead */
) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	final boolean := to_state IN ('confirmed', 'rejected');
	moved @extschema@.idem_intent;
BEGIN
	UPDATE @extschema@.idem_intent i
	SET state = to_state, reason = why,
		/* an unclear one is asked about after all others */
		lease_until = CASE WHEN to_state = 'unknown' THEN clock_timestamp() END,
		token = CASE WHEN final THEN i.token END,
		due_at = CASE WHEN final OR to_state = 'unknown' THEN i.due_at
					  ELSE coalesce(clock_timestamp() + pause, 'infinity') END,
		first_sent_at = CASE WHEN to_state = 'pending' THEN NULL ELSE i.first_sent_at END,
		doubtful = i.doubtful AND to_state <> 'pending',
		settled_at = CASE WHEN final THEN clock_timestamp() END,
		response = coalesce(new_response, i.response),
		evidence = CASE WHEN new_evidence IS NULL THEN i.evidence
						ELSE coalesce(i.evidence, '[]') || jsonb_build_array(new_evidence) END
	WHERE i.operation_id = intent.operation_id
	RETURNING i.* INTO moved;
	INSERT INTO @extschema@.idem_event
		(at, tenant, operation, key, intent, from_state, to_state, actor, reason)
	VALUES (clock_timestamp(), intent.tenant, intent.operation, intent.key, intent.name,
			intent.state, to_state, session_user, why);
	IF to_state <> 'unknown' THEN
		PERFORM @extschema@.idem_answered(intent.tenant, intent.operation, intent.key,
										  intent.first_sent_at);
	END IF;
	PERFORM @extschema@.idem_flush();
	RETURN moved;
END
$$;
REVOKE ALL ON FUNCTION idem_intent_move(idem_intent, text, text, json, jsonb, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_intent_move(idem_intent, text, text, json, jsonb, interval) IS
'Internal: moves an intent. Errors: none of its own. Tables: writes idem_intent, idem_event, idem_record.';
