-- What the clients write into, and where their logs are loaded.
DROP TABLE IF EXISTS txn, effect, call, transaction;
DROP FUNCTION IF EXISTS handle, operation_of;
DROP EXTENSION IF EXISTS idempotency;
CREATE EXTENSION idempotency;
CREATE TABLE txn (id text PRIMARY KEY);
CREATE TABLE effect (tx text, operation text, key text, kind text, token bigint, attempt int,
                     response text, at timestamptz DEFAULT clock_timestamp());
CREATE UNLOGGED TABLE transaction (tx text, status text, writes bool, begun bigint, sent bigint, ended bigint);
CREATE UNLOGGED TABLE call (
    tx text, f text, operation text, key text, variant int, lease_ms bigint, token bigint, attempt int, outcome text,
    state text, response text, code int, lease_until bigint, intent text, done bool, undone bool, error text,
    s bigint, e bigint);
CREATE FUNCTION operation_of(key text) RETURNS text IMMUTABLE RETURN rtrim(key, '0123456789');
CREATE FUNCTION handle(request jsonb) RETURNS idem_response LANGUAGE plpgsql AS $$
DECLARE
    answer idem_response;
BEGIN
    answer.response := format('{"id" : "%s", "id":1.50}', gen_random_uuid());
    answer.code := 200;
    INSERT INTO effect (operation, key, kind, response)
    VALUES (operation_of(request ->> 'key'), request ->> 'key', 'end', answer.response);
    IF random() < 0.05 THEN
        RAISE 'it did not work';
    END IF;
    RETURN answer;
END $$;
SELECT idem_define('brief', ttl => '0.4 s'::interval),
       idem_define('gone', ttl => '0.15 s'::interval, tombstone_retention => '0.15 s'::interval);
