-- A relay takes what waits longest, be it new or sent before: neither keeps the
-- other waiting, n bounds both together, and what may not be sent (again)
-- stands in nobody's way.
CREATE PROCEDURE pg_temp.note(target text, prefix text, n integer, safe interval DEFAULT NULL)
LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket := idem_claim('t', 'fair', target || prefix, lease => '1 hour');
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM idem_intend(ticket, prefix || i, target, send => true, resend_safe_for => safe);
	END LOOP;
	COMMIT;
END $$;

-- Old lapsed ones before newer pending ones.
CALL pg_temp.note('old', 'sent ', 3, '1 hour');
SELECT count(*) FROM idem_dispatch('old', 'dead', 10, '1 us');
CALL pg_temp.note('old', 'new ', 3);
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('old', 'w', 2, '1 hour');
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('old', 'w', 2, '1 hour');
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('old', 'w', 10, '1 hour');

-- Old pending ones before those that lapsed later.
CALL pg_temp.note('late', 'sent ', 2, '1 hour');
SELECT count(*) FROM idem_dispatch('late', 'dead', 10, '1 us');
CALL pg_temp.note('late', 'new ', 2);
SELECT count(*) FROM idem_dispatch('late', 'dead', 2, '1 us');
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('late', 'w', 2, '1 hour');
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('late', 'w', 2, '1 hour');

-- However many wait of one kind, the other has its turn.
CALL pg_temp.note('many', 'sent ', 30, '1 hour');
SELECT count(*) FROM idem_dispatch('many', 'dead', 30, '1 us');
CALL pg_temp.note('many', 'new ', 30);
SELECT count(*) FROM idem_dispatch('many', 'dead', 15, '1 us');
SELECT count(*), count(*) FILTER (WHERE name LIKE 'new %') AS new, count(*) FILTER (WHERE tries > 1) AS again
FROM idem_dispatch('many', 'w', 40, '1 hour');

-- What only a verdict can move stands in front of nothing.
CALL pg_temp.note('stuck', 'unsafe ', 20);
CALL pg_temp.note('stuck', 'over ', 20, '1 us');
SELECT count(*) FROM idem_dispatch('stuck', 'dead', 40, '1 us');
CALL pg_temp.note('stuck', 'safe ', 2, '1 hour');
SELECT count(*) FROM idem_dispatch('stuck', 'dead', 2, '1 us');
CALL pg_temp.note('stuck', 'new ', 2);
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('stuck', 'w', 3, '1 hour');
SELECT string_agg(name, ', ' ORDER BY name) AS taken FROM idem_dispatch('stuck', 'w', 40, '1 hour');
SELECT count(*) AS to_be_asked_about FROM idem_reconcile('stuck', 'r', 100, '1 hour');

-- What the owner sends himself is not the relay's, however often it lapsed.
SELECT idem_claim('t', 'fair', 'own', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'own', 'own', resend_safe_for => '1 hour') \gset
SELECT state FROM idem_send(:'operation_id', 'owner', '1 us');
SELECT count(*) AS taken FROM idem_dispatch('own', 'w', 10, '1 hour');
-- nor what this very transaction noted, which hides nothing behind it
BEGIN;
SELECT count(idem_intend(:'ticket', 'mine ' || i, 'mine', send => true)) FROM generate_series(1, 5) AS i;
SELECT count(*) AS taken FROM idem_dispatch('mine', 'w', 10, '1 hour');
COMMIT;
SELECT count(*) AS taken FROM idem_dispatch('mine', 'w', 10, '1 hour');
-- several calls of one statement share them out
CALL pg_temp.note('shared', 'i ', 5);
SELECT count(*) AS taken, count(DISTINCT operation_id) AS intents, count(DISTINCT d.worker) AS workers
FROM generate_series(1, 3) AS i, idem_dispatch('shared', 'w' || i, 2, '1 hour') AS d;
