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
