-- Proves that the composite types have the documented columns in their order:
-- clients read tickets by position.
\ir setup.psql
SELECT plan(5);

CREATE VIEW pg_temp.columns AS
SELECT c.relname::text COLLATE "default" AS type, a.attnum,
	   a.attname::text COLLATE "default" AS name,
	   format_type(a.atttypid, a.atttypmod) AS data_type,
	   col_description(c.oid, a.attnum) AS comment
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'c' AND c.relnamespace = 'idem_only'::regnamespace;

SELECT results_eq(
	'SELECT DISTINCT type FROM pg_temp.columns ORDER BY type',
	$$VALUES ('idem_response'), ('idem_ticket')$$,
	'the composite types are idem_response and idem_ticket');

SELECT results_eq(
	$$SELECT name, data_type FROM pg_temp.columns
	  WHERE type = 'idem_ticket' ORDER BY attnum$$,
	$$VALUES
	('outcome', 'text'),
	('tenant', 'text'),
	('operation', 'text'),
	('key', 'text'),
	('token', 'bigint'),
	('attempt', 'integer'),
	('state', 'text'),
	('created_at', 'timestamp with time zone'),
	('completed_at', 'timestamp with time zone'),
	('expires_at', 'timestamp with time zone'),
	('lease_until', 'timestamp with time zone'),
	('retry_after', 'interval'),
	('code', 'integer'),
	('resource', 'text'),
	('response', 'json'),
	('headers', 'jsonb'),
	('body', 'bytea'),
	('request', 'jsonb'),
	('owner', 'text'),
	('reason', 'text'),
	('duplicate_of', 'text')$$,
	'columns of idem_ticket');

SELECT results_eq(
	$$SELECT name, data_type FROM pg_temp.columns
	  WHERE type = 'idem_response' ORDER BY attnum$$,
	$$VALUES
	('response', 'json'),
	('code', 'integer'),
	('resource', 'text'),
	('headers', 'jsonb'),
	('body', 'bytea'),
	('state', 'text')$$,
	'columns of idem_response');

SELECT is_empty(
	'SELECT type, name FROM pg_temp.columns WHERE comment IS NULL',
	'every column of a type has a comment');

SELECT is_empty(
	$$SELECT typname FROM pg_type t
	  WHERE typnamespace = 'idem_only'::regnamespace AND typtype = 'c'
	  AND typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c')
	  AND obj_description(oid, 'pg_type') IS NULL$$,
	'every type has a comment');

SELECT * FROM finish();
ROLLBACK;
