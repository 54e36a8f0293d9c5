/*
 * Gives a role what its level needs: the schema, functions and types, and no
 * right on a table.  client: claim commands and work on them. worker: relay,
 * recover and reconcile as well. operator: decide, define policies, and look
 * at what is stuck.
 *
 * usage: psql -v role=shop -v level=client -f examples/grant.sql
 */
WITH levels (level, names) AS (VALUES
	('client', '{idem_claim,idem_claim_batch,idem_complete,idem_complete_batch,idem_fail,idem_release,idem_heartbeat,idem_hold,idem_replay,idem_require,idem_execute,idem_fingerprint,idem_step,idem_step_done,idem_intend,idem_send,idem_confirm,idem_reject,idem_defer,idem_operation_id,idem_unknown}'::text[]),
	('worker', '{idem_dispatch,idem_reconcile,idem_settle,idem_recover}'),
	('operator', '{idem_resolve,idem_cancel,idem_retry,idem_define,idem_adopt}')
), wanted AS (
	SELECT unnest(names) AS name FROM levels
	WHERE array_position('{client,worker,operator}', level)
		  <= array_position('{client,worker,operator}', :'level')
), extension AS (
	SELECT oid, extnamespace FROM pg_extension WHERE extname = 'idempotency'
)
SELECT format('GRANT USAGE ON SCHEMA %s TO %I', extnamespace::regnamespace, :'role')
FROM extension
UNION ALL
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, :'role')
FROM extension e JOIN pg_proc p ON p.pronamespace = e.extnamespace
JOIN wanted w ON w.name = p.proname
UNION ALL
SELECT format('GRANT USAGE ON TYPE %s TO %I', t.oid::regtype, :'role')
FROM extension e JOIN pg_type t ON t.typnamespace = e.extnamespace
WHERE t.typname IN ('idem_ticket', 'idem_response')
UNION ALL
SELECT format('GRANT SELECT ON %s TO %I', c.oid::regclass, :'role')
FROM extension e JOIN pg_class c ON c.relnamespace = e.extnamespace
WHERE c.relname IN ('idem_stuck', 'idem_event') AND :'level' = 'operator'
\gexec
