-- Ordinary outcomes are data: the caller's transaction stays usable, commits,
-- and what it wrote before and after them is there.
SELECT idem_complete(idem_claim('t', 'outcomes', 'done', '1'), '"done"');
SELECT idem_complete(idem_claim('t', 'outcomes', 'expired', '1',
								ttl => '1 microsecond'));
SELECT outcome FROM idem_claim('t', 'outcomes', 'lapsed', '1',
							   lease => '1 microsecond');
SELECT idem_release(idem_claim('t', 'outcomes', 'released', '1',
							   lease => '1 hour'));
SELECT outcome FROM idem_claim('t', 'outcomes', 'leased', '1', lease => '1 hour');
-- no verb of this room makes these two
INSERT INTO idem_record (created_at, completed_at, expires_at, token, attempt,
						 tenant, operation, key, state, fingerprint, reason)
VALUES (now(), NULL, NULL, 1, 3, 't', 'outcomes', 'unknown', 'unknown',
		idem_fingerprint('1'), 'timeout'),
	   (now(), now(), now() + '1 day', 1, 1, 't', 'outcomes', 'cancelled',
		'cancelled', idem_fingerprint('1'), 'asked for');

CREATE TABLE outcomes_work (what text);
BEGIN;
INSERT INTO outcomes_work VALUES ('before');
SELECT key, place, outcome, state, attempt, response, reason,
	   token IS NOT NULL AS token
FROM unnest(ARRAY['done', 'expired', 'leased', 'unknown', 'cancelled'])
	 AS k,
	 (VALUES (1, '1'::jsonb), (2, '2'), (3, NULL)) AS r(place, request),
	 idem_claim('t', 'outcomes', k, r.request)
ORDER BY key, place;
SELECT outcome, attempt FROM idem_claim('t', 'outcomes', 'lapsed', '1', lease => '1 hour');
SELECT outcome, attempt FROM idem_claim('t', 'outcomes', 'released', '1', lease => '1 hour');
SELECT outcome, attempt FROM idem_claim('t', 'outcomes', 'leased', '1',
										wait => '5 milliseconds');
INSERT INTO outcomes_work VALUES ('after');
COMMIT;
SELECT * FROM outcomes_work;

-- The same from a function that writes and claims at once.
CREATE FUNCTION outcomes_order(key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket := idem_claim('t', 'outcomes', key, '1');
BEGIN
	INSERT INTO outcomes_work VALUES (key || ': ' || ticket.outcome);
	IF ticket.outcome IN ('execute', 'resume') THEN
		PERFORM idem_complete(ticket, '"new"');
	END IF;
	RETURN ticket.outcome;
END
$$;
SELECT k, outcomes_order(k)
FROM unnest(ARRAY['done', 'expired', 'unknown', 'cancelled', 'new', 'new']) AS k;
SELECT * FROM outcomes_work;
DROP FUNCTION outcomes_order;
DROP TABLE outcomes_work;

-- A row written by hand under a claim's nose is an internal error of one
-- command, never a unique violation.
BEGIN;
SELECT idem_claim('t', 'outcomes', 'by hand', '1') AS ticket \gset
INSERT INTO idem_record (created_at, lease_until, token, attempt, tenant,
						 operation, key, state)
VALUES (now(), now(), 1, 1, 't', 'outcomes', 'by hand', 'processing');
SELECT idem_complete(:'ticket'::idem_ticket);
\echo :SQLSTATE
ROLLBACK;
