-- Commands made of real payloads, and the same records in hand-written tables.
CREATE TABLE payloads (n integer PRIMARY KEY, event text NOT NULL, payload jsonb NOT NULL);

-- Every "step"th command from "first" on; the oldest seven in ten have expired,
-- two more expire within the next minutes, one in ten lives on.
CREATE PROCEDURE load_commands(first integer, last integer, step integer) LANGUAGE plpgsql AS $$
DECLARE
	kinds integer := (SELECT count(*) FROM payloads);
	given payloads;
	age double precision;
	made integer := 0;
BEGIN
	FOR kind IN 0 .. kinds - 1 LOOP
		SELECT * INTO given FROM payloads p WHERE p.n = kind;
		FOR i IN first + step * kind .. last BY step * kinds LOOP
			age := random();
			PERFORM idem_complete(
				idem_claim('octokit', given.event, 'delivery-' || i, given.payload,
						   ttl => CASE WHEN age < 0.7 THEN interval '1 microsecond'
									   WHEN age < 0.9 THEN interval '10 minutes' * random()
									   ELSE interval '30 days' END),
				coalesce((given.payload->'sender')::text, '{"ok": true}')::json, 200, 'delivery/' || i);
			made := made + 1;
			IF made % 500 = 0 THEN
				COMMIT;
			END IF;
		END LOOP;
	END LOOP;
	COMMIT;
END
$$;

-- What people write instead: a row that is deleted, or that loses its response.
CREATE TABLE hand_deleted AS
SELECT created_at, completed_at, expires_at, code, tenant, operation, key, state, fingerprint, resource, response
FROM idem_record LIMIT 0;
CREATE TABLE hand_updated (LIKE hand_deleted);

CREATE FUNCTION delete_batch(n integer) RETURNS bigint LANGUAGE sql AS $$
	WITH gone AS (
		DELETE FROM hand_deleted WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM hand_deleted WHERE expires_at <= now()
			ORDER BY expires_at LIMIT n FOR UPDATE SKIP LOCKED))
		RETURNING 1)
	SELECT count(*) FROM gone
$$;
CREATE FUNCTION update_batch(n integer) RETURNS bigint LANGUAGE sql AS $$
	WITH gone AS (
		UPDATE hand_updated SET response = NULL WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM hand_updated WHERE expires_at <= now() AND response IS NOT NULL
			ORDER BY expires_at LIMIT n FOR UPDATE SKIP LOCKED))
		RETURNING 1)
	SELECT count(*) FROM gone
$$;
