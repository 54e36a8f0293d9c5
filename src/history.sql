/*
 * The life of a command: the trail, joined with what the rows of the command,
 * its steps and its intents prove by themselves and the trail leaves out.
 */
CREATE FUNCTION idem_check_address(tenant text, operation text, key text) RETURNS void
LANGUAGE c STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_check_address';
REVOKE ALL ON FUNCTION idem_check_address(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_check_address(text, text, text) IS
'Internal: refuses what is no address, or not the caller''s. Errors: 22004, 22023, 42501. Tables: none.';

/*
 * Each thing with states, the command and its intents, has a chain: its events
 * in the order of their ids, which is that of the locks under which they were
 * written, and at last the state that its row is in.  Where an event does not
 * begin in the state that the one before it led to, transitions are missing
 * that the trail leaves out: they are filled in, with what the row says of them.
 */
CREATE FUNCTION idem_history(tenant text, operation text, key text)
RETURNS TABLE (at timestamptz, attempt integer, what text, name text,
			   from_state text, to_state text, actor text, reason text)
LANGUAGE sql STABLE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT idem_check_address(idem_history.tenant, idem_history.operation, idem_history.key);

	WITH thing AS (
		SELECT NULL AS name, r.state, r.attempt, r.owner AS holder,
			   r.created_at AS began_at, NULL::timestamptz AS sent_at, r.completed_at AS ended_at
		FROM idem_record r
		WHERE (r.tenant, r.operation, r.key)
			= (idem_history.tenant, idem_history.operation, idem_history.key)
		UNION ALL
		SELECT i.name, i.state, NULL, i.worker, i.created_at, i.first_sent_at, i.settled_at
		FROM idem_intent i
		WHERE (i.tenant, i.operation, i.key)
			= (idem_history.tenant, idem_history.operation, idem_history.key)
	), event AS (
		SELECT e.intent AS name, e.id, e.at, e.attempt, e.from_state, e.to_state, e.actor, e.reason
		FROM idem_event e
		WHERE (e.tenant, e.operation, e.key)
			= (idem_history.tenant, idem_history.operation, idem_history.key)
	), link AS (
		/* id NULL: the end of a chain */
		SELECT c.name, c.id, c.state, lag(c.next_state, 1, 'none') OVER chain AS before,
			   lag(c.at, 1, '-infinity') OVER chain AS since, coalesce(c.at, 'infinity') AS until
		FROM (SELECT e.name, e.id, e.at, e.from_state AS state, e.to_state AS next_state FROM event e
			  UNION ALL
			  SELECT t.name, NULL, NULL, t.state, NULL FROM thing t) AS c
		WINDOW chain AS (PARTITION BY c.name ORDER BY c.id)
	), missing AS (
		SELECT l.name, l.id, place, way.states[place] AS from_state,
			   way.states[place + 1] AS to_state, l.since, l.until
		FROM link l CROSS JOIN LATERAL (
			SELECT w.states FROM (VALUES
				(1, ARRAY['none', 'processing', 'succeeded']),
				(2, ARRAY['none', 'processing', 'failed']),
				(3, ARRAY['none', 'pending', 'in_flight', 'confirmed']),
				(4, ARRAY['unknown', 'in_flight']),
				(5, ARRAY['unknown', 'confirmed'])) AS w (n, states)
			WHERE array_position(w.states, l.before) < array_position(w.states, l.state)
			ORDER BY w.n LIMIT 1) AS way
		CROSS JOIN LATERAL generate_series(array_position(way.states, l.before),
										   array_position(way.states, l.state) - 1) AS place
	), transition AS (
		SELECT e.name, NULL AS step, e.id, NULL AS place, e.at, e.attempt, e.from_state, e.to_state,
			   e.actor, e.reason
		FROM event e
		UNION ALL
		SELECT m.name, NULL, m.id, m.place,
			   CASE WHEN m.from_state = 'none' THEN t.began_at
					WHEN m.to_state <> 'in_flight' THEN t.ended_at
					/* the row tells of one sending only: is it this one? */
					WHEN m.from_state = 'pending' AND t.sent_at BETWEEN m.since AND m.until THEN t.sent_at END,
			   CASE WHEN m.name IS NOT NULL THEN NULL
					WHEN m.from_state = 'none' THEN 1 ELSE t.attempt END,
			   m.from_state, m.to_state,
			   /* only who had it last is remembered */
			   CASE WHEN m.id IS NULL AND m.from_state <> 'none' THEN t.holder END, NULL
		FROM missing m LEFT JOIN thing t ON t.name IS NOT DISTINCT FROM m.name
		UNION ALL
		SELECT NULL, s.step, NULL, NULL, s.done_at, s.attempt, 'none', 'done', NULL, NULL
		FROM idem_step s
		WHERE (s.tenant, s.operation, s.key)
			= (idem_history.tenant, idem_history.operation, idem_history.key)
	), ordered AS (
		/* a chain keeps its order even where the clock went back */
		SELECT t.*, max(t.at) OVER (PARTITION BY t.name, t.step ORDER BY t.id, t.place) AS reached_at
		FROM transition t
	), complete AS (
		SELECT o.*, coalesce(o.attempt, max(o.attempt) OVER (ORDER BY o.reached_at NULLS FIRST, o.id, o.place))
			   AS known_attempt
		FROM ordered o
	)
	SELECT c.at, c.known_attempt,
		   CASE WHEN c.step IS NOT NULL THEN 'step' WHEN c.name IS NOT NULL THEN 'intent' ELSE 'command' END,
		   coalesce(c.step, c.name), c.from_state, c.to_state,
		   CASE WHEN c.from_state = 'none' AND c.place IS NOT NULL OR c.step IS NOT NULL
				THEN (SELECT t.holder FROM thing t WHERE t.name IS NULL AND t.attempt = c.known_attempt)
				ELSE c.actor END,
		   c.reason
	FROM complete c
	ORDER BY c.reached_at NULLS FIRST, c.id, c.place;
END;
REVOKE ALL ON FUNCTION idem_history(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_history(text, text, text) IS
'The life of a command, in its order: each transition of the command, its steps and its intents. Also after the response was dropped; never shows payloads.
Arguments: tenant, operation, key: the address.
Returns: one row per transition. at: when; NULL where no row remembers it any more. attempt: of the command. what: command, step or intent. name: of the step or intent. from_state and to_state: none before there was a row. actor: login role of the session; where the trail has no row of its own (a first claim, a completion, a step, an intent noted, first sent or confirmed), the owner or worker that was told, NULL where none was told or a later one has replaced it. reason: why, where one was given. No rows: never claimed.
Errors: 22004, 22023, 42501 tenant not allowed. Tables: reads idem_record, idem_event, idem_step, idem_intent.';
