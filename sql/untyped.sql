-- A driver that sends parameters without types has to say which form of
-- idem_complete and idem_fail it means: by the name of an argument, or a cast.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

SELECT arguments, pg_temp.code_of(format('PREPARE complete_%s AS SELECT idem_complete(%s)', n, arguments)) AS complete,
	   pg_temp.code_of(format('PREPARE fail_%s AS SELECT idem_fail(%s)', n, arguments)) AS fail
FROM unnest(ARRAY['$1, $2, $3', '$1, $2, $3, $4', '$1, $2, $3, $4, $5', '$1, $2, $3, $4, $5, $6',
				  '$1, $2, $3, $4, $5, $6, $7', '$1, $2, $3, $4, response => $5', '$1, $2, $3, $4, response => $5, code => $6',
				  '$1, $2, $3, token => $4', '$1, $2, $3, $4::bigint', '$1, $2, $3, $4::bigint, $5, $6',
				  '$1::idem_ticket, $2, $3, $4, $5, $6', 'ticket => $1, response => $2, code => $3, resource => $4'])
	 WITH ORDINALITY AS a (arguments, n);

-- The others have no such trouble.
SELECT call, pg_temp.code_of(format('PREPARE other_%s AS SELECT idem_%s', n, call)) AS prepared
FROM unnest(ARRAY['claim($1, $2, $3)', 'claim($1, $2, $3, $4)', 'release($1)', 'release($1, $2)', 'release($1, $2, $3, $4)',
				  'release($1, $2, $3, $4, $5)', 'heartbeat($1)', 'heartbeat($1, $2)', 'heartbeat($1, $2, $3, $4, $5)', 'hold($1)',
				  'hold($1, $2, $3, $4)', 'replay($1, $2, $3, $4)', 'execute($1, $2, $3, $4, $5)', 'confirm($1, $2, $3)'])
	 WITH ORDINALITY AS c (call, n);

-- They do what they say.
SELECT token AS a FROM idem_claim('t', 'untyped', 'a', lease => '1 hour') \gset
SELECT token AS b FROM idem_claim('t', 'untyped', 'b', lease => '1 hour') \gset
SELECT token AS c FROM idem_claim('t', 'untyped', 'c', lease => '1 hour') \gset
EXECUTE complete_7('t', 'untyped', 'a', :'a', '{"n": 1}', 201);
EXECUTE fail_8('t', 'untyped', 'b', :'b');
EXECUTE complete_5('t', 'untyped', 'c', :'c', '3', 200, 'orders/3');
SELECT key, state, response, code, resource FROM idem_record WHERE operation = 'untyped' ORDER BY key;
DEALLOCATE ALL;
