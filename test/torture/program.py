"""A client with a random program over the whole public API."""

import time

from owner import Owner, STALE, TARGETS
from session import Lost, TICKET, TICKET_COLUMNS

# What one session needs for good: the policies, and where its figures are.
LEFTOVERS = """
SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
UNION ALL
SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'application_name'
UNION ALL
SELECT name || ' ' || total_bytes FROM pg_backend_memory_contexts
WHERE name LIKE 'idempotency%'
    AND NOT (name IN ('idempotency policies', 'idempotency figures') AND total_bytes < 70000)
"""


class Program(Owner):
    def run_until(self, end):
        actions = {self.atomic: 8, self.lease: 6, self.work: 14, self.batch: 2, self.execute: 3,
                   self.replay: 3, self.timeouts: 1, self.forge: 1, self.repeat: 1,
                   self.relay: 6, self.reconcile: 2, self.recover: 2, self.operate: 2,
                   self.cancel_one: 1, self.sweep: 2, self.maintain: 1, self.finish_prepared: 2,
                   self.uncommitted: 1}
        while time.time() < end:
            action, = self.rng.choices(list(actions), actions.values())
            action()
            if self.rng.random() < 0.05:
                self.look_for_leftovers()
        self.log.close()
        return self.calls, self.faults

    def look_for_leftovers(self):
        """Nothing of the extension stays in the session after a transaction."""
        try:
            left = self.run("leftovers", LEFTOVERS).fetchall()
        except Lost:
            self.start_again()
            return
        if left:
            self.fault(f"left in the session after a transaction: {left}")

    # Who calls the outside, and who asks it.

    def note_taken(self, op, rows):
        op["taken"] = [dict(zip(("id", "token", "lease_until", "resend", "key", "name"), row))
                       for row in rows]
        return op["taken"]

    TAKEN = ("i.operation_id::text, i.token, extract(epoch FROM i.lease_until)::float8,"
             " i.resend_safe_for IS NOT NULL, i.key, i.name")

    def send(self, mine):
        if not mine.get("intents"):
            return
        name, intent = self.rng.choice(list(mine["intents"].items()))
        lease = self.rng.choice((20, 100, 300))
        with self.transaction("", ("22023", "ID003", "40001")) as tx:
            op, rows = self.call("send", f"SELECT {self.TAKEN} FROM idem_send(%s, %s, %s) i",
                                 (intent, f"client {self.name}", f"{lease} ms"),
                                 {"lease_ms": lease})
            self.note_taken(op, rows)
        if tx["status"] == "acked":
            self.make_calls(op["taken"])

    def relay(self):
        lease = self.rng.choice((20, 100, 300))
        with self.transaction(self.level(), ("40001",)) as tx:
            op, rows = self.call(
                "dispatch", f"SELECT {self.TAKEN} FROM idem_dispatch(%s, %s, %s, %s) i",
                (self.rng.choice(TARGETS), f"client {self.name}", self.rng.choice((1, 3)),
                 f"{lease} ms"), {"lease_ms": lease})
            self.note_taken(op, rows)
            if self.rng.random() < 0.1:
                self.give_up()
        if tx["status"] == "acked":
            self.make_calls(op["taken"])

    def make_calls(self, taken):
        for intent in taken:
            if self.rng.random() < 0.15:
                time.sleep(self.rng.choice((0.02, 0.15)))
            self.make_call(intent)

    def make_call(self, intent):
        """Calls the outside; nobody knows what a call did whose answer is lost."""
        there = self.outside.happened(intent["id"])
        how = self.rng.choice(("answered",) * 6 + ("lost", "lost", "not sent", "rejected",
                                                   "refused"))
        if how == "not sent":
            return
        if there or how in ("answered", "lost"):
            intent["called"] = self.outside.call(intent["id"], intent["lease_until"])
            if how == "lost" or not intent["called"]:
                self.note_call(intent)
                return
            if self.rng.random() < 0.2:
                time.sleep(0.15)
            self.tell("confirm", intent, (f'{{"done" :"{intent["id"]}"}}',), "%s::json")
        elif how == "rejected":
            self.tell("reject", intent, (self.intent_reason(),), "%s")
        elif time.time() < intent["lease_until"]:
            self.tell("defer", intent, (self.intent_reason(),), "%s")

    def note_call(self, intent):
        with self.transaction(writes=False):
            self.ops.append({"f": "called", "id": intent["id"], "called": intent["called"],
                             "s": time.time(), "e": time.time()})

    def intent_reason(self):
        return f"{self.name}.{self.number + 1}/0"

    def tell(self, verb, intent, args, places):
        facts = {"id": intent["id"], "token": intent["token"]}
        if verb == "confirm":
            facts["called"] = intent["called"]
        else:
            facts["reason"] = args[0]
        with self.transaction("", (*STALE, "40001")):
            self.call(verb, f"SELECT idem_{verb}(%s, %s, {places})",
                      (intent["id"], intent["token"], *args), facts)

    def reconcile(self):
        with self.transaction("", ("40001",)) as tx:
            op, rows = self.call(
                "reconcile", f"SELECT {self.TAKEN} FROM idem_reconcile(%s, %s, 3, '100 ms') i",
                (self.rng.choice(TARGETS), f"client {self.name}"), {"lease_ms": 100})
            self.note_taken(op, rows)
        if tx["status"] != "acked":
            return
        for intent in op["taken"]:
            verdict = "happened" if self.outside.happened(intent["id"]) else "absent"
            if self.rng.random() < 0.2:
                verdict = "unclear"
            if time.time() < intent["lease_until"]:
                self.settle(intent, verdict)

    def settle(self, intent, verdict):
        with self.transaction("", (*STALE, "40001")):
            self.call("settle", "SELECT idem_settle(%s, %s, %s, '{\"asked\": true}')",
                      (intent["id"], intent["token"], verdict),
                      {"id": intent["id"], "token": intent["token"], "verdict": verdict})

    # Who looks after everything.

    def recover(self, lease="100 ms", n=3):
        with self.transaction("", ("40P01",)) as tx:
            op, rows = self.call(
                "recover", f"SELECT t.operation, t.key, {TICKET_COLUMNS}"
                " FROM idem_recover(%s, %s, %s::interval) t", (f"client {self.name}", n, lease),
                {})
            self.ops.pop()
            for operation, key, *row in rows:
                self.ops.append({**op, "f": "recovered", "op": operation, "key": key, "v": None,
                                 "lease": lease, **dict(zip(TICKET, row))})
            got = list(self.ops)
        if tx["status"] == "acked":
            self.tickets += got

    def operate(self):
        """Decides on commands of which nobody knows more."""
        state = self.rng.choice(("succeeded", "failed", "released"))
        with self.transaction("", ("ID003",)):
            rows = self.run("stuck", "SELECT s.operation, s.key, r.attempt FROM idem_stuck s"
                            " JOIN idem_record r USING (tenant, operation, key)"
                            " WHERE s.intent IS NULL AND s.next_call LIKE 'decide%'"
                            " ORDER BY random() LIMIT 1").fetchall()
            if rows:
                self.resolve(*rows[0], state)

    def resolve(self, operation, key, attempt, state):
        result = [self.result()[0], None, None, None] if state != "released" else [None] * 4
        mine = {"op": operation, "key": key, "token": None, "attempt": attempt, "v": None}
        reason = self.reason()
        if state == "succeeded":
            self.effect(mine, "end", result[0])
        self.call("resolve", "SELECT idem_resolve('t', %s, %s, %s, %s, %s::json)",
                  (operation, key, state, reason, result[0]),
                  self.facts(mine, reason=reason, result=result, to=state))

    def cancel_one(self):
        operation = self.rng.choice(("pay", "brief"))
        with self.transaction():
            self.cancel(operation, self.key(operation))

    def cancel(self, operation, key):
        reason = self.reason()
        self.ticket("cancel", f"SELECT {TICKET_COLUMNS} FROM idem_cancel('t', %s, %s, %s) t",
                    (operation, key, reason),
                    {"op": operation, "key": key, "v": None, "reason": reason})

    def sweep(self):
        with self.transaction():
            self.call("sweep", "SELECT idem_sweep(%s)", (self.rng.choice((1, 50)),), {})
            if self.rng.random() < 0.1:
                self.give_up()

    def maintain(self):
        try:
            self.run("maintain", "CALL idem_maintain('200 ms', 20)")
        except Lost:
            self.start_again()

    def finish_prepared(self, every=False):
        """Another session than the one that prepared it ends it."""
        try:
            for gid, in self.run("prepared", "SELECT gid FROM pg_prepared_xacts ORDER BY"
                                 " random()").fetchall()[:None if every else 1]:
                self.run("finish", self.rng.choice(("COMMIT", "COMMIT", "ROLLBACK"))
                         + f" PREPARED '{gid}'", allow=("42704", "55000"))
        except Lost:
            self.start_again()
