-- A policy's steps: legal names and their order, in the version that the
-- command began with.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

SELECT version FROM idem_define('steps', steps => '{reserve,charge,ship}');
SELECT idem_claim('t', 'steps', 'a', lease => '1 hour') AS ticket \gset

-- Unknown names.
CALL pg_temp.refused(format('SELECT idem_step(%L, ''refund'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_intend(%L, ''Charge'', ''bank'')', :'ticket'));
SELECT name, pg_temp.code_of(format('SELECT idem_step(%L, %L)', :'ticket', name)) AS step,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, %L)', :'ticket', name)) AS step_done,
	   pg_temp.code_of(format('SELECT idem_intend(%L, %L, ''bank'')', :'ticket', name)) AS intend
FROM unnest(ARRAY[NULL, '', 'refund', 'reserve ', 'RESERVE']) AS name;

-- Out of order: asked or done, nothing is changed.
CALL pg_temp.refused(format('SELECT idem_step(%L, ''charge'')', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_step_done(%L, ''ship'')', :'ticket'));
SELECT count(*) AS steps FROM idem_step WHERE operation = 'steps';

-- In order; what is done can be asked for again at any time.
SELECT done FROM idem_step(:'ticket', 'reserve');
SELECT idem_step_done(:'ticket', 'reserve', '1');
SELECT pg_temp.code_of(format('SELECT idem_step(%L, ''ship'')', :'ticket')) AS ship_before_charge;
SELECT idem_step_done(:'ticket', 'charge', '2');
SELECT idem_step_done(:'ticket', 'reserve', '1');
SELECT name, s.* FROM unnest(ARRAY['reserve', 'charge', 'ship']) AS name,
	idem_step(:'ticket', name) AS s;

-- A deploy in between: the command keeps its steps, a new one has the new ones.
SELECT version FROM idem_define('steps', steps => '{ship,insure}');
SELECT idem_claim('t', 'steps', 'b', lease => '1 hour') AS ticket \gset new_
SELECT key, policy_version FROM idem_record WHERE operation = 'steps' ORDER BY key;
SELECT name, pg_temp.code_of(format('SELECT idem_step(%L, %L)', :'ticket', name)) AS old,
	   pg_temp.code_of(format('SELECT idem_step(%L, %L)', :'new_ticket', name)) AS new
FROM unnest(ARRAY['reserve', 'charge', 'ship', 'insure']) AS name;
-- also in its next attempts
SELECT idem_heartbeat(:'ticket'::idem_ticket, '1 us') IS NOT NULL AS lapsed;
SELECT idem_claim('t', 'steps', 'a', lease => '1 hour') AS ticket \gset
SELECT (:'ticket'::idem_ticket).outcome, policy_version FROM idem_record
WHERE operation = 'steps' AND key = 'a';
SELECT idem_step_done(:'ticket', 'ship', '3');
SELECT idem_release(:'ticket'::idem_ticket);
SELECT idem_claim('t', 'steps', 'a', lease => '1 hour') AS ticket \gset
SELECT pg_temp.code_of(format('SELECT idem_step(%L, ''insure'')', :'ticket')) AS insure,
	   done, result FROM idem_step(:'ticket', 'ship');

-- A change of anything else does not change the steps.
SELECT version, steps FROM idem_define('steps', ttl => '1 day', steps => '{ship,insure}');
SELECT pg_temp.code_of(format('SELECT idem_step(%L, ''insure'')', :'new_ticket')) AS out_of_order,
	   pg_temp.code_of(format('SELECT idem_step(%L, ''ship'')', :'new_ticket')) AS legal;

-- Without steps, or begun without a policy, any name is legal.
SELECT version FROM idem_define('steps');
SELECT idem_claim('t', 'steps', 'c', lease => '1 hour') AS ticket \gset any_
SELECT idem_claim('t', 'steps later', 'a', lease => '1 hour') AS ticket \gset none_
SELECT version FROM idem_define('steps later', steps => '{reserve}');
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''insure'')', :'any_ticket')) AS any_step,
	   pg_temp.code_of(format('SELECT idem_step_done(%L, ''insure'')', :'none_ticket')) AS begun_before;

-- An intent is a step that is done once it is confirmed: not while it is to be
-- sent, in flight or in question, and never when it was rejected.
SELECT version FROM idem_define('steps', steps => '{charge,ship}');
SELECT idem_claim('t', 'steps', 'd', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'charge', 'steps bank') \gset
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''ship'')', :'ticket')) AS pending,
	   pg_temp.code_of(format('SELECT idem_intend(%L, ''ship'', ''carrier'')', :'ticket')) AS pending_too;
SELECT token FROM idem_send(:'operation_id', 'me', '1 us') \gset
CALL pg_temp.refused(format('SELECT idem_step_done(%L, ''ship'')', :'ticket'));
SELECT token FROM idem_reconcile('steps bank', 'me', 1, '1 hour') \gset
SELECT pg_temp.code_of(format('SELECT idem_step(%L, ''ship'')', :'ticket')) AS unknown;
SELECT state FROM idem_confirm(:'operation_id', :token);
SELECT idem_step_done(:'ticket', 'ship');
SELECT idem_claim('t', 'steps', 'e', lease => '1 hour') AS ticket \gset
SELECT operation_id FROM idem_intend(:'ticket', 'charge', 'steps bank') \gset
SELECT token FROM idem_send(:'operation_id', 'me', '1 hour') \gset
SELECT state FROM idem_reject(:'operation_id', :token, 'no money');
SELECT pg_temp.code_of(format('SELECT idem_step_done(%L, ''ship'')', :'ticket')) AS rejected,
	   pg_temp.code_of(format('SELECT idem_intend(%L, ''charge'', ''steps bank'')', :'ticket')) AS itself;
-- an atomic claim is one step by itself: its intents have no order, also when
-- there is a record already
BEGIN;
SELECT idem_claim('t', 'steps', 'f') AS ticket \gset
SELECT state FROM idem_intend(:'ticket', 'ship', 'carrier');
SELECT pg_temp.code_of(format('SELECT idem_intend(%L, ''refund'', ''bank'')', :'ticket')) AS no_such_step;
ROLLBACK;
SELECT idem_release(idem_claim('t', 'steps', 'f', lease => '1 hour'));
BEGIN;
SELECT idem_claim('t', 'steps', 'f') AS ticket \gset
SELECT state FROM idem_intend(:'ticket', 'ship', 'carrier');
SELECT pg_temp.code_of(format('SELECT idem_intend(%L, ''refund'', ''bank'')', :'ticket')) AS no_such_step,
	   pg_temp.code_of(format('SELECT idem_step(%L, ''charge'')', :'ticket')) AS no_steps;
ROLLBACK;
SELECT version, steps FROM idem_policy_steps WHERE operation = 'steps' ORDER BY version;
