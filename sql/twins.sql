-- Two tenants whose operation, keys, requests, guards, names of steps and of
-- intents are the same have nothing to do with each other: each is told his own
-- story, whatever the other one does, and keeps it when the other one's is
-- purged (case 18).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET client_min_messages = warning;
CALL idem_maintain();
RESET client_min_messages;
SELECT version FROM idem_define('twins', ttl => '1 day', keep_request => true);
-- All that there is of a tenant.
CREATE FUNCTION pg_temp.story(tenant text) RETURNS text LANGUAGE sql AS $$
	SELECT md5(concat(
		(SELECT string_agg(r::text, ';' ORDER BY key) FROM idem_record r WHERE (r.tenant, operation) = (story.tenant, 'twins')),
		(SELECT string_agg(s::text, ';' ORDER BY key, step) FROM idem_step s WHERE (s.tenant, operation) = (story.tenant, 'twins')),
		(SELECT string_agg(i::text, ';' ORDER BY key, name) FROM idem_intent i WHERE (i.tenant, operation) = (story.tenant, 'twins')),
		(SELECT string_agg(e::text, ';' ORDER BY id) FROM idem_event e WHERE (e.tenant, operation) = (story.tenant, 'twins'))))
$$;

-- The first one has an answer, a failure, a decision, and a command under way
-- with a step that is done, an intent that nobody knows of, and a trail.
SELECT idem_complete(idem_claim('t1', 'twins', 'done', '1', guard => 'done'), '"secret"', 201, 'order 1');
SELECT idem_fail(idem_claim('t1', 'twins', 'failed', '1'), '"secret"', 402);
SELECT outcome FROM idem_cancel('t1', 'twins', 'cancelled', 'secret');
SELECT outcome FROM idem_claim('t1', 'twins', 'open', '1', guard => 'open', owner => 'secret', lease => '1 us');
SELECT idem_claim('t1', 'twins', 'open', '1', owner => 'secret', lease => '1 hour') AS first \gset
SELECT idem_step_done(:'first', 'reserve', '"secret"', '1');
SELECT operation_id AS first_id FROM idem_intend(:'first', 'pay', 'twins bank', '"secret"') \gset
SELECT state FROM idem_send(:'first_id', 'secret', '1 us');
SELECT pg_temp.story('t1') AS first \gset story_

-- The second one's keys are new, his guards free, and no step of his is done.
SELECT key, outcome, state, attempt, resource, response, owner, reason, duplicate_of
FROM unnest(ARRAY['done', 'failed', 'cancelled', 'open']) AS k, idem_replay('t2', 'twins', k, '1');
BEGIN;
SELECT key, outcome, state, attempt, resource, response, duplicate_of
FROM unnest(ARRAY['done', 'failed', 'cancelled', 'open']) AS k, idem_claim('t2', 'twins', k, '2', guard => k);
SELECT count(*) AS lines FROM unnest(ARRAY['done', 'failed', 'cancelled', 'open']) AS k, idem_history('t2', 'twins', k);
ROLLBACK;
SELECT outcome FROM idem_claim('t2', 'twins', 'open', '1', lease => '1 us');
SELECT outcome, attempt FROM idem_claim('t2', 'twins', 'open', '1', lease => '1 us');
SELECT idem_claim('t2', 'twins', 'open', '1', owner => 'own', lease => '1 hour', ttl => '1 us') AS second \gset
SELECT (:'second'::idem_ticket).outcome, (:'second'::idem_ticket).attempt;
SELECT * FROM idem_step(:'second', 'reserve', '1');
SELECT idem_step_done(:'second', 'reserve', '"own"', '2');
SELECT operation_id AS second_id, operation_id <> :'first_id' AS another_id, state, request
FROM idem_intend(:'second', 'pay', 'twins bank', '"own"', resend_safe_for => '1 hour') \gset
\echo :another_id :state :request
SELECT token FROM idem_send(:'second_id', 'own', '1 hour') \gset
SELECT state FROM idem_confirm(:'second_id', :token, '"own"');
SELECT what, name, from_state, to_state, attempt, actor = session_user AS actor, reason
FROM idem_history('t2', 'twins', 'open');

-- A ticket is good for its tenant only, whatever else agrees.
SELECT call, pg_temp.code_of(format('SELECT ' || call, 't1', (:'second'::idem_ticket).token)) AS code
FROM unnest(ARRAY['idem_heartbeat(%L, ''twins'', ''open'', %s, ''1 hour'')', 'idem_hold(%L, ''twins'', ''open'', %s)',
				  'idem_complete(%L, ''twins'', ''open'', %s)', 'idem_fail(%L, ''twins'', ''open'', %s)',
				  'idem_release(%L, ''twins'', ''open'', %s)']) AS call;
SELECT pg_temp.code_of(format('SELECT idem_confirm(%L, %s)', :'first_id', :token)) AS confirm;

-- What he ends, decides and cancels is his own, too.
SELECT idem_complete(:'second'::idem_ticket, '"own"');
SELECT idem_complete(idem_claim('t2', 'twins', 'done', '2', guard => 'done', ttl => '1 us'), '"own"');
SELECT outcome FROM idem_cancel('t2', 'twins', 'failed', 'own');
SELECT outcome FROM idem_claim('t2', 'twins', 'cancelled', '1', lease => '1 hour');
SELECT pg_temp.code_of($$SELECT idem_resolve('t2', 'twins', 'open', 'released', 'own')$$) AS resolve;
SELECT pg_temp.story('t1') = :'story_first' AS first_unchanged;

-- The verdict about one moves his command alone.
SELECT outcome FROM idem_claim('t2', 'twins', 'asked', '1', lease => '1 us');
SELECT idem_claim('t2', 'twins', 'asked', '1', lease => '1 hour') AS second \gset
SELECT idem_unknown(:'second', 'own');
SELECT operation_id AS first_id FROM idem_claim('t1', 'twins', 'asked', '1', lease => '1 hour') AS c,
	idem_intend(c, 'pay', 'twins asked') \gset
SELECT state FROM idem_send(:'first_id', 'w', '1 us');
SELECT token FROM idem_reconcile('twins asked', 'w', 1, '1 hour') \gset
SELECT pg_temp.code_of($$SELECT idem_resolve('t2', 'twins', 'asked', 'failed', 'nothing of it is in question')$$) AS resolve;
SELECT state FROM idem_settle(:'first_id', :token, 'happened', '1');
SELECT tenant, state FROM idem_record WHERE operation = 'twins' AND key = 'asked' ORDER BY tenant;

-- A purge of one takes nothing of the other, and waits for nothing of his.
SELECT version FROM idem_define('twins', ttl => '1 day', keep_request => true, tombstone_retention => '1 us');
SELECT pg_temp.story('t1') AS first \gset story_
SELECT swept >= 0 AS swept FROM idem_sweep(10000);
SELECT purged > 0 AS purged FROM idem_sweep(10000);
SELECT pg_temp.story('t1') = :'story_first' AS first_unchanged;
SELECT key, (SELECT count(*) FROM idem_record r WHERE (tenant, operation, r.key) = ('t2', 'twins', k)) AS records,
	   (SELECT count(*) FROM idem_step s WHERE (tenant, operation, s.key) = ('t2', 'twins', k)) AS steps,
	   (SELECT count(*) FROM idem_intent i WHERE (tenant, operation, i.key) = ('t2', 'twins', k)) AS intents,
	   (SELECT count(*) FROM idem_event e WHERE (tenant, operation, e.key) = ('t2', 'twins', k)) AS events
FROM unnest(ARRAY['done', 'open']) AS key, LATERAL (SELECT key) AS k(k);
SELECT tenant, key, outcome, response
FROM unnest(ARRAY['t1', 't2']) AS t, unnest(ARRAY['done', 'failed', 'open']) AS k, idem_replay(t, 'twins', k, '1')
ORDER BY 1, 2;

-- nothing of this is for other tests to purge
SELECT version FROM idem_define('twins');
