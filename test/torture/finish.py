"""Brings all that clients left behind to its end."""

import time

OPEN = """
SELECT 'command', operation, key, state FROM idem_record WHERE completed_at IS NULL
UNION ALL
SELECT 'intent', operation, key, name || ' ' || state FROM idem_intent
WHERE state NOT IN ('confirmed', 'rejected')
"""


def finish(program, patience_s=12):
    """What could not be ended: it has not become less for so long."""
    program.finish_prepared(every=True)
    fewest, since = None, time.time()
    while left := program.db.execute(OPEN).fetchall():
        if fewest is None or len(left) < fewest:
            fewest, since = len(left), time.time()
        elif time.time() > since + patience_s:
            return left
        one_pass(program)
        time.sleep(0.02)
    return []


def one_pass(program):
    """Dispatches and asks about every intent, then recovers, decides and completes commands."""
    with program.transaction("", ("ID003", "40001"), writes=False):
        program.run("retry", "SELECT count(idem_retry(operation_id, 'now')) FROM idem_intent"
                    " WHERE state = 'pending'")
    take(program, "dispatch", "idem_dispatch('bank', 'last', 1000, '5 s')", "idem_intent")
    take(program, "dispatch", "idem_dispatch('mail', 'last', 1000, '5 s')", "idem_intent")
    with program.transaction("", ("ID003", "40001")) as tx:
        op, rows = program.call(
            "send", f"SELECT {program.TAKEN} FROM idem_intent n, idem_send(n.operation_id,"
            " 'last', '5 s') i WHERE n.state = 'pending' AND NOT n.send", (), {"lease_ms": 5000})
        program.note_taken(op, rows)
    confirm(program, tx, op)
    take(program, "reconcile", "idem_reconcile('bank', 'last', 1000, '5 s')", "asked")
    take(program, "reconcile", "idem_reconcile('mail', 'last', 1000, '5 s')", "asked")
    known = len(program.tickets)
    program.recover("5 s", 1000)
    for mine in program.tickets[known:]:
        with program.transaction("", ("ID002", "ID003")):
            program.end("complete", mine)
    rows = program.db.execute("SELECT operation, key, attempt, state FROM idem_record"
                              " WHERE state IN ('unknown', 'released')").fetchall()
    for operation, key, attempt, state in rows:
        with program.transaction("", ("ID003",)):
            if state == "unknown":
                program.resolve(operation, key, attempt, program.rng.choice(
                    ("succeeded", "failed", "released")))
                continue
            mine = program.claim(operation, key, variant=0)
            if mine["outcome"] == "mismatch":
                mine = program.claim(operation, key, variant=1)
            if mine["token"]:
                program.end("complete", mine)
            elif mine["outcome"] == "duplicate":
                program.cancel(operation, key)


def take(program, function, call, what):
    with program.transaction("", ("40001",)) as tx:
        op, rows = program.call(function, f"SELECT {program.TAKEN} FROM {call} i", (),
                                {"lease_ms": 5000})
        program.note_taken(op, rows)
    if what == "asked" and tx["status"] == "acked":
        for intent in op["taken"]:
            program.settle(intent, "happened" if program.outside.happened(intent["id"])
                           else "absent")
    else:
        confirm(program, tx, op)


def confirm(program, tx, op):
    if tx["status"] != "acked":
        return
    for intent in op["taken"]:
        intent["called"] = program.outside.call(intent["id"], intent["lease_until"])
        if intent["called"] is not False:       # else its time was over: it is asked about
            program.tell("confirm", intent, (f'{{"done" :"{intent["id"]}"}}',), "%s::json")
