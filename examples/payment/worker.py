#!/usr/bin/env python3
"""Takes the money for an order once, whatever the payment provider does, and books it.

usage: worker.py TENANT ORDER REQUEST-AS-JSON
Exit status 75: not now, ask again; 65: refused for good.  The database comes from PGHOST ..., the
provider from PROVIDER_URL.
"""

import json
import os
import sys

from psycopg.types.json import Json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stories"))
from commands import ask
from http_call import call
from intents import deliver, not_after

# The provider remembers a key for 0.55 s.  A repeated call, let in at the last
# moment, may arrive as late as its deadline (intents.LEASE), so that comes off.
RESEND_SAFE_FOR = "400 ms"


def open_order(db, ticket, request):
    with db.transaction():
        step = db.execute("SELECT * FROM idem_step(%s, 'order')", (ticket.whole,)).fetchone()
        if step.done:
            return step.result
        order = db.execute("INSERT INTO orders (tenant, reference, amount, state) VALUES (%s, %s, %s, 'open')"
                           " RETURNING id", (ticket.tenant, ticket.key, request["amount"])).fetchone()
        db.execute("SELECT idem_step_done(%s, 'order', %s)", (ticket.whole, Json(order.id)))
    return order.id


def take_money(intent):
    return call("POST", f"{os.environ['PROVIDER_URL']}/payments", intent.request,
                headers={"Idempotency-Key": str(intent.operation_id), **not_after(intent)})


def pay(db, ticket, request):
    """From wherever the command stands to its end; the answer."""
    order = open_order(db, ticket, request)
    charge = deliver(db, ticket, "charge", "provider", {"tenant": ticket.tenant, "reference": ticket.key, **request},
                     take_money, relay=True, resend_safe_for=RESEND_SAFE_FOR)
    # The last writes need no step: they commit together with the command's end.
    with db.transaction():
        if charge.state == "confirmed":
            answer = {"order": order, **charge.response}
            db.execute("UPDATE orders SET state = 'paid' WHERE id = %s", (order,))
            db.execute("INSERT INTO ledger (order_id, amount, payment) VALUES (%s, %s, %s)",
                       (order, charge.response["amount"], charge.response["payment"]))
            db.execute("SELECT idem_complete(%s, %s, code => 201)", (ticket.whole, Json(answer)))
        else:
            answer = {"order": order, **charge.response}
            db.execute("UPDATE orders SET state = 'declined' WHERE id = %s", (order,))
            db.execute("SELECT idem_fail(%s, %s, code => 402)", (ticket.whole, Json(answer)))
    return answer


def main(arguments):
    tenant, reference, request = arguments
    return ask("order.pay", tenant, reference, json.loads(request), pay)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
