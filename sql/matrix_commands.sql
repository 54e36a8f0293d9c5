-- What recovery, an operator, a cancellation and a claim make of every state of
-- a command, with and without an intent.
--
-- Each cell is rolled back.  It shows the outcome with the attempt, or nothing,
-- or the SQLSTATE that refused; after "->" the state that the record was moved
-- to.

-- Leads a command into a state, and an intent of it into another one.
CREATE PROCEDURE pg_temp.reach(state text) LANGUAGE plpgsql AS $$
DECLARE
	command CONSTANT text := split_part(state, ', ', 1);
	wanted_intent CONSTANT text := split_part(state, ', ', 2);
	ticket idem_ticket;
	intent idem_intent;
BEGIN
	IF command = 'none' THEN
		RETURN;
	ELSIF command = 'cancelled' THEN
		PERFORM idem_cancel('t', 'matrix', state, 'why');
		RETURN;
	END IF;
	ticket := idem_claim('t', CASE command WHEN 'exhausted' THEN 'matrix once'
		ELSE 'matrix' END, state, '1', lease => '1 h',
		ttl => CASE command WHEN 'expired' THEN interval '1 us' END);
	IF wanted_intent <> '' THEN
		intent := idem_intend(ticket, 'i', 'matrix ' || state);
		COMMIT;
		IF wanted_intent <> 'pending' THEN
			intent := idem_send(intent.operation_id, 'w',
				CASE wanted_intent WHEN 'in flight' THEN interval '1 h' ELSE '1 us' END);
		END IF;
		CASE wanted_intent
		WHEN 'unknown' THEN PERFORM idem_reconcile('matrix ' || state, 'w', 1, '1 h');
		WHEN 'confirmed' THEN PERFORM idem_confirm(intent.operation_id, intent.token);
		WHEN 'rejected' THEN PERFORM idem_reject(intent.operation_id, intent.token, 'no');
		ELSE NULL;
		END CASE;
	END IF;
	CASE command
	WHEN 'lapsed', 'exhausted' THEN PERFORM idem_heartbeat(ticket, '1 us');
	WHEN 'released' THEN PERFORM idem_release(ticket, 'why');
	WHEN 'succeeded', 'expired' THEN PERFORM idem_complete(ticket, '1');
	WHEN 'failed' THEN PERFORM idem_fail(ticket, '1');
	WHEN 'unknown' THEN PERFORM idem_unknown(ticket, 'why');
	WHEN 'decided' THEN
		PERFORM idem_unknown(ticket, 'why');
		PERFORM idem_resolve('t', 'matrix', state, 'released', 'looked');
	ELSE NULL;
	END CASE;
END $$;

-- "unknown" is asked for with the token of the record, or with a made-up one.
CREATE FUNCTION pg_temp.ask(call text, operation text, key text, token bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer idem_ticket;
BEGIN
	CASE call
	WHEN 'claim' THEN
		answer := idem_claim('t', operation, key, '1');
	WHEN 'lease' THEN
		answer := idem_claim('t', operation, key, '1', lease => '1 h');
	WHEN 'recover' THEN
		SELECT * INTO answer FROM idem_recover('w', 10000, '1 h') AS r
			WHERE (r.operation, r.key) = (ask.operation, ask.key);
	WHEN 'cancel' THEN
		answer := idem_cancel('t', operation, key, 'why');
	WHEN 'unknown' THEN
		PERFORM idem_unknown(jsonb_populate_record(NULL::idem_ticket, jsonb_build_object(
			'tenant', 't', 'operation', operation, 'key', key, 'token', coalesce(token, 42))), 'why not');
	ELSE
		PERFORM idem_resolve('t', operation, key, call, 'looked', '1');
	END CASE;
	IF (answer.token IS NULL) = (answer.outcome IN ('execute', 'resume')) THEN
		RETURN answer.outcome || ' with a wrong right to run';
	END IF;
	RETURN concat_ws(' ', answer.outcome, answer.attempt);
END $$;

-- moved: whether the record was changed; events: how many the trail got.
CREATE FUNCTION pg_temp.cell(state text, call text, OUT result text, OUT moved boolean, OUT events bigint)
LANGUAGE plpgsql AS $$
DECLARE
	its_operation CONSTANT text := CASE state WHEN 'exhausted' THEN 'matrix once' ELSE 'matrix' END;
	before idem_record;
	after idem_record;
BEGIN
	SELECT * INTO before FROM idem_record WHERE operation = its_operation AND key = cell.state;
	SELECT -count(*) INTO events FROM idem_event WHERE operation = its_operation AND key = cell.state;
	BEGIN
		BEGIN
			result := pg_temp.ask(call, its_operation, state, before.token);
		EXCEPTION WHEN OTHERS THEN
			result := sqlstate;
		END;
		SELECT * INTO after FROM idem_record WHERE operation = its_operation AND key = cell.state;
		SELECT events + count(*) INTO events FROM idem_event WHERE operation = its_operation AND key = cell.state;
		RAISE SQLSTATE 'ROLLB';
	EXCEPTION WHEN SQLSTATE 'ROLLB' THEN
		NULL;
	END;
	moved := after::text IS DISTINCT FROM before::text;
	IF (after.lease_until IS NOT NULL) <> (after.state = 'processing')
		OR (after.unknown_at IS NOT NULL) <> (after.state = 'unknown')
		OR (after.completed_at IS NOT NULL) <> (after.state IN ('succeeded', 'failed', 'cancelled'))
		OR after.once_more AND after.state <> 'released' THEN
		result := result || ', with columns of another state';
	END IF;
	IF moved THEN
		result := concat_ws(' ', nullif(result, ''), '->', after.state);
	END IF;
END $$;

CREATE TEMP TABLE states AS SELECT * FROM unnest(ARRAY['none', 'live', 'live, pending', 'live, in flight',
	'live, late', 'live, unknown', 'live, confirmed', 'live, rejected', 'lapsed', 'lapsed, pending',
	'lapsed, in flight', 'lapsed, late', 'lapsed, unknown', 'lapsed, confirmed', 'lapsed, rejected', 'exhausted',
	'released', 'succeeded', 'failed', 'expired', 'cancelled', 'unknown', 'unknown, pending', 'unknown, in flight',
	'unknown, late', 'unknown, unknown', 'unknown, confirmed', 'unknown, rejected', 'decided', 'decided, pending',
	'decided, confirmed', 'decided, rejected']) WITH ORDINALITY AS s (state, n);
CREATE TEMP TABLE calls AS SELECT unnest(ARRAY['recover', 'unknown', 'succeeded', 'failed', 'released', 'cancel',
	'claim', 'lease']) AS call;
\set ECHO none
SELECT format('CALL pg_temp.reach(%L)', state) FROM states \gexec
\set ECHO all
SELECT version FROM idem_define('matrix once', max_attempts => 1);

CREATE TEMP TABLE cells AS
SELECT n, state, call, cell.* FROM states, calls, pg_temp.cell(state, call) AS cell;
\pset null '-'
SELECT state, max(result) FILTER (WHERE call = 'recover') AS recover,
	   max(result) FILTER (WHERE call = 'unknown') AS unknown,
	   max(result) FILTER (WHERE call = 'succeeded') AS "resolve: succeeded",
	   max(result) FILTER (WHERE call = 'failed') AS failed,
	   max(result) FILTER (WHERE call = 'released') AS released,
	   max(result) FILTER (WHERE call = 'cancel') AS cancel
FROM cells GROUP BY n, state ORDER BY n;
SELECT state, max(result) FILTER (WHERE call = 'claim') AS "atomic claim",
	   max(result) FILTER (WHERE call = 'lease') AS "leased claim"
FROM cells GROUP BY n, state ORDER BY n;

-- Each transition but the first claim is one event, everything else none.
SELECT state, call, moved, events FROM cells WHERE moved <> (events = 1) ORDER BY n;
