"""Replays of completed keys: CPU of one session, and rate of many clients."""
import random
import re
import statistics

import figures
from commands import OPERATION, REQUEST, TENANT
from pgbench import Script, measure
from session import Session

# Keys that pgbench can draw: it knows no strings, but sends numbers as text.
FIRST, COUNT = 10 ** 17, 20_000
LAST = FIRST + COUNT - 1
WITHOUT_REQUEST = b"order.bare"

WHERE = "WHERE tenant = :tenant AND operation = :operation AND key = :key"
# name, operation, statement; the first is what the others are compared with.
QUERIES = [
    ("SELECT by primary key", OPERATION,
     f"SELECT state, response FROM rival.command {WHERE}"),
    ("idem_replay, no request", WITHOUT_REQUEST,
     "SELECT outcome, response FROM idem_replay(:tenant, :operation, :key)"),
    ("SELECT, request compared", OPERATION,
     "SELECT state, response, expires_at > clock_timestamp() AS valid,"
     " fingerprint = sha256(convert_to((:request::jsonb)::text, 'UTF8'))"
     f" AS same FROM rival.command {WHERE}"),
    ("idem_replay", OPERATION,
     "SELECT outcome, response"
     " FROM idem_replay(:tenant, :operation, :key, :request)"),
    ("idem_claim", OPERATION,
     "SELECT outcome, response"
     " FROM idem_claim(:tenant, :operation, :key, :request)"),
]


class Replay:
    def __init__(self, name, operation, query):
        self.name, self.query = name, query
        self.values = {"tenant": TENANT, "operation": operation, "key": b"",
                       "request": REQUEST}
        # :name, as pgbench has it, becomes $1 to $4 in order of appearance.
        self.names = list(dict.fromkeys(
            re.findall(r"(?<!:):([a-z]+)\b", re.sub("::[a-z]+", "", query))))
        for number, parameter in enumerate(self.names, 1):
            query = query.replace(f":{parameter}", f"${number}")
        self.session = Session()
        self.session.prepare(replay=query)
        self.script = Script(name, f"\\set key random({FIRST}, {LAST})\n{self.query};\n",
                             **{name: self.values[name].decode() for name in self.names if name != "key"})
        self.cpu = []

    def run(self):
        self.values["key"] = b"%d" % random.randint(FIRST, LAST)
        result = self.session.run("replay",
                                  *(self.values[name] for name in self.names))
        if result.get_value(0, 0) not in (b"replay", b"succeeded"):
            raise RuntimeError(f"{self.name}: {result.get_value(0, 0)!r}")

    def measure_cpu(self, count):
        cpu = self.session.cpu_us()
        for _ in range(count):
            self.run()
        self.cpu.append((self.session.cpu_us() - cpu) / count)


def complete_keys():
    """The same keys, completed in the rival's table and in ours."""
    session = Session("rival, public")
    request = f"'{REQUEST.decode()}'::jsonb"
    # In parts: every atomic claim of a transaction holds a lock.
    for start in range(FIRST, LAST, 5000):
        keys = f"generate_series({start}, {start + 4999}) AS key"
        session.sql(f"SELECT place_order('{TENANT.decode()}',"
                    f" '{OPERATION.decode()}', key::text, {request})"
                    f" FROM {keys}")
        for operation, value in ((OPERATION, request),
                                 (WITHOUT_REQUEST, "NULL")):
            session.sql(
                f"""SELECT idem_complete(ticket, '{{"order" : 1}}', 201,"""
                f" 'order/1') FROM {keys},"
                f" LATERAL idem_claim('{TENANT.decode()}',"
                f" '{operation.decode()}', key::text, {value}) AS ticket")
    session.sql("VACUUM ANALYZE")


def run(rounds, rate_rounds, clients, seconds):
    complete_keys()
    replays = [Replay(*query) for query in QUERIES]
    for replay in replays:
        replay.measure_cpu(500)
        replay.cpu.clear()
    for _ in range(rounds):
        for replay in replays:
            replay.measure_cpu(500)
    measure([replay.script for replay in replays], rate_rounds, clients, seconds)
    return replays


def report(replays, clients):
    plain = replays[0]
    heads = "".join(f"{f'by {number}':>12}{'ratio':>7}" for number in clients)
    print(f"  {'replays, by N clients':28}{'CPU µs':>9}{'ratio':>7}{heads}")
    for replay in replays:
        line = (f"  {replay.name:28}{min(replay.cpu):9.1f}"
                f"{min(replay.cpu) / min(plain.cpu):7.2f}")
        medians = [statistics.median(replay.script.rates[number]) for number in clients]
        figures.add_series("P4", replay.name, clients, medians)
        for number, rate in zip(clients, medians):
            base = statistics.median(plain.script.rates[number])
            line += f"{rate:10.0f}/s{rate / base:7.2f}"
        print(line)
    print(flush=True)
    note(replays, clients)


def note(replays, clients):
    """Beside the SELECT that does as much: without a request, or with one."""
    plain, bare, correct, *ours = replays
    pairs = [(bare, plain)] + [(mine, correct) for mine in ours] + [(mine, plain) for mine in ours]
    for mine, theirs in pairs:
        for number in clients:
            figures.add("P4", f"{mine.name}, clients: {number}", theirs.name, "/s", mine.script.rates[number],
                        theirs.script.rates[number], at_least=0.95)
