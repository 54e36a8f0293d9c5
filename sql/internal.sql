-- What only the functions written in SQL call: NULL is refused, where it was
-- once read as a pointer and ended the server.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/refused.sql'
\i :include
CALL pg_temp.refused($$SELECT idem_text(NULL, 'x', 255)$$);
CALL pg_temp.refused($$SELECT idem_text('owner', 'x', NULL)$$);
CALL pg_temp.refused($$SELECT idem_text('owner', NULL, 255)$$);
CALL pg_temp.refused($$SELECT idem_duration(NULL, '1 hour', true)$$);
CALL pg_temp.refused($$SELECT idem_duration('lease', '1 hour', NULL)$$);
CALL pg_temp.refused($$SELECT idem_duration('lease', NULL, true)$$);
CALL pg_temp.refused($$SELECT idem_lock(NULL, 'o', 'k')$$);
CALL pg_temp.refused($$SELECT idem_check_address('t', 'o', NULL)$$);
CALL pg_temp.refused($$SELECT idem_recover_one('t', 'o', 'k', NULL, NULL)$$);
CALL pg_temp.refused($$SELECT idem_recover_one('t', 'o', 'k', 'w', NULL)$$);
SELECT idem_duration('lease', NULL, false) IS NULL AS none;
