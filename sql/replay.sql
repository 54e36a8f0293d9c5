-- Asking without claiming: what idem_replay answers, and that it only reads.
SELECT outcome, tenant, operation, key, token, attempt, state, created_at,
	   retry_after
FROM idem_replay('t', 'replay', 'none', '1');
SELECT idem_complete(idem_claim('t', 'replay', 'done', '1'), '{"a" :1}', 201,
					 'order 7', '{"h": 1}', '\x00');
SELECT idem_fail(idem_claim('t', 'replay', 'failed', '1'), '"no"', 500);
SELECT idem_complete(idem_claim('t', 'replay', 'expired', '1',
								ttl => '1 microsecond'), '"old"', 200, 'order 6');
SELECT idem_complete(idem_claim('t', 'replay', 'no request'), '"none"');
SELECT idem_release(idem_claim('t', 'replay', 'released', '1',
							   lease => '1 hour'), 'later');
SELECT outcome FROM idem_claim('t', 'replay', 'leased', '1', lease => '1 hour',
							   owner => 'me');
SELECT outcome FROM idem_claim('t', 'replay', 'lapsed', '1',
							   lease => '1 microsecond');

-- In a read-only transaction, with the same and with another request.
BEGIN READ ONLY;
SELECT outcome, state, attempt, token, code, resource, response, headers, body
FROM idem_replay('t', 'replay', 'done', '1.0');
SELECT outcome, state, attempt, token, code, resource, response, headers, body
FROM idem_replay('t', 'replay', 'done', '2');
SELECT key, r.request, outcome, state, attempt, token, response, code, resource,
	   reason, retry_after, owner
FROM unnest(ARRAY['failed', 'expired', 'no request', 'released', 'leased',
				  'lapsed', 'none']) AS k,
	 (VALUES (1, '1'::jsonb), (2, '2'), (3, NULL)) AS r(place, request),
	 idem_replay('t', 'replay', k, r.request)
ORDER BY key, place;
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE;
SELECT outcome, response FROM idem_replay('t', 'replay', 'done', '1');
COMMIT;

-- By fingerprint.
SELECT f, outcome, response
FROM (VALUES (1, idem_fingerprint('1')), (2, idem_fingerprint('2')), (3, NULL))
	 AS v(f, fingerprint), idem_replay('t', 'replay', 'done',
									   fingerprint => v.fingerprint);

-- It changes nothing, takes no lock and makes nobody an owner.
BEGIN;
SELECT outcome FROM idem_replay('t', 'replay', 'none', '1');
SELECT count(*) AS locks FROM pg_locks
WHERE locktype = 'advisory' AND pid = pg_backend_pid();
COMMIT;
SELECT state, attempt, count(*) FROM idem_record WHERE operation = 'replay'
GROUP BY state, attempt ORDER BY state;

-- Within the transaction of an open claim it says in_progress, then replays.
BEGIN;
SELECT idem_claim('t', 'replay', 'open', '1') AS ticket \gset
SELECT outcome, state, retry_after, response
FROM idem_replay('t', 'replay', 'open', '1');
SELECT outcome FROM idem_replay('t', 'replay', 'open', '2');
SELECT idem_complete(:'ticket'::idem_ticket, '"open"');
SELECT outcome, state, response FROM idem_replay('t', 'replay', 'open', '1');
ROLLBACK;
SELECT outcome, state FROM idem_replay('t', 'replay', 'open', '1');
-- a released one is as good as none
BEGIN;
SELECT idem_release(idem_claim('t', 'replay', 'open', '1'));
SELECT outcome, state FROM idem_replay('t', 'replay', 'open', '1');
COMMIT;
-- what the same command has completed is known
SELECT (SELECT outcome FROM idem_replay('t', 'replay', t.key)) AS before,
	   idem_complete(t, '1') IS NOT NULL AS completed,
	   (SELECT outcome FROM idem_replay('t', 'replay', t.key)) AS after
FROM idem_claim('t', 'replay', 'one command') AS t;

-- Another tenant learns nothing.
SELECT outcome, state, attempt, created_at, resource, response
FROM idem_replay('t2', 'replay', 'done', '1');

-- Asked once, whatever is read of its ticket, and not while it is only planned.
SELECT (r).outcome,
	   idem_complete(idem_claim('t', 'replay', 'one answer'), '1') IS NOT NULL
	   AS completed,
	   (r).outcome AS same, (r).response
FROM (SELECT idem_replay('t', 'replay', 'one answer') AS r) AS s;
DO $$
BEGIN
	EXECUTE 'EXPLAIN SELECT FROM pg_class
			 WHERE relname = (idem_replay(''t'', ''replay'', '''')).key';
END
$$;
