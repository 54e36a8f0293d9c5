"""Our sweep beside hand-written batches: rows a second, CPU and WAL."""
import time

import figures
from session import Session

BATCH, ROUNDS = 1000, 5
SWEPT, COPIED = 200_000, 1_000_000      # rows at most


class Sweep:
    """A way to sweep: rows a second, and what a row costs."""

    def __init__(self, name, statement, table):
        self.name, self.table, self.session = name, table, Session()
        self.session.prepare(batch=statement)
        self.done = self.seconds = self.cpu = self.wal = 0
        self.rates = []

    def timed(self, work):
        wal, cpu, began = self.session.wal()[0], self.session.cpu_us(), time.monotonic()
        rows = work()
        seconds = time.monotonic() - began
        self.done += rows
        self.seconds += seconds
        self.cpu += self.session.cpu_us() - cpu
        self.wal += self.session.wal()[0] - wal
        return rows / seconds

    def sweep(self, rows):
        done = 0
        while done < rows:
            done += int(self.session.run("batch", b"%d" % BATCH).get_value(0, 0))
        return done

    def vacuum(self):
        self.session.sql(f"VACUUM {self.table}")
        return 0

    def report(self, what):
        print(f"  {self.name + what:34}{self.done / self.seconds:8.0f} rows/s{self.cpu / self.done:7.1f} µs of CPU,"
              f"{self.wal / self.done:6.0f} B of WAL a row", flush=True)


def compare(admin, rows):
    """Each of so many rows; the tables of others are no larger than need be."""
    rows = min(rows, SWEPT)
    for table in ("hand_deleted", "hand_updated"):
        admin.sql(f"INSERT INTO {table} SELECT created_at, completed_at, expires_at, code, tenant, operation, key,"
                  f" state, fingerprint, resource, response FROM idem_record LIMIT {COPIED}")
        admin.sql(f"ALTER TABLE {table} ADD PRIMARY KEY (tenant, operation, key)")
    admin.sql("CREATE INDEX ON hand_deleted (expires_at)")
    # without its own, each batch would walk over what the others have done
    admin.sql("CREATE INDEX ON hand_updated (expires_at) WHERE response IS NOT NULL")
    admin.sql("VACUUM ANALYZE")
    print(f"{rows} expired rows, {BATCH} a transaction")
    ways = ours, *others = (Sweep("idem_sweep", "SELECT swept FROM idem_sweep($1)", "idem_record"),
                            Sweep("hand-written UPDATE", "SELECT update_batch($1)", "hand_updated"),
                            Sweep("hand-written DELETE", "SELECT delete_batch($1)", "hand_deleted"))
    for _ in range(ROUNDS):
        for way in ways:
            way.rates.append(way.timed(lambda: way.sweep(rows // ROUNDS)))
    for way in ways:
        way.report("")
    for way in ways:
        way.timed(way.vacuum)
        way.report(", and VACUUM")
    for way in others:
        figures.add("P7", "rows swept", way.name, "/s", ours.rates, way.rates, at_least=1.0)
        figures.add("P7", "rows swept, and VACUUM", way.name, "/s", [ours.done / ours.seconds],
                    [way.done / way.seconds], at_least=1.0)
    admin.sql("DROP TABLE hand_deleted, hand_updated CASCADE")
    # whatever comes next shall not wait for the disk to take all this
    admin.sql("CHECKPOINT")
