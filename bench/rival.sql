-- The hand-written rival: what a careful PL/pgSQL author keeps beside the
-- orders.  It is given every doubt but one: no CHECK, no trigger, no token and
-- no attempt; but it counts expiry from the completion, as the contract does.
CREATE TABLE command (
	created_at timestamptz NOT NULL,
	completed_at timestamptz,
	expires_at timestamptz,
	code integer,
	tenant text COLLATE "C" NOT NULL,
	operation text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	state text COLLATE "C" NOT NULL,
	fingerprint bytea NOT NULL,
	resource text COLLATE "C",
	response json,
	PRIMARY KEY (tenant, operation, key)
);
CREATE INDEX command_expires_at ON command (expires_at);

CREATE FUNCTION place_order(
	p_tenant text, p_operation text, p_key text, p_request jsonb,
	OUT outcome text, OUT response json
) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
	digest bytea := sha256(convert_to(p_request::text, 'UTF8'));
	existing command%ROWTYPE;
	order_id bigint;
BEGIN
	INSERT INTO command (created_at, tenant, operation, key, state, fingerprint)
	VALUES (started, p_tenant, p_operation, p_key, 'processing', digest)
	ON CONFLICT (tenant, operation, key) DO NOTHING;

	IF FOUND THEN
		INSERT INTO orders (customer, total, items)
		VALUES (p_request->>'customer', (p_request->>'total')::numeric,
				p_request->'items')
		RETURNING id INTO order_id;
		response := json_build_object('order', order_id,
									  'status', 'created');
		UPDATE command c
		SET state = 'succeeded', completed_at = clock_timestamp(),
			expires_at = clock_timestamp() + interval '24 hours',
			code = 201, resource = 'order/' || order_id,
			response = place_order.response
		WHERE c.tenant = p_tenant AND c.operation = p_operation
			AND c.key = p_key;
		outcome := 'execute';
		RETURN;
	END IF;

	SELECT * INTO STRICT existing FROM command c
	WHERE c.tenant = p_tenant AND c.operation = p_operation AND c.key = p_key;
	IF existing.fingerprint <> digest THEN
		outcome := 'mismatch';
	ELSIF existing.expires_at <= clock_timestamp() THEN
		outcome := 'expired';
	ELSIF existing.state = 'succeeded' THEN
		outcome := 'replay';
		response := existing.response;
	ELSE
		outcome := 'in_progress';
	END IF;
END
$$;

-- The leanest that can be written: the work comes first, and one row, already
-- final, last.  Of two at once both do the work, and the second to end waits
-- for the first, then fails with 23505 and has to be tried again.
CREATE FUNCTION place_order_once(
	p_tenant text, p_operation text, p_key text, p_request jsonb,
	OUT outcome text, OUT response json
) LANGUAGE plpgsql AS $$
DECLARE
	started timestamptz := clock_timestamp();
	digest bytea := sha256(convert_to(p_request::text, 'UTF8'));
	existing command%ROWTYPE;
	order_id bigint;
BEGIN
	SELECT * INTO existing FROM command c
	WHERE c.tenant = p_tenant AND c.operation = p_operation AND c.key = p_key;
	IF FOUND THEN
		outcome := CASE WHEN existing.fingerprint <> digest THEN 'mismatch'
						WHEN existing.expires_at <= clock_timestamp()
						THEN 'expired' ELSE 'replay' END;
		IF outcome = 'replay' THEN
			response := existing.response;
		END IF;
		RETURN;
	END IF;

	INSERT INTO orders (customer, total, items)
	VALUES (p_request->>'customer', (p_request->>'total')::numeric,
			p_request->'items')
	RETURNING id INTO order_id;
	response := json_build_object('order', order_id, 'status', 'created');
	INSERT INTO command VALUES (
		started, clock_timestamp(), clock_timestamp() + interval '24 hours',
		201, p_tenant, p_operation, p_key, 'succeeded', digest,
		'order/' || order_id, response);
	outcome := 'execute';
END
$$;
