-- Proves what a user can rely on in the tables: columns, primary keys that
-- depend on no locale, permanence, dump registration, comments.
\ir setup.psql
SELECT plan(15);

CREATE VIEW pg_temp.tables AS
SELECT oid, relname::text COLLATE "default" AS name, relkind,
	   relpersistence, relreplident
FROM pg_class
WHERE relnamespace = 'idem_only'::regnamespace AND relkind <> 'c';

CREATE VIEW pg_temp.columns AS
SELECT t.name AS table_name, a.attnum,
	   a.attname::text COLLATE "default" AS name,
	   format_type(a.atttypid, a.atttypmod) AS data_type, a.attnotnull,
	   pg_get_expr(d.adbin, d.adrelid) COLLATE "default" AS default_value,
	   c.collname::text COLLATE "default" AS collname,
	   col_description(t.oid, a.attnum) AS comment
FROM pg_temp.tables t
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE t.relkind = 'r' AND NOT a.attisdropped;

SELECT results_eq(
	'SELECT name, relkind FROM pg_temp.tables ORDER BY name',
	$$VALUES
	('idem_event', 'r'::"char"),
	('idem_event_address', 'i'),
	('idem_event_id_seq', 'S'),
	('idem_event_pkey', 'i'),
	('idem_intent', 'r'),
	('idem_intent_address', 'i'),
	('idem_intent_due', 'i'),
	('idem_intent_open', 'i'),
	('idem_intent_pkey', 'i'),
	('idem_intent_resend', 'i'),
	('idem_origin', 'r'),
	('idem_origin_pkey', 'i'),
	('idem_overview', 'v'),
	('idem_policy', 'r'),
	('idem_policy_pkey', 'i'),
	('idem_policy_steps', 'r'),
	('idem_policy_steps_pkey', 'i'),
	('idem_progress', 'v'),
	('idem_record', 'r'),
	('idem_record_expiring', 'i'),
	('idem_record_guard', 'i'),
	('idem_record_open', 'i'),
	('idem_record_pkey', 'i'),
	('idem_record_tombstone', 'i'),
	('idem_stat', 'v'),
	('idem_step', 'r'),
	('idem_step_pkey', 'i'),
	('idem_stuck', 'v')$$,
	'tables and indexes');

SELECT results_eq(
	$$SELECT name, data_type, attnotnull, default_value FROM pg_temp.columns
	  WHERE table_name = 'idem_record' ORDER BY attnum$$,
	$$VALUES
	('created_at', 'timestamp with time zone', true, NULL),
	('completed_at', 'timestamp with time zone', false, NULL),
	('expires_at', 'timestamp with time zone', false, NULL),
	('lease_until', 'timestamp with time zone', false, NULL),
	('token', 'bigint', true, NULL),
	('attempt', 'integer', true, NULL),
	('policy_version', 'integer', false, NULL),
	('code', 'integer', false, NULL),
	('tenant', 'text', true, NULL),
	('operation', 'text', true, NULL),
	('key', 'text', true, NULL),
	('state', 'text', true, NULL),
	('fingerprint', 'bytea', false, NULL),
	('resource', 'text', false, NULL),
	('response', 'json', false, NULL),
	('headers', 'jsonb', false, NULL),
	('body', 'bytea', false, NULL),
	('ttl', 'interval', false, NULL),
	('request', 'jsonb', false, NULL),
	('owner', 'text', false, NULL),
	('reason', 'text', false, NULL),
	('once_more', 'boolean', false, NULL),
	('unknown_at', 'timestamp with time zone', false, NULL),
	('guard', 'text', false, NULL),
	('swept', 'boolean', false, NULL)$$,
	'columns of idem_record');

SELECT results_eq(
	$$SELECT name, data_type, attnotnull, default_value FROM pg_temp.columns
	  WHERE table_name = 'idem_policy' ORDER BY attnum$$,
	$$VALUES
	('operation', 'text', true, NULL),
	('ttl', 'interval', false, NULL),
	('lease', 'interval', false, NULL),
	('max_lease', 'interval', false, NULL),
	('wait', 'interval', false, NULL),
	('tombstone_retention', 'interval', false, NULL),
	('max_attempts', 'integer', false, NULL),
	('ignore_paths', 'text[]', false, NULL),
	('keep_request', 'boolean', true, 'false'),
	('steps', 'text[]', false, NULL),
	('version', 'integer', true, '1'),
	('comment', 'text', false, NULL),
	('notify', 'text', false, NULL)$$,
	'columns of idem_policy');

SELECT col_is_pk('idem_only', 'idem_record',
	ARRAY['tenant', 'operation', 'key'],
	'the primary key of idem_record is the address');
SELECT col_is_pk('idem_only', 'idem_policy', ARRAY['operation'],
	'the primary key of idem_policy is the operation');

SELECT is_empty(
	$$SELECT name FROM pg_temp.tables t WHERE relkind = 'r' AND NOT EXISTS (
		SELECT FROM pg_index WHERE indrelid = t.oid AND indisprimary
		AND indimmediate AND indisvalid AND indpred IS NULL
		AND indexprs IS NULL)$$,
	'every table has a plain primary key, not deferrable');

SELECT is_empty(
	$$SELECT i.indexrelid::regclass, a.attname
	  FROM pg_temp.tables t JOIN pg_index i ON i.indrelid = t.oid
	  JOIN pg_attribute a ON a.attrelid = i.indexrelid
	  WHERE a.attcollation <> 0
	  AND a.attcollation <> 'pg_catalog."C"'::regcollation$$,
	'no index depends on a locale');

SELECT is_empty(
	$$SELECT name FROM pg_temp.columns WHERE table_name = 'idem_record'
	  AND collname <> 'C'$$,
	'no text of idem_record depends on a locale');

SELECT is_empty(
	$$SELECT name FROM pg_temp.tables WHERE relpersistence <> 'p'$$,
	'everything is permanent and logged');

SELECT is_empty(
	$$SELECT name FROM pg_temp.tables
	  WHERE relkind = 'r' AND relreplident <> 'd'$$,
	'the primary keys are the replica identity');

SELECT results_eq(
	$$SELECT c, condition COLLATE "default" FROM pg_extension,
	  unnest(extconfig, extcondition) AS u (c, condition)
	  WHERE extname = 'idempotency' ORDER BY c$$,
	$$SELECT oid, '' FROM pg_temp.tables WHERE relkind IN ('r', 'S') ORDER BY oid$$,
	'every table is registered for dump, whole');

SELECT is_empty(
	$$SELECT conname FROM pg_constraint
	  WHERE connamespace = 'idem_only'::regnamespace AND contype = 'f'$$,
	'no foreign key that the order of a restore could break');

SELECT results_eq(
	$$SELECT table_name, name FROM pg_temp.columns
	  WHERE data_type ~ '^(oid|reg.*)(\[\])?$'$$,
	$$VALUES ('idem_origin', 'database')$$,
	'no oid that a restore could make another one, but what tells a copy');

SELECT is_empty(
	$$SELECT name FROM pg_temp.tables WHERE relkind = 'r'
	  AND obj_description(oid, 'pg_class') IS NULL$$,
	'every table has a comment');
SELECT is_empty(
	'SELECT table_name, name FROM pg_temp.columns WHERE comment IS NULL',
	'every column of a table has a comment');

SELECT * FROM finish();
ROLLBACK;
