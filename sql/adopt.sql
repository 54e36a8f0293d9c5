-- A copy hands out nothing and takes nothing over until somebody adopts it; what
-- was completed replays at once; what the original may have done since is
-- unknown (case 26).  Real copies: test/t/020_copy.pl.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CREATE TEMP VIEW calls AS
SELECT call, pg_temp.code_of(format('SELECT ' || call, idem_operation_id('t', 'adopt', 'pending', 'pay'))) AS code
FROM unnest(ARRAY['idem_dispatch(''adopt bank'', ''w'', 10, ''1 us'')', 'idem_send(%L, ''w'', ''1 us'')',
				  'idem_reconcile(''adopt bank'', ''w'', 10, ''1 us'')', 'idem_recover(''w'', 10, ''1 hour'')']) AS call;
CREATE VIEW pg_temp.intents AS
SELECT key, state, token IS NOT NULL AS token, lease_until > clock_timestamp() IS TRUE AS leased
FROM idem_intent WHERE operation = 'adopt';

SELECT count(*) AS origins, idem_is_copy() AS copy,
	   bool_and(database = (SELECT oid FROM pg_database WHERE datname = current_database())
				AND o.system_identifier = (SELECT system_identifier FROM pg_control_system())) AS right
FROM idem_origin o;
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
SELECT idem_is_copy() AS other_cluster;
ROLLBACK;
BEGIN;
UPDATE idem_origin SET database = '1';
SELECT idem_is_copy() AS other_database;
ROLLBACK;

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

-- Commands in every state: these, and what the intents belong to.
SELECT idem_claim('t', 'adopt', 'live', '1', lease => '1 hour') AS ticket \gset live_
SELECT outcome FROM idem_claim('t', 'adopt', 'gone', '1', lease => '1 us');
SELECT idem_release(idem_claim('t', 'adopt', 'released', '1', lease => '1 hour'), 'why');
SELECT idem_unknown(idem_claim('t', 'adopt', key, '1', lease => '1 hour'), 'why') FROM unnest(ARRAY['lost', 'decided']) AS key;
SELECT idem_resolve('t', 'adopt', 'decided', 'released', 'nothing happened');
SELECT count(idem_intend(idem_claim('t', 'adopt resend', key, lease => '1 hour'), 'pay', 'adopt shop', resend_safe_for => '1 hour'))
FROM unnest(ARRAY['old', 'young']) AS key;
UPDATE idem_intent SET created_at = created_at - interval '1 hour' WHERE operation = 'adopt resend' AND key = 'old';
CREATE FUNCTION pg_temp.handle(request jsonb) RETURNS jsonb LANGUAGE sql RETURN request;
CREATE VIEW pg_temp.commands AS
SELECT key, state, attempt, lease_until > clock_timestamp() AS leased, once_more, unknown_at IS NOT NULL AS by_verdict, reason
FROM idem_record WHERE operation = 'adopt';
CREATE VIEW pg_temp.hash AS
SELECT md5(string_agg(r::text, '' ORDER BY key)) AS hash FROM idem_record r WHERE operation = 'adopt';
SELECT * FROM pg_temp.commands ORDER BY key;

-- In a database that is no copy it changes nothing.
SELECT hash FROM pg_temp.hash \gset
SELECT count(*) AS events FROM idem_event \gset
SELECT idem_adopt(), idem_adopt(NULL, NULL), idem_adopt(nothing_since => true);
SELECT hash = :'hash' AS unchanged, (SELECT count(*) FROM idem_event) = :events AS no_event FROM pg_temp.hash;
SELECT * FROM pg_temp.intents WHERE state = 'in_flight' ORDER BY key;

-- As in a copy: the origin is another database, here of another cluster.
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
CALL pg_temp.refused('SELECT idem_dispatch(''adopt bank'', ''w'', 10, ''1 hour'')');
SELECT * FROM pg_temp.calls;
-- bad input is no way around
SELECT pg_temp.code_of('SELECT idem_recover('''', 0, ''0'')') AS bad_input;
SELECT outcome, response FROM idem_replay('t', 'adopt', 'done', '1');
SELECT outcome, response FROM idem_claim('t', 'adopt', 'done', '1');
-- Taking over what has lapsed, or was released by a decision, is recovery.
CALL pg_temp.refused('SELECT idem_claim(''t'', ''adopt'', ''gone'', ''1'')');
SELECT call, pg_temp.code_of('SELECT ' || call) FROM unnest(ARRAY[
	'idem_claim(''t'', ''adopt'', ''gone'', ''1'', lease => ''1 hour'')',
	'idem_claim(''t'', ''adopt'', ''lapsed'', lease => ''1 hour'')',
	'idem_claim(''t'', ''adopt'', ''decided'', ''1'')',
	'idem_claim_batch(''t'', ''adopt'', ''{new,gone}'', ''{1,1}'', lease => ''1 hour'')',
	'idem_execute(''t'', ''adopt'', ''gone'', ''1'', ''pg_temp.handle(jsonb)'')',
	'idem_recover_one(''t'', ''adopt'', ''gone'', ''w'', ''1 hour'')',
	'idem_cancel(''t'', ''adopt'', ''decided'', ''why'')']) AS call;
SELECT hash = :'hash' AS unchanged, (SELECT count(*) FROM idem_event) = :events AS no_event FROM pg_temp.hash;
-- Everything else goes its way.
SELECT k, outcome FROM unnest(ARRAY['live', 'gone', 'released', 'lost', 'decided']) AS k,
	idem_claim('t', 'adopt', k, '"other"');
SELECT outcome, state FROM idem_replay('t', 'adopt', 'gone', '1');
SELECT k, outcome FROM unnest(ARRAY['live', 'lost', 'new', 'released']) AS k,
	idem_claim('t', 'adopt', k, '1', lease => '1 hour');
SELECT outcome FROM idem_execute('t', 'adopt', 'handled', '1', 'pg_temp.handle(jsonb)');
SELECT idem_heartbeat(:'live_ticket'::idem_ticket, '2 hours') > now() AS live;
SELECT idem_complete('t', 'adopt', 'gone', token, '"late"') FROM idem_record WHERE operation = 'adopt' AND key = 'gone';
ROLLBACK;

-- Adopted: what cannot be known is unknown.
BEGIN;
UPDATE idem_origin SET system_identifier = system_identifier + 1;
SELECT idem_adopt();
SELECT count(*) AS origins, idem_is_copy() AS copy FROM idem_origin;
SELECT * FROM pg_temp.intents ORDER BY key;
SELECT * FROM pg_temp.commands ORDER BY key;
SELECT key, intent, attempt, from_state, to_state, actor = session_user AS actor, reason FROM idem_event
WHERE operation = 'adopt' AND reason LIKE '%copy%' ORDER BY key, intent NULLS FIRST;
SELECT pg_temp.code_of(format('SELECT idem_confirm(%L, %s)',
	idem_operation_id('t', 'adopt', 'in_flight', 'pay'), :token_in_flight)) AS old_token;
SELECT call, pg_temp.code_of(format('SELECT ' || call, :'live_ticket')) AS old_ticket
FROM unnest(ARRAY['idem_hold(%L::idem_ticket)', 'idem_heartbeat(%L::idem_ticket)', 'idem_complete(%L::idem_ticket)',
	'idem_intend(%L, ''more'', ''adopt bank'')']) AS call;
SELECT count(*) AS sent FROM idem_dispatch('adopt bank', 'w', 10, '1 hour');
-- The original may have sent it as soon as it was noted: the time in which the
-- target knows it is counted from there.
SELECT key, pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', operation_id)) AS send
FROM idem_intent WHERE operation = 'adopt resend' ORDER BY key;
SELECT count(*) AS recovered FROM idem_recover('w', 10, '1 hour') WHERE operation = 'adopt';
SELECT k, outcome FROM unnest(ARRAY['live', 'gone', 'decided']) AS k, idem_claim('t', 'adopt', k, '1');
-- Adopting again changes nothing.
SELECT hash FROM pg_temp.hash \gset again_
SELECT idem_adopt();
SELECT hash = :'again_hash' AS unchanged FROM pg_temp.hash;
-- The intents are settled, and sent if they did not happen; then a person
-- decides on the commands, which may have called others of which none is here.
SELECT key, (idem_settle(operation_id, token, CASE key WHEN 'pending' THEN 'absent' ELSE 'happened' END, '1')).state
FROM idem_reconcile('adopt bank', 'w', 10, '1 hour') ORDER BY key;
SELECT key, intent, next_call FROM idem_stuck WHERE operation = 'adopt' ORDER BY key, intent NULLS FIRST;
SELECT key FROM idem_dispatch('adopt bank', 'w', 10, '1 hour');
SELECT count(*) AS recovered FROM idem_recover('w', 10, '1 hour') WHERE operation = 'adopt';
SELECT count(idem_resolve(tenant, operation, key, 'released', 'looked')) FROM idem_stuck
WHERE operation = 'adopt' AND intent IS NULL AND key <> 'pending';
SELECT outcome, attempt FROM idem_claim('t', 'adopt', 'gone', '1', lease => '1 hour');
ROLLBACK;

-- Where the original was stopped before, all goes on as it was.
BEGIN;
UPDATE idem_origin SET database = '1';
SELECT idem_adopt(nothing_since => true);
SELECT idem_is_copy() AS copy, hash = :'hash' AS unchanged, (SELECT count(*) FROM idem_event) = :events AS no_event
FROM pg_temp.hash;
SELECT (idem_confirm(idem_operation_id('t', 'adopt', 'in_flight', 'pay'), :token_in_flight)).state AS old_token;
SELECT idem_hold(:'live_ticket'::idem_ticket) AS old_ticket;
SELECT key FROM idem_dispatch('adopt bank', 'w', 10, '1 hour');
SELECT key, outcome FROM idem_recover('w', 10, '1 hour') WHERE operation = 'adopt' ORDER BY key;
ROLLBACK;

-- A physical copy has the identity of its original: it has to be said.
BEGIN;
SELECT idem_adopt(physical => true);
SELECT idem_is_copy() AS copy;
SELECT state, count(*) FROM pg_temp.commands GROUP BY state ORDER BY state;
SELECT state, count(*) FROM pg_temp.intents GROUP BY state ORDER BY state;
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

-- Who adopts within the transaction of an atomic claim has lost it: its command
-- is unknown now.
SELECT outcome FROM idem_claim('t', 'adopt', 'own', '1', lease => '1 us');
BEGIN;
SELECT idem_claim('t', 'adopt', 'own', '1') AS ticket \gset
SELECT idem_adopt(physical => true);
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, ''1'')', :'ticket'));
SELECT state FROM idem_record WHERE operation = 'adopt' AND key = 'own';
SELECT from_state, to_state FROM idem_event WHERE operation = 'adopt' AND key = 'own';
ROLLBACK;
SELECT idem_complete(idem_claim('t', 'adopt', 'own', '1'));
