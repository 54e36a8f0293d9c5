/*
 * What the demo adds to ../order.sql: orders that take a moment, so that tries
 * overlap, and the order service without idempotency keys, as a control.
 */
CREATE FUNCTION order_takes_a_moment() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sleep(0.02);
	RETURN NEW;
END $$;
CREATE TRIGGER order_takes_a_moment BEFORE INSERT ON orders
	FOR EACH ROW EXECUTE FUNCTION order_takes_a_moment();

/* Takes no notice of the key. */
CREATE FUNCTION order_insert(customer text, key text, request jsonb,
							 wait interval DEFAULT NULL) RETURNS idem_ticket
LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
	answer idem_response := order_handler(request);
BEGIN
	ticket.outcome := 'execute';
	ticket.code := answer.code;
	ticket.response := answer.response;
	RETURN ticket;
END $$;

/* Looks whether the order is there, and inserts it if it is not. */
CREATE FUNCTION order_look_insert(customer text, key text, request jsonb,
								  wait interval DEFAULT NULL) RETURNS idem_ticket
LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
BEGIN
	SELECT row_to_json(o) INTO ticket.response
	FROM orders o
	WHERE o.customer = order_look_insert.customer
		AND o.reference = request->>'reference'
	LIMIT 1;
	IF NOT FOUND THEN
		RETURN order_insert(customer, key, request);
	END IF;
	ticket.outcome := 'replay';
	ticket.code := 201;
	RETURN ticket;
END $$;
