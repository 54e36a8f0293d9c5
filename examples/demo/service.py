"""Order service: POST /orders with an Idempotency-Key, a few connections, psycopg.

Loses some responses on purpose: commits, then hangs up without a word.
"""

import argparse
import json
import os
import queue
import random
import sys
import traceback
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
from psycopg.types.json import Jsonb

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "clients"))
from journal import Journal
from order import COLUMNS, create_order, to_answer

parser = argparse.ArgumentParser()
parser.add_argument("--name", required=True)
parser.add_argument("--journal", required=True, help="folder")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--call", required=True, help="an SQL function, or client: claim and complete from here")
parser.add_argument("--wait", help="how long a try waits for another one at work")
parser.add_argument("--lose", type=float, required=True, help="share of responses that get lost")
parser.add_argument("--seed", required=True)
options = parser.parse_args()

journal = Journal(options.journal, options.name)
chance = random.Random(options.seed)
pool = queue.LifoQueue()
for _ in range(4):
    pool.put(None)


@contextmanager
def borrowed_connection():
    connection = pool.get()
    try:
        if connection is None or connection.closed:
            connection = psycopg.connect(autocommit=True)
        yield connection
    finally:
        pool.put(connection)


def order(customer, key, request):
    with borrowed_connection() as connection:
        if options.call == "client":
            return create_order(connection, customer, key, request, options.wait)
        return to_answer(*connection.execute(
            f"SELECT {COLUMNS} FROM {options.call}(%s, %s, %s, wait => %s::interval)",
            (customer, key, Jsonb(request), options.wait)).fetchone())


# Of SQLSTATEs those of a server that goes away; without one the connection broke.
DATABASE_LOST = ("08", "57P")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        key = self.headers["Idempotency-Key"]
        customer = self.headers["X-Customer"]  # stands for who logged in
        name = self.headers["X-Try"]
        length = int(self.headers["Content-Length"] or 0)
        text = self.rfile.read(length)
        if not length or len(text) < length:
            return  # the client was killed while it sent
        if not key or not customer:
            return self.respond(name, 400, '{"error": "Idempotency-Key is missing"}')

        journal.write("request", name=name, key=key, customer=customer)
        try:
            answer = order(customer, key, {**json.loads(text), "customer": customer})
        except psycopg.OperationalError as error:
            if error.sqlstate and not error.sqlstate.startswith(DATABASE_LOST):
                raise
            # Perhaps it was done, perhaps not.  The client asks again, with the same key.
            journal.write("database lost", name=name, error=str(error))
            return self.respond(name, 503, '{"error": "not known, ask again"}', 0.1)

        journal.write("outcome", name=name, key=key, customer=customer, outcome=answer.outcome)
        if answer.outcome in ("execute", "replay") and chance.random() < options.lose:
            journal.write("dropped", name=name)
            self.close_connection = True
            return
        self.respond(name, answer.status, answer.body, answer.retry_after, answer.outcome == "replay")

    def respond(self, name, status, body, retry_after=None, replayed=False):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        if retry_after is not None:
            self.send_header("Retry-After", f"{retry_after:.3f}")
        if replayed:
            self.send_header("Idempotent-Replayed", "true")
        try:
            self.end_headers()
            self.wfile.write(body.encode())
        except ConnectionError:
            pass  # the client did not wait for it
        journal.write("responded", name=name)

    def log_message(self, *_):
        pass  # the journal is the log


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        if isinstance(sys.exc_info()[1], ConnectionError):
            return  # the client left before all was sent
        traceback.print_exc()
        os._exit(1)


Server(("127.0.0.1", options.port), Handler).serve_forever()
