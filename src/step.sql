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
