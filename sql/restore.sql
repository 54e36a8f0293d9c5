-- COPY brings the rows of both tables into another database, where every key
-- answers as before.
\getenv abs_builddir PG_ABS_BUILDDIR
\set dump :abs_builddir '/results/restore.dump'
\set back :DBNAME

SELECT version FROM idem_define('restore', ttl => '1 day', ignore_paths => '{/at}');
SELECT idem_complete(idem_claim('t', 'restore', 'done', '{"n": 1, "at": 1}', guard => 'g', owner => 'me'),
					 '{"a" :1}', 201, 'order 7', '{"h": 1}', '\x00ff');
SELECT idem_fail(idem_claim('t', 'restore', 'failed', '{"n": 1}'), '"no"', 500);
SELECT idem_complete(idem_claim('t', 'restore', 'expired', '{"n": 1}', ttl => '1 microsecond'));
SELECT idem_release(idem_claim('t', 'restore', 'released', '{"n": 1}', lease => '1 hour'), 'why');
SELECT idem_claim('t', 'restore', 'leased', '{"n": 1}', lease => '1 hour', ttl => '2 days') AS ticket \gset
SELECT outcome FROM idem_claim('t', 'restore', 'lapsed', '{"n": 1}', lease => '1 microsecond');
SELECT md5(string_agg(r::text, '' ORDER BY key)) AS rows
FROM idem_record AS r WHERE operation = 'restore' \gset
\o :dump
\qecho COPY idem_policy FROM stdin;
COPY (SELECT * FROM idem_policy WHERE operation = 'restore') TO STDOUT;
\qecho '\\.'
\qecho COPY idem_record FROM stdin;
COPY (SELECT * FROM idem_record WHERE operation = 'restore') TO STDOUT;
\qecho '\\.'
\o

CREATE DATABASE regress_idem_restore TEMPLATE template0;
\c regress_idem_restore
CREATE EXTENSION idempotency;
\set ECHO none
\i :dump
\set ECHO all
SELECT count(*) AS policies FROM idem_policy;
SELECT count(*) AS records, md5(string_agg(r::text, '' ORDER BY key)) = :'rows' AS same FROM idem_record AS r;

SELECT key, outcome, state, attempt, response, code, resource, headers, body, owner, reason
FROM unnest(ARRAY['done', 'failed', 'expired', 'released', 'leased', 'lapsed']) AS k,
	 idem_replay('t', 'restore', k, '{"n": 1, "at": 2}');
SELECT key, outcome, attempt
FROM unnest(ARRAY['done', 'failed', 'expired', 'released', 'leased', 'lapsed', 'new']) AS k,
	 idem_claim('t', 'restore', k, '{"n": 1, "at": 2}', lease => '1 hour');
SELECT outcome FROM idem_claim('t', 'restore', 'done', '{"n": 2}');
SELECT outcome, duplicate_of, response FROM idem_claim('t', 'restore', 'other', '{"n": 2}', guard => 'g');
SELECT idem_complete(:'ticket'::idem_ticket, '"leased"');
SELECT outcome, response, expires_at - completed_at AS ttl
FROM idem_replay('t', 'restore', 'leased', '{"n": 1}');
SELECT version FROM idem_define('restore', ttl => '2 days', ignore_paths => '{/at}');

\c :back
DROP DATABASE regress_idem_restore;
