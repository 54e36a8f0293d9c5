"""Size of the table while as many commands come as expire; see README.md beside it."""
import argparse
import threading
import time

import figures
from session import Session

SETUP = """
CREATE PROCEDURE arrive(n integer, ttl interval) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM idem_complete(
			idem_claim('shop-' || i % 100, 'order.create', gen_random_uuid()::text, '1', ttl => ttl),
			to_json(repeat(md5(i::text), 8)), 201, 'order/' || i);
		IF i % 100 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
	COMMIT;
END
$$;
"""
FRESH = """
DROP EXTENSION IF EXISTS idempotency CASCADE;
CREATE EXTENSION idempotency;
SELECT idem_define('order.create', tombstone_retention => '1 us');
"""
SIZE = "SELECT pg_total_relation_size('idem_record')"


def by_the_clock(stop):
    """Maintenance as pg_cron would have it, were the days longer."""
    session = Session()
    while not stop.wait(1):
        session.sql("CALL idem_maintain()")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=4, help="of churn (default 4)")
    parser.add_argument("--commands", type=int, default=50_000, help="a day, which is their ttl (default 50000)")
    parser.add_argument("--seconds", type=int, default=60, help="that a day lasts (default 60)")
    options = parser.parse_args()
    session, stop = Session(), threading.Event()
    session.sql(SETUP)

    # what a day's commands take where nothing else ever was
    session.sql(FRESH)
    session.sql(f"CALL arrive({options.commands}, '1 day')")
    live = int(session.value(SIZE))
    print(f"{options.commands} live records: {live / 1e6:.1f} MB")

    session.sql(FRESH)
    maintenance = threading.Thread(target=by_the_clock, args=(stop,))
    maintenance.start()
    steps, peaks, alive_sizes = options.seconds * 10, [], []
    for day in range(1, options.days + 1):
        sizes = []
        for _ in range(steps):
            due = time.monotonic() + options.seconds / steps
            session.sql(f"CALL arrive({options.commands // steps}, '{options.seconds} s')")
            sizes.append(int(session.value(SIZE)))
            time.sleep(max(due - time.monotonic(), 0))
        records, alive, vacuums = [int(session.value(query)) for query in (
            "SELECT count(*) FROM idem_record",
            "SELECT count(*) FROM idem_record WHERE expires_at > clock_timestamp()",
            "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'idem_record'")]
        peaks.append(max(sizes) / 1e6)
        alive_sizes.append(live * alive / options.commands / 1e6)
        print(f"day {day}: {alive} of {records} records are alive, at most {peaks[-1]:.1f} MB,"
              f" {peaks[-1] / alive_sizes[-1]:.2f} times what lives; {vacuums} autovacuums so far", flush=True)
    stop.set()
    maintenance.join()
    # on the first day nothing expires yet
    full_days = list(zip(peaks, alive_sizes))[1:]
    worst = max(full_days, key=lambda day: day[0] / day[1])
    print(f"at most {worst[0] / worst[1]:.2f} times what lives")
    days = range(1, options.days + 1)
    figures.add_series("P9", "largest size of the day", days, peaks)
    figures.add_series("P9", "what lives", days, alive_sizes)
    for what, pairs in ((f"each of {options.days} days of churn", full_days), ("the worst of them", [worst])):
        figures.add("P9", f"largest size on {what}", "what lives", "MB", *zip(*pairs), at_most=1.3)


if __name__ == "__main__":
    main()
