"""What a storm did, counted from the journals and the database, and whatever there should not be."""

import json
from collections import Counter, defaultdict

from journal import Reader


class Evidence:
    """Journals and tables of one storm.  A command is (customer, key)."""

    def __init__(self, storm, database):
        self.lines = defaultdict(list)
        for line in Reader(storm.journal).news():
            self.lines[line["event"]].append(line)
        self.wanted = {(customer, f"order-{n}"): n
                       for customer in storm.customers for n in range(1, storm.orders + 1)}
        self.tries = {line["name"]: line for line in self.lines["try"]}
        self.rows = database.execute(
            "SELECT customer, 'order-' || substr(reference, 2), item, quantity, id FROM orders").fetchall()
        self.records = database.execute(
            "SELECT tenant, key, state, code, resource, response::text FROM idem_record"
            " WHERE operation = 'order.create'").fetchall()

    def names(self, event):
        return {line["name"] for line in self.lines[event]}

    def cut_off(self, begin, ends, killed):
        """How many of what killed processes had begun never ended."""
        ended = set().union(*map(self.names, ends))
        return sum((line["process"], line["pid"]) in killed and line["name"] not in ended
                   for line in self.lines[begin])


def figures(storm, evidence):
    outcomes = Counter(line["outcome"] for line in evidence.lines["outcome"])
    hung_up, dropped, answered = map(evidence.names, ("hung up", "dropped", "answer"))
    lost = {line["name"] for line in evidence.lines["outcome"]
            if line["outcome"] in ("execute", "replay")} - answered
    killed = {line["name"] for event in ("try", "outcome") for line in evidence.lines[event]
              if (line["process"], line["pid"]) in storm.killed["client"] + storm.killed["service"]}
    return {
        "commands": len(evidence.wanted),
        "tries": len(evidence.tries),
        "orders created": len(evidence.rows),
        "duplicates": len(evidence.rows) - len({row[:2] for row in evidence.rows}),
        "replays": outcomes["replay"],
        "in_progress": outcomes["in_progress"],
        "mismatches refused": outcomes["mismatch"],
        "responses lost after COMMIT": len(lost),
        "  client hung up": len(lost & hung_up),
        "  service dropped it": len(lost & dropped - hung_up),
        "  one of them was killed": len(lost & killed - dropped - hung_up),
        "services killed -9": len(storm.killed["service"]),
        "  requests cut off": evidence.cut_off(
            "request", ("responded", "dropped"), storm.killed["service"]),
        "clients killed -9": len(storm.killed["client"]),
        "  tries cut off": evidence.cut_off(
            "try", ("answer", "no answer", "hung up"), storm.killed["client"]),
        "database sessions killed": len(storm.killed["session"]),
    }


def missing(storm, evidence):
    """Orders that a client wanted and was never told of, or that are not there."""
    told = {(line["process"], line["customer"], line["key"]) for line in evidence.lines["acknowledged"]}
    there = {row[:2] for row in evidence.rows}
    for customer, key in evidence.wanted:
        for client in storm.clients:
            if customer in client.name and (client.name, customer, key) not in told:
                yield f"{customer} {key}: not acknowledged to {client.name}"
        if (customer, key) not in there:
            yield f"{customer} {key}: no order"


def wrong_orders(evidence):
    """Rows that are not what was ordered, once."""
    for (customer, key), count in Counter(row[:2] for row in evidence.rows).items():
        if count > 1:
            yield f"{customer} {key}: {count} orders"
    for customer, key, item, quantity, _ in evidence.rows:
        n = evidence.wanted.get((customer, key))
        if n is None:
            yield f"{customer} {key}: nobody ordered that"
        elif (item, quantity) != (("tea", "coffee", "cocoa")[n % 3], n % 9 + 1):
            yield f"{customer} {key}: {quantity} {item} were not ordered"


def wrong_records(evidence):
    """Records that disagree with the orders."""
    orders = {row[:2]: row[4] for row in evidence.rows}
    for customer, key, state, code, resource, response in evidence.records:
        order = orders.pop((customer, key), None)
        if (state, code, resource) != ("succeeded", 201, f"orders/{order}"):
            yield f"{customer} {key}: order {order}, but record {state} {code} {resource}"
        elif json.loads(response)["id"] != order:
            yield f"{customer} {key}: order {order}, but response {response}"
    for customer, key in orders:
        yield f"{customer} {key}: an order without a record"


def wrong_answers(evidence):
    """Answers other than the stored one, and changed requests that were not refused."""
    stored = {record[:2]: record[5] for record in evidence.records}
    for line in evidence.lines["answer"]:
        sent = evidence.tries[line["name"]]
        status = line["status"]
        if status not in ((422, 503) if sent["altered"] else (201, 409, 503)):
            yield f"{line['name']}: status {status}, altered {sent['altered']}"
        elif status == 201 and line["body"] != stored.get((sent["customer"], sent["key"])):
            yield f"{line['name']}: answered {line['body']}"
    executed = Counter((line["customer"], line["key"])
                       for line in evidence.lines["outcome"] if line["outcome"] == "execute")
    for command, n in executed.items():
        if n > 1:
            yield f"{command}: {n} services said execute"


def examine(storm, database):
    """The figures of a storm and a list of its faults."""
    evidence = Evidence(storm, database)
    counted = figures(storm, evidence)
    faults = list(missing(storm, evidence))
    if storm.call is None:
        faults += wrong_orders(evidence)
        faults += wrong_records(evidence)
        faults += wrong_answers(evidence)
        needed = set(counted) - {"duplicates"}
    else:
        needed = {"duplicates"}
    faults += [f"no '{label.strip()}': this storm proves nothing"
               for label in needed if counted[label] == 0]
    return counted, faults


def table(titles, columns):
    """The figures side by side."""
    width = max(map(len, columns[0]))
    lines = ["", " " * width + "".join(f"{title:>18}" for title in titles)]
    lines += [f"{label:<{width}}" + "".join(f"{column[label]:>18}" for column in columns)
              for label in columns[0]]
    return "\n".join(lines + [""])
