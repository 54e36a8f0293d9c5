CREATE FUNCTION idem_claim(
	tenant text,
	operation text,
	key text,
	request jsonb DEFAULT NULL,
	fingerprint bytea DEFAULT NULL,
	guard text DEFAULT NULL,
	wait interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	ttl interval DEFAULT NULL,
	owner text DEFAULT NULL
) RETURNS idem_ticket
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'idem_claim';
REVOKE ALL ON FUNCTION idem_claim(text, text, text, jsonb, bytea, text,
	interval, interval, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_claim(text, text, text, jsonb, bytea, text,
	interval, interval, interval, text) IS
'Claims a command. The outcome of the ticket says what to do: run it (execute, resume), or not (replay, in_progress, mismatch, expired, unknown, duplicate, cancelled). Without a lease the claim is atomic: this transaction has to complete, fail or release it before it commits. With a lease it outlives its transaction, and whoever holds the ticket may go on.
Arguments: tenant and operation, 1 to 128 characters; key, 1 to 255 characters; none blank. request: what the address is bound to. fingerprint: instead of request, 33 bytes as from idem_fingerprint, or a zero byte and 32 bytes of the caller''s own digest. guard: business uniqueness, 1 to 255 characters: while another command of the same tenant, operation and guard is processing, succeeded or unknown, the outcome is duplicate; the first claim of an address that names one fixes it, another one is mismatch, a later claim may leave it out. wait: how long to wait for another owner of the address or the guard, zero to 1 day. lease: more than zero, at most the policy''s max_lease. ttl: how long the answer is replayed, more than zero. Durations have no months; at most 36500 days; NULL means the policy''s value, else the setting''s. owner: a name for people to read, 1 to 255 characters.
Returns: a ticket.
Errors: 22004, 22023, 25006, 42501 tenant not allowed, 53200, 55P03, 57014, 40P01, ID503, ID006 it has lapsed, or was released by evidence or a decision, and this database is a copy. Tables: reads idem_policy, idem_record, idem_intent, idem_origin; writes idem_record for a leased claim, idem_event for a takeover.';
