"""Bytes per record: days of commands, each day's swept the day after."""
import argparse

from session import Session

DAY = 1_000_000                 # commands
YEAR = 365

# A day: its commands are made while yesterday's expire, are swept and vacuumed.
SETUP = """
CREATE PROCEDURE day(size integer, n integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		PERFORM idem_complete(
			idem_claim('shop-' || i % 100, 'order.create', gen_random_uuid()::text, '1', ttl => '1 us'),
			CASE WHEN size > 0 THEN to_json(substr(
				(SELECT string_agg(md5(random()::text), '') FROM generate_series(0, size / 32)), 1, size - 2)) END,
			201, 'order/' || i);
		IF i % 1000 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
	COMMIT;
END
$$;
"""
SIZE = "SELECT pg_total_relation_size('idem_record')"


def gb(size):
    return f"{size / 1e9:.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"


def measure(session, size, days, commands):
    """Bytes of a live record, and of a tombstone beside live ones."""
    session.sql("DROP EXTENSION IF EXISTS idempotency CASCADE")
    session.sql("CREATE EXTENSION idempotency")
    session.sql(f"CALL day({size}, {commands})")
    session.sql("VACUUM idem_record")
    live = int(session.value(SIZE))
    peaks = []
    # after two days the space of what was swept is there to be used again
    for _ in range(2 + days):
        # the new ones come before the old ones are swept, oldest first
        session.sql(f"CALL day({size}, {commands})")
        for _ in range(0, commands, 1000):
            session.sql("SELECT idem_sweep(1000)")
        # before vacuum, which cuts off now more, now less of what is free
        peaks.append(int(session.value(SIZE)))
        session.sql("VACUUM idem_record")
    return live / commands, (peaks[-1] - peaks[1]) / (days * commands)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=4, help="to measure the growth of (default 4)")
    parser.add_argument("--commands", type=int, default=10_000, help="a day (default 10000)")
    options = parser.parse_args()
    session = Session()
    session.sql("CREATE EXTENSION idempotency")
    session.sql(SETUP)
    print(f"A million commands a day, from {options.days} days of {options.commands};"
          " keys are UUIDs, responses do not compress\n")
    print("| response | live record | tombstone | ttl 1 day, tombstones for a year | ttl 7 days, tombstones for 30 days |")
    print("|---|---|---|---|---|")
    for size in (0, 200, 1000, 10000):
        live, tombstone = measure(session, size, options.days, options.commands)
        plans = [gb(DAY * (live * ttl + tombstone * kept)) for ttl, kept in ((1, YEAR), (7, 30))]
        print(f"| {size if size else 'none'}{' B' if size else ''} | {live:.0f} B | {tombstone:.0f} B |"
              f" {plans[0]} | {plans[1]} |", flush=True)


if __name__ == "__main__":
    main()
