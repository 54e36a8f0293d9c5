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

CREATE FUNCTION idem_step(
	ticket idem_ticket,
	step text,
	input jsonb DEFAULT NULL,
	OUT done boolean,
	OUT result json
)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_step';
REVOKE ALL ON FUNCTION idem_step(idem_ticket, text, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION idem_step(idem_ticket, text, jsonb) IS
'Asks whether a step of a leased command is done, in this attempt or an earlier one.
Arguments: ticket, from the claim. step: its name, 1 to 128 characters; under a policy with steps one of them, with all before it done: steps noted, intents confirmed. input: what it works on.
Returns: done, and the stored result, which may be NULL.
Errors: 22004, 22023, 22P05 as idem_intend, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale ticket, ID003 atomic claim, ID004 other input or order, ID503. Tables: reads idem_record, idem_step, idem_intent, idem_policy, idem_policy_steps.';

CREATE FUNCTION idem_step_done(
	ticket idem_ticket,
	step text,
	result json DEFAULT NULL,
	input jsonb DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_step_done';
REVOKE ALL ON FUNCTION idem_step_done(idem_ticket, text, json, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION idem_step_done(idem_ticket, text, json, jsonb) IS
'Notes that a step of a leased command is done, in the transaction of its own writes. The same again is accepted and changes nothing.
Arguments: ticket, step, input: as in idem_step. result: kept byte for byte, at most idempotency.max_response_size bytes; NULL is a result.
Returns: nothing.
Errors: as idem_step; ID004 also for another result, ID005 too large. Tables: reads idem_record, idem_intent, idem_policy, idem_policy_steps; writes idem_step.';
