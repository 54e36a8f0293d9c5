-- idem_require: outcomes as errors, for callers who want them so.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

-- What may go on comes back unchanged.
SELECT o AS outcome, ticket::text = idem_require(ticket)::text AS unchanged
FROM unnest(ARRAY['execute', 'resume', 'replay']) AS o,
	 LATERAL (SELECT jsonb_populate_record(
				idem_claim('t', 'require', o, lease => '1 hour'),
				jsonb_build_object('outcome', o)) AS ticket) AS t;

-- The others are errors, each with a code of its own.
CREATE TEMP TABLE ticket (place serial, ticket idem_ticket);
INSERT INTO ticket (ticket)
SELECT jsonb_populate_record(NULL::idem_ticket, jsonb_build_object(
	'outcome', o, 'tenant', 't', 'operation', 'require', 'key', 'k',
	'response', 'secret'))
FROM unnest(ARRAY['in_progress', 'mismatch', 'expired', 'unknown', 'duplicate',
				  'cancelled', 'absent']) AS o;
DO $$
DECLARE
	t idem_ticket;
BEGIN
	FOR t IN SELECT (ticket).* FROM ticket ORDER BY place LOOP
		CALL pg_temp.refused(format('SELECT idem_require(%L::idem_ticket)', t));
	END LOOP;
END
$$;

-- As real claims say them.
SELECT idem_complete(idem_claim('t', 'require', 'done', '1'), '"done"');
SELECT (idem_require(idem_claim('t', 'require', 'done', '1'))).response;
SELECT (idem_require(idem_replay('t', 'require', 'done', '1'))).response;
SELECT pg_temp.code_of($$SELECT idem_require(idem_claim('t', 'require', 'done', '2'))$$) AS mismatch,
	   pg_temp.code_of($$SELECT idem_require(idem_claim('t', 'require', 'execute'))$$) AS in_progress,
	   pg_temp.code_of($$SELECT idem_require(idem_replay('t', 'require', 'none'))$$) AS absent;
-- the first command of a duplicate is named
SELECT idem_complete(idem_claim('t', 'require', 'first', guard => 'g'));
CALL pg_temp.refused($$SELECT idem_require(idem_claim('t', 'require', 'second', guard => 'g'))$$);
-- a refused transaction leaves no claim behind
BEGIN;
SELECT outcome FROM idem_require(idem_claim('t', 'require', 'new'));
SELECT outcome FROM idem_require(idem_claim('t', 'require', 'new'));
ROLLBACK;
SELECT outcome FROM idem_replay('t', 'require', 'new');

-- What is no ticket.
CALL pg_temp.refused('SELECT idem_require(NULL)');
CALL pg_temp.refused($$SELECT idem_require('(,,,,,,,,,,,,,,,,,,,,)')$$);
CALL pg_temp.refused($$SELECT idem_require('(Replay,t,o,k,,,,,,,,,,,,,,,,,)')$$);
CALL pg_temp.refused($$SELECT idem_require('(replay,,o,k,,,,,,,,,,,,,,,,,)')$$);

-- Nobody reads what it returns: it is called all the same, and nothing is done.
CREATE TEMP TABLE effect (key text);
CALL pg_temp.refused($$INSERT INTO effect
	SELECT t.key FROM idem_claim('t', 'require', 'done', '2') AS t,
		LATERAL (SELECT idem_require(t)) AS r$$);
CALL pg_temp.refused($$INSERT INTO effect
	SELECT s.key FROM (SELECT t.key, idem_require(t)
					   FROM idem_claim('t', 'require', 'second', guard => 'g') AS t) AS s$$);
SELECT count(*) FROM effect;
