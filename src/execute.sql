CREATE FUNCTION idem_execute(
	tenant text,
	operation text,
	key text,
	request jsonb,
	handler regprocedure,
	guard text DEFAULT NULL,
	wait interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_execute';
REVOKE ALL ON FUNCTION idem_execute(text, text, text, jsonb, regprocedure,
	text, interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_execute(text, text, text, jsonb, regprocedure,
	text, interval, interval, text) IS
'Claim, work and completion in one call: claims atomically (also under a policy with a lease), calls the handler with the request if the outcome is execute or resume, and stores what it returned. An error of the handler propagates and undoes everything, the claim included.
Arguments: handler, a function of one jsonb argument that returns json, jsonb or idem_response; the caller needs EXECUTE on it. The others as in idem_claim.
Returns: a ticket; its outcome is execute or resume when the handler ran now, and its response is what the handler returned.
Errors: as idem_claim and idem_complete; 42883 no such handler, 42P13 wrong signature, 42501 no EXECUTE on the handler, 22004 NULL handler, or NULL request for a strict one. Tables: reads idem_policy, idem_intent, idem_origin; writes idem_record, idem_event.';
