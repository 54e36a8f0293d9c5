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
	once_more boolean,
	unknown_at timestamptz,
	guard text COLLATE "C",
	swept boolean,
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
COMMENT ON COLUMN idem_record.once_more IS 'released after a decision or a verdict: may run again whatever max_attempts says';
COMMENT ON COLUMN idem_record.unknown_at IS 'since when the state is unknown; NULL while it is, after idem_adopt: no verdict about an intent ends it, only a decision';
COMMENT ON COLUMN idem_record.guard IS 'business uniqueness, 1 to 255 characters: held while processing, succeeded, unknown, or released with once_more; NULL without one';
COMMENT ON COLUMN idem_record.swept IS 'its response, headers, body and request were dropped after it had expired: it answers expired for good, also where the clock went back; NULL before';
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
