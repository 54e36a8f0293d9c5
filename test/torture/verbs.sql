-- Every verb, and every way of an answer, for a single-user backend: a
-- statement ends with a semicolon and an empty line; `refused` marks an error.
CREATE EXTENSION idempotency;

CREATE TABLE mine (name text, ticket idem_ticket);

CREATE FUNCTION handler(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;

SELECT idem_define('o', ttl => '1 day', steps => '{reserve,pay}', ignore_paths => '{/a~1b,/c/d}', keep_request => true);

SELECT idem_complete(idem_claim('t', 'p', 'atomic', '{"a": [1, 2.50, null, true, "x"], "c": {"d": 1}}', guard => 'g'), '{"ok": true}', code => 201, resource => 'order 1', headers => '{"h": "v"}', body => '\x00ff');

SELECT idem_claim('t', 'p', 'atomic', '{"c": {"d": 1}, "a": [1.0, 2.5, null, true, "x"]}');

SELECT idem_claim('t', 'p', 'atomic', '{"other": 1}');

SELECT idem_claim('t', 'p', 'guarded', '1', guard => 'g');

SELECT idem_replay('t', 'p', 'atomic', '1');

SELECT idem_replay('t', 'p', 'none');

SELECT idem_require(idem_replay('t', 'p', 'atomic', '{"c": {"d": 1}, "a": [1, 2.5, null, true, "x"]}'));

/* refused */ SELECT idem_require(idem_replay('t', 'p', 'none'));

/* refused */ SELECT idem_claim('', 'p', 'bad');

/* refused */ SELECT idem_claim('t', 'p', repeat('x', 100000));

SELECT idem_fail(idem_claim('t', 'p', 'failed'), '"no"');

SELECT idem_execute('t', 'p', 'executed', '{"n": 1}', 'handler(jsonb)');

SELECT idem_execute('t', 'p', 'executed', '{"n": 1}', 'handler(jsonb)');

SELECT idem_complete_batch(array_agg(c)) FROM idem_claim_batch('t', 'p', '{b1,b2}', '{1,2}') AS c;

INSERT INTO mine SELECT k, idem_claim('t', 'o', k, '{"n": 1}', lease => '1 hour', owner => 'w') FROM unnest('{leased,released,lapsed}'::text[]) AS k;

INSERT INTO mine SELECT k, idem_claim('t', 'p', k, '{"n": 1}', lease => '1 hour', owner => 'w') FROM unnest('{sender,dropped}'::text[]) AS k;

SELECT idem_claim('t', 'p', 'sender', '{"n": 1}', wait => '1 ms');

SELECT idem_release(ticket) FROM mine WHERE name = 'dropped';

SELECT idem_heartbeat(ticket, '1 hour') FROM mine WHERE name = 'leased';

SELECT idem_hold(ticket) FROM mine WHERE name = 'leased';

SELECT idem_step(ticket, 'reserve') FROM mine WHERE name = 'leased';

SELECT idem_step_done(ticket, 'reserve', '{"shelf": 7}') FROM mine WHERE name = 'leased';

SELECT idem_step(ticket, 'reserve') FROM mine WHERE name = 'leased';

/* refused */ SELECT idem_step(ticket, 'unknown') FROM mine WHERE name = 'leased';

SELECT idem_intend(ticket, n, 'bank', '{"amount": 1}') FROM mine, unnest('{i1,i2,i3,i4,i5}'::text[]) AS n WHERE name = 'sender';

SELECT idem_send(idem_operation_id('t', 'p', 'sender', 'i5'), 'w', '1 hour');

SELECT idem_confirm(operation_id, token, '{"id": 1}') FROM idem_intent WHERE name = 'i5';

/* refused */ SELECT idem_confirm(operation_id, 1, '{"id": 2}') FROM idem_intent WHERE name = 'i5';

SELECT idem_dispatch('bank', 'w', 3, '1 hour');

SELECT idem_reject(operation_id, token, 'no money', '{"id": 1}') FROM idem_intent WHERE state = 'in_flight' LIMIT 1;

SELECT idem_defer(operation_id, token, 'busy') FROM idem_intent WHERE state = 'in_flight' LIMIT 1;

SELECT idem_dispatch('bank', 'w', 3, '1 us');

SELECT idem_settle(operation_id, token, 'unclear', '[1, {"a": 2}]') FROM idem_reconcile('bank', 'w', 10, '1 hour');

SELECT idem_settle(operation_id, token, 'happened', '1') FROM idem_reconcile('bank', 'w', 10, '1 hour');

SELECT idem_unknown(ticket, 'no answer') FROM mine WHERE name = 'sender';

SELECT idem_resolve('t', 'p', 'sender', 'released', 'asked the bank');

SELECT idem_complete(ticket, '"done"') FROM mine WHERE name = 'leased';

/* refused */ SELECT idem_complete(ticket, '"again"') FROM mine WHERE name = 'leased';

SELECT idem_release(ticket) FROM mine WHERE name = 'released';

SELECT idem_recover('w', 10, '1 hour');

SELECT idem_cancel('t', 'o', 'lapsed', 'not wanted');

SELECT idem_history('t', 'o', 'leased');

SELECT idem_fingerprint('{"n": 1e10, "m": [0.001, -5, "\u00e9"]}', '{/m/0}');

SELECT * FROM idem_stuck;

SELECT * FROM idem_sweep(100);

CALL idem_maintain();

SELECT idem_tenant_allowed('t');

SELECT idem_adopt(nothing_since => true);

DROP EXTENSION idempotency CASCADE;

