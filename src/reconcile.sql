/*
 * Reconciliation: finding out about intents whose outcome nobody knows.
 */
CREATE FUNCTION idem_reconcile(target text, worker text, n integer, lease interval) RETURNS SETOF idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM @extschema@.idem_require_adopted();
	PERFORM @extschema@.idem_text('target', target, 128);
	PERFORM @extschema@.idem_text('worker', worker, 255);
	PERFORM @extschema@.idem_duration('lease', lease, true);
	PERFORM @extschema@.idem_count('n', n);
	PERFORM @extschema@.idem_flush();
	RETURN QUERY
	WITH due AS (
		SELECT d.operation_id, d.state
		FROM @extschema@.idem_intent d
		WHERE d.target = idem_reconcile.target AND d.state IN ('in_flight', 'unknown')
		  AND (d.lease_until IS NULL OR d.lease_until <= clock_timestamp())
		  AND @extschema@.idem_tenant_allowed(d.tenant)
		ORDER BY d.lease_until NULLS FIRST
		LIMIT n FOR UPDATE SKIP LOCKED
	), lapsed AS (
		INSERT INTO @extschema@.idem_event
			(at, tenant, operation, key, intent, from_state, to_state, actor, reason)
		SELECT clock_timestamp(), i.tenant, i.operation, i.key, i.name,
			   'in_flight', 'unknown', session_user, 'lease lapsed in flight'
		FROM due JOIN @extschema@.idem_intent i USING (operation_id)
		WHERE due.state = 'in_flight'
	)
	UPDATE @extschema@.idem_intent i
	SET state = 'unknown', token = @extschema@.idem_token(), worker = idem_reconcile.worker,
		lease_until = clock_timestamp() + lease
	FROM due
	WHERE i.operation_id = due.operation_id
	RETURNING i.*;
END
$$;
REVOKE ALL ON FUNCTION idem_reconcile(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_reconcile(text, text, integer, interval) IS
'Hands out intents whose outcome nobody knows: the lease of who sent them has lapsed. The worker asks the target, by operation_id, and calls idem_settle.
Arguments: as in idem_dispatch.
Returns: the intents, now unknown, with their tokens.
Errors: 22004, 22023, ID006 restored copy. Tables: writes idem_intent, idem_event.';

CREATE FUNCTION idem_settle(intent uuid, token bigint, verdict text, evidence jsonb, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	held @extschema@.idem_intent := @extschema@.idem_intent_held(intent, token);
BEGIN
	IF verdict IS NULL OR verdict NOT IN ('happened', 'absent', 'unclear') THEN
		PERFORM @extschema@.idem_intent_refuse(held, CASE WHEN verdict IS NULL THEN '22004' ELSE '22023' END,
			'verdict must be happened, absent or unclear', 'Say unclear when you cannot tell.');
	ELSIF evidence IS NULL THEN
		PERFORM @extschema@.idem_intent_refuse(held, '22004',
			'evidence must not be NULL', 'Say what was asked and what was answered.');
	ELSIF held.state = 'confirmed' AND verdict = 'happened' THEN
		RETURN held;
	ELSIF held.state <> 'unknown' THEN
		PERFORM @extschema@.idem_intent_refuse(held, 'ID003',
			format('verdict %s contradicts an intent that is %s', verdict, held.state),
			'What was settled stays; look at both pieces of evidence.');
	END IF;
	RETURN @extschema@.idem_intent_move(held,
		CASE verdict WHEN 'happened' THEN 'confirmed' WHEN 'absent' THEN 'pending' ELSE 'unknown' END,
		'verdict ' || verdict, response, evidence);
END
$$;
REVOKE ALL ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_settle(uuid, bigint, text, jsonb, json) IS
'Gives a verdict about an intent whose outcome nobody knew. happened confirms it, absent makes it pending again, unclear leaves it unknown.
Arguments: intent, its operation_id; token, from idem_reconcile. verdict: happened, absent or unclear. evidence: what was found, kept. response: what the target says it answered.
Returns: the intent.
Errors: 22004, 22023, ID002 stale token, ID003 contradicts what was settled. Tables: as idem_confirm.';
