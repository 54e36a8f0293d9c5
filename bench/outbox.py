"""Outbox and steps beside hand-written tables, on a fresh cluster."""
import argparse
import multiprocessing
import pathlib
import time

from session import Session

HERE = pathlib.Path(__file__).parent
ROUNDS = 4                      # the variants take turns
STEPS = 5000
RESPONSE = b'{"ok": true}'

TAKE = """UPDATE outbox o SET state = 'in_flight', worker = $2, tries = tries + 1,
    token = (random() * 4e18)::bigint, lease_until = clock_timestamp() + interval '1 minute'
    FROM (SELECT id FROM outbox WHERE target = $1 AND state = 'pending' AND due_at <= clock_timestamp()
          ORDER BY due_at LIMIT $3::int FOR UPDATE SKIP LOCKED) AS due
    WHERE o.id = due.id RETURNING o.id, o.token, o.request"""
CONFIRM = """UPDATE outbox SET state = 'confirmed', settled_at = clock_timestamp(), lease_until = NULL,
    response = $3 WHERE id = $1 AND token = $2 AND state = 'in_flight'"""

# fill, take a batch, confirm one
VARIANTS = {
    "hand-written": ("fill_theirs", TAKE, CONFIRM),
    "hand-written, trail": ("fill_theirs", TAKE, f"""WITH moved AS ({CONFIRM} RETURNING id)
        INSERT INTO trail (at, outbox, from_state, to_state, actor)
        SELECT clock_timestamp(), id, 'in_flight', 'confirmed', session_user FROM moved"""),
    "idem_dispatch, idem_confirm": (
        "fill_ours", "SELECT operation_id, token, request FROM idem_dispatch($1, $2, $3, '1 minute')",
        "SELECT 1 FROM idem_confirm($1, $2, $3)"),
}


def work(variant, target, batch, per_commit, start, results):
    """One worker: until there is nothing left to take."""
    session = Session(commit="on")
    session.prepare(take=VARIANTS[variant][1], confirm=VARIANTS[variant][2])
    worker = b"worker %d" % session.conn.backend_pid
    done = 0
    start.wait()
    cpu = session.cpu_us()
    while True:
        taken = session.run("take", target, worker, b"%d" % batch)
        if taken.ntuples == 0:
            break
        for row in range(taken.ntuples):
            if per_commit > 1 and row % per_commit == 0:
                session.sql("BEGIN")
            session.run("confirm", taken.get_value(row, 0), taken.get_value(row, 1), RESPONSE)
            if per_commit > 1 and (row % per_commit == per_commit - 1 or row == taken.ntuples - 1):
                session.sql("COMMIT")
        done += taken.ntuples
    results.put((done, session.cpu_us() - cpu))


def run_round(admin, variant, target, options, per_commit):
    """Seconds, CPU and WAL of all workers together."""
    start = multiprocessing.Barrier(options.workers + 1)
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(
        variant, target.encode(), options.batch, per_commit, start, results)) for _ in range(options.workers)]
    for worker in workers:
        worker.start()
    wal = admin.wal()[0]
    start.wait()
    began = time.monotonic()
    got = [results.get() for _ in workers]
    seconds = time.monotonic() - began
    for worker in workers:
        worker.join()
    return sum(done for done, _ in got), seconds, sum(cpu for _, cpu in got), admin.wal()[0] - wal


def outbox(admin, options, per_commit):
    totals = {variant: [0, 0, 0, 0] for variant in VARIANTS}
    size = options.intents // ROUNDS
    for turn in range(ROUNDS):
        for variant, (fill, _, _) in VARIANTS.items():
            target = f"{variant} {per_commit} {turn}"
            admin.sql(f"CALL {fill}('{target}', {size})")
            admin.sql("VACUUM ANALYZE")
            figures = run_round(admin, variant, target, options, per_commit)
            if figures[0] != size:
                raise RuntimeError(f"{variant}: {figures[0]} of {size} confirmed")
            totals[variant] = [sum(pair) for pair in zip(totals[variant], figures)]
    print(f"{options.intents} intents, {options.workers} workers, batches of {options.batch},"
          f" {per_commit} confirmation(s) per commit")
    print(f"  {'':28}{'intents/s':>10}{'ratio':>7}{'CPU µs':>8}{'WAL B':>7}   per intent", flush=True)
    base = totals["hand-written"][0] / totals["hand-written"][1]
    for variant, (done, seconds, cpu, wal) in totals.items():
        print(f"  {variant:28}{done / seconds:10.0f}{done / seconds / base:7.2f}{cpu / done:8.0f}{wal / done:7.0f}")


def steps(admin):
    """A step beside an insert of the same data, each flushed in a transaction of its own."""
    admin.sql("CREATE TABLE bare_step (LIKE idem_step INCLUDING ALL)")
    admin.sql("CREATE TABLE tickets AS SELECT i, idem_claim('shop-1', 'steps', i::text, lease => '1 day') AS t"
              f" FROM generate_series(1, {STEPS // 10}) AS i")
    admin.prepare(step="SELECT idem_step_done(t, $2, '{\"id\": 7}', '{\"n\": 1}') FROM tickets WHERE i = $1",
                  bare="INSERT INTO bare_step SELECT clock_timestamp(), 1, (t).tenant, (t).operation, (t).key, $2,"
                       " idem_fingerprint('{\"n\": 1}'), '{\"id\": 7}' FROM tickets WHERE i = $1")
    admin.sql("CREATE UNIQUE INDEX ON tickets (i)")
    admin.sql("VACUUM ANALYZE")
    print(f"{STEPS} steps, each flushed in a transaction of its own")
    print(f"  {'':28}{'WAL B':>7}{'CPU µs':>8}   per step", flush=True)
    for name, label in (("bare", "bare insert"), ("step", "idem_step_done")):
        wal, cpu = admin.wal()[0], admin.cpu_us()
        for step in range(10):
            for i in range(1, STEPS // 10 + 1):
                admin.run(name, b"%d" % i, b"step %d" % step)
        print(f"  {label:28}{(admin.wal()[0] - wal) / STEPS:7.0f}{(admin.cpu_us() - cpu) / STEPS:8.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--intents", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--per-commit", type=int, nargs="+", default=[1, 100])
    options = parser.parse_args()
    admin = Session(commit="on")
    admin.sql("CREATE EXTENSION idempotency")
    admin.sql((HERE / "outbox.sql").read_text())
    print(admin.value("SELECT version()").split(" (")[0])
    # first, while autovacuum has nothing to write
    steps(admin)
    for per_commit in options.per_commit:
        outbox(admin, options, per_commit)


if __name__ == "__main__":
    main()
