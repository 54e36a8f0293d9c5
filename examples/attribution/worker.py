#!/usr/bin/env python3
"""Attributes a click: a row here, an object in the object store, a fee at the billing service; each once.

usage: worker.py TENANT CLICK REQUEST-AS-JSON
Exit status 75: not now, ask again; 65: refused for good.  The database comes from PGHOST ..., the
services from STORE_URL and BILLING_URL.
"""

import json
import os
import sys

from psycopg.types.json import Json

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stories"))
from commands import ask
from http_call import call
from intents import deliver, not_after


def write_row(db, ticket, request):
    """The step's note and its row commit together, so the row is there if and only if the step is done."""
    with db.transaction():
        step = db.execute("SELECT * FROM idem_step(%s, 'row')", (ticket.whole,)).fetchone()
        if step.done:
            return step.result
        row = db.execute("INSERT INTO attribution (tenant, click, campaign, fee) VALUES (%s, %s, %s, %s)"
                         " RETURNING id", (ticket.tenant, ticket.key, request["campaign"], request["fee"])).fetchone()
        db.execute("SELECT idem_step_done(%s, 'row', %s)", (ticket.whole, Json(row.id)))
    return row.id


def put_object(intent):
    """The operation id is the object's name, and it is written only if it is not there."""
    return call("PUT", f"{os.environ['STORE_URL']}/objects/{intent.operation_id}", intent.request,
                headers={"If-None-Match": "*", **not_after(intent)})


def post_billing(intent):
    return call("POST", f"{os.environ['BILLING_URL']}/billings", intent.request,
                headers={"Idempotency-Key": str(intent.operation_id), **not_after(intent)})


def attribute(db, ticket, request):
    """From wherever the command stands to its end; the answer."""
    facts = {"tenant": ticket.tenant, "click": ticket.key, **request}
    row = write_row(db, ticket, request)
    stored = deliver(db, ticket, "object", "object store", facts, put_object)
    billed = deliver(db, ticket, "bill", "billing", facts, post_billing)
    answer = {"attribution": row, "object": stored.response["name"], "billing": billed.response["id"]}
    db.execute("SELECT idem_complete(%s, %s, code => 201)", (ticket.whole, Json(answer)))
    return answer


def main(arguments):
    tenant, click, request = arguments
    return ask("click.attribute", tenant, click, json.loads(request), attribute)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
