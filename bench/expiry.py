"""Expiry under load, on a fresh cluster; see README.md beside it."""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import threading
import time

import figures
import sweeps
from session import Session
from steady import Clients, percentile

HERE = pathlib.Path(__file__).parent
LEAST = 100                     # claims in a window that counts
PERCENTILES = [50, 75, 90, 95, 98, 99, 99.5]
EXPIRED = "operation <> 'load' AND expires_at <= clock_timestamp() AND response IS NOT NULL"

# As much work for a processor as maintenance is, and nothing else.
BURN = """DO $$
DECLARE
	until timestamptz := clock_timestamp() + interval '{} s';
	rests timestamptz;
BEGIN
	WHILE clock_timestamp() < until LOOP
		rests := clock_timestamp() + interval '20 ms';
		WHILE clock_timestamp() < rests LOOP
			PERFORM md5(rests::text);
		END LOOP;
		PERFORM pg_sleep(0.02);
	END LOOP;
END $$"""

# What takes turns while clients claim.
WINDOWS = {
    "idle": "SELECT pg_sleep({})",
    "maintaining": "CALL idem_maintain(max_time => '{} s')",
    "computing": BURN,
}


def generated():
    """Payloads of about five kilobytes, where there are no real ones."""
    rng = random.Random(7)
    for n in range(300):
        yield f"event.{n % 40}", {"sender": {"login": f"user{n}", "id": n, "urls": {
            f"url{i}": f"https://example.org/{rng.getrandbits(64):x}" for i in range(15)}},
            "changes": [{"id": rng.getrandbits(40), "text": f"{rng.getrandbits(400):x}"} for _ in range(40)]}


def load_payloads(admin, path):
    if path:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            payloads = [(row["event"], row["payload"]) for row in map(json.loads, lines)]
    else:
        payloads = list(generated())
    admin.prepare(payload="INSERT INTO payloads VALUES ($1, $2, $3)")
    for n, (event, payload) in enumerate(payloads):
        admin.run("payload", b"%d" % n, event.encode(), json.dumps(payload).encode())
    admin.sql("VACUUM ANALYZE payloads")
    print(f"{len(payloads)} {'real' if path else 'generated'} payloads of"
          f" {admin.value('SELECT round(avg(octet_length(payload::text))) FROM payloads')} bytes on average")
    return len(payloads)


class Call(threading.Thread):
    """A statement in a session of its own, and what the server said."""

    def __init__(self, statement):
        super().__init__()
        self.statement, self.session, self.notices, self.error = statement, Session(), [], None
        self.session.conn.notice_handler = lambda notice: self.notices.append(notice.error_message.decode())
        self.start()

    def run(self):
        began = time.time()
        try:
            self.session.sql(self.statement)
        except RuntimeError as error:
            self.error = str(error)
        self.window = began, time.time()

    def swept(self):
        self.join()
        found = re.search(r"swept (\d+)", " ".join(self.notices))
        return int(found.group(1)) if found else 0


def load_commands(admin, commands):
    began = time.monotonic()
    # two at once, each with the keys of one remainder, so that key i has payload (i - 1) / 2 % kinds
    calls = [Call(f"CALL load_commands({first}, {commands}, 2)") for first in (1, 2)]
    for call in calls:
        call.join()
        if call.error:
            raise SystemExit(call.error)
    seconds = time.monotonic() - began
    made = int(admin.value("SELECT count(*) FROM idem_record"))
    if made != commands:
        raise SystemExit(f"{made} of {commands} commands were made")
    print(f"{commands} commands claimed and completed in {seconds:.0f} s ({commands / seconds:.0f}/s)")


def sizes(admin, title):
    admin.sql("VACUUM ANALYZE idem_record")
    row = admin.sql("SELECT count(*), count(response), pg_table_size('idem_record'),"
                    " pg_relation_size('idem_record_pkey'), pg_relation_size('idem_record_expiring'),"
                    " pg_relation_size('idem_record_tombstone') FROM idem_record")
    rows, full, *parts = [int(row.get_value(0, column)) for column in range(6)]
    print(f"{title:8}{rows:9} records, {full:7} with a response; MB: table {parts[0] / 1e6:.0f},"
          f" primary key {parts[1] / 1e6:.0f}, to expire {parts[2] / 1e6:.0f}, tombstones {parts[3] / 1e6:.0f};"
          f" {sum(parts) / rows:.0f} bytes per record", flush=True)


def under_load(options, kinds):
    """Clients go on at a steady rate while maintenance comes and goes, and as a control mere work."""
    seconds, windows = options.seconds, []
    # 3 seconds to begin with, and some for what lies between the windows
    clients = Clients(options.rate, (seconds + 0.2) * len(WINDOWS) * options.windows + 5, options.commands, kinds)
    time.sleep(3)
    for _ in range(options.windows):
        for name, statement in WINDOWS.items():
            call = Call(statement.format(seconds))
            swept = call.swept()
            if call.error:
                raise SystemExit(call.error)
            windows.append((name, *call.window, swept))
    each = [[] for _ in windows]                # latencies of each window
    for ended, ms in clients.latencies():
        for (_, begin, end, _), values in zip(windows, each):
            if begin <= ended <= end:
                values.append(ms)
    latencies, p99 = {name: [] for name in WINDOWS}, {name: [] for name in WINDOWS}
    for begin in range(0, len(each), len(WINDOWS)):
        turn = dict(zip(WINDOWS, each[begin:begin + len(WINDOWS)]))
        # maintenance with nothing left to do ends at once
        if min(map(len, turn.values())) >= LEAST:
            for name, values in turn.items():
                latencies[name] += values
                p99[name].append(percentile(values, 0.99))
    print(f"{options.rate} claims/s by 4 clients, {options.windows} windows of {seconds} s of each kind, in turn")
    for name, values in latencies.items():
        share = percentile(values, 0.99) / percentile(latencies["idle"], 0.99)
        print(f"  {name:12}{len(values):7} claims, ms: median {percentile(values, 0.5):.2f},"
              f" p99 {percentile(values, 0.99):.2f}, max {max(values, default=0):.1f}; p99 ratio {share:.2f}")
        figures.add_series("P7", name, PERCENTILES, [percentile(values, each / 100) for each in PERCENTILES])
        if name != "idle":
            figures.add("P7", f"p99 of claims while {name}", "idle", "ms", p99[name], p99["idle"],
                        at_most=1.5 if name == "maintaining" else None)
    swept = sum(window[3] for window in windows)
    lasted = sum(end - begin for name, begin, end, _ in windows if name == "maintaining")
    print(f"  meanwhile {swept} records were swept in {lasted:.0f} s ({swept / lasted:.0f}/s)", flush=True)


def two_at_once(admin):
    before = int(admin.value("SELECT count(*) FROM idem_record WHERE response IS NULL"))
    calls = [Call("CALL idem_maintain(max_time => '2 s')") for _ in range(2)]
    counts = [call.swept() for call in calls]
    now = int(admin.value("SELECT count(*) FROM idem_record WHERE response IS NULL"))
    print(f"two maintainers at once: {counts[0]} + {counts[1]} = {sum(counts)} swept,"
          f" {now - before} more records without response")
    if sum(counts) != now - before:
        raise SystemExit("they counted something twice, or lost it")


def cancelled(admin):
    before = int(admin.value("SELECT count(*) FROM idem_record WHERE response IS NULL"))
    call = Call("CALL idem_maintain()")
    shown = (0, 0)
    while call.is_alive():
        row = admin.sql("SELECT rows_done, rows_left, pg_cancel_backend(pid) FROM idem_progress WHERE rows_done > 0")
        if row.ntuples:
            shown = int(row.get_value(0, 0)), int(row.get_value(0, 1))
            break
    call.join()
    now = int(admin.value("SELECT count(*) FROM idem_record WHERE response IS NULL"))
    print(f"cancelled at {shown[0]} done, {shown[1]} left: {now - before} are swept,"
          f" \"{call.error or 'it had finished'}\"")
    if now - before < shown[0]:
        raise SystemExit("the cancel lost what was done")


def finish(admin):
    """The rest, by pg_cron where it is installed."""
    if admin.value("SHOW shared_preload_libraries") != "pg_cron":
        print("pg_cron is not installed: the rest by hand")
        admin.sql("CALL idem_maintain()")
        return
    admin.sql("CREATE EXTENSION pg_cron")
    admin.sql("SELECT cron.schedule('maintain', '* * * * *', 'CALL idem_maintain()')")
    now = admin.value("SELECT clock_timestamp()")
    count = f"SELECT count(*) FROM idem_record WHERE {EXPIRED} AND expires_at <= '{now}'"
    left = before = int(admin.value(count))
    began = time.monotonic()
    while left > 0 and time.monotonic() - began < 150:
        time.sleep(1)
        left = int(admin.value(count))
    admin.sql("SELECT cron.unschedule('maintain')")
    print(f"pg_cron, every minute: {before - left} of {before} swept after {time.monotonic() - began:.0f} s")


def check(admin, options, live):
    """Nothing is lost, nothing too early, and every key answers as it must."""
    now = int(admin.value("SELECT count(*) FROM idem_record WHERE operation <> 'load'"))
    wrong = int(admin.value("SELECT count(*) FROM idem_record WHERE operation <> 'load' AND"
                            " response IS NULL AND expires_at > clock_timestamp()"))
    kept = int(admin.value("SELECT count(*) FROM idem_record WHERE operation <> 'load' AND"
                           " response IS NOT NULL AND expires_at > now() + '1 day'"))
    other = admin.value("SELECT count(*) FROM idem_record r, payloads p, LATERAL idem_replay('octokit', r.operation,"
                        " r.key, p.payload) c WHERE r.operation <> 'load' AND r.tenant = 'octokit'"
                        " AND p.n = (substr(r.key, 10)::integer - 1) / 2 % (SELECT count(*) FROM payloads)"
                        " AND substr(r.key, 10)::integer % 997 = 0 AND (c.outcome <> CASE WHEN"
                        " r.expires_at <= clock_timestamp() THEN 'expired' ELSE 'replay' END"
                        " OR c.resource <> 'delivery/' || substr(r.key, 10))")
    print(f"{now} records, {kept} of {live} live ones have their response, {wrong} lost it too early,"
          f" {other} of every 997th answer wrongly")
    if (now, wrong, kept, other) != (options.commands, 0, live, "0"):
        raise SystemExit("that is not right")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", default=os.environ.get("PAYLOADS"))
    parser.add_argument("--commands", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=300, help="claims a second (default 300)")
    parser.add_argument("--seconds", type=int, default=2, help="length of a window (default 2)")
    parser.add_argument("--windows", type=int, default=10, help="of each kind (default 10)")
    options = parser.parse_args()

    admin = Session()
    admin.sql("CREATE EXTENSION idempotency")
    admin.sql((HERE / "expiry.sql").read_text())
    print(admin.value("SELECT version()").split(" (")[0])
    kinds = load_payloads(admin, options.payloads)
    load_commands(admin, options.commands)
    live = int(admin.value("SELECT count(*) FROM idem_record WHERE expires_at > now() + '1 day'"))
    sizes(admin, "before")
    sweeps.compare(admin, options.commands // 10)

    holder = Session()
    row = admin.sql(f"SELECT operation, key FROM idem_record WHERE {EXPIRED} ORDER BY expires_at LIMIT 1")
    locked = [row.get_value(0, column).decode() for column in range(2)]
    holder.sql("BEGIN")
    holder.sql(f"SELECT idem_lock('octokit', '{locked[0]}', '{locked[1]}')")
    under_load(options, kinds)
    two_at_once(admin)
    cancelled(admin)
    left = f"SELECT response IS NOT NULL FROM idem_record WHERE operation = '{locked[0]}' AND key = '{locked[1]}'"
    skipped = admin.value(left)
    holder.sql("COMMIT")
    finish(admin)
    print(f"the locked record was {'skipped' if skipped == 't' else 'SWEPT'} while it was locked,"
          f" and is {'NOT swept' if admin.value(left) == 't' else 'swept'} now")
    if skipped != "t" or admin.value(left) == "t":
        raise SystemExit("that is not right")
    sizes(admin, "after")
    check(admin, options, live)


if __name__ == "__main__":
    main()
