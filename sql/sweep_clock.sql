-- A clock that goes back, by itself or because another server took over, makes
-- nobody an answer of what was swept: replay means that the answer is there.
SELECT count(idem_complete(idem_claim('t', 'clock', key, '1', ttl => '1 us', guard => 'guard of ' || key), '"gone"', 201, 'order ' || key))
FROM unnest('{swept,kept}'::text[]) AS key;
SELECT token FROM idem_record WHERE operation = 'clock' AND key = 'swept' \gset
-- of two that have expired one is swept
SET session_replication_role = replica;		-- no trigger
SET client_min_messages = warning;
UPDATE idem_record SET expires_at = clock_timestamp() + interval '1 day' WHERE operation = 'clock' AND key = 'kept';
CALL idem_maintain();
-- as an earlier clock sees it, neither has expired
UPDATE idem_record SET expires_at = clock_timestamp() + interval '1 day' WHERE operation = 'clock';
RESET session_replication_role;
RESET client_min_messages;

CREATE FUNCTION pg_temp.never(request jsonb) RETURNS json
LANGUAGE plpgsql AS $$ BEGIN RAISE 'handler ran'; END $$;
SELECT key, call, (answer).outcome, (answer).response, (answer).resource, (answer).duplicate_of
FROM unnest('{swept,kept}'::text[]) AS key,
	 LATERAL (
		SELECT 'claim' AS call, idem_claim('t', 'clock', key, '1') AS answer
		UNION ALL SELECT 'leased', idem_claim('t', 'clock', key, '1', lease => '1 hour')
		UNION ALL SELECT 'batch', b FROM idem_claim_batch('t', 'clock', ARRAY[key], '{1}') AS b
		UNION ALL SELECT 'execute', idem_execute('t', 'clock', key, '1', 'pg_temp.never(jsonb)')
		UNION ALL SELECT 'replay', idem_replay('t', 'clock', key, '1')
		UNION ALL SELECT 'cancel', idem_cancel('t', 'clock', key, 'did it happen?')
		UNION ALL SELECT 'guard', idem_claim('t', 'clock', 'another', '1', guard => 'guard of ' || key)) AS told
ORDER BY key DESC, call;

-- nor does its owner learn that what he repeats is what was stored
\set VERBOSITY sqlstate
SELECT idem_complete('t', 'clock', 'swept', :token, '"gone"', 201, 'order swept');
SELECT idem_complete('t', 'clock', 'swept', :token, NULL, 201, 'order swept');
-- it is swept once, and by nobody's hand
SELECT count(*) FROM idem_record WHERE operation = 'clock' AND swept;
UPDATE idem_record SET swept = NULL WHERE operation = 'clock' AND key = 'swept';
