-- Completion: what is stored, and what a repetition may say.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- An atomic claim is one insert, already final.
BEGIN;
SELECT n_tup_ins AS inserts, n_tup_upd AS updates
FROM pg_stat_xact_user_tables WHERE relname = 'idem_record' \gset
SELECT idem_claim('t', 'complete', 'a', '{"n": 1}', owner => 'me') AS ticket,
	   '{"b" : 1,  "a":[1.0, 1e2],"a": null }' AS response \gset
SELECT idem_complete(:'ticket', :'response', 201, 'order 7',
					 '{"etag": "x"}', '\x00ff');
SELECT n_tup_ins - :inserts AS inserts, n_tup_upd - :updates AS updates,
	   n_tup_del AS deletes
FROM pg_stat_xact_user_tables WHERE relname = 'idem_record';
COMMIT;
SELECT tenant, operation, key, state, attempt, owner, code, resource,
	   headers, body, lease_until, ttl, request, reason,
	   fingerprint = idem_fingerprint('{"n": 1}') AS bound
FROM idem_record WHERE operation = 'complete';
SELECT token = (:'ticket'::idem_ticket).token AS token,
	   created_at = (:'ticket'::idem_ticket).created_at AS created_at,
	   completed_at BETWEEN created_at AND clock_timestamp() AS completed_at,
	   expires_at - completed_at AS ttl,
	   response::text = :'response' AS verbatim
FROM idem_record WHERE operation = 'complete';

-- A replay gives it back, all of it.
SELECT outcome, state, attempt, token, code, resource, headers, body, owner,
	   response::text = :'response' AS verbatim
FROM idem_claim('t', 'complete', 'a', '{"n": 1}');
SELECT c.created_at = r.created_at AS created_at,
	   c.completed_at = r.completed_at AS completed_at,
	   c.expires_at = r.expires_at AS expires_at
FROM idem_record AS r, idem_claim('t', 'complete', 'a', '{"n": 1}') AS c
WHERE r.operation = 'complete';

-- The same answer again is accepted, and changes nothing.
SELECT ctid, xmin, md5(r::text) AS row
FROM idem_record AS r WHERE operation = 'complete' \gset old_
SELECT idem_complete(:'ticket', :'response', 201, 'order 7',
					 '{"etag":"x"}', '\x00ff');
SELECT idem_complete('t', 'complete', 'a', (:'ticket'::idem_ticket).token,
					 :'response', 201, 'order 7', '{"etag": "x"}', '\x00ff');

-- Any other is refused, whatever differs; so is everything else.
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket)', :'ticket'));
CALL pg_temp.refused(format('SELECT idem_release(%L::idem_ticket)', :'ticket'));
SELECT verb, response = :'response' AS same_response, rest,
	   pg_temp.code_of(format('SELECT %s(%L::idem_ticket, %L, %s)', verb,
							  :'ticket', response, rest))
FROM (VALUES
	('idem_complete', '{"b":1,"a":[1.0,1e2],"a":null}',
	 $$201, 'order 7', '{"etag": "x"}', '\x00ff'$$),
	('idem_complete', NULL,
	 $$201, 'order 7', '{"etag": "x"}', '\x00ff'$$),
	('idem_complete', :'response',
	 $$200, 'order 7', '{"etag": "x"}', '\x00ff'$$),
	('idem_complete', :'response',
	 $$201, 'order 8', '{"etag": "x"}', '\x00ff'$$),
	('idem_complete', :'response',
	 $$201, 'order 7', '{"etag": "y"}', '\x00ff'$$),
	('idem_complete', :'response',
	 $$201, 'order 7', '{"etag": "x"}', '\x00'$$),
	('idem_complete', :'response',
	 $$201, 'order 7', '{"etag": "x"}', NULL$$),
	('idem_fail', :'response',
	 $$201, 'order 7', '{"etag": "x"}', '\x00ff'$$))
	AS try(verb, response, rest);
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'ticket'))
FROM unnest(ARRAY['idem_fail', 'idem_release', 'idem_heartbeat', 'idem_hold'])
	AS verb;
SELECT ctid = :'old_ctid' AS ctid, xmin = :'old_xmin' AS xmin,
	   md5(r::text) = :'old_row' AS row
FROM idem_record AS r WHERE operation = 'complete';

-- Nothing, and JSON's null, are two answers.
BEGIN;
SELECT idem_claim('t', 'complete', 'nothing') AS ticket \gset
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT idem_complete(:'ticket'::idem_ticket);
SELECT pg_temp.code_of(format('SELECT idem_complete(%L::idem_ticket, ''null'')',
							  :'ticket'));
COMMIT;
SELECT outcome, response IS NULL AS no_response, code, resource
FROM idem_claim('t', 'complete', 'nothing');
SELECT idem_complete(idem_claim('t', 'complete', 'null'), 'null');
SELECT outcome, response FROM idem_claim('t', 'complete', 'null');
SELECT idem_complete(idem_claim('t', 'complete', 'resource'),
					 resource => 'order 8');
SELECT outcome, response, resource FROM idem_claim('t', 'complete', 'resource');

-- A leased claim can be completed from any session, and after its lease has
-- lapsed, as long as nobody has taken over.
SELECT idem_claim('t', 'complete', 'leased', '1', lease => '1 microsecond',
				  ttl => '2 days', owner => 'me') AS ticket \gset
\c
SELECT idem_complete(:'ticket'::idem_ticket, '"late"');
SELECT state, attempt, owner, lease_until,
	   expires_at - completed_at AS ttl_used, ttl, response
FROM idem_record WHERE operation = 'complete' AND key = 'leased';
SELECT outcome, response, lease_until
FROM idem_claim('t', 'complete', 'leased', '1');
