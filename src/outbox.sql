/*
 * Sending what was intended: by the owner (idem_send) or a relay
 * (idem_dispatch), and what the sender knows afterwards.
 */
CREATE FUNCTION idem_send(intent uuid, worker text, lease interval) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	found_intent @extschema@.idem_intent;
BEGIN
	PERFORM @extschema@.idem_require_adopted();
	PERFORM @extschema@.idem_text('worker', worker, 255);
	PERFORM @extschema@.idem_duration('lease', lease, true);
	found_intent := @extschema@.idem_intent_lock(intent);
	IF found_intent.created_by = pg_current_xact_id_if_assigned() THEN
		PERFORM @extschema@.idem_intent_refuse(found_intent, 'ID003',
			'cannot send an intent that is not committed',
			'Commit first: what is not committed must not be known outside.');
	ELSIF found_intent.state IN ('confirmed', 'rejected')
		  OR (found_intent.state <> 'pending' AND found_intent.lease_until > clock_timestamp()) THEN
		PERFORM @extschema@.idem_intent_refuse(found_intent, 'ID003',
			format('cannot send an intent that is %s', found_intent.state),
			'It is settled, or a worker has it.');
	ELSIF found_intent.state <> 'pending'
		  AND (found_intent.first_sent_at + found_intent.resend_safe_for > clock_timestamp()) IS NOT TRUE THEN
		PERFORM @extschema@.idem_intent_refuse(found_intent, 'ID003',
			'cannot send again what may have happened',
			'Its resend_safe_for is over or was never given: reconcile and settle it.');
	END IF;
	UPDATE @extschema@.idem_intent i
	SET state = 'in_flight', token = @extschema@.idem_token(), worker = idem_send.worker,
		lease_until = clock_timestamp() + lease, tries = i.tries + 1,
		first_sent_at = coalesce(i.first_sent_at, clock_timestamp()),
		doubtful = i.doubtful OR i.state <> 'pending'
	WHERE i.operation_id = intent
	RETURNING i.* INTO found_intent;
	PERFORM @extschema@.idem_flush();
	RETURN found_intent;
END
$$;
REVOKE ALL ON FUNCTION idem_send(uuid, text, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_send(uuid, text, interval) IS
'Takes one pending intent in flight oneself. The call may be made only after this transaction has committed.
Arguments: intent, its operation_id. worker: a name for people to read, 1 to 255 characters. lease: until when the outcome is expected, more than zero; after it the outcome is unknown.
Returns: the intent with its token.
Errors: 22004, 22023, ID003 not committed, not pending, or too late to send again, ID006 restored copy. Tables: writes idem_intent.';

CREATE FUNCTION idem_dispatch(target text, worker text, n integer, lease interval) RETURNS SETOF idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	taken integer;
BEGIN
	PERFORM @extschema@.idem_require_adopted();
	PERFORM @extschema@.idem_text('target', target, 128);
	PERFORM @extschema@.idem_text('worker', worker, 255);
	PERFORM @extschema@.idem_duration('lease', lease, true);
	PERFORM @extschema@.idem_count('n', n);
	PERFORM @extschema@.idem_flush();
	/* no watermark: whatever is due and free, however late it was committed */
	RETURN QUERY
	WITH due AS MATERIALIZED (
		SELECT d.operation_id
		FROM @extschema@.idem_intent d
		WHERE d.target = idem_dispatch.target AND d.state = 'pending' AND d.send
			AND d.due_at <= clock_timestamp()
			AND d.created_by IS DISTINCT FROM pg_current_xact_id_if_assigned()
			AND @extschema@.idem_tenant_allowed(d.tenant)
		ORDER BY d.due_at
		LIMIT n FOR UPDATE SKIP LOCKED
	)
	UPDATE @extschema@.idem_intent i
	SET state = 'in_flight', token = @extschema@.idem_token(), worker = idem_dispatch.worker,
		lease_until = clock_timestamp() + lease, tries = i.tries + 1,
		first_sent_at = coalesce(i.first_sent_at, clock_timestamp())
	FROM due
	WHERE i.operation_id = due.operation_id
	RETURNING i.*;
	GET DIAGNOSTICS taken = ROW_COUNT;

	/* a worker died, and the target still knows the operation id */
	RETURN QUERY
	WITH due AS MATERIALIZED (
		SELECT d.operation_id
		FROM @extschema@.idem_intent d
		WHERE d.target = idem_dispatch.target AND d.state IN ('in_flight', 'unknown')
			AND d.send AND d.lease_until <= clock_timestamp()
			AND d.first_sent_at + d.resend_safe_for > clock_timestamp()
			AND @extschema@.idem_tenant_allowed(d.tenant)
		ORDER BY d.lease_until
		LIMIT n - taken FOR UPDATE SKIP LOCKED
	)
	UPDATE @extschema@.idem_intent i
	SET state = 'in_flight', token = @extschema@.idem_token(), worker = idem_dispatch.worker,
		lease_until = clock_timestamp() + lease, tries = i.tries + 1,
		doubtful = true
	FROM due
	WHERE i.operation_id = due.operation_id
	RETURNING i.*;
END
$$;
REVOKE ALL ON FUNCTION idem_dispatch(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION idem_dispatch(text, text, integer, interval) IS
'Outbox relay: takes due intents of a target in flight, each for one worker. The calls may be made only after this transaction has committed.
Arguments: target, 1 to 128 characters. worker: a name for people to read, 1 to 255 characters. n: at most so many, 1 to 10000. lease: as in idem_send.
Returns: the intents with their tokens; none when nothing is due.
Errors: 22004, 22023, ID006 restored copy. Tables: writes idem_intent.';

/* Internal: locks an intent that the token's holder has. */
CREATE FUNCTION idem_intent_held(intent uuid, token bigint) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	found_intent @extschema@.idem_intent := @extschema@.idem_intent_lock(intent);
BEGIN
	IF found_intent.token IS NULL OR token IS NULL OR found_intent.token <> token THEN
		PERFORM @extschema@.idem_intent_refuse(found_intent, 'ID002',
			'token of the intent is not valid any more',
			'Somebody else has it; what you know is evidence for idem_settle().');
	END IF;
	RETURN found_intent;
END
$$;
REVOKE ALL ON FUNCTION idem_intent_held(uuid, bigint) FROM PUBLIC;
COMMENT ON FUNCTION idem_intent_held(uuid, bigint) IS
'Internal: locks an intent and proves the token. Errors: as idem_intent_lock, ID002. Tables: locks idem_intent.';

CREATE FUNCTION idem_confirm(intent uuid, token bigint, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	held @extschema@.idem_intent := @extschema@.idem_intent_held(intent, token);
BEGIN
	IF held.state = 'confirmed' AND held.response::text IS NOT DISTINCT FROM response::text THEN
		RETURN held;
	ELSIF held.state NOT IN ('in_flight', 'unknown') THEN
		PERFORM @extschema@.idem_intent_refuse(held, 'ID003',
			format('cannot confirm an intent that is %s', held.state), 'What was settled stays.');
	END IF;
	RETURN @extschema@.idem_intent_move(held, 'confirmed', NULL, response);
END
$$;
REVOKE ALL ON FUNCTION idem_confirm(uuid, bigint, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_confirm(uuid, bigint, json) IS
'It happened. The same again is accepted and changes nothing.
Arguments: intent, its operation_id; token, from idem_send, idem_dispatch or idem_reconcile. response: what the target answered, kept byte for byte.
Returns: the intent.
Errors: 22004, 22023, ID002 stale token, ID003 settled otherwise. Tables: writes idem_intent, idem_event; idem_record when it was the last open question of an unknown command.';

CREATE FUNCTION idem_reject(intent uuid, token bigint, reason text, response json DEFAULT NULL) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	held @extschema@.idem_intent := @extschema@.idem_intent_held(intent, token);
BEGIN
	PERFORM @extschema@.idem_text('reason', reason, 1024);
	IF held.state = 'rejected' THEN
		RETURN held;
	ELSIF held.state NOT IN ('in_flight', 'unknown') THEN
		PERFORM @extschema@.idem_intent_refuse(held, 'ID003',
			format('cannot reject an intent that is %s', held.state), 'What was settled stays.');
	END IF;
	RETURN @extschema@.idem_intent_move(held, 'rejected', reason, response);
END
$$;
REVOKE ALL ON FUNCTION idem_reject(uuid, bigint, text, json) FROM PUBLIC;
COMMENT ON FUNCTION idem_reject(uuid, bigint, text, json) IS
'It did not happen and never will: the target refused it for good.
Arguments: intent, token: as in idem_confirm. reason: 1 to 1024 characters. response: what the target answered.
Returns: the intent.
Errors: 22004, 22023, ID002 stale token, ID003 settled otherwise. Tables: as idem_confirm.';

CREATE FUNCTION idem_defer(intent uuid, token bigint, reason text) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	held @extschema@.idem_intent := @extschema@.idem_intent_held(intent, token);
BEGIN
	PERFORM @extschema@.idem_text('reason', reason, 1024);
	IF held.state <> 'in_flight' THEN
		PERFORM @extschema@.idem_intent_refuse(held, 'ID003',
			format('cannot defer an intent that is %s', held.state),
			'Only what was just sent can be known not to have happened; settle it.');
	END IF;
	/*
	 * This try did not happen, but an earlier one may have.  Otherwise 1 s,
	 * 2 s, 4 s ... 1 hour; after 20 tries a person has to look.
	 */
	RETURN @extschema@.idem_intent_move(held,
		CASE WHEN held.doubtful THEN 'unknown' ELSE 'pending' END, reason,
		pause => CASE WHEN held.tries < 20 THEN least(interval '1 second' * 2 ^ (held.tries - 1), interval '1 hour') END);
END
$$;
REVOKE ALL ON FUNCTION idem_defer(uuid, bigint, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_defer(uuid, bigint, text) IS
'It did not happen, try later: after 1 second, then 2, 4 ... at most 1 hour; after 20 tries it is dead until idem_retry. Where an earlier try may have happened, the intent stays unknown.
Arguments: intent, token: as in idem_confirm. reason: 1 to 1024 characters. Only for what is known not to have happened: a lost connection or a timeout is not.
Returns: the intent.
Errors: 22004, 22023, ID002 stale token, ID003 not in flight. Tables: as idem_confirm.';

CREATE FUNCTION idem_retry(intent uuid, reason text) RETURNS idem_intent
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	found_intent @extschema@.idem_intent := @extschema@.idem_intent_lock(intent);
BEGIN
	PERFORM @extschema@.idem_text('reason', reason, 1024);
	IF found_intent.state <> 'pending' THEN
		PERFORM @extschema@.idem_intent_refuse(found_intent, 'ID003',
			format('cannot retry an intent that is %s', found_intent.state),
			'Only what is known not to have happened is retried; reconcile it first.');
	END IF;
	UPDATE @extschema@.idem_intent i
	SET due_at = clock_timestamp(), tries = 0
	WHERE i.operation_id = intent
	RETURNING i.* INTO found_intent;
	INSERT INTO @extschema@.idem_event
		(at, tenant, operation, key, intent, from_state, to_state, actor, reason)
	VALUES (clock_timestamp(), found_intent.tenant, found_intent.operation, found_intent.key,
			found_intent.name, 'pending', 'pending', session_user, reason);
	RETURN found_intent;
END
$$;
REVOKE ALL ON FUNCTION idem_retry(uuid, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_retry(uuid, text) IS
'Makes a pending intent due now, and counts its tries from zero: for dead ones, or when the target is back.
Arguments: intent, its operation_id. reason: 1 to 1024 characters.
Returns: the intent.
Errors: 22004, 22023, ID003 not pending. Tables: writes idem_intent, idem_event.';
