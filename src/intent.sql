/*
 * Intents: "I am about to call TARGET with this operation id", committed
 * before the call, and what became of it.  C code reads and writes them
 * directly (see intent.c).
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
	doubt_since timestamptz,
	past_token bigint,
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
/* those that may be sent again do not stand behind those that may not */
CREATE INDEX idem_intent_resend ON idem_intent (target, lease_until)
	WHERE state IN ('in_flight', 'unknown') AND send AND resend_safe_for IS NOT NULL;
REVOKE ALL ON TABLE idem_intent FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_intent', '');

COMMENT ON TABLE idem_intent IS 'Calls to other systems, each noted before it is made. Written by the idem_ functions only.';
COMMENT ON COLUMN idem_intent.operation_id IS 'derived from address and name alone: the idempotency key to send downstream, the same in every attempt';
COMMENT ON COLUMN idem_intent.created_at IS 'when it was noted';
COMMENT ON COLUMN idem_intent.created_by IS 'transaction that noted it';
COMMENT ON COLUMN idem_intent.due_at IS 'not handed out before; infinity: dead, see idem_retry';
COMMENT ON COLUMN idem_intent.first_sent_at IS 'when it was first handed out to be sent';
COMMENT ON COLUMN idem_intent.doubt_since IS 'since when it may have happened: when it was first handed out since it was last known not to have';
COMMENT ON COLUMN idem_intent.lease_until IS 'until when its worker has it';
COMMENT ON COLUMN idem_intent.settled_at IS 'when it was confirmed or rejected';
COMMENT ON COLUMN idem_intent.token IS 'fence of the worker that has it';
COMMENT ON COLUMN idem_intent.past_token IS 'fence of the worker that had it last and said what was to be said';
COMMENT ON COLUMN idem_intent.tries IS 'how often it was handed out to be sent';
COMMENT ON COLUMN idem_intent.send IS 'whether idem_dispatch hands it out; else its owner sends it';
COMMENT ON COLUMN idem_intent.doubtful IS 'sent again while an earlier call may have happened';
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
COMMENT ON COLUMN idem_intent.evidence IS 'what reconciliation found, in that order: the first piece and the last 99';

/* Internal helpers in C. */
CREATE FUNCTION idem_lock(tenant text, operation text, key text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_lock';
REVOKE ALL ON FUNCTION idem_lock(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_lock(text, text, text) IS
'Internal: takes the key lock of an address until the transaction ends. Errors: 22004, 22023, 25006, 42501, 53200, 55P03, 57014, 40P01. Tables: none.';

CREATE FUNCTION idem_token() RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_token';
REVOKE ALL ON FUNCTION idem_token() FROM PUBLIC;
COMMENT ON FUNCTION idem_token() IS 'Internal: a random number above zero. Errors: none. Tables: none.';

CREATE FUNCTION idem_duration(what text, value interval, required boolean) RETURNS interval
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_duration';
REVOKE ALL ON FUNCTION idem_duration(text, interval, boolean) FROM PUBLIC;
COMMENT ON FUNCTION idem_duration(text, interval, boolean) IS
'Internal: an absolute duration of more than zero, checked. Errors: 22004, 22023. Tables: none.';

CREATE FUNCTION idem_text(what text, value text, max_chars integer) RETURNS text
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_text';
REVOKE ALL ON FUNCTION idem_text(text, text, integer) FROM PUBLIC;
COMMENT ON FUNCTION idem_text(text, text, integer) IS
'Internal: a text that is neither NULL nor blank nor too long, checked. Errors: 22004, 22023. Tables: none.';

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
LANGUAGE c IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_operation_id';
REVOKE ALL ON FUNCTION idem_operation_id(text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_operation_id(text, text, text, text) IS
'The operation id of an intent, derived from its address and name alone.
Arguments: tenant, operation, key, name.
Returns: a UUID (version 8).
Errors: 22P05 a character that UTF-8 does not have. Tables: none.';

CREATE FUNCTION idem_intend(
	ticket idem_ticket,
	name text,
	target text,
	request jsonb DEFAULT NULL,
	send boolean DEFAULT false,
	resend_safe_for interval DEFAULT NULL
) RETURNS idem_intent
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_intend';
REVOKE ALL ON FUNCTION idem_intend(idem_ticket, text, text, jsonb, boolean, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_intend(idem_ticket, text, text, jsonb, boolean, interval) IS
'Notes that another system is about to be called. The call may be made only after this transaction has committed, with operation_id as idempotency key. Called again, it returns what became of it. With an atomic claim it is a transactional outbox. With send it notifies the channel of the operation''s policy, if that names one; such a transaction cannot be prepared.
Arguments: ticket, from the claim. name: 1 to 128 characters, unique within the command; under a policy with steps one of them, and for a leased command in their order. target: the system, 1 to 128 characters. request: what is sent. send: true for the relay (idem_dispatch), false when the owner sends it (idem_send). resend_safe_for: how long the target remembers operation ids, more than zero: so long what is unknown may be sent again; NULL: never without a verdict.
Returns: the intent.
Errors: 22004, 22023, 22P05 in the address or name a character that UTF-8 does not have, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale ticket, ID003 the command has ended, ID004 other target or request, or order, ID503. Tables: reads idem_record, idem_policy, idem_policy_steps, idem_step; writes idem_intent.';
