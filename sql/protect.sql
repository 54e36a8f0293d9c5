-- The table holds everybody to the state machine: changes made by hand are
-- refused (ID003), by its owner and a superuser, too.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

SELECT idem_complete(idem_claim('t', 'protect', 'succeeded', '1'), '"r"', 200, 'order 7', '{"h": 1}', '\x00');
SELECT idem_fail(idem_claim('t', 'protect', 'failed', '1'), '"r"');
SELECT idem_complete(idem_claim('t', 'protect', 'expired', '1', ttl => '1 microsecond'), '"r"', 200, 'order 8', '{"h": 1}', '\x00');
SELECT idem_release(idem_claim('t', 'protect', 'released', '1', lease => '1 hour'), 'why');
SELECT outcome FROM idem_claim('t', 'protect', 'processing', '1', guard => 'g', lease => '1 hour');
INSERT INTO idem_record (created_at, completed_at, expires_at, token, attempt,
						 tenant, operation, key, state)
VALUES (now(), NULL, NULL, 1, 3, 't', 'protect', 'unknown', 'unknown'),
	   (now(), now(), now() + '1 day', 1, 1, 't', 'protect', 'cancelled', 'cancelled');
SELECT md5(string_agg(r::text, '' ORDER BY key)) AS rows
FROM idem_record AS r WHERE operation = 'protect' \gset before_

CALL pg_temp.refused($$DELETE FROM idem_record WHERE operation = 'protect'$$);
CALL pg_temp.refused('TRUNCATE idem_record');
CALL pg_temp.refused($$UPDATE idem_record SET state = 'failed' WHERE operation = 'protect' AND key = 'succeeded'$$);
CALL pg_temp.refused($$UPDATE idem_record SET response = '"s"' WHERE operation = 'protect' AND key = 'succeeded'$$);
CALL pg_temp.refused($$UPDATE idem_record SET fingerprint = NULL WHERE operation = 'protect' AND key = 'processing'$$);
CALL pg_temp.refused($$UPDATE idem_record SET attempt = 3 WHERE operation = 'protect' AND key = 'processing'$$);
CALL pg_temp.refused($$UPDATE idem_record SET state = 'cancelled', completed_at = now(), expires_at = now(), lease_until = NULL
	WHERE operation = 'protect' AND key = 'processing'$$);

-- Every column of a final record is refused, also after expiry; of the others
-- those that never change (a guard once it is there), and what the table's constraints do not allow.
BEGIN;
SELECT key, string_agg(attname, ' ' ORDER BY attnum) FILTER (WHERE code = 'ID003') AS refused,
	   string_agg(attname || ' ' || code, ' ' ORDER BY attnum)
	   FILTER (WHERE code NOT IN ('ID003', 'accepted')) AS by_constraint
FROM unnest(ARRAY['succeeded', 'failed', 'expired', 'cancelled', 'processing', 'released']) AS k(key),
	 pg_attribute AS a,
	 LATERAL (SELECT CASE atttypid::regtype::text
			WHEN 'timestamp with time zone' THEN '''2000-01-01'''
			WHEN 'bytea' THEN '''\x00'' || sha256(''99'')'
			ELSE '''99''' END) AS v(value),
	 LATERAL pg_temp.code_of(format($$UPDATE idem_record SET %I = %s WHERE operation = 'protect' AND key = %L$$,
							 attname, value, key)) AS c(code)
WHERE attrelid = 'idem_record'::regclass AND attnum > 0
GROUP BY key ORDER BY key;
ROLLBACK;
-- Every state that one state does not lead to.
BEGIN;
SELECT key, string_agg(state || ' ' || pg_temp.code_of(format(
	$$UPDATE idem_record SET state = %L,
	  completed_at = CASE WHEN %3$L THEN now() END, expires_at = CASE WHEN %3$L THEN now() END,
	  lease_until = CASE WHEN %1$L = 'processing' THEN now() END
	  WHERE operation = 'protect' AND key = %2$L$$,
	state, key, state IN ('succeeded', 'failed', 'cancelled'))), ', ') AS to_state
FROM unnest(ARRAY['succeeded', 'failed', 'cancelled', 'released', 'unknown']) AS k(key),
	 unnest(ARRAY['processing', 'released', 'succeeded', 'failed', 'unknown', 'cancelled', 'none']) AS s(state)
WHERE key <> state AND NOT (key = 'released' AND state IN ('processing', 'unknown'))
	  AND NOT (key = 'unknown' AND state IN ('succeeded', 'failed', 'released'))
GROUP BY key ORDER BY key;
ROLLBACK;

-- No change, and a legal one, are accepted: handing a released record out
-- again.
UPDATE idem_record SET code = code WHERE operation = 'protect' AND state <> 'unknown';
SELECT md5(string_agg(r::text, '' ORDER BY key)) = :'before_rows' AS unchanged
FROM idem_record AS r WHERE operation = 'protect';
BEGIN;
UPDATE idem_record SET state = 'processing', lease_until = now(), attempt = 2, token = 5
WHERE operation = 'protect' AND key = 'released';
ROLLBACK;
-- Sweeping and purging is for idem_sweep alone.
SELECT pg_temp.code_of($$UPDATE idem_record SET response = NULL WHERE operation = 'protect' AND key = 'expired'$$) AS sweep,
	   pg_temp.code_of($$DELETE FROM idem_record WHERE operation = 'protect' AND key = 'expired'$$) AS purge;

-- Rows without meaning cannot be inserted either.
CREATE FUNCTION pg_temp.insert(change jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.code_of(format(
		'INSERT INTO idem_record SELECT (jsonb_populate_record(NULL::idem_record, %L)).*',
		'{"created_at": "2000-01-01", "token": 1, "attempt": 1, "tenant": "t",
		  "operation": "protect", "key": "new", "state": "released"}'::jsonb || change))
$$;
SELECT change, pg_temp.insert(change)
FROM unnest(ARRAY[
	'{"state": "done"}', '{"state": null}', '{"attempt": 0}', '{"token": 0}',
	'{"token": null}', '{"tenant": null}', '{"fingerprint": "\\x00"}',
	'{"lease_until": "2000-01-01"}', '{"state": "processing"}',
	'{"state": "succeeded"}', '{"state": "succeeded", "completed_at": "2000-01-01"}',
	'{"completed_at": "2000-01-01", "expires_at": "2000-01-02"}',
	'{"key": "succeeded"}', '{}']::jsonb[]) AS change;

-- Its trigger is of no use elsewhere.
CREATE TEMP TABLE other (a int);
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON other FOR EACH ROW EXECUTE FUNCTION idem_record_protect();
INSERT INTO other VALUES (1);
\echo :SQLSTATE
SELECT idem_record_protect();
\echo :SQLSTATE
