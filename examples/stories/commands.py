"""Commands that take several transactions: asking for one, and going on with one whose worker is gone."""

import json
import sys

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

NOT_NOW = 75  # exit status: nothing is lost, ask again
REFUSED = 65  # exit status: asking again changes nothing


class NotNow(Exception):
    """This worker can do no more for the command: it stays as it is until somebody takes it up again."""


def connect():
    """In autocommit mode: every statement commits by itself, but those in a db.transaction()."""
    return psycopg.connect(autocommit=True, row_factory=namedtuple_row)


def go_on(db, ticket, request, work):
    """Runs work(db, ticket, request), which completes the command; the answer."""
    try:
        return work(db, ticket, request)
    except psycopg.Error as error:
        if error.diag.sqlstate in ("ID002", "ID003"):
            # ID002: somebody has taken over the command or the call, ID003: somebody has the call in hand.
            raise NotNow(error.diag.message_primary) from error
        raise


def ask(operation, tenant, key, request, work):
    """A client's try of a command, as a program: the answer goes to stdout; the exit status."""
    with connect() as db:
        ticket = db.execute(
            "SELECT t::text AS whole, t.* FROM idem_claim(%s, %s, %s, %s, wait => '1 s') AS t",
            (tenant, operation, key, Jsonb(request))).fetchone()
        try:
            if ticket.outcome in ("execute", "resume"):
                answer = go_on(db, ticket, request, work)
            elif ticket.outcome == "replay":
                answer = ticket.response
            elif ticket.outcome in ("in_progress", "unknown"):
                raise NotNow(f"{ticket.outcome}, {ticket.reason}")
            else:  # mismatch, expired, cancelled
                print(f"{tenant} {key}: {ticket.outcome}", file=sys.stderr)
                return REFUSED
        except NotNow as reason:
            print(f"{tenant} {key}: {reason}", file=sys.stderr)
            return NOT_NOW
    print(json.dumps(answer))
    return 0


def recover(db, work):
    """Goes on with commands whose worker is gone, with the request that was stored."""
    for ticket in db.execute("SELECT t::text AS whole, t.* FROM idem_recover('recovery', 10, '100 ms') AS t").fetchall():
        try:
            go_on(db, ticket, ticket.request, work)
        except NotNow as reason:
            print(f"{ticket.tenant} {ticket.key}: {reason}", file=sys.stderr)
