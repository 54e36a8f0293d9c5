"""The histories of all clients, and what the tables hold at the end."""

import collections
import json

GRANTED = ("execute", "resume")
ENDS = ("complete", "fail", "execute", "resolve")


class History:
    """The transactions of all clients, and what the tables hold at the end."""

    def __init__(self, db, logs, outside):
        self.db = db
        self.transactions = []
        for log in logs:
            with open(log, encoding="utf-8") as lines:
                self.transactions += map(json.loads, lines)
        self.committed = {row[0] for row in db.execute("SELECT id FROM txn")}
        self.records = {(row[0], row[1]): row[2:] for row in db.execute(
            "SELECT operation, key, state, attempt, token, response::text, code, resource,"
            " encode(body, 'hex') FROM idem_record")}
        self.intents = {row[0]: row[1] for row in db.execute(
            "SELECT operation_id::text, state FROM idem_intent")}
        self.effects = db.execute("SELECT operation, key, kind, token, response,"
                                  " extract(epoch FROM at)::float8 FROM effect"
                                  " ORDER BY at").fetchall()
        self.calls = outside.counts()
        self.ops = []                   # all that were answered
        for tx in self.transactions:
            for op in tx["ops"]:
                op["tx"] = tx
                op["kept"] = tx["tx"] in self.committed and "err" not in op \
                    and not op.get("undone")
                op["address"] = (op.get("op"), op.get("key"))
                if "err" not in op:
                    self.ops.append(op)
        self.kept = [op for op in self.ops if op["kept"]]
        self.ends = [op for op in self.kept if op["f"] in ENDS and "result" in op
                     and op.get("to") != "released"]
        self.told = [op for op in self.ops if op["f"] in ("claim", "execute", "replay")]
        self.grants = [op for op in self.ops if op["f"] in ("claim", "execute", "recovered")
                       and op["outcome"] in GRANTED]
        self.replays = [op for op in self.told if op["outcome"] == "replay"]

    def known_ends(self):
        """Since when it is certain that an address is ended."""
        known = {}
        for op in self.ends:
            if op["tx"]["status"] == "acked":
                known[op["address"]] = min(op["tx"]["end"], known.get(op["address"], 1e99))
        for op in self.replays:
            known[op["address"]] = min(op["e"], known.get(op["address"], 1e99))
        return known


def forever(op):
    """Is it never purged?"""
    return op["address"][0] != "gone"


def seconds(lease):
    number, unit = lease.split()
    return float(number) * {"ms": 1e-3, "s": 1}[unit]


def answer(op):
    return [op[name] for name in ("response", "code", "resource", "body")]


def brief(op):
    return {name: value for name, value in op.items() if name not in ("tx", "kept", "address")
            and value is not None} | {"tx": op["tx"]["tx"], "status": op["tx"]["status"]}


def duplicates(items):
    return [item for item, count in collections.Counter(items).items() if count > 1]
