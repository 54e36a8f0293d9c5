-- Decoys in a hostile search_path and in pg_temp are never read or run, whoever
-- calls.
CREATE ROLE regress_idem_attacker;
SELECT idem_grant('regress_idem_attacker', 'operator');
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
CREATE FUNCTION hijack.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT hijack.raise('clock_timestamp')::text::timestamptz $$;
CREATE FUNCTION hijack.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT hijack.raise('sha256')::text::bytea $$;
CREATE FUNCTION hijack.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT hijack.raise('format')::text $$;
CREATE FUNCTION hijack.less(timestamptz, timestamptz) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('timestamptz <= timestamptz') $$;
CREATE FUNCTION hijack.equal(uuid, uuid) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('uuid = uuid') $$;
CREATE FUNCTION hijack.equal(oid, oid) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('oid = oid') $$;
CREATE OPERATOR hijack.<= (leftarg = timestamptz, rightarg = timestamptz, function = hijack.less);
CREATE OPERATOR hijack.= (leftarg = uuid, rightarg = uuid, function = hijack.equal);
CREATE OPERATOR hijack.= (leftarg = oid, rightarg = oid, function = hijack.equal);
CREATE FUNCTION hijack.idem_hold(public.idem_ticket) RETURNS void LANGUAGE sql AS $$ SELECT hijack.raise('idem_hold') $$;
CREATE FUNCTION hijack.idem_tenant_allowed(text) RETURNS bool LANGUAGE sql AS $$ SELECT hijack.raise('idem_tenant_allowed') $$;
CREATE FUNCTION hijack.idem_levels(OUT level text, OUT members text[]) LANGUAGE sql AS $$ SELECT hijack.raise('idem_levels')::text, NULL::text[] $$;
CREATE TABLE hijack.idem_intent (operation_id uuid, tenant text, state text);
CREATE TABLE hijack.idem_step (tenant text, step text);
CREATE TABLE hijack.idem_event (id int);
CREATE TABLE hijack.idem_origin (system_identifier bigint, database oid);
CREATE TABLE hijack.pg_proc (oid oid, proname name);
CREATE TABLE hijack.pg_db_role_setting (setrole oid);
CREATE TABLE hijack.idem_record (tenant text, operation text, key text, state text);
CREATE TABLE hijack.idem_policy (operation text, ttl interval, version int);
INSERT INTO hijack.idem_policy VALUES ('hijack', '77 days', 77);
CREATE TYPE hijack.idem_ticket AS (outcome text);
CREATE TYPE hijack.idem_response AS (response json);
RESET ROLE;
CREATE FUNCTION hijack_handler(jsonb) RETURNS idem_response LANGUAGE sql AS $$
	SELECT '"handled"'::json, 201, NULL, NULL::jsonb, NULL::bytea, NULL
$$;

CREATE FUNCTION pg_temp.code(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || CASE WHEN sqlerrm LIKE '%hijacked%' THEN sqlerrm ELSE '' END;
END
$$;
CREATE FUNCTION pg_temp.calls(run text) RETURNS TABLE (what text, answer text)
LANGUAGE plpgsql SET search_path = hijack, pg_catalog, public, pg_temp AS $$
DECLARE
	ticket public.idem_ticket;
	intent public.idem_intent;
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
	ticket := idem_claim('t', 'hijack', run || ' steps', lease => '1 us');
	PERFORM idem_step(ticket, 'one');
	PERFORM idem_step_done(ticket, 'one', '1');
	RETURN QUERY VALUES ('step', (idem_step(ticket, 'one')).result::text);
	intent := idem_intend(ticket, 'pay', 'hijack ' || run, send => true);
	RETURN QUERY VALUES
		('intend', intent.state),
		('send in the same transaction', pg_temp.code(format('SELECT idem_send(%L, %L, %L)', intent.operation_id, 'w', '1 hour'))),
		('confirm', pg_temp.code(format('SELECT idem_confirm(%L, 1)', intent.operation_id))),
		('reject', pg_temp.code(format('SELECT idem_reject(%L, 1, %L)', intent.operation_id, 'why'))),
		('defer', pg_temp.code(format('SELECT idem_defer(%L, 1, %L)', intent.operation_id, 'why'))),
		('settle', pg_temp.code(format('SELECT idem_settle(%L, 1, %L, %L)', intent.operation_id, 'absent', '1'))),
		('retry', (idem_retry(intent.operation_id, 'why')).state),
		('cancel', (idem_cancel('t', 'hijack', run || ' cancelled', 'why')).outcome);
	RETURN QUERY SELECT 'dispatch', count(*)::text FROM idem_dispatch('hijack ' || run, 'w', 1, '1 hour');
	RETURN QUERY SELECT 'reconcile', count(*)::text FROM idem_reconcile('hijack ' || run, 'w', 1, '1 hour');
	RETURN QUERY SELECT 'stuck', count(*)::text FROM idem_stuck WHERE key OPERATOR(pg_catalog.=) (run || ' steps');
	PERFORM idem_unknown(ticket, 'why');
	RETURN QUERY VALUES ('resolve', idem_resolve('t', 'hijack', run || ' steps', 'released', 'why')::text);
	RETURN QUERY SELECT 'recover', pg_temp.code('SELECT idem_recover(''w'', 10, ''1 hour'')');
	RETURN QUERY SELECT 'grant', pg_temp.code('SELECT idem_grant(''regress_idem_attacker'', ''operator'')');
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
SELECT 'idem_record'::regclass::oid OPERATOR(pg_catalog.=) 'hijack.idem_record'::regclass::oid AS decoy;
RESET search_path;

SELECT * FROM pg_temp.calls('superuser');
SET ROLE regress_idem_attacker;
SELECT * FROM pg_temp.calls('attacker');

-- The same in pg_temp, which is searched first for tables and types.
CREATE TEMP TABLE idem_record (LIKE hijack.idem_record);
CREATE TEMP TABLE idem_policy (LIKE hijack.idem_policy);
CREATE TEMP TABLE idem_intent (LIKE hijack.idem_intent);
CREATE TEMP TABLE idem_step (LIKE hijack.idem_step);
CREATE TEMP TABLE idem_event (LIKE hijack.idem_event);
CREATE TEMP TABLE idem_origin AS SELECT 1::bigint AS system_identifier, 1::oid AS database;
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
