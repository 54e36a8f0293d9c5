-- What somebody adds to the extension's tables: AFTER ROW triggers fire at each
-- write, and a purge keeps what a foreign key refers to.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
SET client_min_messages = warning;
CALL idem_maintain();

-- A copy kept by triggers, as replication by triggers and pg_repack have it.
CREATE TABLE seen (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, about text, op text, old jsonb, new jsonb);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen (about, op, old, new)
	VALUES (TG_TABLE_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(old) END, CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(new) END);
	RETURN NULL;
END
$$;
SELECT format('CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION see()', t)
FROM unnest(ARRAY['idem_record', 'idem_step', 'idem_intent', 'idem_event']) AS t \gexec

SELECT version FROM idem_define('triggers', ttl => '1 us', tombstone_retention => '1 us');
-- atomic: one insert, already final
BEGIN;
SELECT idem_claim('t', 'triggers', 'atomic', '1') AS ticket \gset
SELECT count(*) FROM seen;
SELECT idem_complete(:'ticket'::idem_ticket, '1', resource => 'order 1');
COMMIT;
-- leased, with all that belongs to a command
SELECT idem_claim('t', 'triggers', 'leased', lease => '1 hour') AS ticket \gset
SELECT idem_heartbeat(:'ticket'::idem_ticket, '2 hours') IS NOT NULL AS extended;
SELECT idem_step_done(:'ticket', 'one', '{"a": 1}');
SELECT operation_id AS id FROM idem_intend(:'ticket', 'pay', 'triggers bank') \gset
SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset
SELECT state FROM idem_confirm(:'id', :token);
SELECT idem_unknown(:'ticket'::idem_ticket, 'why');
SELECT idem_resolve('t', 'triggers', 'leased', 'succeeded', 'seen', '2');
SELECT about, op, count(*), min(coalesce(new, old) ->> 'state') AS state
FROM seen GROUP BY about, op ORDER BY about, op;
-- the rows that they were given are those of the tables
SELECT new FROM seen WHERE about = 'idem_record' AND op = 'INSERT'
EXCEPT SELECT old FROM seen WHERE about = 'idem_record'
EXCEPT SELECT to_jsonb(r) FROM idem_record r WHERE operation = 'triggers';
SELECT op, old ->> 'state' AS old, new ->> 'state' AS new FROM seen WHERE about = 'idem_record' AND coalesce(new, old) ->> 'key' = 'leased' ORDER BY id;
-- sweep and purge
TRUNCATE seen;
SELECT * FROM idem_sweep();
SELECT * FROM idem_sweep();
SELECT about, op, count(*) FROM seen GROUP BY about, op ORDER BY about, op;
SELECT count(*) FROM idem_event WHERE operation = 'triggers';

-- A rollback to a savepoint takes back what they wrote.
TRUNCATE seen;
BEGIN;
SELECT idem_claim('t', 'triggers', 'savepoint', '1') AS ticket \gset
SAVEPOINT s;
SELECT idem_complete(:'ticket'::idem_ticket, '1');
ROLLBACK TO s;
SELECT idem_fail(:'ticket'::idem_ticket, '2');
COMMIT;
SELECT new ->> 'state' AS state FROM seen WHERE about = 'idem_record';

-- UPDATE OF names columns: every write writes all.  WHEN sees both rows.
CREATE TABLE told (what text);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told VALUES (TG_ARGV[0] || ' ' || new.key);
	RETURN NULL;
END
$$;
CREATE TRIGGER of_state AFTER UPDATE OF state ON idem_record FOR EACH ROW EXECUTE FUNCTION tell('of state');
CREATE TRIGGER ended AFTER UPDATE ON idem_record FOR EACH ROW
	WHEN (old.state = 'processing' AND new.state = 'succeeded') EXECUTE FUNCTION tell('ended');
CREATE CONSTRAINT TRIGGER in_the_end AFTER INSERT ON idem_record DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION tell('in the end');
BEGIN;
SELECT idem_claim('t', 'triggers', 'when', lease => '1 hour') AS ticket \gset
SELECT count(*) FROM told;
COMMIT;
SELECT idem_complete(:'ticket'::idem_ticket, '1');
SELECT * FROM told;
DROP TRIGGER of_state ON idem_record;
DROP TRIGGER ended ON idem_record;
DROP TRIGGER in_the_end ON idem_record;
-- A transition table has the row.
TRUNCATE told;
CREATE FUNCTION tell_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told SELECT TG_OP || ' ' || key || ' ' || state FROM rows;
	RETURN NULL;
END
$$;
CREATE TRIGGER inserted AFTER INSERT ON idem_record REFERENCING NEW TABLE AS rows FOR EACH ROW EXECUTE FUNCTION tell_rows();
CREATE TRIGGER updated AFTER UPDATE ON idem_record REFERENCING OLD TABLE AS rows FOR EACH ROW EXECUTE FUNCTION tell_rows();
CREATE TRIGGER deleted AFTER DELETE ON idem_record REFERENCING OLD TABLE AS rows FOR EACH ROW EXECUTE FUNCTION tell_rows();
SELECT count(idem_complete(t::idem_ticket)) FROM (SELECT t FROM idem_claim_batch('t', 'triggers', ARRAY['one', 'two'], lease => '1 hour') AS t OFFSET 0) AS s;
CALL idem_maintain();
SELECT * FROM told WHERE what ~ ' (one|two) ' ORDER BY 1;
DROP TRIGGER inserted ON idem_record;
DROP TRIGGER updated ON idem_record;
DROP TRIGGER deleted ON idem_record;

-- One that refuses: the call fails, nothing is written, and it can be tried again.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE unique_violation USING MESSAGE = 'the trigger says no';
END
$$;
CREATE TRIGGER refuse AFTER INSERT ON idem_record FOR EACH ROW EXECUTE FUNCTION refuse();
BEGIN;
SELECT idem_claim('t', 'triggers', 'refused', '1') AS ticket \gset
CALL pg_temp.refused(format('SELECT idem_complete(%L::idem_ticket, ''1'')', :'ticket'));
CALL pg_temp.refused($$SELECT idem_claim('t', 'triggers', 'other', lease => '1 hour')$$);
DROP TRIGGER refuse ON idem_record;
SELECT idem_complete(:'ticket'::idem_ticket, '1');
COMMIT;
SELECT outcome FROM idem_replay('t', 'triggers', 'refused', '1');
SELECT outcome FROM idem_replay('t', 'triggers', 'other', '1');
-- Its errors are its own, also where it writes to a table of the same name.
CREATE SCHEMA triggers_copy;
CREATE TABLE triggers_copy.idem_record (operation text PRIMARY KEY);
CREATE FUNCTION copy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO triggers_copy.idem_record VALUES (new.operation);
	RETURN NULL;
END
$$;
CREATE TRIGGER copy AFTER INSERT ON idem_record FOR EACH ROW EXECUTE FUNCTION copy();
CALL pg_temp.refused($$SELECT idem_claim_batch('t', 'triggers', ARRAY['x', 'y'], lease => '1 hour')$$);
DROP TRIGGER copy ON idem_record;
DROP TABLE triggers_copy.idem_record;
DROP SCHEMA triggers_copy;

-- One that calls back: it sees the row.
CREATE FUNCTION call_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO told SELECT 'replay: ' || outcome FROM idem_replay(new.tenant, new.operation, new.key);
	INSERT INTO told SELECT 'claim: ' || outcome FROM idem_claim(new.tenant, new.operation, new.key, lease => '1 hour');
	BEGIN
		PERFORM idem_release(new.tenant, new.operation, new.key, new.token);
	EXCEPTION WHEN SQLSTATE 'ID003' THEN
		INSERT INTO told VALUES ('release: refused');
	END;
	PERFORM idem_complete(new.tenant, new.operation, new.key, new.token, new.response);
	RETURN NULL;
END
$$;
TRUNCATE told;
CREATE TRIGGER call_back AFTER INSERT ON idem_record FOR EACH ROW EXECUTE FUNCTION call_back();
SELECT idem_complete(idem_claim('t', 'triggers', 'called back', ttl => '1 hour'), '1');
BEGIN;
SAVEPOINT s;
SELECT idem_complete(idem_claim('t', 'triggers', 'called back 2', ttl => '1 hour'), '1');
COMMIT;
SELECT * FROM told;
DROP TRIGGER call_back ON idem_record;
-- One that decides what nobody knows, as soon as the trail tells of it.
CREATE FUNCTION decide() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM idem_resolve(new.tenant, new.operation, new.key, 'released', 'run it again');
	RETURN NULL;
END
$$;
CREATE TRIGGER decide AFTER INSERT ON idem_event FOR EACH ROW WHEN (new.to_state = 'unknown') EXECUTE FUNCTION decide();
SELECT idem_unknown(idem_claim('t', 'triggers', 'decided', lease => '1 hour'), 'why');
DROP TRIGGER decide ON idem_event;
SELECT outcome, attempt FROM idem_claim('t', 'triggers', 'decided', lease => '1 hour');
SELECT from_state, to_state FROM idem_event WHERE operation = 'triggers' AND key = 'decided' ORDER BY id;
-- The policy that a batch began with is that of all its claims.
CREATE FUNCTION redefine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM idem_define('triggers a', ignore_paths => ARRAY['/a']);
	PERFORM idem_claim('t', 'triggers', 'other of ' || new.key, lease => '1 hour');
	RETURN NULL;
END
$$;
SELECT idem_define('triggers a', ignore_paths => ARRAY['/b']) IS NULL, idem_define('triggers b', ignore_paths => ARRAY['/t']) IS NULL;
CREATE TRIGGER redefine AFTER INSERT ON idem_record FOR EACH ROW WHEN (new.operation = 'triggers b') EXECUTE FUNCTION redefine();
SELECT key, outcome FROM idem_claim_batch('t', 'triggers b', ARRAY['1', '2', '3'], ARRAY['{"a": 1, "t": 1}', '{"a": 2, "t": 1}', '{"a": 3, "t": 1}']::jsonb[], lease => '1 hour');
DROP TRIGGER redefine ON idem_record;
SELECT key, outcome FROM idem_claim_batch('t', 'triggers b', ARRAY['1', '2', '3'], ARRAY['{"a": 1, "t": 2}', '{"a": 2, "t": 2}', '{"a": 3, "t": 2}']::jsonb[], lease => '1 hour');
SELECT format('DROP TRIGGER see ON %I', t)
FROM unnest(ARRAY['idem_record', 'idem_step', 'idem_intent', 'idem_event']) AS t \gexec

-- Foreign keys of the application: a purge keeps what is referred to, with all
-- that belongs to it.
CREATE TABLE orders (id int PRIMARY KEY, tenant text, operation text, key text);
CREATE VIEW pg_temp.kept AS
SELECT key FROM idem_record WHERE operation = 'triggers fk' ORDER BY key COLLATE "C";
CREATE PROCEDURE pg_temp.fill(kind text) LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM orders;
	PERFORM idem_complete(idem_claim('t', 'triggers fk', kind || n, lease => '1 hour'), '1')
	FROM generate_series(1, 3) AS n;
	INSERT INTO orders SELECT n, 't', 'triggers fk', kind || n FROM generate_series(1, 2) AS n;
END
$$;
SELECT version FROM idem_define('triggers fk', ttl => '1 us', tombstone_retention => '1 us');
ALTER TABLE orders ADD CONSTRAINT orders_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record;
CALL pg_temp.fill('plain');
SELECT swept FROM idem_sweep();
-- what is kept is not written to
CREATE TABLE pg_temp.before AS SELECT key, xmax::text AS lock FROM idem_record WHERE operation = 'triggers fk';
SELECT purged, more FROM idem_sweep();
TABLE pg_temp.kept;
SELECT key, r.xmax::text = b.lock AS as_before FROM idem_record r JOIN pg_temp.before b USING (key) WHERE r.operation = 'triggers fk' ORDER BY key;
DELETE FROM orders WHERE id = 1;
-- what is not referred to any more goes
CALL idem_maintain();
CALL idem_maintain();
TABLE pg_temp.kept;
-- deferred, and to be restricted
ALTER TABLE orders DROP CONSTRAINT orders_command;
ALTER TABLE orders ADD CONSTRAINT orders_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record
	DEFERRABLE INITIALLY DEFERRED;
CALL pg_temp.fill('deferred');
CALL idem_maintain();
CALL idem_maintain();
TABLE pg_temp.kept;
ALTER TABLE orders DROP CONSTRAINT orders_command;
ALTER TABLE orders ADD CONSTRAINT orders_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record
	ON DELETE RESTRICT;
CALL idem_maintain();
TABLE pg_temp.kept;
-- one that somebody switched off does not count
ALTER TABLE idem_record DISABLE TRIGGER ALL;
BEGIN;
SELECT purged FROM idem_sweep();
ROLLBACK;
ALTER TABLE idem_record ENABLE TRIGGER ALL;
-- those that say what becomes of the rows
ALTER TABLE orders DROP CONSTRAINT orders_command;
ALTER TABLE orders ADD CONSTRAINT orders_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record
	ON DELETE SET NULL;
CALL idem_maintain();
CALL idem_maintain();
TABLE pg_temp.kept;
SELECT * FROM orders ORDER BY id;
ALTER TABLE orders DROP CONSTRAINT orders_command;
ALTER TABLE orders ADD CONSTRAINT orders_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record
	ON DELETE CASCADE;
CALL pg_temp.fill('cascade');
CALL idem_maintain();
CALL idem_maintain();
TABLE pg_temp.kept;
TABLE orders;
DROP TABLE orders;
-- columns in another order, of another type, in a partitioned table, that the
-- caller may not read
CREATE SCHEMA "Bob's %";
CREATE ROLE idem_triggers_owner;
CREATE ROLE idem_triggers_operator;
GRANT USAGE, CREATE ON SCHEMA "Bob's %" TO idem_triggers_owner;
GRANT REFERENCES ON idem_record TO idem_triggers_owner;
SELECT idem_grant('idem_triggers_operator', 'operator');
SET ROLE idem_triggers_owner;
CREATE TABLE "Bob's %"."or ders" ("the ""key" varchar(255), op text, t text,
	FOREIGN KEY (t, op, "the ""key") REFERENCES idem_record (tenant, operation, key)) PARTITION BY LIST (t);
RESET ROLE;
CREATE TABLE "Bob's %".some PARTITION OF "Bob's %"."or ders" DEFAULT;
SELECT count(idem_complete(idem_claim('t', 'triggers fk', 'read' || n, lease => '1 hour'), '1')) FROM generate_series(1, 3) AS n;
INSERT INTO "Bob's %"."or ders" VALUES ('read2', 'triggers fk', 't');
SET ROLE idem_triggers_operator;
CALL idem_maintain();
CALL idem_maintain();
RESET ROLE;
TABLE pg_temp.kept;
DROP TABLE "Bob's %"."or ders";
-- the server's own check wants more rights of the owner
SET ROLE idem_triggers_owner;
CREATE TABLE "Bob's %".orders (t text, o text, k text, FOREIGN KEY (t, o, k) REFERENCES idem_record);
REVOKE UPDATE ON "Bob's %".orders FROM idem_triggers_owner;
RESET ROLE;
INSERT INTO "Bob's %".orders VALUES ('t', 'triggers fk', 'read2');
SELECT swept, purged FROM idem_sweep();
SELECT count(idem_complete(idem_claim('t', 'triggers fk', 'read4', lease => '1 hour')));
CALL pg_temp.refused('SELECT idem_sweep()');
GRANT UPDATE ON "Bob's %".orders TO idem_triggers_owner;
SELECT swept, purged FROM idem_sweep();
DROP TABLE "Bob's %".orders;
-- to an intent and to a step, and from one of the extension's tables to another
CREATE TABLE calls (id uuid REFERENCES idem_intent);
CREATE TABLE marks (t text, o text, k text, s text, FOREIGN KEY (t, o, k, s) REFERENCES idem_step);
ALTER TABLE idem_step ADD CONSTRAINT of_a_command FOREIGN KEY (tenant, operation, key) REFERENCES idem_record;
SELECT count(idem_step_done(c, 'one')), count(idem_intend(c, 'pay', 'triggers bank', send => true))
FROM (SELECT idem_claim('t', 'triggers fk', n, lease => '1 hour') AS c
	  FROM unnest(ARRAY['intent', 'step', 'plain']) AS n OFFSET 0) AS s;
SELECT c.state, count(*) FROM idem_dispatch('triggers bank', 'w', 10, '1 hour') AS i, idem_confirm(i.operation_id, i.token) AS c GROUP BY c.state;
SELECT count(idem_complete('t', 'triggers fk', key, token)) FROM idem_record WHERE operation = 'triggers fk' AND state = 'processing';
INSERT INTO calls SELECT operation_id FROM idem_intent WHERE (operation, key) = ('triggers fk', 'intent');
INSERT INTO marks VALUES ('t', 'triggers fk', 'step', 'one');
CALL idem_maintain();
CALL idem_maintain();
SELECT kept.*, (SELECT count(*) FROM idem_step s WHERE (s.operation, s.key) = ('triggers fk', kept.key)) AS steps,
	   (SELECT count(*) FROM idem_intent i WHERE (i.operation, i.key) = ('triggers fk', kept.key)) AS intents
FROM pg_temp.kept;
DROP TABLE calls, marks;
CALL idem_maintain();
TABLE pg_temp.kept;
ALTER TABLE idem_step DROP CONSTRAINT of_a_command;
-- to a column that may be NULL: nothing refers to such a row
ALTER TABLE idem_record ADD CONSTRAINT one_resource UNIQUE (tenant, operation, key, resource);
CREATE TABLE made (t text, o text, k text, r text, FOREIGN KEY (t, o, k, r) REFERENCES idem_record (tenant, operation, key, resource));
SELECT count(idem_complete(idem_claim('t', 'triggers fk', n, lease => '1 hour'), '1', resource => nullif(n, 'none')))
FROM unnest(ARRAY['none', 'order 1', 'order 2']) AS n;
INSERT INTO made VALUES ('t', 'triggers fk', 'order 2', 'order 2'), ('t', 'triggers fk', 'none', NULL), ('t', 'triggers fk', 'order 1', NULL);
CALL idem_maintain();
CALL idem_maintain();
TABLE pg_temp.kept;
DROP TABLE made;
ALTER TABLE idem_record DROP CONSTRAINT one_resource;
CALL idem_maintain();
TABLE pg_temp.kept;

SELECT idem_revoke('idem_triggers_operator');
REVOKE ALL ON idem_record FROM idem_triggers_owner;
DROP SCHEMA "Bob's %";
DROP ROLE idem_triggers_owner, idem_triggers_operator;
DROP TABLE seen, told;
DROP FUNCTION see(), tell(), tell_rows(), refuse(), copy(), call_back(), decide(), redefine();
