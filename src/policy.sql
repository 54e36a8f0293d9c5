/*
 * idem_policy: the defaults of an operation, and what it allows.  Backends
 * cache it; the trigger checks every row, however it is written, and tells
 * every backend to read it again.
 */
CREATE TABLE idem_policy (
	operation text COLLATE "C" PRIMARY KEY,
	ttl interval,
	lease interval,
	max_lease interval,
	wait interval,
	tombstone_retention interval,
	max_attempts integer,
	ignore_paths text[],
	keep_request boolean NOT NULL DEFAULT false,
	steps text[],
	version integer NOT NULL DEFAULT 1,
	comment text,
	notify text
);
REVOKE ALL ON TABLE idem_policy FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_policy', '');

COMMENT ON TABLE idem_policy IS
'Defaults and limits of an operation. Written by idem_define. An operation without a row follows the settings.';
COMMENT ON COLUMN idem_policy.operation IS 'the operation, 1 to 128 characters';
COMMENT ON COLUMN idem_policy.ttl IS 'how long a completed command is replayed; NULL: idempotency.ttl';
COMMENT ON COLUMN idem_policy.lease IS 'lease of claims that name none; NULL: such claims are atomic';
COMMENT ON COLUMN idem_policy.max_lease IS 'longest lease a claim or heartbeat may ask for; NULL: 100 years';
COMMENT ON COLUMN idem_policy.wait IS 'how long a claim waits for another owner; NULL: idempotency.wait';
COMMENT ON COLUMN idem_policy.tombstone_retention IS 'how long an expired record is remembered; NULL: idempotency.tombstone_retention';
COMMENT ON COLUMN idem_policy.max_attempts IS 'attempts before the record goes to unknown; NULL: no limit';
COMMENT ON COLUMN idem_policy.ignore_paths IS 'parts of the request left out of the fingerprint, as JSON Pointers (RFC 6901)';
COMMENT ON COLUMN idem_policy.keep_request IS 'whether leased claims store their request';
COMMENT ON COLUMN idem_policy.steps IS 'legal steps of the operation in their order';
COMMENT ON COLUMN idem_policy.version IS 'grows by one with every change';
COMMENT ON COLUMN idem_policy.comment IS 'free text';
COMMENT ON COLUMN idem_policy.notify IS 'channel that is notified, with the target, when an intent becomes due for a relay; NULL: none';

CREATE FUNCTION idem_policy_check() RETURNS trigger
LANGUAGE c AS 'MODULE_PATHNAME', 'idem_policy_check';
REVOKE ALL ON FUNCTION idem_policy_check() FROM PUBLIC;
COMMENT ON FUNCTION idem_policy_check() IS
'Trigger of idem_policy: refuses values without meaning, and makes every session read the policies again.
Errors: 22004, 22023. Tables: idem_policy.';

CREATE TRIGGER idem_policy_check_row
	BEFORE INSERT OR UPDATE OR DELETE ON idem_policy
	FOR EACH ROW EXECUTE FUNCTION idem_policy_check();
CREATE TRIGGER idem_policy_check_all
	BEFORE TRUNCATE ON idem_policy
	FOR EACH STATEMENT EXECUTE FUNCTION idem_policy_check();

/* also for rows that logical replication applies */
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_row;
ALTER TABLE idem_policy ENABLE ALWAYS TRIGGER idem_policy_check_all;

/*
 * Every version of an operation's steps: a record keeps the version it began
 * with, whatever is defined later.
 */
CREATE TABLE idem_policy_steps (
	operation text COLLATE "C" NOT NULL,
	version integer NOT NULL,
	steps text[],
	PRIMARY KEY (operation, version)
);
REVOKE ALL ON TABLE idem_policy_steps FROM PUBLIC;
SELECT pg_catalog.pg_extension_config_dump('idem_policy_steps', '');

COMMENT ON TABLE idem_policy_steps IS 'The legal steps of each version of a policy. Written by idem_define.';
COMMENT ON COLUMN idem_policy_steps.operation IS 'the operation';
COMMENT ON COLUMN idem_policy_steps.version IS 'version of its policy';
COMMENT ON COLUMN idem_policy_steps.steps IS 'legal steps in their order; NULL: any';

/* Runs with the owner's rights; its body was resolved when it was made. */
CREATE FUNCTION idem_define(
	operation text,
	ttl interval DEFAULT NULL,
	lease interval DEFAULT NULL,
	max_lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	tombstone_retention interval DEFAULT NULL,
	max_attempts integer DEFAULT NULL,
	ignore_paths text[] DEFAULT NULL,
	keep_request boolean DEFAULT false,
	steps text[] DEFAULT NULL,
	comment text DEFAULT NULL,
	notify text DEFAULT NULL
) RETURNS idem_policy
LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	/* a policy is every tenant's */
	SELECT idem_require_every_tenant();
	/* a version that was used once is not used again, even after a DELETE */
	WITH defined AS (
		INSERT INTO idem_policy AS p (version, operation, ttl, lease, max_lease,
									  wait, tombstone_retention, max_attempts,
									  ignore_paths, keep_request, steps, comment,
									  notify)
		VALUES (1 + coalesce((SELECT max(s.version) FROM idem_policy_steps s
							  WHERE s.operation = idem_define.operation), 0),
				idem_define.operation, idem_define.ttl, idem_define.lease,
				idem_define.max_lease, idem_define.wait,
				idem_define.tombstone_retention, idem_define.max_attempts,
				idem_define.ignore_paths,
				coalesce(idem_define.keep_request, false),
				idem_define.steps, idem_define.comment, idem_define.notify)
		ON CONFLICT ON CONSTRAINT idem_policy_pkey DO UPDATE
		SET ttl = excluded.ttl, lease = excluded.lease,
			max_lease = excluded.max_lease, wait = excluded.wait,
			tombstone_retention = excluded.tombstone_retention,
			max_attempts = excluded.max_attempts,
			ignore_paths = excluded.ignore_paths,
			keep_request = excluded.keep_request,
			steps = excluded.steps, comment = excluded.comment,
			notify = excluded.notify,
			version = p.version
				+ ((p.ttl, p.lease, p.max_lease, p.wait, p.tombstone_retention,
					p.max_attempts, p.ignore_paths, p.keep_request, p.steps,
					p.notify)
				   IS DISTINCT FROM
				   (excluded.ttl, excluded.lease, excluded.max_lease,
					excluded.wait, excluded.tombstone_retention,
					excluded.max_attempts, excluded.ignore_paths,
					excluded.keep_request, excluded.steps,
					excluded.notify))::integer
		RETURNING p.*
	), kept AS (
		INSERT INTO idem_policy_steps (operation, version, steps)
		SELECT d.operation, d.version, d.steps FROM defined d
		ON CONFLICT ON CONSTRAINT idem_policy_steps_pkey DO NOTHING
	)
	SELECT d.* FROM defined d;
END;
REVOKE ALL ON FUNCTION idem_define(text, interval, interval, interval,
	interval, interval, integer, text[], boolean, text[], text, text) FROM PUBLIC;
COMMENT ON FUNCTION idem_define(text, interval, interval, interval,
	interval, interval, integer, text[], boolean, text[], text, text) IS
'Defines the policy of an operation as a whole: an argument left out returns to its default. Every session follows it from its commit on.
Arguments: operation, 1 to 128 characters. ttl, lease, max_lease, tombstone_retention: more than zero, at most 36500 days, without months. wait: zero to 1 day. max_attempts: 1 or more. ignore_paths: JSON Pointers (RFC 6901) left out of the fingerprint. keep_request: leased claims store their request. steps: legal steps in their order, each 1 to 128 characters. comment: free text. notify: a channel of 1 to 63 bytes, notified with the target whenever an intent becomes due for a relay; such a transaction cannot be prepared. NULL means the default.
Returns: the policy; its version grows by one when anything but the comment changed.
Errors: 22004, 22023, 25006, 42501 bound to some tenants. Tables: writes idem_policy, idem_policy_steps.';
