-- Decoys in a hostile search_path and in pg_temp are never read or run, whoever
-- calls.
CREATE ROLE regress_idem_attacker;
CREATE SCHEMA hijack AUTHORIZATION regress_idem_attacker;
SET ROLE regress_idem_attacker;

-- Everything that a careless name could mean raises.
CREATE FUNCTION hijack.raise(what text) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'hijacked: %', what;
END
$$;
CREATE FUNCTION hijack.now() RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
	RAISE 'hijacked: now';
END
$$;
CREATE FUNCTION hijack.equal(text, text) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('text = text') $$;
CREATE FUNCTION hijack.equal(interval, interval) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('interval = interval') $$;
CREATE FUNCTION hijack.equal(int, int) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('int = int') $$;
CREATE FUNCTION hijack.equal(bool, bool) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('bool = bool') $$;
CREATE FUNCTION hijack.plus(int, int) RETURNS int LANGUAGE sql AS $$ SELECT hijack.raise('int + int')::int $$;
CREATE OPERATOR hijack.= (leftarg = text, rightarg = text, function = hijack.equal);
CREATE OPERATOR hijack.= (leftarg = interval, rightarg = interval, function = hijack.equal);
CREATE OPERATOR hijack.= (leftarg = int, rightarg = int, function = hijack.equal);
CREATE OPERATOR hijack.= (leftarg = bool, rightarg = bool, function = hijack.equal);
CREATE OPERATOR hijack.+ (leftarg = int, rightarg = int, function = hijack.plus);
CREATE TABLE hijack.idem_record (tenant text, operation text, key text, state text);
CREATE TABLE hijack.idem_policy (operation text, ttl interval, version int);
INSERT INTO hijack.idem_policy VALUES ('hijack', '77 days', 77);
CREATE TYPE hijack.idem_ticket AS (outcome text);
CREATE TYPE hijack.idem_response AS (response json);
RESET ROLE;
CREATE FUNCTION hijack_handler(jsonb) RETURNS idem_response LANGUAGE sql AS $$
	SELECT '"handled"'::json, 201, NULL, NULL::jsonb, NULL::bytea, NULL
$$;
GRANT EXECUTE ON FUNCTION idem_claim, idem_replay, idem_execute, idem_claim_batch,
	idem_complete_batch, idem_fingerprint, idem_define,
	idem_complete(idem_ticket, json, int, text, jsonb, bytea) TO regress_idem_attacker;

CREATE FUNCTION pg_temp.calls(run text) RETURNS TABLE (what text, answer text)
LANGUAGE plpgsql SET search_path = hijack, pg_catalog, public, pg_temp AS $$
BEGIN
	RETURN QUERY VALUES
		('claim', (idem_claim('t', 'hijack', run, '1', lease => '1 hour')).outcome),
		('again', (idem_claim('t', 'hijack', run, '1')).outcome),
		('complete', idem_complete(idem_claim('t', 'hijack', run || ' atomic', '1'))::text),
		('execute', (idem_execute('t', 'hijack', run || ' execute', '1',
								  'public.hijack_handler(jsonb)')).response::text),
		('define', (idem_define('hijack ' || run, ttl => '1 day', max_attempts => 5)).ttl::text),
		('define again', (idem_define('hijack ' || run, ttl => '2 days', max_attempts => 6)).version::text),
		('ttl', ((idem_execute('t', 'hijack ' || run, run, '1',
							   'public.hijack_handler(jsonb)')).expires_at > '2000-01-01')::text);
	RETURN QUERY SELECT 'replay', (idem_replay('t', 'hijack', run || ' atomic', '1')).outcome;
	RETURN QUERY SELECT 'batch', outcome FROM idem_claim_batch('t', 'hijack', ARRAY[run], '{1}');
END
$$;

-- The decoys do catch what is careless.
SET search_path = hijack, pg_catalog, public, pg_temp;
\set SHOW_CONTEXT never
SELECT now();
SELECT 'a'::text = 'b'::text;
SELECT 1 + 1;
SELECT 'idem_record'::regclass::oid = 'hijack.idem_record'::regclass::oid AS decoy;
RESET search_path;

SELECT * FROM pg_temp.calls('superuser');
SET ROLE regress_idem_attacker;
SELECT * FROM pg_temp.calls('attacker');

-- The same in pg_temp, which is searched first for tables and types.
CREATE TEMP TABLE idem_record (LIKE hijack.idem_record);
CREATE TEMP TABLE idem_policy (LIKE hijack.idem_policy);
INSERT INTO pg_temp.idem_policy VALUES ('hijack temp', '77 days', 77);
CREATE TYPE pg_temp.idem_ticket AS (outcome text);
CREATE TYPE pg_temp.idem_response AS (response json);
SELECT * FROM pg_temp.calls('temp');
RESET ROLE;
SELECT operation, key, expires_at - completed_at AS ttl, policy_version
FROM public.idem_record WHERE operation LIKE 'hijack%' AND completed_at IS NOT NULL
ORDER BY operation, key;
SELECT (SELECT count(*) FROM hijack.idem_record) AS decoys,
	   (SELECT count(*) FROM pg_temp.idem_record) AS temporary,
	   (SELECT count(*) FROM hijack.idem_policy) AS policies;

\set VERBOSITY terse
DROP SCHEMA hijack CASCADE;
DROP FUNCTION hijack_handler;
DROP OWNED BY regress_idem_attacker CASCADE;
DROP ROLE regress_idem_attacker;
