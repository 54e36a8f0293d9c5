"""What the owners of commands do: claims of every kind, the work, and its end."""

import random
import time
import uuid

from outside import Outside
from session import Session, TICKET, TICKET_COLUMNS

WIDTH = 4                       # commands of an operation fought for at one time
RATE_PER_S = 8                  # those left behind, and new ones taken up
JUST_EXPIRED = 5                # so far behind are those of "brief", not swept yet
REBORN = 6                      # commands that are purged, and claimed again
LEVELS = ("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
WAITS = ("0", "0", "20 ms", "300 ms", "5 s")
OPERATIONS = {"pay": 4, "saga": 6, "once": 4, "tries": 1, "brief": 2, "gone": 3}
TARGETS = ("bank", "mail")

# Nothing but a stale ticket, or one of an ended command, may be refused to an owner.
STALE = ("ID002", "ID003")
TTL_S = 0.15                    # of the operation "gone", and how long its tombstones stay
RETENTION_S = 0.15


def request(key, variant):
    return f'{{"key": "{key}", "variant": {variant}}}'


class Owner(Session):
    def __init__(self, number, seed, start, folder, faults):
        """faults: the class of what the client has to bear with."""
        super().__init__(number, f"{folder}/history.{number}")
        self.rng = random.Random(f"{seed} {number}")
        self.start = start
        self.outside = Outside(f"{folder}/outside")
        self.tickets = []               # leased claims this client has, or had
        self.ended = []
        self.always |= faults.errors
        self.early, self.early_until = faults.early_errors, f"{folder}/marked"
        self.large = faults.large

    # What is asked for.

    def key(self, operation):
        if operation == "gone":
            return f"gone{self.rng.randrange(REBORN)}"
        behind = int((time.time() - self.start) * RATE_PER_S)
        if self.rng.random() < 0.05:
            behind = self.rng.randrange(behind + 1)
        elif operation == "brief" and self.rng.random() < 0.4:
            behind = max(0, behind - JUST_EXPIRED)
        return f"{operation}{behind + self.rng.randrange(WIDTH)}"

    def address(self):
        operation, = self.rng.choices(list(OPERATIONS), OPERATIONS.values())
        return operation, self.key(operation)

    def variant(self):
        return int(self.rng.random() < 0.12)

    def guard(self, operation, key):
        return f"g{int(key[4:]) // WIDTH}" if operation == "once" else None

    def level(self):
        return f"ISOLATION LEVEL {self.rng.choice(LEVELS)}"

    def result(self):
        """response, code, resource, body: no two are equal, and none survives jsonb."""
        unique = uuid.UUID(int=self.rng.getrandbits(128))
        response = f'{{"by" : "{self.name}",  "id":"{unique}", "id":1.50}}'
        if self.large and self.rng.random() < 0.1:
            response += " " * self.rng.randrange(self.large)
        return [response, self.rng.choice((None, 201)),
                self.rng.choice((None, f"r-{unique}")), self.rng.choice((None, "00ff"))]

    def claim(self, operation, key, lease=None, wait=None, variant=None, allow=()):
        variant = self.variant() if variant is None else variant
        lease = f"{lease} ms" if lease else None
        return self.ticket(
            "claim", f"SELECT {TICKET_COLUMNS} FROM idem_claim('t', %s, %s, %s::jsonb,"
            " guard => %s, wait => %s::interval, lease => %s::interval, owner => %s) t",
            (operation, key, request(key, variant), self.guard(operation, key),
             wait or self.rng.choice(WAITS), lease, f"client {self.name}"),
            {"op": operation, "key": key, "v": variant, "lease": lease,
             "guard": self.guard(operation, key)}, allow)

    # What an owner does.  `mine` is what its claim was told.

    def effect(self, mine, kind, response=None):
        self.run("effect", "INSERT INTO effect VALUES (%s, %s, %s, %s, %s, %s, %s)",
                 (self.tx, mine["op"], mine["key"], kind, mine["token"],
                  mine["attempt"], response))

    def row(self, mine):
        """The ticket as SQL, for functions that have no form with its four parts."""
        return ("ROW('execute', 't', %s, %s, %s::bigint" + ", NULL" * 16 + ")::idem_ticket",
                (mine["op"], mine["key"], mine["token"]))

    def facts(self, mine, **more):
        return {"op": mine["op"], "key": mine["key"], "token": mine["token"],
                "attempt": mine["attempt"], "v": mine["v"], **more}

    def end(self, verb, mine, allow=()):
        result = self.result()
        if verb == "complete":
            self.effect(mine, "end", result[0])
        else:
            with self.undone():
                self.effect(mine, "end", result[0])
        op, _ = self.call(
            verb, f"SELECT idem_{verb}('t', %s, %s, %s::bigint, %s::json, %s, %s, NULL,"
            " decode(%s, 'hex'))", (mine["op"], mine["key"], mine["token"], *result),
            self.facts(mine, result=result), allow)
        return op

    def reason(self):
        return f"{self.name}.{self.number}/{len(self.ops)}"

    def release(self, mine, allow=()):
        reason = self.reason()
        self.call("release", "SELECT idem_release('t', %s, %s, %s::bigint, %s)",
                  (mine["op"], mine["key"], mine["token"], reason),
                  self.facts(mine, reason=reason), allow)

    # Actions.

    def atomic(self):
        operation, key = self.address()
        gid = mine = None
        if self.rng.random() < 0.1:
            gid = f"{self.name}.{self.number + 1}"
        with self.transaction(self.level(), ("40P01",), gid=gid):
            if self.rng.random() < 0.2:
                with self.undone():
                    self.claim(operation, key)
            mine = self.claim(operation, key)
            if not mine["token"]:
                if gid:
                    self.give_up()
                return
            if self.rng.random() < 0.25:
                with self.undone():
                    self.end("complete", mine)
            if self.rng.random() < 0.2:
                time.sleep(0.02)
            self.end_atomic(mine)
        if mine and mine["token"] and self.rng.random() < 0.3:
            self.ended.append(mine)

    def end_atomic(self, mine):
        how = self.rng.choice(("complete",) * 4 + ("fail", "release", "rollback", "forget"))
        if how in ("complete", "fail"):
            self.end(how, mine)
        elif how == "release":
            self.release(mine, ("ID003",))      # an earlier attempt left an intent
        elif how == "rollback":
            self.give_up()
        elif mine["lease_until"] is None:       # else the policy gave it a lease
            self.allowed.add("ID001")
            self.ops.append({"f": "forget", **self.facts(mine), "s": time.time(),
                             "e": time.time()})

    def lease(self):
        operation, key = self.address()
        mine = None
        with self.transaction(self.level() if self.rng.random() < 0.5 else "",
                              ("40P01",)) as tx:
            if self.rng.random() < 0.2:
                time.sleep(0.05)
            mine = self.claim(operation, key, self.rng.choice(
                (30, 200, 400) if operation == "saga" else (2, 30, 100, 300)))
        if tx["status"] == "acked" and mine["token"]:
            self.tickets.append(mine)
            for _ in range(4 if operation == "saga" else 1):
                self.work(mine)

    def work(self, mine=None):
        """Some piece of work on a leased command, whether or not it is still this client's."""
        if mine is None:
            if not self.tickets:
                return
            del self.tickets[:-20]
            mine = self.rng.choice(self.tickets[-6:])
        pieces = {self.step: 2, self.hold: 2, self.heartbeat: 1, self.end_lease: 3}
        if mine["op"] == "saga":
            pieces.update({self.intend: 9, self.send: 5, self.step: 4, self.hold: 1,
                           self.end_lease: 2})
        if self.rng.random() < 0.3:
            time.sleep(self.rng.choice((0.01, 0.05)))
        piece, = self.rng.choices(list(pieces), pieces.values())
        piece(mine)

    def step(self, mine):
        name = f"s{self.rng.randrange(3)}"
        ticket, parts = self.row(mine)
        with self.transaction(self.level(), (*STALE, "40001")):
            op, rows = self.call("step", f"SELECT done, result::text FROM idem_step({ticket}, %s)",
                                 (*parts, name), self.facts(mine, name=name))
            op["done"], op["result"] = rows[0]
            if op["done"]:
                if self.rng.random() < 0.2 and not self.refused(
                        ("ID004",), "step", f"SELECT done FROM idem_step({ticket}, %s, '2')",
                        (*parts, name), self.facts(mine, name=name)):
                    self.fault(f"{name} of {mine['key']} had no other input than this one")
                return
            result = self.result()[0]
            self.effect(mine, f"step {name}", result)
            self.call("step_done", f"SELECT idem_step_done({ticket}, %s, %s::json)",
                      (*parts, name, result), self.facts(mine, name=name, result=result))

    def hold(self, mine):
        """Writes of a worker that may have lost its lease."""
        with self.transaction(self.level(), STALE):
            self.call("hold", "SELECT idem_hold('t', %s, %s, %s::bigint)",
                      (mine["op"], mine["key"], mine["token"]), self.facts(mine))
            if self.rng.random() < 0.5:         # so long that others may want the command
                time.sleep(0.03)
            self.effect(mine, "work")
            if self.rng.random() < 0.3:
                time.sleep(0.03)

    def heartbeat(self, mine):
        with self.transaction("", STALE):
            op, rows = self.call(
                "heartbeat", "SELECT extract(epoch FROM idem_heartbeat('t', %s, %s, %s::bigint,"
                " '50 ms'))::float8", (mine["op"], mine["key"], mine["token"]), self.facts(mine))
            op["lease_until"], = rows[0]

    def end_lease(self, mine):
        how = self.rng.choice(("complete",) * 4 + ("fail", "release", "unknown"))
        with self.transaction(self.level(), STALE) as tx:
            if self.rng.random() < 0.2:
                with self.undone():
                    self.end("complete", mine)
            if how in ("complete", "fail"):
                self.end(how, mine)
            elif how == "release":
                self.release(mine)
            else:
                self.unknown(mine)
        if tx["status"] == "acked" and how in ("complete", "fail"):
            self.ended.append(mine)

    def unknown(self, mine):
        ticket, parts = self.row(mine)
        reason = self.reason()
        self.call("unknown", f"SELECT idem_unknown({ticket}, %s)", (*parts, reason),
                  self.facts(mine, reason=reason))

    def repeat(self):
        """Another end of an ended command is refused, whatever the ticket."""
        if not self.ended:
            return
        del self.ended[:-20]
        mine = self.rng.choice(self.ended)
        with self.transaction("", STALE):
            for verb in ("complete", "fail"):
                result = self.result()
                if not self.refused(
                        STALE, verb, f"SELECT idem_{verb}('t', %s, %s, %s::bigint, %s::json)",
                        (mine["op"], mine["key"], mine["token"], result[0]),
                        self.facts(mine, result=[result[0], None, None, None])):
                    self.effect(mine, "again", result[0])

    def forge(self):
        """No token, a made-up one, one of another command: nothing is theirs to end."""
        operation, key = self.address()
        other = self.rng.choice(self.tickets)["token"] if self.tickets else 0
        mine = {"op": operation, "key": key, "attempt": None, "v": None,
                "token": self.rng.choice((None, 0, -1, self.rng.getrandbits(62), other))}
        if any(one["key"] == key and one["token"] == mine["token"] for one in self.tickets):
            return
        with self.transaction("", STALE):
            verb = self.rng.choice(("complete", "fail", "release", "hold"))
            if not self.refused(("ID002",), verb, f"SELECT idem_{verb}('t', %s, %s, %s::bigint)",
                                (operation, key, mine["token"]), self.facts(mine)):
                self.fault(f"{verb} of {key} with a forged token was accepted")

    def batch(self):
        operation = self.rng.choice(("pay", "brief", "gone"))
        keys = [self.key(operation) for _ in range(3)]
        lease = self.rng.choice((None, "100 ms"))
        variants = [self.variant() for _ in keys]
        with self.transaction(self.level(), ("40P01",)):
            op, rows = self.call(
                "batch", f"SELECT t.key, t::text, {TICKET_COLUMNS} FROM idem_claim_batch("
                "'t', %s, %s::text[], %s::jsonb[], wait => %s::interval, lease => %s::interval) t",
                (operation, keys, [request(*one) for one in zip(keys, variants)],
                 self.rng.choice(WAITS), lease), {"op": operation})
            self.ops.pop()
            granted = []
            for variant, (key, ticket, *row) in zip(variants, rows):
                mine = {**op, "f": "claim", "key": key, "v": variant, "lease": lease,
                        **dict(zip(TICKET, row))}
                self.ops.append(mine)
                if mine["token"]:
                    granted.append((ticket, mine, self.result()[0]))
            if self.rng.random() < 0.15:
                self.give_up()
            for _, mine, response in granted:
                self.effect(mine, "end", response)
            op, _ = self.call(
                "complete_batch", "SELECT idem_complete_batch(%s::idem_ticket[], %s::json[])",
                ([ticket for ticket, _, _ in granted], [response for _, _, response in granted]),
                {})
            self.ops.pop()
            for _, mine, response in granted:
                self.ops.append({**op, "f": "complete", **self.facts(
                    mine, result=[response, None, None, None])})

    def execute(self):
        operation, key = self.address()
        variant = self.variant()
        with self.transaction(self.level(), ("P0001",)):
            op = self.ticket(
                "execute", f"SELECT {TICKET_COLUMNS} FROM idem_execute('t', %s, %s, %s::jsonb,"
                " 'handle(jsonb)', guard => %s, wait => %s::interval) t",
                (operation, key, request(key, variant), self.guard(operation, key),
                 self.rng.choice(WAITS)),
                {"op": operation, "key": key, "v": variant, "guard": self.guard(operation, key)})
            if op["outcome"] in ("execute", "resume"):
                op["result"] = [op[name] for name in ("response", "code", "resource", "body")]

    def replay(self):
        operation, key = self.address()
        variant = self.variant()
        with self.transaction(self.level() + self.rng.choice((" READ ONLY", "")), writes=False):
            self.ticket("replay", f"SELECT {TICKET_COLUMNS} FROM idem_replay('t', %s, %s,"
                        " %s::jsonb) t", (operation, key, request(key, variant)),
                        {"op": operation, "key": key, "v": variant})

    def timeouts(self):
        """A few milliseconds, in the middle of whatever it is."""
        operation, key = self.address()
        with self.transaction("", ("55P03", "57014", "40P01")):
            self.run("set", f"SET LOCAL {self.rng.choice(('lock_timeout', 'statement_timeout'))}"
                     f" = {self.rng.choice((1, 3, 10))}")
            mine = self.claim(operation, key, wait="5 s")
            if mine["token"]:
                self.end("complete", mine)

    def intend(self, mine):
        name = f"i{self.rng.randrange(3)}"
        ticket, parts = self.row(mine)
        number = int(name[1])
        send, resend = number != 0, (None, None, "30 s")[number]
        with self.transaction(self.level(), (*STALE, "40001")):
            op, rows = self.call(
                "intend", f"SELECT i.operation_id::text, i.state FROM idem_intend({ticket}, %s,"
                " %s, '{\"sum\": 1}', %s, %s::interval) i",
                (*parts, name, TARGETS[number % 2], send,
                 resend), self.facts(mine, name=name))
            op["id"], op["state"] = rows[0]
            mine.setdefault("intents", {})[name] = op["id"]
            if self.rng.random() < 0.15:
                time.sleep(0.03)
            if self.rng.random() < 0.15:
                self.give_up()

    def uncommitted(self):
        """What is not committed is handed out to nobody, not even to its own transaction."""
        sagas = [one for one in self.tickets[-6:] if one["op"] == "saga"]
        if not sagas:
            return
        mine = self.rng.choice(sagas)
        ticket, parts = self.row(mine)
        name = f"u{self.rng.randrange(100)}"
        with self.transaction("", (*STALE, "40001")):
            op, rows = self.call(
                "intend", f"SELECT i.operation_id::text, i.state, i.tries"
                f" FROM idem_intend({ticket}, %s, 'bank', NULL, true) i", (*parts, name),
                self.facts(mine, name=name))
            op["id"], op["state"], tries = rows[0]
            new = op["state"] == "pending" and tries == 0
            if self.rng.random() < 0.5:
                if not self.refused(("ID003",), "send",
                                    "SELECT idem_send(%s, 'too early', '10 ms')", (op["id"],),
                                    {"id": op["id"], "early": True}) and new:
                    self.fault(f"sent before its commit: {op}")
                self.give_up()
            _, rows = self.call("dispatch", "SELECT i.operation_id::text FROM idem_dispatch("
                                "'bank', 'too early', 1000, '10 ms') i", (), {"early": True})
            if new and (op["id"],) in rows:
                self.fault(f"handed out before its commit: {op}")
            self.give_up()
