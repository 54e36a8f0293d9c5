/*
 * The last line of defence of guards; the states are those of
 * state_holds_guard() in state.c.
 */
CREATE UNIQUE INDEX idem_record_guard ON idem_record (tenant, operation, guard)
	WHERE guard IS NOT NULL AND state IN ('processing', 'unknown', 'succeeded');
