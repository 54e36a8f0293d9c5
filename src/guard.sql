/*
 * The last line of defence of guards; the condition is that of
 * guard_is_held_by() in guard.c.
 */
CREATE UNIQUE INDEX idem_record_guard ON idem_record (tenant, operation, guard)
	WHERE guard IS NOT NULL
		AND (state IN ('processing', 'unknown', 'succeeded') OR state = 'released' AND once_more);
