/*
 * An order service inside the database, protected in two ways: order_execute
 * hands the work to idem_execute, order_claim claims and completes by itself.
 *
 * Nothing about an order is unique here: without idempotency every try of a
 * client would make another row.
 */
CREATE TABLE prices (
	item text PRIMARY KEY,
	price numeric NOT NULL
);
INSERT INTO prices VALUES ('tea', 4.20), ('coffee', 6.90), ('cocoa', 5.55);

CREATE TABLE orders (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer text NOT NULL,
	reference text NOT NULL,
	item text NOT NULL,
	quantity integer NOT NULL,
	total numeric NOT NULL
);

/*
 * The work alone: knows nothing of keys.  Its result is stored and replayed.
 * "Not sold" is a decision, not an accident: a failure for good, which a later
 * try gets as well, even when the item is on the list by then.  An error
 * raised here would undo everything, and the next try would run again.
 */
CREATE FUNCTION order_handler(request jsonb) RETURNS idem_response
LANGUAGE plpgsql AS $$
DECLARE
	placed orders;
	answer idem_response;
BEGIN
	INSERT INTO orders (customer, reference, item, quantity, total)
	SELECT request->>'customer', request->>'reference', item, n, n * price
	FROM prices, CAST(request->>'quantity' AS integer) AS n
	WHERE item = request->>'item'
	RETURNING * INTO placed;

	IF NOT FOUND THEN
		answer.state := 'failed';
		answer.code := 404;
		answer.response := json_build_object('error', 'not sold');
	ELSE
		answer.code := 201;
		answer.resource := 'orders/' || placed.id;
		answer.response := row_to_json(placed);
	END IF;
	RETURN answer;
END $$;

/*
 * Claim, handler and completion in one call.
 */
CREATE FUNCTION order_execute(customer text, key text, request jsonb,
							  wait interval DEFAULT NULL) RETURNS idem_ticket
LANGUAGE sql AS $$
	SELECT idem_execute(customer, 'order.create', key, request,
						'order_handler(jsonb)', wait => wait)
$$;

/*
 * The same command by hand.  Every path of the owner ends in idem_complete or
 * idem_fail; one that forgets it cannot commit (ID001).
 */
CREATE FUNCTION order_claim(customer text, key text, request jsonb,
							wait interval DEFAULT NULL) RETURNS idem_ticket
LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
	placed orders;
BEGIN
	ticket := idem_claim(customer, 'order.create', key, request, wait => wait);
	IF ticket.outcome NOT IN ('execute', 'resume') THEN
		RETURN ticket;
	END IF;

	INSERT INTO orders (customer, reference, item, quantity, total)
	SELECT order_claim.customer, request->>'reference', item, n, n * price
	FROM prices, CAST(request->>'quantity' AS integer) AS n
	WHERE item = request->>'item'
	RETURNING * INTO placed;

	IF NOT FOUND THEN
		ticket.code := 404;
		ticket.response := json_build_object('error', 'not sold');
		PERFORM idem_fail(ticket, ticket.response, ticket.code);
	ELSE
		ticket.code := 201;
		ticket.resource := 'orders/' || placed.id;
		ticket.response := row_to_json(placed);
		PERFORM idem_complete(ticket, ticket.response, ticket.code,
							  ticket.resource);
	END IF;
	RETURN ticket;
END $$;
