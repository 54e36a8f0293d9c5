-- Proves what every verb does in every state of a record: claim and replay by
-- the same and by another request, and the verbs of an owner by the right
-- token and by wrong ones, for a ticket and for its parts.
--
-- Each cell of the matrix reaches its state anew and is rolled back.  It shows
-- the outcome with the attempt, or the state that is stored after a verb, or
-- the SQLSTATE that refused it; a star says that the stored row has changed.
\ir setup.psql

-- A lease lapses for other transactions only: these are committed, and dropped
-- at the end.
CREATE TABLE lapsed AS
SELECT state, (idem_claim('t', 'o', state, '1', lease => '1us')).token
FROM unnest('{lapsed,"lapsed, open","lapsed, leased",exhausted,unknown}'
			::text[]) AS state;
COMMIT;
BEGIN;
SELECT plan(188);

-- Leads the record whose key is the state into that state.  token: of its last
-- attempt, or for unknown and cancelled, where nobody holds one, the one that
-- is stored.  stale: of an attempt before, where there was one.
CREATE FUNCTION pg_temp.reach(wanted text, OUT token bigint, OUT stale bigint)
LANGUAGE plpgsql AS $$
DECLARE
	first CONSTANT text := split_part(wanted, ', ', 1);
	lease CONSTANT interval := CASE
		WHEN first = 'own lapsed' THEN '1us'
		WHEN first NOT IN ('open', 'forgotten') THEN '1h' END;
	ttl CONSTANT interval := CASE WHEN first = 'expired' THEN '1us' END;
	ticket idem_ticket;
BEGIN
	SELECT l.token INTO token FROM lapsed l WHERE state = wanted;
	IF first = 'none' OR wanted = 'lapsed' THEN
		RETURN;
	ELSIF first = 'cancelled' THEN
		INSERT INTO idem_record AS r
			(created_at, completed_at, expires_at, token, attempt,
			 tenant, operation, key, state, fingerprint)
		VALUES (now(), now(), now() + interval '1 year', 7, 1,
				't', 'o', wanted, 'cancelled', idem_fingerprint('1'))
		RETURNING r.token INTO token;
		RETURN;
	ELSIF first IN ('exhausted', 'unknown') THEN
		PERFORM idem_define('o', max_attempts => 1);
	ELSIF first <> 'lapsed' THEN
		ticket := idem_claim('t', 'o', wanted, '1', lease => lease, ttl => ttl);
		token := ticket.token;
	END IF;

	IF first IN ('released', 'forgotten') THEN
		PERFORM idem_release(ticket, 'why');
	ELSIF first IN ('succeeded', 'expired') THEN
		PERFORM idem_complete(ticket, '[1,  1]', 200, 'r', '{}', '\x00');
	ELSIF first = 'failed' THEN
		PERFORM idem_fail(ticket, '[1,  1]', 200, 'r', '{}', '\x00');
	END IF;

	IF wanted LIKE '%, open' THEN
		stale := token;
		ticket := idem_claim('t', 'o', wanted, '1');
		token := ticket.token;
	ELSIF wanted LIKE '%, leased' THEN
		stale := token;
		ticket := idem_claim('t', 'o', wanted, '1', lease => '1h');
		token := ticket.token;
	ELSIF wanted = 'unknown' THEN
		stale := token;
		PERFORM idem_claim('t', 'o', wanted, '1');
		SELECT r.token INTO token FROM idem_record r WHERE key = wanted;
	END IF;
END $$;

CREATE FUNCTION pg_temp.ask(key text, verb text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	request CONSTANT jsonb := CASE WHEN verb LIKE '%, other' THEN 2 ELSE 1 END;
	ticket idem_ticket;
BEGIN
	IF verb LIKE 'replay%' THEN
		ticket := idem_replay('t', 'o', key, request);
	ELSE
		ticket := idem_claim('t', 'o', key, request, lease =>
							 CASE WHEN verb = 'claim, lease' THEN interval '1h' END);
	END IF;
	IF (ticket.token IS NULL) = (ticket.outcome IN ('execute', 'resume')) THEN
		RETURN ticket.outcome || ' with a wrong right to run';
	END IF;
	RETURN concat_ws(' ', ticket.outcome, ticket.attempt);
END $$;

CREATE FUNCTION pg_temp.do_as_owner(key text, verb text, token bigint,
									by_ticket boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	answer CONSTANT json := CASE WHEN verb LIKE '%, other'
		THEN '[1, 1]' ELSE '[1,  1]' END;
	ticket CONSTANT idem_ticket := jsonb_populate_record(NULL::idem_ticket,
		jsonb_build_object('tenant', 't', 'operation', 'o', 'key', key,
						   'token', token));
BEGIN
	CASE split_part(verb, ',', 1) || ' ' || by_ticket
	WHEN 'complete true' THEN
		PERFORM idem_complete(ticket, answer, 200, 'r', '{}', '\x00');
	WHEN 'complete false' THEN
		PERFORM idem_complete('t', 'o', key, token, answer, 200, 'r', '{}',
							  '\x00');
	WHEN 'fail true' THEN
		PERFORM idem_fail(ticket, answer, 200, 'r', '{}', '\x00');
	WHEN 'fail false' THEN
		PERFORM idem_fail('t', 'o', key, token, answer, 200, 'r', '{}',
						  '\x00');
	WHEN 'release true' THEN
		PERFORM idem_release(ticket, 'another');
	WHEN 'release false' THEN
		PERFORM idem_release('t', 'o', key, token, 'another');
	WHEN 'heartbeat true' THEN
		PERFORM idem_heartbeat(ticket, '2h');
	WHEN 'heartbeat false' THEN
		PERFORM idem_heartbeat('t', 'o', key, token, '2h');
	WHEN 'hold true' THEN
		PERFORM idem_hold(ticket);
	WHEN 'hold false' THEN
		PERFORM idem_hold('t', 'o', key, token);
	END CASE;
END $$;

-- which: the right token, the stale one, or a number (or "null").
CREATE FUNCTION pg_temp.cell(state text, verb text, by_ticket boolean,
							 which text DEFAULT 'right')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	before text;
	after text;
	result text;
	tokens record;
BEGIN
	BEGIN
		tokens := pg_temp.reach(state);
		SELECT r::text INTO before FROM idem_record r WHERE key = cell.state;
		BEGIN
			IF verb ~ '^(claim|replay)' THEN
				result := pg_temp.ask(state, verb);
			ELSE
				PERFORM pg_temp.do_as_owner(state, verb, CASE which
					WHEN 'right' THEN tokens.token
					WHEN 'stale' THEN tokens.stale
					ELSE nullif(which, 'null')::bigint END, by_ticket);
			END IF;
		EXCEPTION WHEN others THEN
			result := SQLSTATE;
		END;
		SELECT r::text, coalesce(result, r.state, 'none') INTO after, result
		FROM (VALUES (1)) AS one (row)
		LEFT JOIN idem_record r ON key = cell.state;
		IF after IS DISTINCT FROM before THEN
			result := result || '*';
		END IF;
		RAISE SQLSTATE 'ROLLB';
	EXCEPTION WHEN SQLSTATE 'ROLLB' THEN
		NULL;
	END;
	RETURN result;
END $$;

-- A row of the matrix: a test for each cell.
CREATE FUNCTION pg_temp.row_is(state text, verbs text, VARIADIC cells text[])
RETURNS SETOF text LANGUAGE sql AS $$
	SELECT is(pg_temp.cell(state, verb, true), want,
			  format('%s of %s: %s', verb, state, want))
	FROM unnest(string_to_array(verbs, '; '), cells) AS u (verb, want)
$$;

\set asked '\'claim; claim, other; claim, lease; replay; replay, other\''
SELECT pg_temp.row_is(state, :asked, a, b, c, d, e) FROM (VALUES
	-- state, and then: claim, of another request; claim with a lease; replay,
	-- of another request
	('none',
	 'execute 1', 'execute 1', 'execute 1*', 'absent', 'absent'),
	('open',
	 'in_progress 1', 'mismatch 1', 'in_progress 1', 'in_progress 1', 'mismatch 1'),
	('forgotten',
	 'execute 1', 'execute 1', 'execute 1*', 'absent', 'absent'),
	('processing',
	 'in_progress 1', 'mismatch 1', 'in_progress 1', 'in_progress 1', 'mismatch 1'),
	('own lapsed',
	 'in_progress 1', 'mismatch 1', 'in_progress 1', 'in_progress 1', 'mismatch 1'),
	('lapsed',
	 'resume 2', 'mismatch 1', 'resume 2*', 'absent 1', 'mismatch 1'),
	('lapsed, open',
	 'in_progress 2', 'mismatch 2', 'in_progress 2', 'in_progress 2', 'mismatch 2'),
	('lapsed, leased',
	 'in_progress 2', 'mismatch 2', 'in_progress 2', 'in_progress 2', 'mismatch 2'),
	('released',
	 'execute 2', 'mismatch 1', 'execute 2*', 'absent 1', 'mismatch 1'),
	('released, open',
	 'in_progress 2', 'mismatch 2', 'in_progress 2', 'in_progress 2', 'mismatch 2'),
	('succeeded',
	 'replay 1', 'mismatch 1', 'replay 1', 'replay 1', 'mismatch 1'),
	('failed',
	 'replay 1', 'mismatch 1', 'replay 1', 'replay 1', 'mismatch 1'),
	('expired',
	 'expired 1', 'mismatch 1', 'expired 1', 'expired 1', 'mismatch 1'),
	('exhausted',
	 'unknown 1*', 'mismatch 1', 'unknown 1*', 'absent 1', 'mismatch 1'),
	('unknown',
	 'unknown 1', 'mismatch 1', 'unknown 1', 'unknown 1', 'mismatch 1'),
	('cancelled',
	 'cancelled 1', 'mismatch 1', 'cancelled 1', 'cancelled 1', 'mismatch 1')
) AS m (state, a, b, c, d, e);

\set owned '\'complete; complete, other; fail; fail, other; release; heartbeat; hold\''
SELECT pg_temp.row_is(state, :owned, a, b, c, d, e, f, g) FROM (VALUES
	-- state, and then, by the right token: complete, with another answer; fail,
	-- with another answer; release; heartbeat; hold
	('open',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'none', 'ID003', 'none'),
	('forgotten',
	 'ID003', 'ID003', 'ID003', 'ID003', 'none', 'ID003', 'ID003'),
	('processing',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released*', 'processing*', 'processing'),
	('own lapsed',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released*', 'processing*', 'processing'),
	('lapsed',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released*', 'processing*', 'processing'),
	('lapsed, open',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'processing', 'ID003', 'processing'),
	('lapsed, leased',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released*', 'processing*', 'processing'),
	('released',
	 'ID003', 'ID003', 'ID003', 'ID003', 'released', 'ID003', 'ID003'),
	('released, open',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released', 'ID003', 'released'),
	('succeeded',
	 'succeeded', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003'),
	('failed',
	 'ID003', 'ID003', 'failed', 'ID003', 'ID003', 'ID003', 'ID003'),
	('expired',
	 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003'),
	('exhausted',
	 'succeeded*', 'succeeded*', 'failed*', 'failed*', 'released*', 'processing*', 'processing'),
	('unknown',
	 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003'),
	('cancelled',
	 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003', 'ID003')
) AS m (state, a, b, c, d, e, f, g);

CREATE VIEW pg_temp.all_cells AS
SELECT state, verb
FROM unnest('{none,open,forgotten,processing,"own lapsed",lapsed,"lapsed, open",
			"lapsed, leased",released,"released, open",succeeded,failed,
			expired,exhausted,unknown,cancelled}'::text[]) AS state,
	 unnest(string_to_array(:owned, '; ')) AS verb;

SELECT is_empty(
	$$SELECT state, verb, token, by_ticket, cell
	  FROM pg_temp.all_cells, unnest('{null,0,-1,42}'::text[]) AS token,
	  unnest('{true,false}'::boolean[]) AS by_ticket,
	  pg_temp.cell(state, verb, by_ticket, token)
	  WHERE cell <> 'ID002'$$,
	'a wrong token can do nothing in any state, in neither form');
SELECT is_empty(
	$$SELECT state, verb, by_ticket, cell
	  FROM pg_temp.all_cells, unnest('{true,false}'::boolean[]) AS by_ticket,
	  pg_temp.cell(state, verb, by_ticket, 'stale')
	  WHERE cell <> 'ID002'$$,
	'nor can a stale one');
SELECT is_empty(
	$$SELECT state, verb, by_ticket, by_token
	  FROM pg_temp.all_cells, pg_temp.cell(state, verb, true) AS by_ticket,
	  pg_temp.cell(state, verb, false) AS by_token
	  WHERE by_ticket <> by_token$$,
	'both forms do the same');

SELECT * FROM finish();
ROLLBACK;
DROP SCHEMA idem_only, tap_only CASCADE;
