-- The business write that every variant protects: one order per command.
CREATE TABLE orders (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer text NOT NULL,
	total numeric NOT NULL,
	items jsonb NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now()
);

-- Without idempotency: the address is ignored, so called twice, it makes two
-- orders.
CREATE FUNCTION plain_order(tenant text, operation text, key text,
							request jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
	order_id bigint;
BEGIN
	INSERT INTO orders (customer, total, items)
	VALUES (request->>'customer', (request->>'total')::numeric,
			request->'items')
	RETURNING id INTO order_id;
	RETURN json_build_object('order', order_id, 'status', 'created');
END
$$;
