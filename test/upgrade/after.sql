/*
 * 0.9 to 1.0, what the data need once everything is there: since when a
 * command is unknown, since when an intent is in question, and the steps of
 * the policies' present versions; and a primary key, which nobody drafts.
 */
ALTER TABLE idem_origin DROP CONSTRAINT idem_origin_pkey,
	ADD PRIMARY KEY (system_identifier, database, adopted_at);
UPDATE idem_record SET unknown_at = clock_timestamp() WHERE state = 'unknown';
INSERT INTO idem_policy_steps SELECT p.operation, p.version, p.steps FROM idem_policy p;
UPDATE idem_intent SET doubt_since = first_sent_at WHERE state IN ('in_flight', 'unknown');
