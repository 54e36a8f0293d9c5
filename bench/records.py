"""CPU of commands beside many records, and beside few; see README.md beside it."""
import argparse
import hashlib
import os
import random
import statistics
import uuid

import figures
from commands import REQUEST, TENANT
from session import Session

OPERATION = b"order.create"
ADDRESS = f"'{TENANT.decode()}', '{OPERATION.decode()}'"
RESPONSE = b'{"order" : 1, "status" : "created"}'
PART = 500_000                  # records of one statement
ON_DISK = 450                   # bytes of a record, to be on the safe side

# Copies of a record that idem_complete made.  Keys come in their order, as
# sorted data do, but are spread over all there are: a new one falls anywhere.
FILL = """
INSERT INTO idem_record (created_at, completed_at, expires_at, token, attempt, code, tenant, operation, key, state,
	fingerprint, resource, response)
SELECT m.created_at, m.completed_at, m.expires_at + n * interval '1 ms', m.token, m.attempt, m.code, m.tenant,
	m.operation, (lpad(to_hex(n * {stride}), 12, '0') || substr(md5(n::text), 1, 20))::uuid::text, m.state,
	m.fingerprint, m.resource, m.response
FROM idem_record AS m, generate_series({first}::bigint, {last}) AS n
WHERE (m.tenant, m.operation, m.key) = ({address}, 'model')"""

WORK = {
    "claim and completion":
        "SELECT idem_complete(t, $5, 201, 'order/1') FROM idem_claim($1, $2, $3, $4) AS t WHERE outcome = 'execute'",
    "replay by idem_claim": "SELECT response FROM idem_claim($1, $2, $3, $4) WHERE outcome = 'replay'",
    # what the index alone costs
    "SELECT by primary key": "SELECT response FROM idem_record WHERE (tenant, operation, key) = ($1, $2, $3)",
}


class Table:
    """A database with so many records."""

    def __init__(self, name, records):
        self.records, self.stride = records, 2 ** 48 // (records + 1)
        self.session = Session(database=name)
        self.cpu = {}
        # in the transaction that makes the table, for the minimal WAL
        self.session.sql("BEGIN")
        self.session.sql("CREATE EXTENSION idempotency")
        self.session.sql(f"SELECT idem_complete(idem_claim({ADDRESS}, 'model', '{REQUEST.decode()}'),"
                         f" '{RESPONSE.decode()}', 201, 'order/1')")
        for first in range(1, records + 1, PART):
            self.session.sql(FILL.format(first=first, last=min(first + PART - 1, records), stride=self.stride,
                                         address=ADDRESS))
        self.session.sql("COMMIT")
        self.session.sql("VACUUM ANALYZE idem_record")
        new, old, row = WORK.values()
        self.session.prepare(new=new, old=old, row=row)

    def known(self):
        """A key of the filled ones."""
        n = random.randint(1, self.records)
        return str(uuid.UUID(hex=f"{n * self.stride:012x}" + hashlib.md5(str(n).encode()).hexdigest()[:20])).encode()

    def warm(self):
        """What the kernel had to hand over comes into shared_buffers, as far as it is an index."""
        self.session.sql("CREATE EXTENSION pg_prewarm")
        blocks = self.session.value("SELECT sum(pg_prewarm(indexrelid)) FROM pg_index"
                                    " WHERE indrelid = 'idem_record'::regclass")
        print(f"  {self.records} records: {int(blocks) * 8192 / 1e9:.1f} GB of indexes", flush=True)

    def command(self):
        self.expect(self.session.run("new", TENANT, OPERATION, str(uuid.uuid4()).encode(), REQUEST, RESPONSE), b"")

    def replay(self):
        self.expect(self.session.run("old", TENANT, OPERATION, self.known(), REQUEST), RESPONSE)

    def select(self):
        self.expect(self.session.run("row", TENANT, OPERATION, self.known()), RESPONSE)

    @staticmethod
    def expect(result, value):
        if result.ntuples != 1 or result.get_value(0, 0) != value:
            raise RuntimeError("not the outcome that was expected")

    def measure(self, work, count):
        act = dict(zip(WORK, (self.command, self.replay, self.select)))[work]
        cpu = self.session.cpu_us()
        for _ in range(count):
            act()
        return (self.session.cpu_us() - cpu) / count


def compare(few, many, phase, rounds, batch):
    for work in WORK:
        costs = {few: [], many: []}
        for table in costs:
            table.measure(work, 2 * batch)
        for _ in range(rounds):
            for table, values in costs.items():
                values.append(table.measure(work, batch))
        line = "".join(f"{min(values):9.1f}{statistics.median(values):9.1f}" for values in costs.values())
        print(f"  {work + ', ' + phase:56}{line}{min(costs[many]) / min(costs[few]):9.2f}", flush=True)
        figures.add("P6", f"CPU of {work}, {many.records} records, {phase}", f"{few.records} records", "µs",
                    costs[many], costs[few], at_most=None if work.startswith("SELECT") else 1.3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000_000, help="(default 50000000)")
    parser.add_argument("--few", type=int, default=50_000, help="to compare with (default 50000)")
    parser.add_argument("--rounds", type=int, default=40, help="(default 40)")
    parser.add_argument("--batch", type=int, default=500, help="commands in a round (default 500)")
    options = parser.parse_args()
    disk = os.statvfs(os.environ["DATA"])
    if options.records * ON_DISK > disk.f_bavail * disk.f_frsize:
        raise SystemExit(f"{options.records} records take {options.records * ON_DISK / 1e9:.0f} GB of disk")

    admin = Session()
    for name in ("few", "many"):
        admin.sql(f"CREATE DATABASE {name}")
    few, many = Table("few", options.few), Table("many", options.records)
    size = int(many.session.value("SELECT pg_total_relation_size('idem_record')"))
    print(f"{options.records} records: {size / 1e9:.1f} GB; shared_buffers {admin.value('SHOW shared_buffers')}")
    print(f"  {'CPU µs: min, median; beside few, and many':56}{'':>36}{'ratio':>9}")
    admin.sql("CHECKPOINT")
    compare(few, many, "pages from the kernel", options.rounds, options.batch)
    for table in (few, many):
        table.warm()
    admin.sql("CHECKPOINT")
    compare(few, many, "index in shared_buffers", options.rounds, options.batch)
    admin.sql("ALTER SYSTEM SET full_page_writes = off")
    admin.sql("SELECT pg_reload_conf()")
    admin.sql("CHECKPOINT")
    compare(few, many, "no full-page images either", options.rounds, options.batch)


if __name__ == "__main__":
    main()
