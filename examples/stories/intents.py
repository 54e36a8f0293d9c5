"""Calls to other systems by way of intents: note, commit, take in flight, commit, call, say what became of it.

Every statement commits by itself: the connection is in autocommit mode.
"""

from psycopg.types.json import Json, Jsonb

from commands import NotNow
from http_call import NotSent, Unclear

LEASE = "150 ms"  # of a call; longer than the time-out of the call itself

HAPPENED = (200, 201, 412)  # 412: it is there already, under this operation id
ABSENT = (408, 503)         # too late or too busy: the target promises that it did nothing


def deliver(db, ticket, name, target, request, send, relay=False, resend_safe_for=None):
    """Makes the command's call NAME unless it was made before; the intent, confirmed or rejected."""
    intent = db.execute(
        "SELECT * FROM idem_intend(%s, %s, %s, %s, send => %s, resend_safe_for => %s)",
        (ticket.whole, name, target, Jsonb(request), relay, resend_safe_for)).fetchone()
    if intent.state == "pending":
        intent = db.execute("SELECT * FROM idem_send(%s, 'worker', %s)",
                            (intent.operation_id, LEASE)).fetchone()
        intent = attempt(db, intent, send)
    if intent.state not in ("confirmed", "rejected"):
        raise NotNow(f"{name} is {intent.state}: {intent.reason}")
    return intent


def attempt(db, intent, send):
    """Makes the call of an intent that is in flight, and says what became of it; the intent as it is then."""
    held = intent.operation_id, intent.token
    try:
        status, body = send(intent)
    except NotSent as error:
        return db.execute("SELECT * FROM idem_defer(%s, %s, %s)", (*held, str(error))).fetchone()
    except Unclear as error:
        # Neither confirmed nor deferred: it stays in flight, and when the lease is over, it is unknown.
        return intent._replace(reason=str(error))
    if status in HAPPENED:
        return db.execute("SELECT * FROM idem_confirm(%s, %s, %s)", (*held, Json(body))).fetchone()
    if status in ABSENT:
        return db.execute("SELECT * FROM idem_defer(%s, %s, %s)",
                          (*held, f"target answered {status}")).fetchone()
    return db.execute("SELECT * FROM idem_reject(%s, %s, %s, %s)",
                      (*held, f"target answered {status}", Json(body))).fetchone()


def not_after(intent):
    """Header that ends a call: a target that gets it later refuses it, so what is not there by then never will be."""
    return {"Not-After": str(intent.lease_until.timestamp())}


def relay(db, target, send):
    """One pass of the outbox relay: due calls, and those that may be repeated because the target still knows them."""
    for intent in db.execute("SELECT * FROM idem_dispatch(%s, 'relay', 10, %s)", (target, LEASE)).fetchall():
        attempt(db, intent, send)


def reconcile(db, target, ask):
    """One pass of the reconciler: asks the target what became of the calls whose outcome nobody knows."""
    for intent in db.execute("SELECT * FROM idem_reconcile(%s, 'reconciler', 10, %s)", (target, LEASE)).fetchall():
        try:
            verdict, found = ask(intent)
        except (NotSent, Unclear) as error:
            verdict, found = "unclear", {"error": str(error)}
        db.execute("SELECT idem_settle(%s, %s, %s, %s, %s)",
                   (intent.operation_id, intent.token, verdict, Jsonb({"asked": target, "answer": found}),
                    Json(found) if verdict == "happened" else None))
