"""What fuzz needs in its database, and what has to be true there."""

import canonical

SCHEMA = """
SET client_min_messages = error;
DROP EXTENSION IF EXISTS idempotency CASCADE;
DROP TABLE IF EXISTS told, kept;
RESET client_min_messages;
CREATE EXTENSION idempotency;
CREATE TABLE told (tenant text, operation text, key text, ended text, clash boolean DEFAULT false,
                   PRIMARY KEY (tenant, operation, key));
CREATE TABLE kept (tickets idem_ticket[], intents uuid[], tokens bigint[]);
INSERT INTO kept DEFAULT VALUES;
CREATE OR REPLACE FUNCTION h_json(jsonb) RETURNS json LANGUAGE sql AS $$ SELECT '{"a" : 1.0}'::json $$;
CREATE OR REPLACE FUNCTION h_jsonb(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION h_strict(jsonb) RETURNS jsonb LANGUAGE sql STRICT AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION h_set(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION h_two(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION h_text(text) RETURNS jsonb LANGUAGE sql AS $$ SELECT '1'::jsonb $$;
CREATE OR REPLACE FUNCTION h_wrong(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT '1' $$;
CREATE OR REPLACE PROCEDURE h_call(jsonb) LANGUAGE sql AS $$ SELECT 1 $$;
CREATE OR REPLACE FUNCTION h_error(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '22023'; END $$;
CREATE OR REPLACE FUNCTION h_claims(request jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	t idem_ticket := idem_claim('t', 'inner', 'k' || (random() * 99)::int, request);
BEGIN
	IF t.token IS NOT NULL THEN
		PERFORM idem_complete(t, '1');
		INSERT INTO told VALUES (t.tenant, t.operation, t.key, 'succeeded');
	END IF;
	RETURN to_json(t);
END $$;
CREATE OR REPLACE FUNCTION h_answer(jsonb) RETURNS idem_response LANGUAGE plpgsql AS $$
DECLARE
	one int := 1 + (random() * 4096)::int % 64;
BEGIN
	RETURN (SELECT v FROM pool_answer WHERE place = one);
END $$;
"""

# Each is a question whose answer has to be 0, and what it means otherwise.  Operations that ever had
# a policy may purge.
INVARIANTS = {
    "rows longer than the limits": """
        SELECT count(*) FROM idem_record
        WHERE greatest(char_length(tenant), char_length(operation)) > 128
           OR greatest(char_length(key), char_length(guard), char_length(owner)) > 255
           OR greatest(char_length(resource), char_length(reason)) > 1024
           OR octet_length(response::text) > {largest} OR octet_length(body) > {largest}""",
    "steps and intents longer than the limits": """
        SELECT count(*) FROM (SELECT step, '' FROM idem_step
                              UNION ALL SELECT name, target FROM idem_intent) AS s (a, b)
        WHERE greatest(char_length(a), char_length(b)) > 128""",
    "records that nobody was told of": """
        SELECT count(*) FROM idem_record r
        WHERE NOT EXISTS (SELECT FROM told t WHERE (t.tenant, t.operation, t.key)
                                                 = (r.tenant, r.operation, r.key))""",
    "records gone that somebody was told of": """
        SELECT count(*) FROM told t
        WHERE operation NOT IN (SELECT operation FROM idem_policy_steps)
          AND NOT EXISTS (SELECT FROM idem_record r WHERE (t.tenant, t.operation, t.key)
                                                        = (r.tenant, r.operation, r.key))""",
    "records in another final state than told": """
        SELECT count(*) FROM told t JOIN idem_record r USING (tenant, operation, key)
        WHERE operation NOT IN (SELECT operation FROM idem_policy_steps)
          AND (t.clash OR t.ended IS DISTINCT FROM
               CASE WHEN r.state IN ('succeeded', 'failed', 'cancelled') THEN r.state END)""",
    "key locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
                 "(SELECT oid FROM pg_database WHERE datname = current_database())",
}
CONSTRAINTS = """
SELECT conrelid::regclass || ': ' || conname,
       format('SELECT count(*) FROM %s WHERE NOT (%s)', conrelid::regclass, pg_get_expr(conbin, conrelid))
FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text LIKE 'idem\\_%'"""


def compare_fingerprints(db, rng, count):
    """Spellings, changes and ignored paths against canonical.py; a list of faults."""
    rows = []
    for _ in range(count):
        value = canonical.make(rng)
        other = canonical.change(rng, value)
        ignored = canonical.pointers(rng, value)
        rows.append((canonical.spell(rng, value), canonical.spell(rng, value), canonical.digest(value),
                     canonical.spell(rng, other), canonical.digest(other),
                     [canonical.pointer(steps) for steps in ignored],
                     canonical.digest(canonical.prune(value, ignored))))
    with db.transaction():
        db.execute("CREATE TEMP TABLE spelled (a text, b text, digest bytea, other text, changed bytea,"
                   "                           ignored text[], pruned bytea) ON COMMIT DROP")
        with db.cursor().copy("COPY spelled FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return db.execute("""
            SELECT left(a, 200), left(b, 200), left(other, 200), ignored FROM spelled
            WHERE idem_fingerprint(a::jsonb) <> digest OR idem_fingerprint(b::jsonb) <> digest
               OR a::jsonb <> b::jsonb OR a::jsonb = other::jsonb OR digest = changed
               OR idem_fingerprint(other::jsonb) <> changed
               OR idem_fingerprint(b::jsonb, ignored) <> pruned""").fetchall()
