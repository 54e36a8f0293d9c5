-- What every call makes of every state of an intent.
--
-- Each cell is rolled back.  It shows the state of the intent that was
-- returned, or nothing, or the SQLSTATE that refused; a star says that the
-- stored row has changed.  Who has spoken asks with the token he had.

-- Ten tries, so that it is not due again within some minutes.
CREATE FUNCTION pg_temp.defer(intent idem_intent) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR try IN 1 .. 10 LOOP
		intent := idem_send(intent.operation_id, 'w', '1 h');
		PERFORM idem_defer(intent.operation_id, intent.token, 'busy');
	END LOOP;
END $$;

-- Leads an intent into a state.  "safe": it may be sent again for an hour.
CREATE PROCEDURE pg_temp.reach(wanted text) LANGUAGE plpgsql AS $$
DECLARE
	state CONSTANT text := replace(wanted, ', safe', '');	-- without the window
	intent idem_intent;
BEGIN
	intent := idem_intend(idem_claim('t', 'intent matrix', wanted, lease => '1 h'), 'i', wanted, send => true,
		resend_safe_for => CASE WHEN wanted LIKE '%, safe' THEN interval '1 h' END);
	COMMIT;
	IF state = 'pending' THEN
		RETURN;
	ELSIF state = 'deferred' THEN
		PERFORM pg_temp.defer(intent);
		RETURN;
	END IF;
	intent := idem_send(intent.operation_id, 'w', CASE state WHEN 'in flight' THEN interval '1 h' ELSE '1 us' END);
	CASE split_part(state, ', ', 1)
	WHEN 'confirmed' THEN
		PERFORM idem_confirm(intent.operation_id, intent.token, '1');
	WHEN 'rejected' THEN
		PERFORM idem_reject(intent.operation_id, intent.token, 'no', '1');
	WHEN 'unknown' THEN
		IF state = 'unknown, deferred' THEN
			PERFORM pg_temp.defer(intent);
			RETURN;
		END IF;
		intent := idem_reconcile(wanted, 'r', 1, CASE state WHEN 'unknown, asked' THEN interval '1 h' ELSE '1 us' END);
		IF state = 'unknown, free' THEN
			PERFORM idem_settle(intent.operation_id, intent.token, 'unclear', '1', '1');
		END IF;
	WHEN 'absent', 'happened' THEN
		intent := idem_reconcile(wanted, 'r', 1, '1 us');
		PERFORM idem_settle(intent.operation_id, intent.token, state, '1', '1');
	ELSE
		NULL;
	END CASE;
END $$;

CREATE FUNCTION pg_temp.ask(call text, i idem_intent, token bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	id CONSTANT uuid := i.operation_id;
BEGIN
	CASE call
	WHEN 'intend' THEN
		SELECT n.* INTO i FROM idem_record r,
			idem_intend(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'i', i.key) AS n
		WHERE r.operation = i.operation AND r.key = i.key;
	WHEN 'send' THEN i := idem_send(id, 'w2', '2 h');
	WHEN 'dispatch' THEN i := idem_dispatch(i.key, 'w2', 1, '2 h');
	WHEN 'confirm' THEN i := idem_confirm(id, token, '1');
	WHEN 'reject' THEN i := idem_reject(id, token, 'no', '1');
	WHEN 'defer' THEN i := idem_defer(id, token, 'busy');
	WHEN 'retry' THEN i := idem_retry(id, 'now');
	WHEN 'reconcile' THEN i := idem_reconcile(i.key, 'r2', 1, '2 h');
	ELSE i := idem_settle(id, token, call, '2', '1');
	END CASE;
	RETURN i.state;
END $$;

-- moved: the state after a change of the row; events: how many the trail got.
CREATE FUNCTION pg_temp.cell(wanted text, call text, wrong_token bigint DEFAULT NULL,
							 OUT result text, OUT moved text, OUT events bigint)
LANGUAGE plpgsql AS $$
DECLARE
	before idem_intent;
	after idem_intent;
BEGIN
	SELECT * INTO before FROM idem_intent WHERE operation = 'intent matrix' AND key = wanted;
	SELECT -count(*) INTO events FROM idem_event WHERE operation = 'intent matrix' AND key = wanted;
	BEGIN
		BEGIN
			result := pg_temp.ask(call, before, coalesce(wrong_token, before.token, before.past_token));
		EXCEPTION WHEN OTHERS THEN
			result := sqlstate;
		END;
		SELECT * INTO after FROM idem_intent WHERE operation = 'intent matrix' AND key = wanted;
		SELECT events + count(*) INTO events FROM idem_event WHERE operation = 'intent matrix' AND key = wanted;
		RAISE SQLSTATE 'ROLLB';
	EXCEPTION WHEN SQLSTATE 'ROLLB' THEN
		NULL;
	END;
	result := coalesce(result, '');
	IF after::text IS DISTINCT FROM before::text THEN
		result := result || '*';
		moved := after.state;
	END IF;
END $$;

CREATE TEMP TABLE states AS SELECT * FROM unnest(ARRAY['pending', 'deferred', 'in flight', 'late', 'late, safe',
	'confirmed', 'confirmed, safe', 'rejected', 'rejected, safe', 'unknown, asked', 'unknown, asked, safe',
	'unknown, late', 'unknown, late, safe', 'unknown, free', 'unknown, free, safe', 'unknown, deferred, safe', 'absent', 'absent, safe', 'happened']) WITH ORDINALITY AS s (state, n);
CREATE TEMP TABLE calls AS SELECT unnest(ARRAY['intend', 'send', 'dispatch', 'confirm', 'reject', 'defer', 'retry',
	'reconcile', 'happened', 'absent', 'unclear']) AS call;
\set ECHO none
SELECT format('CALL pg_temp.reach(%L)', state) FROM states \gexec
\set ECHO all

CREATE TEMP TABLE cells AS
SELECT n, state, call, cell.* FROM states, calls, pg_temp.cell(state, call) AS cell;
SELECT state, max(result) FILTER (WHERE call = 'intend') AS intend,
	   max(result) FILTER (WHERE call = 'send') AS send,
	   max(result) FILTER (WHERE call = 'dispatch') AS dispatch,
	   max(result) FILTER (WHERE call = 'retry') AS retry,
	   max(result) FILTER (WHERE call = 'reconcile') AS reconcile
FROM cells GROUP BY n, state ORDER BY n;
-- by the token of who has it
SELECT state, max(result) FILTER (WHERE call = 'confirm') AS confirm,
	   max(result) FILTER (WHERE call = 'reject') AS reject,
	   max(result) FILTER (WHERE call = 'defer') AS defer,
	   max(result) FILTER (WHERE call = 'happened') AS "settle: happened",
	   max(result) FILTER (WHERE call = 'absent') AS absent,
	   max(result) FILTER (WHERE call = 'unclear') AS unclear
FROM cells GROUP BY n, state ORDER BY n;

-- A wrong token can do nothing in any state.
SELECT state, call, token, cell.result
FROM states, calls, unnest('{0,-1,42}'::bigint[]) AS token, pg_temp.cell(state, call, token) AS cell
WHERE call IN ('confirm', 'reject', 'defer', 'happened', 'absent', 'unclear') AND cell.result <> 'ID002';

-- What changes nothing is no event.  Each change is one, but for what the row
-- proves: that it was noted, first sent, confirmed.  Nor is asking about what
-- is unknown already.
SELECT state, call, result, events FROM cells WHERE events <> 0 AND moved IS NULL;
SELECT call, moved, events, string_agg(state, '; ' ORDER BY n) AS states FROM cells
WHERE moved IS NOT NULL GROUP BY call, moved, events ORDER BY call, moved, events;
SELECT count(*) AS events, count(*) FILTER (WHERE attempt = 1) AS with_attempt
FROM idem_event WHERE operation = 'intent matrix';
