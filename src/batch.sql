CREATE FUNCTION idem_claim_batch(
	tenant text,
	operation text,
	keys text[],
	requests jsonb[] DEFAULT NULL,
	fingerprints bytea[] DEFAULT NULL,
	guards text[] DEFAULT NULL,
	wait interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS SETOF idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 100
AS 'MODULE_PATHNAME', 'idem_claim_batch';
REVOKE ALL ON FUNCTION idem_claim_batch(text, text, text[], jsonb[], bytea[],
	text[], interval, interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_claim_batch(text, text, text[], jsonb[], bytea[],
	text[], interval, interval, interval, text) IS
'Claims many commands of one operation, as idem_claim does each. Locks are taken in one global order, so two batches never deadlock, whatever the order of their keys.
Arguments: keys, with requests or fingerprints as long as keys (or NULL: no requests), and guards as long as keys (or NULL: none). Of a key given twice one place claims, the first one unless their guards differ; the other answers in_progress, or mismatch. Of a guard given twice the first place claims; the other answers duplicate. wait: for the whole batch. The others as in idem_claim.
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
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID002 stale or missing ticket, ID003 the state does not allow it, ID005 answer too large, ID503. Tables: reads idem_policy, idem_intent; writes idem_record, idem_event.';
