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

/* Internal helpers in C. */
CREATE FUNCTION idem_lock(tenant text, operation text, key text) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_lock';
REVOKE ALL ON FUNCTION idem_lock(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_lock(text, text, text) IS
'Internal: takes the key lock of an address until the transaction ends. Errors: 22004, 22023, 25006, 40P01, 55P03. Tables: none.';

CREATE FUNCTION idem_token() RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_token';
REVOKE ALL ON FUNCTION idem_token() FROM PUBLIC;
COMMENT ON FUNCTION idem_token() IS 'Internal: a random number above zero. Errors: none. Tables: none.';

CREATE FUNCTION idem_flush() RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_flush';
REVOKE ALL ON FUNCTION idem_flush() FROM PUBLIC;
COMMENT ON FUNCTION idem_flush() IS
'Internal: the commit of this transaction is flushed whatever synchronous_commit says. Errors: ID503. Tables: none.';

CREATE FUNCTION idem_duration(what text, value interval, required boolean) RETURNS interval
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_duration';
REVOKE ALL ON FUNCTION idem_duration(text, interval, boolean) FROM PUBLIC;
COMMENT ON FUNCTION idem_duration(text, interval, boolean) IS
'Internal: an absolute duration of more than zero, checked. Errors: 22004, 22023. Tables: none.';

CREATE FUNCTION idem_check_size(ticket idem_ticket, what text, value json) RETURNS void
LANGUAGE c VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_check_size';
REVOKE ALL ON FUNCTION idem_check_size(idem_ticket, text, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_check_size(idem_ticket, text, json) IS
'Internal: refuses what is larger than idempotency.max_response_size. Errors: ID005. Tables: none.';

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
	/* another tenant's does not exist either */
	SELECT i.* INTO found_intent FROM @extschema@.idem_intent i
	WHERE i.operation_id = intent AND @extschema@.idem_tenant_allowed(i.tenant);
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
