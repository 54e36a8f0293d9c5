-- A function that says PARALLEL SAFE of itself and calls ours, which are not: the
-- claim would be that of a worker, which ends before the transaction does.  It is
-- refused, in the leader as well, and nothing is claimed.
CREATE TABLE numbers AS SELECT n FROM generate_series(1, 1000) AS n;
CREATE FUNCTION claim(n int) RETURNS text LANGUAGE sql PARALLEL SAFE
RETURN (SELECT outcome FROM idem_claim('t', 'parallel', 'k' || n));
CREATE FUNCTION lease(n int) RETURNS text LANGUAGE sql PARALLEL SAFE
RETURN (SELECT outcome FROM idem_claim('t', 'parallel', 'k' || n, lease => '1 min'));
CREATE FUNCTION replay(n int) RETURNS text LANGUAGE sql PARALLEL SAFE
RETURN (SELECT outcome FROM idem_replay('t', 'parallel', 'k' || n));
CREATE FUNCTION dispatch(n int) RETURNS text LANGUAGE sql PARALLEL SAFE
RETURN (SELECT state FROM idem_dispatch('parallel', 'w', n, '1 min'));
-- plpgsql, so that the plan is made within it
CREATE FUNCTION asked(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE format('SELECT %s(n) FROM numbers WHERE n = 7', call) INTO answer;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ' ' || sqlerrm;
END$$;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT claim(n) FROM numbers WHERE n = 7;
SELECT call, asked(call) FROM unnest('{claim,lease,replay,dispatch}'::text[]) AS call;

-- in the leader, with all that is asked of the catalogue remembered
SET parallel_leader_participation = on;
SET max_parallel_workers = 0;
SELECT outcome FROM idem_claim('t', 'parallel', 'k8', lease => '1 min');
SELECT state FROM idem_dispatch('parallel', 'w', 7, '1 min');
SELECT call, asked(call) FROM unnest('{claim,lease,replay,dispatch}'::text[]) AS call;
SELECT key, state, attempt FROM idem_record WHERE operation = 'parallel';

-- a digest is anybody's
SELECT count(DISTINCT idem_fingerprint(to_jsonb(n % 10), NULL)) FROM numbers;

DROP FUNCTION claim, lease, replay, dispatch, asked;
DROP TABLE numbers;
