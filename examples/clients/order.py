#!/usr/bin/env python3
"""Places an order once, however often it is asked to: claim, work and completion in one transaction.

Usage: order.py CUSTOMER KEY ITEM QUANTITY    (the database comes from PGHOST, PGDATABASE ...)
Needs the tables of ../order.sql.

The key is made and kept by whoever wants the order, before the first try: it
has to outlive this process.
"""

import sys
import time
from typing import NamedTuple

import psycopg
from psycopg.types.json import Jsonb


class Answer(NamedTuple):
    """What to tell the caller, in the terms of HTTP."""

    outcome: str
    status: int
    body: str
    retry_after: float | None = None  # seconds


REFUSALS = {
    "in_progress": (409, '{"error": "another try of this command is at work, ask again"}'),
    "mismatch": (422, '{"error": "this key belongs to a different request"}'),
    "expired": (410, '{"error": "this command was done, its answer is no longer kept"}'),
    "cancelled": (410, '{"error": "this command was cancelled"}'),
    "unknown": (409, '{"error": "an operator has to decide what became of this command"}'),
}


def to_answer(outcome, code, response, retry_after):
    """The answer for a ticket: the stored one if there is one, else the reason why not."""
    if outcome in REFUSALS:
        return Answer(outcome, *REFUSALS[outcome], retry_after)
    return Answer(outcome, code, response)


# Text, because a JSON value decoded and encoded again may differ from the stored bytes.
COLUMNS = "outcome, code, response::text, extract(epoch FROM retry_after)::float8"


def create_order(connection, customer, key, request, wait=None):
    """One try.  The connection is in autocommit mode: the transaction is the block below."""
    with connection.transaction():
        *ticket, token = connection.execute(
            f"SELECT {COLUMNS}, token"
            "  FROM idem_claim(%s, 'order.create', %s, %s, wait => %s::interval)",
            (customer, key, Jsonb(request), wait),
        ).fetchone()
        answer = to_answer(*ticket)
        if answer.outcome not in ("execute", "resume"):
            return answer

        placed = connection.execute(
            "INSERT INTO orders (customer, reference, item, quantity, total)"
            " SELECT %s, %s, item, n, n * price FROM prices, CAST(%s AS integer) AS n"
            "  WHERE item = %s RETURNING 'orders/' || id, row_to_json(orders)::text",
            (customer, request["reference"], request["quantity"], request["item"]),
        ).fetchone()

        verb, code, resource, response = (
            ("idem_complete", 201, *placed) if placed
            else ("idem_fail", 404, None, '{"error": "not sold"}'))
        connection.execute(
            f"SELECT {verb}(%s, 'order.create', %s, %s::bigint,"
            "  response => %s, code => %s, resource => %s)",
            (customer, key, token, response, code, resource),
        )
    # Only here, after COMMIT, may anybody be told.
    return Answer(answer.outcome, code, response)


def create_order_surely(customer, key, request, tries=10):
    """Asks until there is an answer."""
    for n in range(1, tries + 1):
        try:
            with psycopg.connect(autocommit=True) as connection:
                answer = create_order(connection, customer, key, request, wait="2 s")
            if answer.outcome != "in_progress" or n == tries:
                return answer
            pause = answer.retry_after or 0.1
        except psycopg.OperationalError:
            # Lost, perhaps during COMMIT: nobody here can know whether the order was placed.  The
            # database does.  The same key again finds the order, or places it; a new key would
            # place a second one.
            if n == tries:
                raise
            pause = min(0.1 * 2**n, 5)
        time.sleep(pause)


def main():
    customer, key, item, quantity = sys.argv[1:]
    request = {"customer": customer, "reference": key, "item": item, "quantity": int(quantity)}
    answer = create_order_surely(customer, key, request)
    print(answer.outcome, answer.status, answer.body)


if __name__ == "__main__":
    main()
