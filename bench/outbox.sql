-- The hand-written outboxes: one table, SKIP LOCKED, a fence; "trail" also
-- notes each confirmation.  They are given every doubt: no index by address,
-- no check, no function, no lock on the command.
CREATE TABLE outbox (
	id uuid PRIMARY KEY,
	created_at timestamptz NOT NULL,
	due_at timestamptz NOT NULL,
	lease_until timestamptz,
	settled_at timestamptz,
	token bigint,
	tries integer NOT NULL DEFAULT 0,
	tenant text NOT NULL,
	operation text NOT NULL,
	key text NOT NULL,
	name text NOT NULL,
	target text NOT NULL,
	state text NOT NULL,
	request jsonb,
	worker text,
	reason text,
	response json
);
CREATE INDEX ON outbox (target, due_at) WHERE state = 'pending';
CREATE INDEX ON outbox (target, lease_until) WHERE state = 'in_flight';

CREATE TABLE trail (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at timestamptz NOT NULL,
	outbox uuid NOT NULL,
	from_state text NOT NULL,
	to_state text NOT NULL,
	actor text NOT NULL
);
CREATE INDEX ON trail (outbox);

-- As services note messages: each with its command, in one transaction.
CREATE PROCEDURE fill_ours(target text, intents integer) LANGUAGE plpgsql AS $$
DECLARE
	ticket idem_ticket;
BEGIN
	FOR i IN 1 .. intents LOOP
		ticket := idem_claim('shop-1', 'order', target || i);
		PERFORM idem_intend(ticket, 'mail', target, '{"to": "somebody", "template": 7}', send => true);
		PERFORM idem_complete(ticket, '{"ok": true}');
		IF i % 200 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
END $$;

CREATE PROCEDURE fill_theirs(target text, intents integer) LANGUAGE sql AS $$
	INSERT INTO outbox (id, created_at, due_at, tenant, operation, key, name, target, state, request)
	SELECT gen_random_uuid(), clock_timestamp(), clock_timestamp(), 'shop-1', 'order', target || i, 'mail', target,
		   'pending', '{"to": "somebody", "template": 7}'
	FROM generate_series(1, intents) AS i
$$;
