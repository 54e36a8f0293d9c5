"""What the HTTP services of the stories share: JSON over HTTP, a deadline, and faults on request.

A fault is one-shot, asked for by POST /fault {"at": POINT, "how": HOW}.
POINT is received (nothing is done yet) or done (it is done and stored, the
answer is not sent).  HOW:
  kill  the service kills itself with -9
  drop  it closes the connection without a word
  hang  it goes on only when the client has given up
  late  it goes on only when the client's deadline is over
  500   it answers 500
  503   it answers 503, which promises that nothing was done
"""

import argparse
import json
import os
import signal
import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Refused(Exception):
    """Ends a request: status and body, or a status of None for no answer at all."""

    def __init__(self, status, body=None):
        super().__init__(status)
        self.status, self.body = status, body


class Service(BaseHTTPRequestHandler):
    """A request handler; subclasses have get(path) and put(path, body), both called with the lock held."""

    fault = None
    folder = None
    lock = threading.Lock()

    def point(self, name):
        """A place where the service may fail."""
        fault = Service.fault
        if fault is None or fault["at"] != name:
            return
        Service.fault = None
        how = fault["how"]
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hang":
            self.connection.recv(1)  # returns when the client closes
        if how == "late":
            time.sleep(max(0, float(self.headers["Not-After"]) - time.time()) + 0.001)
        if how == "drop":
            raise Refused(None)
        if how in ("500", "503"):
            raise Refused(int(how), {"error": f"fault {how}"})

    def do_POST(self):
        self.answer(self.effect)

    do_PUT = do_POST

    def do_GET(self):
        self.answer(self.look)

    def look(self):
        with self.lock:
            return self.get(self.path)

    def effect(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/fault":
            Service.fault = body
            return 200, {}
        self.point("received")
        with self.lock:
            # Under the lock: whoever looks after the deadline sees what is final.
            if "Not-After" in self.headers and time.time() > float(self.headers["Not-After"]):
                raise Refused(408, {"error": "too late"})
            answer = self.put(self.path, body)
        self.point("done")
        return answer

    def answer(self, act):
        try:
            status, body = act()
        except Refused as refused:
            status, body = refused.status, refused.body
        if status is None:
            return
        text = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except ConnectionError:
            pass  # the client did not wait for it

    def log_message(self, *_):
        pass


class Store:
    """Tables of a service in a file of its own, flushed at every commit."""

    def __init__(self, path, schema):
        self.path = path
        with self.open() as database:
            database.execute(schema)

    @contextmanager
    def open(self):
        """A transaction."""
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("PRAGMA synchronous = FULL")
            with database:
                yield database


class Server(ThreadingHTTPServer):
    allow_reuse_address = True
    request_queue_size = 128


def arguments(**more):
    parser = argparse.ArgumentParser()
    for name, kind in more.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    parser.add_argument("--folder", required=True, help="where it stores what it knows")
    parser.add_argument("--port", type=int, required=True, help="0: any")
    return parser.parse_args()


def serve(handler, options):
    """Says on which port it listens, then serves until it is killed."""
    server = Server(("127.0.0.1", options.port), handler)
    print(server.server_port, flush=True)
    server.serve_forever()
