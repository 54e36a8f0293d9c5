-- The state machine as a user sees it: every state a record can be in, against
-- every call.
CREATE TEMP TABLE example (place serial, name text, state text,
						   lease interval, ttl interval);
INSERT INTO example (name, state, lease, ttl) VALUES
	('processing', 'processing', '1 hour', NULL),
	('lapsed', 'processing', '-1 hour', NULL),
	('released', 'released', NULL, NULL),
	('succeeded', 'succeeded', NULL, '1 hour'),
	('succeeded, expired', 'succeeded', NULL, '0'),
	('failed', 'failed', NULL, '1 hour'),
	('failed, expired', 'failed', NULL, '0'),
	('unknown', 'unknown', NULL, NULL),
	('cancelled', 'cancelled', NULL, '1 hour'),
	('cancelled, expired', 'cancelled', NULL, '0');
INSERT INTO idem_record (created_at, completed_at, expires_at, lease_until,
						 token, attempt, tenant, operation, key, state, response)
SELECT now(), CASE WHEN ttl IS NOT NULL THEN now() END, now() + ttl, now() + lease,
	   7, 1, 't', 'state', name, state, CASE WHEN ttl IS NOT NULL THEN '"r"'::json END
FROM example;
INSERT INTO example (name) VALUES ('none');

-- What a call answers: its outcome, "ok" or its SQLSTATE; and, after it, the
-- state and attempt of the record where they changed.  All is undone.
CREATE FUNCTION pg_temp.answer(command text, name text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	old record;
	new record;
	answer text;
BEGIN
	SELECT state, attempt, r::text AS row INTO old
	FROM idem_record AS r WHERE operation = 'state' AND key = name;
	BEGIN
		EXECUTE format(command, name) INTO answer;
		answer := coalesce(nullif(answer, ''), 'ok');
		SELECT state, attempt, r::text AS row INTO new
		FROM idem_record AS r WHERE operation = 'state' AND key = name;
		IF (new.state, new.attempt) IS DISTINCT FROM (old.state, old.attempt) THEN
			answer := answer || ': ' || concat_ws(' ', new.state, new.attempt);
		ELSIF new.row IS DISTINCT FROM old.row THEN
			answer := answer || ', changed';
		END IF;
		RAISE SQLSTATE 'XYZZY' USING MESSAGE = answer;
	EXCEPTION WHEN SQLSTATE 'XYZZY' THEN
		RETURN sqlerrm;
	WHEN OTHERS THEN
		RETURN sqlstate;
	END;
END
$$;

CREATE FUNCTION pg_temp.handler(request jsonb) RETURNS json
LANGUAGE sql AS $$ SELECT '"h"'::json $$;

-- Claims, with the same request and with another.
SELECT name,
	   pg_temp.answer($q$SELECT outcome FROM idem_claim('t', 'state', %L, lease => '1 hour')$q$, name) AS claim,
	   pg_temp.answer($q$SELECT outcome FROM idem_claim('t', 'state', %L)$q$, name) AS atomic_claim,
	   pg_temp.answer($q$SELECT outcome FROM idem_claim('t', 'state', %L, '1')$q$, name) AS other_request
FROM example ORDER BY place;
-- Replays, executions.
SELECT name,
	   pg_temp.answer($q$SELECT outcome FROM idem_replay('t', 'state', %L)$q$, name) AS replay,
	   pg_temp.answer($q$SELECT outcome FROM idem_replay('t', 'state', %L, '1')$q$, name) AS other_request,
	   pg_temp.answer($q$SELECT outcome FROM idem_execute('t', 'state', %L, NULL, 'pg_temp.handler(jsonb)')$q$, name) AS execute
FROM example ORDER BY place;
-- The owner's verbs, with the right token.
SELECT name,
	   pg_temp.answer($q$SELECT idem_complete('t', 'state', %L, 7, '"r"')$q$, name) AS complete,
	   pg_temp.answer($q$SELECT idem_complete('t', 'state', %L, 7, '"s"')$q$, name) AS otherwise,
	   pg_temp.answer($q$SELECT idem_fail('t', 'state', %L, 7, '"r"')$q$, name) AS fail,
	   pg_temp.answer($q$SELECT idem_release('t', 'state', %L, 7)$q$, name) AS release,
	   pg_temp.answer($q$SELECT idem_heartbeat('t', 'state', %L, 7, '1 hour') > now()$q$, name) AS heartbeat,
	   pg_temp.answer($q$SELECT idem_hold('t', 'state', %L, 7)$q$, name) AS hold
FROM example ORDER BY place;
-- The same with a wrong one: refused before the state is looked at.
SELECT verb, string_agg(DISTINCT pg_temp.answer(
	format($q$SELECT %s('t', 'state', %%L, 8)$q$, verb), name), ' ') AS wrong_token
FROM example, unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release',
						  'idem_heartbeat', 'idem_hold']) AS verb GROUP BY verb ORDER BY verb;

-- Nothing of this stayed.
SELECT count(*) AS rows, bool_and(token = 7 AND attempt = 1) AS unchanged
FROM idem_record WHERE operation = 'state';
