\set ECHO none
-- What tests of refusals have in common; each command runs in a
-- subtransaction.

-- Runs a command that has to fail, and shows how it did.
CREATE PROCEDURE pg_temp.refused(command text)
LANGUAGE plpgsql AS $$
DECLARE
	error_detail text;
	error_hint text;
BEGIN
	BEGIN
		EXECUTE command;
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS error_detail = PG_EXCEPTION_DETAIL,
								error_hint = PG_EXCEPTION_HINT;
		RAISE INFO '% %', sqlstate, sqlerrm
			USING DETAIL = error_detail, HINT = error_hint;
		RETURN;
	END;
	RAISE EXCEPTION 'not refused: %', command;
END
$$;

-- The SQLSTATE of a command, or 'accepted'.
CREATE FUNCTION pg_temp.code_of(command text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE command;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate;
END
$$;
\set ECHO all
