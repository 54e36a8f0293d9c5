"""All figures of one server in one run; see README.md beside it."""
import argparse
import pathlib

import batches
import beside_redis
import commands
import loops
import many
import replays
import stored
import throughput
import waiters
from session import Session

HERE = pathlib.Path(__file__).parent


def create(admin):
    admin.sql("CREATE EXTENSION idempotency")
    admin.sql((HERE / "business.sql").read_text())
    admin.sql((HERE / "ours.sql").read_text())
    for schema in ("rival", "bare", "once"):
        admin.sql(f"CREATE SCHEMA {schema}")
        admin.sql(f"SET search_path = {schema}, public")
        admin.sql((HERE / "rival.sql").read_text())
    admin.sql("DROP INDEX bare.command_expires_at")
    admin.wal()


def new_commands(options):
    groups = commands.run(options.rounds, options.batch)
    print("New commands, one statement each")
    commands.report(groups[0])
    loops.report(options.rounds, options.batch)
    print("New commands, three statements between BEGIN and COMMIT")
    commands.report(groups[1])
    commands.note(groups)


def size(options):
    print("Stored")
    stored.report(options.records)


def completed(options):
    print("Completed keys")
    clients = [number for number in options.clients if number in (1, 16)]
    replays.report(replays.run(options.rounds, options.turns, clients, options.seconds), clients)


def waiting(options):
    print("Waiting for an owner")
    waiters.run(options.turns * 5)


def batch(options):
    print("Batches")
    batches.run(options.turns * 3)


def flushed(options):
    print("New commands, each commit flushed")
    throughput.report(throughput.run(options.turns, options.clients, options.seconds), options.clients)


def redis(options):
    print("Redis")
    beside_redis.run(options.turns * 3)


def open_claims(_):
    print("Many claims in one transaction")
    many.report_linear()
    many.report_full()


PARTS = {"commands": new_commands, "stored": size, "replays": completed, "waiters": waiting,
         "batches": batch, "throughput": flushed, "redis": redis, "many": open_claims}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS),
                        help="what to measure (default all)")
    parser.add_argument("--rounds", type=int, default=60,
                        help="rounds of new commands (default 60)")
    parser.add_argument("--batch", type=int, default=200,
                        help="commands of a variant in a round (default 200)")
    parser.add_argument("--records", type=int, default=50_000,
                        help="to store (default 50000)")
    parser.add_argument("--turns", type=int, default=5,
                        help="that clients and their like take (default 5)")
    parser.add_argument("--seconds", type=int, default=1,
                        help="length of one pgbench run (default 1)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 32],
                        help="numbers of clients (default 1 4 16 32)")
    options = parser.parse_args()

    admin = Session()
    for database in stored.WAYS.values():
        admin.sql(f"CREATE DATABASE {database}")
        create(Session(database=database))
    create(admin)
    print(f"{admin.value('SELECT version()').split(' (')[0]},"
          f" {options.rounds} rounds of {options.batch} commands;"
          " ratio = share of the line in the same table that is 1.00\n")
    for part in options.parts:
        PARTS[part](options)


if __name__ == "__main__":
    main()
