-- Expiry: from expires_at on the address answers expired, and nothing runs.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET statement_timeout = '1min';		-- a wait that should end at once

-- The ttl of the claim, else of the policy, else of the setting counts from
-- the completion.
SELECT (idem_define('expire with policy', ttl => '3 days')).ttl;
SET idempotency.ttl = '2h';
SELECT idem_complete(idem_claim('t', 'expire', 'setting'));
SELECT idem_complete(idem_claim('t', 'expire', 'argument', ttl => '1500 milliseconds'));
SELECT idem_complete(idem_claim('t', 'expire with policy', 'policy'));
SELECT idem_fail(idem_claim('t', 'expire with policy', 'argument', ttl => '24:00'));
SELECT idem_complete(idem_claim('t', 'expire', 'leased', lease => '1 hour', ttl => '5 minutes'));
SELECT idem_complete(idem_claim('t', 'expire', 'leased, setting', lease => '1 hour'));
RESET idempotency.ttl;
SELECT operation, key, state, expires_at - completed_at AS ttl
FROM idem_record WHERE operation LIKE 'expire%' ORDER BY operation, key;
SELECT outcome FROM idem_claim('t', 'expire', 'setting');

-- A ttl never ends a live lease.
SELECT idem_claim('t', 'expire', 'live', '1', lease => '1 hour',
				  ttl => '1 microsecond') AS ticket \gset
SELECT outcome, expires_at FROM idem_claim('t', 'expire', 'live', '1');
SELECT outcome, expires_at FROM idem_replay('t', 'expire', 'live', '1');
SELECT idem_complete(:'ticket'::idem_ticket, '"gone"', 200, 'order 9',
					 '{"h": 1}', '\x00');
SELECT ctid, md5(r::text) AS row FROM idem_record AS r
WHERE operation = 'expire' AND key = 'live' \gset before_

-- Expired: the facts and the resource, never the answer, whoever asks.
SELECT outcome, state, attempt, token, resource, code, response, headers, body,
	   completed_at IS NOT NULL AS completed,
	   expires_at - completed_at AS ttl, retry_after
FROM idem_claim('t', 'expire', 'live', '1');
SELECT outcome, state, attempt, token, resource, code, response, headers, body,
	   completed_at IS NOT NULL AS completed
FROM idem_replay('t', 'expire', 'live', '1');
SELECT outcome, token
FROM idem_claim('t', 'expire', 'live', '1', lease => '1 hour', wait => '1 day');
SELECT outcome, response FROM idem_claim_batch('t', 'expire', '{live}', '{1}');
-- a mismatch comes first
SELECT outcome, token, response FROM idem_claim('t', 'expire', 'live', '2');
SELECT outcome, token, response FROM idem_claim('t', 'expire', 'live');
SELECT outcome, response FROM idem_replay('t', 'expire', 'live', '2');
-- also for a failure
SELECT idem_fail(idem_claim('t', 'expire', 'failed', '1', ttl => '1 microsecond'),
				 '"no"', 500, 'problem');
SELECT outcome, state, token, resource, code, response
FROM idem_claim('t', 'expire', 'failed', '1');

-- Its old ticket can do nothing any more, not even repeat the answer.
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, ''"gone"'', 200, ''order 9'', ''{"h": 1}'', ''\x00'')', :'ticket'));
SELECT verb, pg_temp.code_of(format('SELECT %s(%L::idem_ticket)', verb, :'ticket'))
FROM unnest(ARRAY['idem_complete', 'idem_fail', 'idem_release',
				  'idem_heartbeat', 'idem_hold']) AS verb;
SELECT ctid = :'before_ctid' AS ctid, md5(r::text) = :'before_row' AS row
FROM idem_record AS r WHERE operation = 'expire' AND key = 'live';

-- The same within the transaction that completes.
BEGIN;
SELECT idem_claim('t', 'expire', 'same', '1', ttl => '1 microsecond') AS ticket \gset
SELECT outcome FROM idem_claim('t', 'expire', 'same', '1');
SELECT idem_complete(:'ticket'::idem_ticket, '"gone"');
SELECT outcome, response FROM idem_claim('t', 'expire', 'same', '1');
COMMIT;

-- Nothing runs that has run: a handler is not called.
CREATE FUNCTION pg_temp.never(request jsonb) RETURNS json
LANGUAGE plpgsql AS $$ BEGIN RAISE 'handler ran'; END $$;
SELECT outcome, response
FROM idem_execute('t', 'expire', 'live', '1', 'pg_temp.never(jsonb)');
