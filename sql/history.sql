-- The life of a command as idem_history tells it: every way through the states,
-- of a command and of an intent, gives exactly the transitions that were made,
-- in their order, and ends in the state that the row is in.

-- What was really done, as the test itself saw it.
CREATE TEMP TABLE done (key text, n serial, name text, from_state text, to_state text, attempt int);

-- Makes one transition of a command.  "claim" and "finish" take over what is
-- released or lapsed, the first with a lease and the second at once.
CREATE PROCEDURE pg_temp.act(action text, key text) LANGUAGE plpgsql AS $$
DECLARE
	r idem_record;
	t idem_ticket;
	states text[];
BEGIN
	SELECT * INTO r FROM idem_record WHERE operation = 'history' AND idem_record.key = act.key;
	t := jsonb_populate_record(NULL::idem_ticket, to_jsonb(r) - 'outcome');
	IF action IN ('claim', 'finish') AND r.state = 'processing' THEN
		PERFORM idem_heartbeat(t, '1 us');
		COMMIT;
	END IF;
	CASE action
	WHEN 'claim' THEN t := idem_claim('t', 'history', key, lease => '1 hour');
	WHEN 'finish' THEN PERFORM idem_complete(idem_claim('t', 'history', key), '"secret"');
	WHEN 'complete' THEN PERFORM idem_complete(t, '"secret"', resource => 'secret');
	WHEN 'fail' THEN PERFORM idem_fail(t, '"secret"');
	WHEN 'release' THEN PERFORM idem_release(t, 'why');
	WHEN 'unknown' THEN PERFORM idem_unknown(t, 'why');
	WHEN 'cancel' THEN PERFORM idem_cancel('t', 'history', key, 'why');
	ELSE PERFORM idem_resolve('t', 'history', key, action, 'why');
	END CASE;
	COMMIT;
	states := coalesce(r.state, 'none') || CASE action WHEN 'claim' THEN '{processing}' WHEN 'finish' THEN '{processing,succeeded}'
		WHEN 'complete' THEN '{succeeded}' WHEN 'fail' THEN '{failed}' WHEN 'release' THEN '{released}'
		WHEN 'cancel' THEN '{cancelled}' ELSE ARRAY[action] END::text[];
	INSERT INTO done (key, from_state, to_state, attempt)
	SELECT act.key, states[n], states[n + 1], coalesce(r.attempt, 0) + (action IN ('claim', 'finish') OR r IS NULL)::int
	FROM generate_series(1, cardinality(states) - 1) AS n;
	COMMIT;
END $$;

-- Every way of at most five actions.
CREATE TEMP TABLE legal (state text, action text, next text);
INSERT INTO legal VALUES ('none', 'claim', 'processing'), ('none', 'finish', NULL), ('none', 'cancel', NULL),
	('processing', 'claim', 'processing'), ('processing', 'finish', NULL), ('processing', 'complete', NULL),
	('processing', 'fail', NULL), ('processing', 'release', 'released'), ('processing', 'unknown', 'unknown'),
	('released', 'claim', 'processing'), ('released', 'finish', NULL), ('released', 'cancel', NULL),
	('unknown', 'succeeded', NULL), ('unknown', 'failed', NULL), ('unknown', 'released', 'released');
CREATE TEMP TABLE way AS
WITH RECURSIVE way AS (
	SELECT ARRAY[action] AS actions, next FROM legal WHERE state = 'none'
	UNION ALL
	SELECT actions || action, legal.next FROM way JOIN legal ON state = way.next WHERE cardinality(actions) < 5)
SELECT actions, array_to_string(actions, ' ') AS key FROM way;
SELECT count(*) FROM way;
DO $$
DECLARE
	w record;
	action text;
BEGIN
	FOR w IN SELECT * FROM way LOOP
		FOREACH action IN ARRAY w.actions LOOP
			CALL pg_temp.act(action, w.key);
		END LOOP;
	END LOOP;
END $$;
CREATE TEMP TABLE told AS
SELECT w.key, h.* FROM way AS w,
	 ROWS FROM (idem_history('t', 'history', w.key)) WITH ORDINALITY AS h
		(at, attempt, what, name, from_state, to_state, actor, reason, n);

-- what was done and is not told so, or the other way round
CREATE TEMP VIEW wrong AS
SELECT key, d.life AS done, t.life AS told
FROM (SELECT key, string_agg((name, from_state, to_state, attempt)::text, ' ' ORDER BY n) AS life FROM done GROUP BY key) AS d
FULL JOIN (SELECT key, string_agg((name, from_state, to_state, attempt)::text, ' ' ORDER BY n) AS life FROM told GROUP BY key) AS t USING (key)
WHERE d.life IS DISTINCT FROM t.life;
SELECT * FROM wrong;
SELECT count(*) AS keys, sum(cardinality(actions)) AS actions, (SELECT count(*) FROM told) AS transitions FROM way;
-- the last one is where the record is; times follow each other
SELECT key FROM idem_record r
WHERE operation = 'history' AND state IS DISTINCT FROM
	(SELECT to_state FROM told t WHERE t.key = r.key ORDER BY n DESC LIMIT 1);
SELECT count(*) AS disorder FROM (SELECT at, lag(at) OVER (PARTITION BY key ORDER BY n) AS before FROM told) AS t
WHERE at IS NULL OR at < before;
-- each transition is a legal one
SELECT DISTINCT from_state, to_state FROM told ORDER BY 1, 2;

-- The same for intents.
CREATE PROCEDURE pg_temp.act_on_intent(action text, its_key text) LANGUAGE plpgsql AS $$
DECLARE
	i idem_intent;
	t idem_ticket;
	after text;
BEGIN
	SELECT * INTO i FROM idem_intent WHERE operation = 'history intent' AND key = its_key;
	CASE action
	WHEN 'intend' THEN
		t := idem_claim('t', 'history intent', its_key, lease => '1 hour');
		PERFORM idem_intend(t, 'pay', its_key, '"secret"', send => true, resend_safe_for => '1 hour');
	WHEN 'send' THEN PERFORM idem_send(i.operation_id, 'w', '1 us');
	WHEN 'dispatch' THEN PERFORM idem_retry(i.operation_id, 'now') WHERE i.state = 'pending';
		PERFORM idem_dispatch(its_key, 'w', 1, '1 us');
	WHEN 'confirm' THEN PERFORM idem_confirm(i.operation_id, i.token, '"secret"');
	WHEN 'reject' THEN PERFORM idem_reject(i.operation_id, i.token, 'no', '"secret"');
	WHEN 'defer' THEN PERFORM idem_defer(i.operation_id, i.token, 'busy');
	WHEN 'reconcile' THEN PERFORM idem_reconcile(its_key, 'w', 1, '1 us');
	ELSE PERFORM idem_settle(i.operation_id, i.token, action, '"secret"', '"secret"');
	END CASE;
	SELECT state INTO after FROM idem_intent WHERE operation = 'history intent' AND key = its_key;
	INSERT INTO done (key, name, from_state, to_state, attempt)
	SELECT its_key, 'pay', coalesce(i.state, 'none'), after, 1
	WHERE after IS DISTINCT FROM i.state;
	COMMIT;
END $$;
TRUNCATE legal, way, done;
INSERT INTO legal VALUES ('none', 'intend', 'pending'), ('pending', 'send', 'in_flight'), ('pending', 'dispatch', 'in_flight'),
	('in_flight', 'send', 'in_flight'), ('in_flight', 'confirm', NULL), ('in_flight', 'reject', NULL), ('in_flight', 'defer', 'pending'),
	('in_flight', 'reconcile', 'unknown'), ('unknown', 'dispatch', 'in_flight'), ('unknown', 'confirm', NULL),
	('unknown', 'reject', NULL), ('unknown', 'happened', NULL), ('unknown', 'absent', 'pending'), ('unknown', 'unclear', 'unsure'),
	('unsure', 'reconcile', 'unknown'), ('unsure', 'send', 'in_flight');
-- a try that was deferred while an earlier one is in question leaves it unknown
INSERT INTO way
WITH RECURSIVE way AS (
	SELECT ARRAY[action] AS actions, next, false AS doubtful FROM legal WHERE state = 'none'
	UNION ALL
	SELECT actions || action, CASE WHEN action = 'defer' AND doubtful THEN 'unsure' ELSE legal.next END,
		   (doubtful OR legal.next = 'in_flight' AND state <> 'pending') AND legal.next <> 'pending'
	FROM way JOIN legal ON state = way.next WHERE cardinality(actions) < 6)
SELECT actions, array_to_string(actions, ' ') AS key FROM way WHERE cardinality(actions) = 6 OR next IS NULL;
DO $$
DECLARE
	w record;
	action text;
BEGIN
	FOR w IN SELECT * FROM way LOOP
		FOREACH action IN ARRAY w.actions LOOP
			CALL pg_temp.act_on_intent(action, w.key);
		END LOOP;
	END LOOP;
END $$;
-- the noting claim's row apart, and what changes no state
TRUNCATE told;
INSERT INTO told
SELECT w.key, h.* FROM way AS w,
	 ROWS FROM (idem_history('t', 'history intent', w.key)) WITH ORDINALITY AS h
		(at, attempt, what, name, from_state, to_state, actor, reason, n)
WHERE what = 'intent' AND from_state <> to_state;
SELECT * FROM wrong;
SELECT count(*) AS keys, count(*) FILTER (WHERE what <> 'intent' OR name <> 'pay' OR attempt <> 1) AS wrong,
	   count(*) > 0 AS told FROM told;
SELECT key FROM idem_intent i
WHERE operation = 'history intent' AND state IS DISTINCT FROM
	(SELECT to_state FROM told t WHERE t.key = i.key ORDER BY n DESC LIMIT 1);
SELECT count(*) AS disorder FROM (SELECT at, max(at) OVER (PARTITION BY key ORDER BY n) AS latest FROM told) AS t
WHERE at < latest;
SELECT DISTINCT from_state, to_state FROM told ORDER BY 1, 2;

-- One life in full: its owners, a step and two intents, an intent in question
-- that makes the command unknown, and a response that is dropped later.
SELECT version FROM idem_define('history told', ttl => '1 us');
SELECT outcome FROM idem_claim('t', 'history told', 'k', '"secret"', lease => '1 us', owner => 'first');
SELECT idem_claim('t', 'history told', 'k', '"secret"', lease => '1 hour', owner => 'second') AS ticket \gset
SELECT idem_step_done(:'ticket', 'reserve', '"secret"', '"secret"');
SELECT operation_id AS pay FROM idem_intend(:'ticket', 'pay', 'history told', '"secret"') \gset
SELECT operation_id AS mail FROM idem_intend(:'ticket', 'mail', 'history mail') \gset
SELECT token FROM idem_send(:'mail', 'postman', '1 hour') \gset
SELECT state FROM idem_confirm(:'mail', :token, '"secret"');
SELECT state FROM idem_send(:'pay', 'cashier', '1 us');
SELECT idem_heartbeat(:'ticket'::idem_ticket, '1 us') IS NOT NULL AS lapsed;
SELECT outcome FROM idem_claim('t', 'history told', 'k', '"secret"', lease => '1 hour');
SELECT token FROM idem_reconcile('history told', 'auditor', 1, '1 hour') \gset
SELECT state FROM idem_settle(:'pay', :token, 'happened', '"secret"', '"secret"');
BEGIN;
SELECT idem_complete(idem_claim('t', 'history told', 'k', '"secret"', owner => 'third', ttl => '1 us'), '"secret"', 200, 'secret', '"secret"', 'secret');
COMMIT;
CREATE TEMP VIEW life AS
SELECT attempt, what, name, from_state, to_state, CASE actor WHEN session_user THEN 'login role' ELSE actor END AS actor, reason
FROM idem_history('t', 'history told', 'k');
SELECT * FROM life WHERE name IS DISTINCT FROM 'mail';
SELECT attempt, what, name, from_state, to_state FROM life WHERE name = 'mail';
CREATE TEMP TABLE before AS SELECT * FROM idem_history('t', 'history told', 'k');
SELECT swept > 0 AS swept FROM idem_sweep(10000);
SELECT response IS NULL AS swept FROM idem_record WHERE operation = 'history told' AND key = 'k';
(TABLE before EXCEPT SELECT * FROM idem_history('t', 'history told', 'k'))
UNION ALL (SELECT * FROM idem_history('t', 'history told', 'k') EXCEPT TABLE before);

-- An atomic command and its own notes: the claim first, the completion last.
SELECT idem_release(idem_claim('t', 'history told', 'atomic', lease => '1 hour'), 'not now');
BEGIN;
SELECT idem_claim('t', 'history told', 'atomic', owner => 'me') AS ticket \gset
SELECT name FROM idem_intend(:'ticket', 'mail', 'history mail');
SELECT idem_fail(:'ticket'::idem_ticket, '1');
COMMIT;
SELECT attempt, what, from_state, to_state, reason, at IS NOT NULL AS at FROM idem_history('t', 'history told', 'atomic');

-- No payload is ever shown, nobody else's life, and nothing is written.
SELECT count(*) AS leaks FROM idem_record r, idem_history(tenant, operation, key) AS h
WHERE operation LIKE 'history%' AND h::text LIKE '%secret%';
SELECT count(*) AS rows FROM idem_history('t', 'history told', 'K');
BEGIN READ ONLY;
SELECT count(*) > 0 AS told, pg_current_xact_id_if_assigned() IS NULL AS no_xid FROM idem_history('t', 'history told', 'k');
COMMIT;
SELECT * FROM idem_history('t', 'o', ' ');
SELECT * FROM idem_history('t', NULL, 'k');

-- Who claimed it first is told as well where the trail goes on from there.
SELECT idem_unknown(idem_claim('t', 'history told', 'owned', lease => '1 hour', owner => 'first owner'), 'cannot tell');
SELECT attempt, from_state, to_state, CASE actor WHEN session_user THEN 'login role' ELSE actor END AS actor, reason
FROM idem_history('t', 'history told', 'owned');
