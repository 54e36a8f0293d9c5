-- Every isolation level gives the same answers, and claims leave nothing that
-- serializable transactions could conflict on.
CREATE FUNCTION pg_temp.calls(level text) RETURNS TABLE (what text, outcome text)
LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
BEGIN
	RETURN QUERY SELECT 'claim', c.outcome
		FROM idem_claim('t', 'isolation', level || ' leased', '1', lease => '1 hour') AS c;
	RETURN QUERY SELECT 'again', c.outcome
		FROM idem_claim('t', 'isolation', level || ' leased', '1') AS c;
	RETURN QUERY SELECT 'other request', c.outcome
		FROM idem_claim('t', 'isolation', level || ' leased', '2') AS c;
	ticket := idem_claim('t', 'isolation', level, '1');
	RETURN QUERY SELECT 'atomic', ticket.outcome;
	RETURN QUERY SELECT 'open', c.outcome FROM idem_replay('t', 'isolation', level, '1') AS c;
	PERFORM idem_complete(ticket, '"done"');
	RETURN QUERY SELECT 'completed', c.outcome FROM idem_claim('t', 'isolation', level, '1') AS c;
	RETURN QUERY SELECT 'replay', c.outcome FROM idem_replay('t', 'isolation', level, '1') AS c;
	RETURN QUERY SELECT 'absent', c.outcome FROM idem_replay('t', 'isolation', level || ' none', '1') AS c;
END
$$;
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT * FROM pg_temp.calls('read committed');
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM pg_temp.calls('repeatable read');
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM pg_temp.calls('serializable');
SELECT count(*) AS predicate_locks FROM pg_locks
WHERE mode = 'SIReadLock'
	  AND relation IN (SELECT 'idem_record'::regclass
					   UNION ALL SELECT indexrelid FROM pg_index
					   WHERE indrelid = 'idem_record'::regclass);
COMMIT;
SELECT key, state FROM idem_record WHERE operation = 'isolation' ORDER BY key;
