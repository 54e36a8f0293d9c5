-- What a policy may not hold is refused, by whatever way it is written; and
-- every way of writing it counts at once, until it is rolled back.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CALL pg_temp.refused($$SELECT idem_define(NULL)$$);
CALL pg_temp.refused($$SELECT idem_define(' ')$$);
CALL pg_temp.refused($$SELECT idem_define(repeat('x', 129))$$);
CALL pg_temp.refused($$SELECT idem_define('values', ttl => '0')$$);
CALL pg_temp.refused($$SELECT idem_define('values', ttl => '1 month')$$);
CALL pg_temp.refused($$SELECT idem_define('values', lease => '-1 hour')$$);
CALL pg_temp.refused($$SELECT idem_define('values', max_lease => '36501 days')$$);
CALL pg_temp.refused($$SELECT idem_define('values', tombstone_retention => '0')$$);
CALL pg_temp.refused($$SELECT idem_define('values', wait => '-1 second')$$);
CALL pg_temp.refused($$SELECT idem_define('values', wait => '24:00:00.001')$$);
CALL pg_temp.refused($$SELECT idem_define('values', lease => '2 hours', max_lease => '1 hour')$$);
CALL pg_temp.refused($$SELECT idem_define('values', max_attempts => 0)$$);
CALL pg_temp.refused($$SELECT idem_define('values', max_attempts => -1)$$);
CALL pg_temp.refused($$SELECT idem_define('values', ignore_paths => '{a}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', ignore_paths => '{/a,NULL}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => '{a,b,a}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => '{a,NULL}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => '{a," "}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => ARRAY[repeat('x', 129)])$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => '{{a},{b}}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', steps => '{}')$$);
CALL pg_temp.refused($$SELECT idem_define('values', notify => '')$$);
CALL pg_temp.refused($$SELECT idem_define('values', notify => E' \n')$$);
CALL pg_temp.refused($$SELECT idem_define('values', notify => repeat('é', 32))$$);
SELECT count(*) AS rows FROM idem_policy WHERE operation = 'values';
-- both sides of the bounds
SELECT * FROM idem_define(repeat('x', 128), '1 microsecond', '1 microsecond',
						  '1 microsecond', '0', '1 microsecond', 1,
						  '{}', NULL, ARRAY[repeat('s', 128)]) \gset
SELECT version FROM idem_define('values', '36500 days', '36500 days', '36500 days',
								'1 day', '36500 days', 2147483647, notify => repeat('é', 31) || 'x');
-- the channel counts as a change
SELECT version, octet_length(notify) FROM idem_define('values', '36500 days', '36500 days', '36500 days',
								'1 day', '36500 days', 2147483647, notify => 'x');

-- By hand.
SELECT what, pg_temp.code_of(command)
FROM (VALUES
	('insert', $$INSERT INTO idem_policy (operation, ttl) VALUES ('hand', '0')$$),
	('no operation', $$INSERT INTO idem_policy (ttl) VALUES ('1 day')$$),
	('version', $$INSERT INTO idem_policy (operation, version) VALUES ('hand', 0)$$),
	('no version', $$INSERT INTO idem_policy (operation, version) VALUES ('hand', NULL)$$),
	('no keep', $$INSERT INTO idem_policy (operation, keep_request) VALUES ('hand', NULL)$$),
	('update', $$UPDATE idem_policy SET lease = '1 month' WHERE operation = 'values'$$),
	('blank', $$UPDATE idem_policy SET operation = '' WHERE operation = 'values'$$))
	AS v(what, command);

-- Every change counts at once, also within its transaction; a rollback takes
-- it back.
CREATE FUNCTION pg_temp.ttl() RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
	found interval;
BEGIN
	PERFORM idem_complete(idem_claim('t', 'hand', 'a'));
	SELECT expires_at - completed_at INTO found FROM idem_replay('t', 'hand', 'a');
	RAISE EXCEPTION USING MESSAGE = found;	-- leaves no record behind
EXCEPTION WHEN raise_exception THEN
	RETURN sqlerrm;
END
$$;
SELECT pg_temp.ttl() AS none;
INSERT INTO idem_policy (operation, ttl) VALUES ('hand', '2 days');
SELECT pg_temp.ttl() AS inserted;
BEGIN;
UPDATE idem_policy SET ttl = '3 days' WHERE operation = 'hand';
SELECT pg_temp.ttl() AS updated;
SAVEPOINT s;
SELECT ttl FROM idem_define('hand', ttl => '4 days');
SELECT pg_temp.ttl() AS defined;
ROLLBACK TO s;
SELECT pg_temp.ttl() AS back_to_savepoint;
ROLLBACK;
SELECT pg_temp.ttl() AS rolled_back;
BEGIN;
SELECT ttl FROM idem_define('hand', ttl => '5 days');
COMMIT;
SELECT pg_temp.ttl() AS committed;
DELETE FROM idem_policy WHERE operation = 'hand';
SELECT pg_temp.ttl() AS deleted;
COPY idem_policy (operation, ttl) FROM stdin;
hand	6 days
\.
SELECT pg_temp.ttl() AS copied;
BEGIN;
TRUNCATE idem_policy;
SELECT pg_temp.ttl() AS truncated;
ROLLBACK;
SELECT pg_temp.ttl() AS restored;
-- the trigger is one of idem_policy only
CREATE TEMP TABLE other (operation text);
CREATE TRIGGER t BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION idem_policy_check();
INSERT INTO other VALUES ('x');
\echo :SQLSTATE
DELETE FROM idem_policy WHERE operation IN ('hand', 'values', repeat('x', 128));
-- many names are compared without keeping a copy of each comparison
SELECT cardinality(steps) FROM idem_define('many', steps => ARRAY(SELECT 's' || n FROM generate_series(1, 2000) n));
DELETE FROM idem_policy WHERE operation = 'many';
