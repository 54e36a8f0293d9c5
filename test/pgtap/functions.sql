-- Proves that the functions a user calls are exactly these: names, arguments
-- with their defaults, results, properties, and a comment that tells all.
\ir setup.psql
SELECT plan(9);

CREATE VIEW pg_temp.functions AS
SELECT p.oid, proname::text COLLATE "default" AS name,
	   -- "DEFAULT NULL" without the type, and white space as it is
	   regexp_replace(pg_get_function_arguments(p.oid),
					  '(DEFAULT NULL)::[^,]*', '\1', 'g') AS arguments,
	   pg_get_function_result(p.oid) AS result, provolatile, proparallel,
	   proisstrict, prosecdef, lanname, prorettype,
	   array_to_string(proconfig, ';') COLLATE "default" AS config,
	   obj_description(p.oid, 'pg_proc') AS comment
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE pronamespace = 'idem_only'::regnamespace
AND obj_description(p.oid, 'pg_proc') NOT LIKE 'Internal:%';

SELECT results_eq(
	'SELECT name, arguments, result FROM pg_temp.functions
	 WHERE prorettype <> ''trigger''::regtype ORDER BY name, arguments',
	$$VALUES
	('idem_adopt',
	 'nothing_since boolean DEFAULT false, '
	 'physical boolean DEFAULT false', 'void'),
	('idem_cancel',
	 'tenant text, operation text, key text, reason text', 'idem_ticket'),
	('idem_claim',
	 'tenant text, operation text, key text, request jsonb DEFAULT NULL, '
	 'fingerprint bytea DEFAULT NULL, guard text DEFAULT NULL, '
	 'wait interval DEFAULT NULL, lease interval DEFAULT NULL, '
	 'ttl interval DEFAULT NULL, owner text DEFAULT NULL', 'idem_ticket'),
	('idem_claim_batch',
	 'tenant text, operation text, keys text[], '
	 'requests jsonb[] DEFAULT NULL, fingerprints bytea[] DEFAULT NULL, '
	 'guards text[] DEFAULT NULL, '
	 'wait interval DEFAULT NULL, lease interval DEFAULT NULL, '
	 'ttl interval DEFAULT NULL, owner text DEFAULT NULL',
	 'SETOF idem_ticket'),
	('idem_complete',
	 'tenant text, operation text, key text, token bigint, '
	 'response json DEFAULT NULL, code integer DEFAULT NULL, '
	 'resource text DEFAULT NULL, headers jsonb DEFAULT NULL, '
	 'body bytea DEFAULT NULL', 'void'),
	('idem_complete',
	 'ticket idem_ticket, '
	 'response json DEFAULT NULL, code integer DEFAULT NULL, '
	 'resource text DEFAULT NULL, headers jsonb DEFAULT NULL, '
	 'body bytea DEFAULT NULL', 'void'),
	('idem_complete_batch',
	 'tickets idem_ticket[], responses json[] DEFAULT NULL', 'integer'),
	('idem_confirm',
	 'intent uuid, token bigint, response json DEFAULT NULL', 'idem_intent'),
	('idem_defer',
	 'intent uuid, token bigint, reason text', 'idem_intent'),
	('idem_define',
	 'operation text, ttl interval DEFAULT NULL, '
	 'lease interval DEFAULT NULL, max_lease interval DEFAULT NULL, '
	 'wait interval DEFAULT NULL, '
	 'tombstone_retention interval DEFAULT NULL, '
	 'max_attempts integer DEFAULT NULL, ignore_paths text[] DEFAULT NULL, '
	 'keep_request boolean DEFAULT false, steps text[] DEFAULT NULL, '
	 'comment text DEFAULT NULL, notify text DEFAULT NULL', 'idem_policy'),
	('idem_dispatch',
	 'target text, worker text, n integer, lease interval', 'SETOF idem_intent'),
	('idem_durability',
	 'OUT level text, OUT standbys_required integer, '
	 'OUT standbys_connected integer', 'record'),
	('idem_execute',
	 'tenant text, operation text, key text, request jsonb, '
	 'handler regprocedure, guard text DEFAULT NULL, wait interval DEFAULT NULL, '
	 'ttl interval DEFAULT NULL, owner text DEFAULT NULL', 'idem_ticket'),
	('idem_fail',
	 'tenant text, operation text, key text, token bigint, '
	 'response json DEFAULT NULL, code integer DEFAULT NULL, '
	 'resource text DEFAULT NULL, headers jsonb DEFAULT NULL, '
	 'body bytea DEFAULT NULL', 'void'),
	('idem_fail',
	 'ticket idem_ticket, '
	 'response json DEFAULT NULL, code integer DEFAULT NULL, '
	 'resource text DEFAULT NULL, headers jsonb DEFAULT NULL, '
	 'body bytea DEFAULT NULL', 'void'),
	('idem_fingerprint',
	 'request jsonb, ignore_paths text[] DEFAULT NULL', 'bytea'),
	('idem_grant', 'role regrole, level text', 'void'),
	('idem_heartbeat',
	 'tenant text, operation text, key text, token bigint, '
	 'lease interval DEFAULT NULL', 'timestamp with time zone'),
	('idem_heartbeat',
	 'ticket idem_ticket, lease interval DEFAULT NULL',
	 'timestamp with time zone'),
	('idem_history',
	 'tenant text, operation text, key text',
	 'TABLE(at timestamp with time zone, attempt integer, what text, '
	 'name text, from_state text, to_state text, actor text, reason text)'),
	('idem_hold',
	 'tenant text, operation text, key text, token bigint', 'void'),
	('idem_hold', 'ticket idem_ticket', 'void'),
	('idem_intend',
	 'ticket idem_ticket, name text, target text, '
	 'request jsonb DEFAULT NULL, send boolean DEFAULT false, '
	 'resend_safe_for interval DEFAULT NULL', 'idem_intent'),
	('idem_maintain',
	 'IN max_time interval DEFAULT ''00:10:00''::interval, '
	 'IN batch integer DEFAULT 50, '
	 'IN effort double precision DEFAULT 0.1', NULL),
	('idem_operation_id',
	 'tenant text, operation text, key text, name text', 'uuid'),
	('idem_reconcile',
	 'target text, worker text, n integer, lease interval', 'SETOF idem_intent'),
	('idem_recover',
	 'worker text, n integer, lease interval', 'SETOF idem_ticket'),
	('idem_reject',
	 'intent uuid, token bigint, reason text, '
	 'response json DEFAULT NULL', 'idem_intent'),
	('idem_release',
	 'tenant text, operation text, key text, token bigint, '
	 'reason text DEFAULT NULL', 'void'),
	('idem_release',
	 'ticket idem_ticket, reason text DEFAULT NULL', 'void'),
	('idem_replay',
	 'tenant text, operation text, key text, request jsonb DEFAULT NULL, '
	 'fingerprint bytea DEFAULT NULL', 'idem_ticket'),
	('idem_require', 'ticket idem_ticket', 'idem_ticket'),
	('idem_resolve',
	 'tenant text, operation text, key text, state text, reason text, '
	 'response json DEFAULT NULL, code integer DEFAULT NULL, '
	 'resource text DEFAULT NULL, headers jsonb DEFAULT NULL, '
	 'body bytea DEFAULT NULL', 'void'),
	('idem_retry',
	 'intent uuid, reason text', 'idem_intent'),
	('idem_revoke', 'role regrole', 'void'),
	('idem_send',
	 'intent uuid, worker text, lease interval', 'idem_intent'),
	('idem_settle',
	 'intent uuid, token bigint, verdict text, evidence jsonb, '
	 'response json DEFAULT NULL', 'idem_intent'),
	('idem_stat_get',
	 'OUT operation text, OUT stats_reset timestamp with time zone, '
	 'OUT execute bigint, OUT resume bigint, OUT replay bigint, '
	 'OUT in_progress bigint, OUT mismatch bigint, '
	 'OUT expired bigint, OUT unknown bigint, OUT duplicate bigint, '
	 'OUT cancelled bigint, OUT waits bigint, OUT wait_us bigint, '
	 'OUT lookups bigint, OUT lookups_absent bigint, '
	 'OUT completed bigint, OUT failed bigint, OUT released bigint, '
	 'OUT heartbeats bigint, OUT stale_tickets bigint, '
	 'OUT recovered bigint, OUT became_unknown bigint, '
	 'OUT resolved bigint, OUT cancellations bigint, '
	 'OUT sent bigint, OUT dispatched bigint, OUT confirmed bigint, '
	 'OUT rejected bigint, OUT deferred bigint, '
	 'OUT happened bigint, OUT absent bigint, OUT unclear bigint, '
	 'OUT swept bigint, OUT purged bigint', 'SETOF record'),
	('idem_stat_reset',
	 'operation text DEFAULT NULL', 'void'),
	('idem_step',
	 'ticket idem_ticket, step text, input jsonb DEFAULT NULL, '
	 'OUT done boolean, OUT result json', 'record'),
	('idem_step_done',
	 'ticket idem_ticket, step text, result json DEFAULT NULL, '
	 'input jsonb DEFAULT NULL', 'void'),
	('idem_sweep',
	 'n integer DEFAULT 1000, OUT swept integer, OUT purged integer, '
	 'OUT more boolean', 'record'),
	('idem_tenant_allowed', 'tenant text', 'boolean'),
	('idem_unknown',
	 'ticket idem_ticket, reason text', 'void')$$,
	'functions, their arguments and results');

SELECT results_eq(
	'SELECT name FROM pg_temp.functions
	 WHERE prorettype = ''trigger''::regtype ORDER BY name',
	$$VALUES ('idem_event_protect'), ('idem_policy_check'),
	('idem_record_protect')$$,
	'trigger functions');

-- a wrong volatility lets the planner call a claim twice, or never; and leave
-- out what raises an error where nobody reads its result
SELECT results_eq(
	'SELECT name, provolatile, proparallel FROM pg_temp.functions
	 WHERE (provolatile, proparallel) <> (''v'', ''u'') ORDER BY name',
	$$VALUES
	('idem_durability', 's'::"char", 'u'::"char"),
	('idem_fingerprint', 'i', 's'),
	('idem_history', 's', 'u'),
	('idem_operation_id', 'i', 's'),
	('idem_require', 'v', 's'),
	('idem_tenant_allowed', 's', 's')$$,
	'all are VOLATILE and PARALLEL UNSAFE, but those that only compute or read');

-- a strict claim would answer NULL to a missing key: no protection
SELECT is_empty('SELECT name FROM pg_temp.functions WHERE proisstrict',
	'none is STRICT');

SELECT is_empty(
	$$SELECT name, config FROM pg_temp.functions
	  WHERE (prosecdef OR lanname <> 'c' OR config IS NOT NULL)
	  AND config IS DISTINCT FROM 'search_path=pg_catalog, pg_temp'$$,
	'all are in C, or pin their search_path');

SELECT is_empty(
	$$SELECT name, comment FROM pg_temp.functions
	  WHERE prorettype <> 'trigger'::regtype AND comment !~
		'^[^\n]+[.]\nArguments: [^\n]+[.]\nReturns: [^\n]+[.]\nErrors: [^\n]+[.] Tables: [^\n]+[.]$'
	  OR comment IS NULL$$,
	'every comment has purpose, Arguments, Returns, Errors and Tables');
SELECT is_empty(
	$$SELECT name, comment FROM pg_temp.functions
	  WHERE prorettype = 'trigger'::regtype AND comment !~
		'^[^\n]+[.]\n(Errors: [^\n]+[.] )?Tables: [^\n]+[.]$'$$,
	'comments of triggers have purpose, Errors and Tables');
SELECT is_empty(
	$$SELECT name, code[1] FROM pg_temp.functions,
	  regexp_matches(substring(comment FROM '\nErrors: (.*) Tables: '),
					 '\m(ID\d{3}|\d{2}[0-9P]\d{2})\M', 'g') AS code
	  WHERE code[1] NOT IN ('ID001', 'ID002', 'ID003', 'ID004', 'ID005', 'ID006', 'ID503',
							'ID208', 'ID404', 'ID409', 'ID410', 'ID422',
							'ID424', 'ID499', '22004', '22023', '22P05', '25001', '25006',
							'40P01', '42501', '42704', '42883', '42P13', '53200',
							'55000', '55P03', '57014')$$,
	'comments name documented SQLSTATEs only');
SELECT is_empty(
	$$SELECT name, arguments FROM pg_temp.functions
	  WHERE arguments ~ '\m(tenant text|tickets? idem_ticket)' AND provolatile <> 'i'
	  AND result <> 'boolean'
	  AND comment !~ '\nErrors: ([^\n]* 42501 tenant not allowed|as idem_)'$$,
	'whoever names a tenant may be refused it');

SELECT * FROM finish();
ROLLBACK;
