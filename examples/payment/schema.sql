-- What the shop stores itself, and how its commands run.
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    reference text NOT NULL,  -- not unique: that there is one row per order is what the story shows
    amount integer NOT NULL,  -- cents
    state text NOT NULL CHECK (state IN ('open', 'paid', 'declined'))
);

CREATE TABLE ledger (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES orders,
    amount integer NOT NULL,
    payment text NOT NULL  -- what the provider calls it
);

SELECT idem_define('order.pay', lease => '100 ms', keep_request => true, steps => '{order,charge}');
