-- A copy hands out nothing and recovers nothing until somebody adopts it; what
-- was completed replays at once (case 26).  Real copies: test/t/020_copy.pl.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE VIEW pg_temp.calls AS
SELECT call, pg_temp.code_of(format('SELECT ' || call, idem_operation_id('t', 'adopt', 'pending', 'pay'))) AS code
FROM unnest(ARRAY['idem_dispatch(''adopt bank'', ''w'', 10, ''1 us'')', 'idem_send(%L, ''w'', ''1 us'')',
				  'idem_reconcile(''adopt bank'', ''w'', 10, ''1 us'')', 'idem_recover(''w'', 10, ''1 hour'')']) AS call;
CREATE VIEW pg_temp.intents AS
SELECT key, state, token IS NOT NULL AS token, lease_until > clock_timestamp() IS TRUE AS leased
FROM idem_intent WHERE operation = 'adopt';

SELECT count(*) AS origins, bool_and(idem_is_here(system_identifier, database)) AS here,
	   bool_and(database = (SELECT oid FROM pg_database WHERE datname = current_database())
				AND o.system_identifier = (SELECT system_identifier FROM pg_control_system())) AS right
FROM idem_origin o;
SELECT idem_is_here(system_identifier + 1, database) AS other_cluster,
	   idem_is_here(system_identifier, '1') AS other_database,
	   idem_is_here(NULL, database) AS no_cluster, idem_is_here(system_identifier, NULL) AS no_database
FROM idem_origin;

-- The state of things in the original.
SELECT count(*) >= 0 AS drained FROM idem_recover('drain', 10000, '1 day');
SELECT idem_claim('t', 'adopt', 'done', '1', lease => '1 hour') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket, '{"id" : 1}');
SELECT count(idem_intend(idem_claim('t', 'adopt', key, lease => '1 us'), 'pay', 'adopt bank', send => true))
FROM unnest(ARRAY['confirmed', 'rejected', 'unknown', 'in_flight', 'lapsed']) AS key;
SELECT token AS confirmed FROM idem_send(idem_operation_id('t', 'adopt', 'confirmed', 'pay'), 'w', '1 hour') \gset token_
SELECT token AS rejected FROM idem_send(idem_operation_id('t', 'adopt', 'rejected', 'pay'), 'w', '1 hour') \gset token_
SELECT state FROM idem_confirm(idem_operation_id('t', 'adopt', 'confirmed', 'pay'), :token_confirmed, '1');
SELECT state FROM idem_reject(idem_operation_id('t', 'adopt', 'rejected', 'pay'), :token_rejected, 'no');
SELECT key FROM idem_dispatch('adopt bank', 'w', 1, '1 us');
SELECT token FROM idem_reconcile('adopt bank', 'w', 10, '1 hour') \gset
SELECT state FROM idem_settle(idem_operation_id('t', 'adopt', 'unknown', 'pay'), :token, 'unclear', '1');
SELECT token AS in_flight FROM idem_dispatch('adopt bank', 'w', 1, '1 hour') \gset token_
SELECT key FROM idem_dispatch('adopt bank', 'w', 1, '1 us');
SELECT count(idem_intend(idem_claim('t', 'adopt', 'pending', lease => '1 us'), 'pay', 'adopt bank', send => true));
SELECT * FROM pg_temp.intents ORDER BY key;

-- As in a copy: the origin is another database, here of another cluster.
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
CALL pg_temp.refused('SELECT idem_dispatch(''adopt bank'', ''w'', 10, ''1 hour'')');
SELECT * FROM pg_temp.calls;
-- bad input is no way around
SELECT pg_temp.code_of('SELECT idem_recover('''', 0, ''0'')') AS bad_input;
SELECT outcome, response FROM idem_replay('t', 'adopt', 'done', '1');
SELECT outcome, response FROM idem_claim('t', 'adopt', 'done', '1');
SELECT * FROM pg_temp.intents ORDER BY key;
-- What was in flight when the copy was made is unknown here.
SELECT idem_adopt();
SELECT count(*) AS origins, bool_and(idem_is_here(system_identifier, database)) AS here FROM idem_origin;
SELECT * FROM pg_temp.intents ORDER BY key;
SELECT key, intent, from_state, to_state, actor = session_user AS actor, reason FROM idem_event
WHERE operation = 'adopt' AND reason LIKE '%copy%' ORDER BY key;
SELECT pg_temp.code_of(format('SELECT idem_confirm(%L, %s)',
	idem_operation_id('t', 'adopt', 'in_flight', 'pay'), :token_in_flight)) AS old_token;
SELECT key FROM idem_reconcile('adopt bank', 'w', 10, '1 hour') ORDER BY key;
SELECT key FROM idem_dispatch('adopt bank', 'w', 10, '1 hour');
SELECT key, outcome FROM idem_recover('w', 10, '1 hour') WHERE operation = 'adopt' ORDER BY key;
SELECT key, state FROM idem_record WHERE operation = 'adopt' ORDER BY key;
ROLLBACK;

-- A dump restored over a fresh extension has both origins; the other database
-- of the same cluster is a copy too.
BEGIN;
INSERT INTO idem_origin SELECT system_identifier, 1, adopted_at FROM idem_origin;
SELECT * FROM pg_temp.calls;
SELECT idem_adopt();
SELECT count(*) AS origins FROM idem_origin;
ROLLBACK;
SELECT * FROM pg_temp.calls;
