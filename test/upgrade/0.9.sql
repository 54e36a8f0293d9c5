/*
 * Data as 0.9 left them: commands in every state, a step, intents in every
 * state, policies.  The library of 0.9 is not there to write them, so they are
 * written as rows, without what it would have checked.
 */
ALTER TABLE idem_policy DISABLE TRIGGER ALL;
INSERT INTO idem_policy (operation, ttl, max_attempts, ignore_paths, keep_request, steps, version, comment)
VALUES ('o', '7 days', 3, '{/trace}', true, '{reserve,pay}', 2, E'two\nlines'),
	   ('p', NULL, NULL, NULL, false, NULL, 1, NULL);
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_row;
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_all;

INSERT INTO idem_record (created_at, completed_at, expires_at, lease_until, token, attempt, policy_version, code,
						 tenant, operation, key, state, fingerprint, resource, response, headers, body, ttl, request, owner,
						 reason)
SELECT now() - interval '1 hour', CASE WHEN final THEN now() - interval '1 minute' END,
	   CASE WHEN final THEN now() + expires END, now() + lease, 42, 1, 2, code,
	   't', 'o', key, state, digest, resource, response, headers, body, ttl, request, owner, reason
FROM (VALUES
	('succeeded', 'succeeded', true, interval '1 day', NULL::interval, 201, '\x01'::bytea || sha256('x'), 'order 7',
	 E'{"b" :  1,\n "a": 1.0e0}'::json, '{"h": null}'::jsonb, '\x00ff'::bytea, NULL::interval, NULL::jsonb, NULL, NULL),
	('failed', 'failed', true, '1 day', NULL, 402, NULL, NULL, '"no"', NULL, NULL, NULL, NULL, 'worker', NULL),
	('expired', 'succeeded', true, '-1 second', NULL, 200, NULL, 'order 8', '"gone"', NULL, NULL, NULL, NULL, NULL, NULL),
	('cancelled', 'cancelled', true, '1 day', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'why'),
	('live', 'processing', false, NULL, '1 day', NULL, NULL, NULL, NULL, NULL, NULL, '3 days', '{"a": 1}', 'worker', NULL),
	('lapsed', 'processing', false, NULL, '-1 second', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('released', 'released', false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'not now'),
	('unknown', 'unknown', false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'cannot tell')
) AS v (key, state, final, expires, lease, code, digest, resource, response, headers, body, ttl, request, owner, reason);

INSERT INTO idem_step (done_at, attempt, tenant, operation, key, step, input, result)
VALUES (now(), 1, 't', 'o', 'live', 'reserve', NULL, '{"shelf" :  7}');

INSERT INTO idem_intent (operation_id, created_at, created_by, due_at, first_sent_at, lease_until, settled_at, token, tries,
						 send, tenant, operation, key, name, target, state, resend_safe_for, request, worker, reason, response,
						 evidence)
SELECT idem_operation_id('t', 'o', CASE state WHEN 'unknown' THEN 'unknown' ELSE 'live' END, state), now(), '3', now(),
	   CASE WHEN state <> 'pending' THEN now() END, CASE WHEN state IN ('in_flight', 'unknown') THEN now() - interval '1 s' END,
	   CASE WHEN state IN ('confirmed', 'rejected') THEN now() END, 43, 1, true, 't', 'o',
	   CASE state WHEN 'unknown' THEN 'unknown' ELSE 'live' END, state, 'bank ' || state, state, '1 hour',
	   '{"amount": 1.0}', 'w', NULL, CASE state WHEN 'confirmed' THEN '{"r" : 1}'::json END, NULL
FROM unnest('{pending,in_flight,confirmed,rejected,unknown}'::text[]) AS state;

INSERT INTO idem_event (at, tenant, operation, key, intent, from_state, to_state, actor, reason)
VALUES (now(), 't', 'o', 'released', NULL, 'processing', 'released', 'somebody', 'not now'),
	   (now(), 't', 'o', 'unknown', NULL, 'processing', 'unknown', 'somebody', 'cannot tell'),
	   (now(), 't', 'o', 'cancelled', NULL, 'none', 'cancelled', 'somebody', 'why'),
	   (now(), 't', 'o', 'live', 'rejected', 'in_flight', 'rejected', 'somebody', 'no'),
	   (now(), 't', 'o', 'unknown', 'unknown', 'in_flight', 'unknown', 'somebody', 'lease lapsed in flight');
