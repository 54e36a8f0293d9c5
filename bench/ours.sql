-- The same order behind idempotency: as a handler of idem_execute, and as a
-- function that claims and completes by itself.
CREATE FUNCTION handle_order(request jsonb) RETURNS idem_response
LANGUAGE plpgsql AS $$
DECLARE
	order_id bigint;
BEGIN
	INSERT INTO orders (customer, total, items)
	VALUES (request->>'customer', (request->>'total')::numeric,
			request->'items')
	RETURNING id INTO order_id;
	RETURN ROW(json_build_object('order', order_id, 'status', 'created'),
			   201, 'order/' || order_id, NULL, NULL, NULL)::idem_response;
END
$$;

CREATE FUNCTION claim_order(
	p_tenant text, p_operation text, p_key text, p_request jsonb,
	OUT outcome text, OUT response json
) LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
	order_id bigint;
BEGIN
	ticket := idem_claim(p_tenant, p_operation, p_key, p_request);
	outcome := ticket.outcome;
	IF outcome NOT IN ('execute', 'resume') THEN
		response := ticket.response;
		RETURN;
	END IF;
	INSERT INTO orders (customer, total, items)
	VALUES (p_request->>'customer', (p_request->>'total')::numeric,
			p_request->'items')
	RETURNING id INTO order_id;
	response := json_build_object('order', order_id, 'status', 'created');
	PERFORM idem_complete(ticket, response, 201, 'order/' || order_id);
END
$$;
