-- Durations: what is no fixed, positive, bounded length is refused before any
-- write (22023), and no arithmetic ever overflows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include

CALL pg_temp.refused($$SELECT idem_claim('t', 'durations', 'k', lease => '0')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'durations', 'k', ttl => '-1 second')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'durations', 'k', wait => '-1 second')$$);
CALL pg_temp.refused($$SELECT idem_claim('t', 'durations', 'k', wait => '1 year')$$);

-- '2147483647 days' and its like are as far as an interval goes; 213503983 days
-- are 16 hours for 64 bits that overflow.
SELECT duration,
	   pg_temp.code_of(format($$SELECT idem_claim('t', 'durations', 'lease %s', lease => %L)$$, n, duration)) AS lease,
	   pg_temp.code_of(format($$SELECT idem_complete(idem_claim('t', 'durations', 'ttl %s', ttl => %L))$$, n, duration)) AS ttl,
	   pg_temp.code_of(format($$SELECT idem_claim('t', 'durations', 'wait %s', wait => %L, lease => '1 hour')$$, n, duration)) AS wait
FROM unnest(ARRAY[
	'0', '-1 microsecond', '-1 day', '1 month', '1 year', '178000000 years',
	'-178000000 years', '1 month -40 days', '1 month -30 days', '-1 month 60 days',
	'2147483647 days', '-2147483648 days', '213503983 days', '2147483647 days 2562047788:00:00',
	'36500 days 00:00:00.000001', '36501 days', '876000 hours 1 microsecond',
	'24:00:00.000001', '1 day 1 microsecond',
	'36501 days -24:00:00', '1 day -24:00:00', '1 day -24:00:01',
	'36500 days', '876000 hours', '1 microsecond', '1 day', '24:00:00',
	'1 week', '-1 day 24:00:00.000001']) WITH ORDINALITY AS d(duration, n);
SELECT count(*) AS rows,
	   count(*) FILTER (WHERE state = 'succeeded' AND expires_at <= completed_at
						OR state = 'processing' AND lease_until <= created_at) AS wrong
FROM idem_record WHERE operation = 'durations';

-- Nothing lasts for ever. Before 17 an interval cannot say so (22007).
SELECT argument, value, pg_temp.code_of(format($$SELECT idem_claim('t', 'durations', 'for ever', %s => %L, lease => '1 hour')$$,
											   argument, value)) IN ('22007', '22023') AS refused
FROM unnest(ARRAY['ttl', 'wait']) AS argument, unnest(ARRAY['infinity', '-infinity']) AS value
UNION ALL
SELECT 'lease', value, pg_temp.code_of(format($$SELECT idem_claim('t', 'durations', 'for ever', lease => %L)$$, value)) IN ('22007', '22023')
FROM unnest(ARRAY['infinity', '-infinity']) AS value
ORDER BY 1, 2;

-- A day has 24 hours, also where clocks are changed before it ends: after at
-- least one of these, whatever day it is.
SET timezone = 'Europe/Berlin';
SELECT bool_and(lease_until - created_at = n * interval '24 hours') AS lease
FROM unnest(ARRAY[90, 182, 270]) AS n,
	 idem_claim('t', 'durations', 'days ' || n, lease => make_interval(days => n));
SELECT count(idem_complete(idem_claim('t', 'durations', 'ttl days ' || n,
									  ttl => make_interval(days => n))))
FROM unnest(ARRAY[90, 182, 270]) AS n;
SELECT bool_and(expires_at - completed_at = n * interval '24 hours') AS ttl
FROM unnest(ARRAY[90, 182, 270]) AS n, idem_replay('t', 'durations', 'ttl days ' || n);
RESET timezone;

-- The ttl of a leased claim is kept exactly until its completion.
SELECT idem_complete(idem_claim('t', 'durations', 'leased', lease => '1 hour', ttl => '36500 days'));
SELECT expires_at - completed_at = '36500 days' AS exact
FROM idem_replay('t', 'durations', 'leased');
