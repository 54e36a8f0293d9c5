"""What has to be true of the extension's tables after any story, and what they say happened."""

import json

from psycopg.types.json import Jsonb

TRAIL = """
SELECT key, intent, reason,
       (SELECT json_agg(later.to_state ORDER BY later.id) FROM idem_event later
         WHERE (later.tenant, later.operation, later.key) = (e.tenant, e.operation, e.key)
           AND later.intent IS NOT DISTINCT FROM e.intent AND later.id > e.id) AS afterwards
  FROM idem_event e
 WHERE tenant = %s AND to_state = 'unknown' AND from_state <> 'unknown'
"""


def trail(database, tenant):
    """What should not be there: open commands and intents, unknown ones without a reason or without an end."""
    faults = []
    for row in database.execute("SELECT key, state FROM idem_record WHERE tenant = %s"
                                " AND state NOT IN ('succeeded', 'failed')", (tenant,)):
        faults.append(f"{row.key} is {row.state}")
    for row in database.execute("SELECT key, intent, state, next_call FROM idem_stuck"
                                " WHERE tenant = %s", (tenant,)):
        faults.append(f"{row.key} {row.intent} is stuck, {row.state}: {row.next_call}")
    for row in database.execute("SELECT key, name, state FROM idem_intent WHERE tenant = %s"
                                " AND state NOT IN ('confirmed', 'rejected')", (tenant,)):
        faults.append(f"{row.key} {row.name} is {row.state}")
    for row in database.execute(TRAIL, (tenant,)):
        what = row.intent or "command"
        if not row.reason:
            faults.append(f"{row.key}: nobody says why its {what} became unknown")
        if not row.afterwards or row.afterwards[-1] == "unknown":
            faults.append(f"{row.key}: its {what} stayed unknown")
    for row in database.execute(
            "SELECT key, attempt FROM idem_record r WHERE tenant = %s AND attempt <> 1 +"
            " (SELECT count(*) FROM idem_event e WHERE (e.tenant, e.operation, e.key) = (r.tenant, r.operation, r.key)"
            "     AND e.intent IS NULL AND e.to_state = 'processing')", (tenant,)):
        faults.append(f"{row.key}: its trail does not show {row.attempt} attempts")
    return faults


def replays(database, tenant, story):
    """Commands that do not answer a late client with what is stored."""
    faults = []
    for row in database.execute("SELECT key, response::text FROM idem_record WHERE tenant = %s", (tenant,)).fetchall():
        answer = database.execute("SELECT outcome, response::text FROM idem_claim(%s, %s, %s, %s)",
                                  (tenant, story.operation, row.key, Jsonb(json.loads(story.request(row.key))))).fetchone()
        if answer != ("replay", row.response):
            faults.append(f"{row.key} answers {answer}, not {row.response}")
    return faults


def told(database, key):
    """The trail of a command as lines."""
    return [f"    {row.at:%T.%f} {row.intent or 'command'}: {row.from_state} -> {row.to_state}, {row.reason}"
            for row in database.execute("SELECT * FROM idem_event WHERE key = %s ORDER BY id", (key,))]


def figures(database, tenant):
    """(what, how many) for people to read."""
    counted = database.execute(
        "SELECT (SELECT count(*) FROM idem_record WHERE tenant = %(tenant)s) AS commands,"
        " (SELECT sum(attempt) FROM idem_record WHERE tenant = %(tenant)s) AS attempts,"
        " count(*) FILTER (WHERE intent IS NULL AND to_state = 'unknown') AS commands_unknown,"
        " count(*) FILTER (WHERE intent IS NOT NULL AND to_state = 'unknown' AND from_state <> 'unknown') AS unknown,"
        " count(*) FILTER (WHERE reason = 'verdict happened') AS happened,"
        " count(*) FILTER (WHERE reason = 'verdict absent') AS absent,"
        " count(*) FILTER (WHERE reason = 'verdict unclear') AS unclear,"
        " (SELECT sum(tries) FROM idem_intent WHERE tenant = %(tenant)s) AS tries"
        " FROM idem_event WHERE tenant = %(tenant)s", {"tenant": tenant}).fetchone()
    return [("commands", counted.commands), ("attempts", counted.attempts),
            ("  commands that became unknown, and were released by evidence", counted.commands_unknown),
            ("calls sent", counted.tries), ("  calls that became unknown", counted.unknown),
            ("  verdicts: happened", counted.happened), ("  verdicts: absent", counted.absent),
            ("  verdicts: unclear, asked again", counted.unclear)]
