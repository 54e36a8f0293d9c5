-- Proves that the settings exist with their unit, bounds, default and who may
-- set them, and that no others can be invented.
\ir setup.psql
SELECT plan(9);

SELECT results_eq(
	$$SELECT name, vartype, unit, context, boot_val, min_val, max_val
	  FROM pg_settings WHERE name LIKE 'idempotency.%' ORDER BY name$$,
	$$VALUES
	('idempotency.allowed_tenants', 'string', NULL, 'superuser', '*', NULL,
	 NULL),
	('idempotency.durability', 'enum', NULL, 'superuser', 'local', NULL, NULL),
	('idempotency.max_response_size', 'integer', 'B', 'superuser',
	 '1048576', '0', '268435456'),
	('idempotency.stat_operations', 'integer', NULL, 'sighup', '256', '1', '10000'),
	('idempotency.tombstone_retention', 'integer', 's', 'superuser',
	 '-1', '-1', '2147483647'),
	('idempotency.ttl', 'integer', 's', 'user', '86400', '1', '2147483647'),
	('idempotency.wait', 'integer', 'ms', 'user', '0', '0', '86400000')$$,
	'settings');
SELECT is(enumvals, '{local,replicated}', 'values of idempotency.durability')
FROM pg_settings WHERE name = 'idempotency.durability';
SELECT is_empty(
	$$SELECT name FROM pg_settings WHERE name LIKE 'idempotency.%'
	  AND (short_desc = '' OR extra_desc IS NULL)$$,
	'every setting is described');

SELECT throws_ok('SET idempotency.no_such = 1', '42602', NULL,
	'an unknown name is refused');
SELECT throws_ok('SET idempotency.ttl = 0', '22023', NULL,
	'a ttl of nothing is refused');
SELECT throws_ok('SET idempotency.wait = ''2d''', '22023', NULL,
	'a wait of more than a day is refused');
SELECT throws_ok('SET idempotency.durability = ''none''', '22023', NULL,
	'an unknown durability is refused');

CREATE ROLE idem_fresh;
GRANT USAGE ON SCHEMA tap_only TO idem_fresh;
SET LOCAL ROLE idem_fresh;
SELECT lives_ok('SET idempotency.ttl = ''1h''', 'everybody may set a ttl');
SELECT throws_ok('SET idempotency.durability = ''local''', '42501', NULL,
	'only a superuser may set the durability');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
