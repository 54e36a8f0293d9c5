"""A client's connection: it notes each transaction, what it sent and what it was told."""

import contextlib
import json
import os
import time

import psycopg

TICKET = ("outcome", "state", "attempt", "token", "response", "code", "resource", "body",
          "lease_until", "duplicate_of")
TICKET_COLUMNS = ("t.outcome, t.state, t.attempt, t.token, t.response::text, t.code, t.resource,"
                  " encode(t.body, 'hex'), extract(epoch FROM t.lease_until)::float8,"
                  " t.duplicate_of")
GONE = ("57P01", "57P02", "57P03")      # the server ends the session


def code_of(error):
    """The SQLSTATE; the server has none where a call meets a DROP, nor for what libc tells it."""
    message = error.diag.message_primary or ""
    if message.startswith(("cache lookup failed for ", "could not open relation with OID")):
        return "meets DROP"
    if message.endswith("Cannot allocate memory"):
        return "53200"
    return error.sqlstate


class Lost(Exception):
    """The transaction is over: refused, cancelled, or its connection is gone."""


class Session:
    """One line of JSON per transaction; its row in the table txn tells if it was committed."""

    def __init__(self, name, log):
        self.name, self.log = name, open(log, "w", encoding="utf-8")
        self.number = 0
        self.calls = 0
        self.ops = self.tx = None
        self.allowed = set()            # errors that what goes on may end in
        self.always = {"57014"}         # the same, whatever goes on
        self.early = set()              # the same, until the file early_until is there
        self.early_until = None
        self.is_early = True            # was it not there when the transaction began?
        self.faults = []
        self.db = None
        self.connect()

    def connect(self):
        """Waits until the server takes connections."""
        while True:
            try:
                self.db = psycopg.connect(autocommit=True,
                                          application_name=f"client {self.name}")
                return
            except psycopg.OperationalError:
                time.sleep(0.05)

    def tolerates(self, code):
        return code in self.always or self.is_early and code in self.early

    def fault(self, what):
        self.faults.append(f"client {self.name}, transaction {self.number}: {what}")

    @contextlib.contextmanager
    def transaction(self, options="", allow=(), writes=True, gid=None):
        """Begins one, and commits it (or prepares it as gid) unless it is lost on the way."""
        self.number += 1
        self.allowed = set(allow)
        self.is_early = self.early and not os.path.exists(self.early_until)
        tx = {"tx": f"{self.name}.{self.number}", "start": time.time(), "status": "aborted",
              "writes": writes, "ops": []}
        self.ops, self.tx = tx["ops"], tx["tx"]
        self.begin(f"BEGIN {options};" + (
            f"INSERT INTO txn VALUES ('{tx['tx']}')" if writes else ""))
        try:
            yield tx
            tx["sent"] = time.time()
            self.run("commit", f"PREPARE TRANSACTION '{gid}'" if gid else "COMMIT")
            tx["status"] = "prepared" if gid else "acked"
        except Lost:
            if self.db.closed and "sent" in tx:
                tx["status"] = "unknown"
            self.start_again()
        finally:
            tx["end"] = time.time()
            self.log.write(json.dumps(tx) + "\n")
            self.ops = None

    def begin(self, sql):
        while True:
            try:
                self.run("begin", sql)
                return
            except Lost:
                self.start_again()

    def start_again(self):
        if self.db.closed:
            self.connect()
        else:
            self.rollback()

    def rollback(self):
        try:
            self.db.execute("ROLLBACK")
        except psycopg.Error:
            if not self.db.closed:
                self.db.close()
            self.connect()

    def give_up(self):
        """Ends the transaction without a commit."""
        raise Lost

    def run(self, what, sql, args=None, allow=()):
        """Executes; what may go wrong ends the transaction, anything else is a fault, too."""
        try:
            return self.db.execute(sql, args)
        except psycopg.Error as error:
            state = code_of(error)
            if self.db.closed or state in GONE or state is None:
                self.db.close()
            elif state not in self.allowed | set(allow) and not self.tolerates(state):
                self.fault(f"{what}: {state} {error.diag.message_primary};"
                           f" {error.diag.message_detail}; {error.diag.context}; {args}")
            raise Lost(state) from error

    def call(self, function, sql, args, facts, allow=()):
        """One call of the public API, noted with its times and how it ended."""
        self.calls += 1
        op = {"f": function, **facts, "s": time.time()}
        self.ops.append(op)
        try:
            rows = self.run(function, sql, args, allow).fetchall()
        except Lost as lost:
            op["err"] = str(lost)
            raise
        finally:
            op["e"] = time.time()
        return op, rows

    def refused(self, codes, function, sql, args, facts):
        """Whether the call is refused with one of these; its savepoint takes it back then."""
        self.run("savepoint", "SAVEPOINT asked")
        self.calls += 1
        op = {"f": function, **facts, "s": time.time()}
        self.ops.append(op)
        try:
            self.db.execute(sql, args)
        except psycopg.Error as error:
            op["err"] = error.sqlstate
            if self.db.closed or error.sqlstate is None or error.sqlstate in GONE:
                self.db.close()
                raise Lost from error
            if error.sqlstate not in codes:
                if code_of(error) not in self.allowed and not self.tolerates(code_of(error)):
                    self.fault(f"{function}: {error.sqlstate} {error.diag.message_primary};"
                               f" {error.diag.message_detail}; {error.diag.context}; {args}")
                raise Lost from error
            self.run("rollback to", "ROLLBACK TO asked")
            return True
        finally:
            op["e"] = time.time()
        return False

    @contextlib.contextmanager
    def undone(self):
        """A savepoint that is rolled back at its end."""
        first = len(self.ops)
        self.run("savepoint", "SAVEPOINT undone")
        yield
        self.run("rollback to", "ROLLBACK TO undone")
        for op in self.ops[first:]:
            op["undone"] = True

    def ticket(self, function, sql, args, facts, allow=()):
        """A call that answers with a ticket."""
        op, rows = self.call(function, sql, args, facts, allow)
        op.update(zip(TICKET, rows[0]))
        return op
