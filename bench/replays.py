"""Replays of completed keys: CPU of one session, and rate of many clients."""
import os
import pathlib
import random
import re
import statistics
import subprocess

from commands import OPERATION, REQUEST, TENANT
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
        self.script = pathlib.Path(os.environ["SCRATCH"],
                                   re.sub("[^a-z]+", "-", name.lower()))
        self.script.write_text(f"\\set key random({FIRST}, {LAST})\n"
                               f"{self.query};\n")
        self.cpu, self.rates = [], {}

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

    def measure_rate(self, clients, seconds):
        defines = [f"--define={name}={self.values[name].decode()}"
                   for name in self.names if name != "key"]
        output = subprocess.run(
            [os.path.join(os.environ["PG_BINDIR"], "pgbench"), "-n",
             "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)),
             "-T", str(seconds), "-f", str(self.script), *defines],
            check=True, capture_output=True, text=True).stdout
        if "number of failed transactions: 0 " not in output:
            raise RuntimeError(output)
        rate = float(re.search(r"^tps = ([0-9.]+)", output, re.M)[1])
        self.rates.setdefault(clients, []).append(rate)


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


def run(rounds, clients, seconds):
    complete_keys()
    replays = [Replay(*query) for query in QUERIES]
    for replay in replays:
        replay.measure_cpu(500)
        replay.cpu.clear()
    for _ in range(rounds):
        for replay in replays:
            replay.measure_cpu(2000)
    for _ in range(3):
        for number in clients:
            for replay in replays:
                replay.measure_rate(number, seconds)
    return replays


def report(replays, clients):
    plain = replays[0]
    heads = "".join(f"{f'by {number}':>12}{'ratio':>7}" for number in clients)
    print(f"  {'replays, by N clients':28}{'CPU µs':>9}{'ratio':>7}{heads}")
    for replay in replays:
        line = (f"  {replay.name:28}{min(replay.cpu):9.1f}"
                f"{min(replay.cpu) / min(plain.cpu):7.2f}")
        for number in clients:
            rate = statistics.median(replay.rates[number])
            base = statistics.median(plain.rates[number])
            line += f"{rate:10.0f}/s{rate / base:7.2f}"
        print(line)
    print()
