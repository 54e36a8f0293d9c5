-- The same with the blocks of PL/pgSQL, with many claims at once, and with
-- records that are there already.
CREATE VIEW pg_temp.key_locks AS
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();

-- An exception block undoes the claim within it; the same key can be claimed
-- again in the handler.
DO $$
DECLARE
	ticket idem_ticket;
BEGIN
	BEGIN
		ticket := idem_claim('t', 'block', 'a', '1');
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		RAISE NOTICE 'replay: %', (idem_replay('t', 'block', 'a', '1')).outcome;
		ticket := idem_claim('t', 'block', 'a', '2');
		RAISE NOTICE 'claim: %, attempt %', ticket.outcome, ticket.attempt;
		PERFORM idem_complete(ticket, '"handler"');
	END;
END
$$;
SELECT outcome, response FROM idem_claim('t', 'block', 'a', '2');

-- It undoes a completion, too: the failure is stored in its place.
DO $$
DECLARE
	ticket idem_ticket := idem_claim('t', 'block', 'b');
BEGIN
	BEGIN
		PERFORM idem_complete(ticket, '"lost"');
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
		PERFORM idem_fail(ticket, '"failed"', 500);
	END;
END
$$;
SELECT outcome, state, response, code FROM idem_claim('t', 'block', 'b');

-- A loop that tries again, each time with a block of its own.
DO $$
DECLARE
	ticket idem_ticket;
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			ticket := idem_claim('t', 'block', 'c');
			PERFORM idem_complete(ticket, to_json(i));
			IF i < 5 THEN
				RAISE 'not yet';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
SELECT outcome, attempt, response FROM idem_claim('t', 'block', 'c');

-- Blocks within blocks, 200 deep: claims of the outer half stay, the others
-- are undone.
CREATE FUNCTION pg_temp.nest(depth int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM idem_complete(idem_claim('t', 'block nest', depth::text), to_json(depth));
		IF depth < 200 THEN
			PERFORM pg_temp.nest(depth + 1);
		END IF;
		IF depth > 100 THEN
			RAISE 'undone';
		END IF;
	EXCEPTION WHEN raise_exception THEN
		IF depth > 101 THEN
			RAISE;
		END IF;
	END;
END
$$;
SELECT pg_temp.nest(1);
SELECT count(*), min(key::int), max(key::int), bool_and(key = response::text) AS own
FROM idem_record WHERE operation = 'block nest';

-- Many claims, half of them in savepoints that are rolled back.
BEGIN;
CREATE TEMP TABLE ticket AS
SELECT n, idem_claim('t', 'block many', n::text, to_jsonb(n)) AS ticket
FROM generate_series(1, 300) AS n;
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN SELECT * FROM ticket ORDER BY n LOOP
		BEGIN
			PERFORM idem_complete(t.ticket, to_json(t.n));
			PERFORM idem_complete(idem_claim('t', 'block many', 'also ' || t.n));
			IF t.n % 2 = 0 THEN
				RAISE 'undone';
			END IF;
		EXCEPTION WHEN raise_exception THEN
			NULL;
		END;
	END LOOP;
END
$$;
SELECT (idem_claim('t', 'block many', n::text, to_jsonb(n))).outcome, count(*)
FROM generate_series(1, 300) AS n GROUP BY 1 ORDER BY 1;
SELECT (idem_replay('t', 'block many', 'also ' || n)).outcome, count(*)
FROM generate_series(1, 300) AS n GROUP BY 1 ORDER BY 1;
SELECT * FROM pg_temp.key_locks;
SELECT count(idem_release(ticket)) FROM ticket WHERE n % 2 = 0;
COMMIT;
SELECT count(*) AS rows, count(*) FILTER (WHERE key LIKE 'also %') AS also
FROM idem_record WHERE operation = 'block many';

-- A cursor: what was claimed by a FETCH lasts longer than the cursor, and no
-- longer than the savepoint it was made in.
BEGIN;
DECLARE c CURSOR FOR SELECT outcome FROM idem_claim('t', 'block', 'cursor 1');
FETCH c;
CLOSE c;
DECLARE c CURSOR FOR SELECT (idem_claim('t', 'block', k)).outcome
	FROM unnest(ARRAY['cursor 2', 'cursor 3']) AS k;
FETCH c;
SAVEPOINT s;
FETCH c;
SELECT * FROM pg_temp.key_locks;
ROLLBACK TO s;
SELECT * FROM pg_temp.key_locks;
SELECT k, (idem_replay('t', 'block', k)).outcome
FROM unnest(ARRAY['cursor 1', 'cursor 2', 'cursor 3']) AS k;
ROLLBACK;

-- A released record claimed atomically: undone, it is as it was.
SELECT idem_release(idem_claim('t', 'block', 'released', lease => '1 hour'), 'why');
BEGIN;
SAVEPOINT s;
SELECT idem_claim('t', 'block', 'released') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
ROLLBACK TO s;
SELECT state, attempt, reason FROM idem_record
WHERE operation = 'block' AND key = 'released';
SELECT idem_claim('t', 'block', 'released') AS ticket \gset
SAVEPOINT s2;
SELECT idem_complete(:'ticket'::idem_ticket, '"lost"');
ROLLBACK TO s2;
SELECT state, attempt, reason FROM idem_record
WHERE operation = 'block' AND key = 'released';
SELECT idem_complete(:'ticket'::idem_ticket, '"kept"');
COMMIT;
SELECT outcome, attempt, response FROM idem_claim('t', 'block', 'released');
