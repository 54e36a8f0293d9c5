"""All figures in one run, on a fresh cluster; see README.md beside it."""
import argparse
import pathlib

import commands
import loops
import many
import replays
from session import Session

HERE = pathlib.Path(__file__).parent


def create(admin):
    admin.sql("CREATE EXTENSION idempotency")
    admin.sql((HERE / "business.sql").read_text())
    admin.sql((HERE / "ours.sql").read_text())
    for schema in ("rival", "bare"):
        admin.sql(f"CREATE SCHEMA {schema}")
        admin.sql(f"SET search_path = {schema}, public")
        admin.sql((HERE / "rival.sql").read_text())
    admin.sql("DROP INDEX bare.command_expires_at")
    admin.wal()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200,
                        help="rounds of new commands (default 200)")
    parser.add_argument("--batch", type=int, default=200,
                        help="commands of a variant in a round (default 200)")
    parser.add_argument("--seconds", type=int, default=1,
                        help="length of one pgbench run (default 1)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16],
                        help="numbers of replaying clients (default 1 4 16)")
    options = parser.parse_args()

    admin = Session()
    admin.sql("CREATE DATABASE pinned")
    create(admin)
    create(Session(database="pinned"))
    print(f"{admin.value('SELECT version()').split(' (')[0]},"
          f" {options.rounds} rounds of {options.batch} commands;"
          " ratio = share of the line in the same table that is 1.00\n")
    print("New commands, one statement each", flush=True)
    groups = commands.run(options.rounds, options.batch)
    commands.report(groups[0])
    loops.report(options.rounds, options.batch)
    print("New commands, three statements between BEGIN and COMMIT")
    commands.report(groups[1])
    commands.report_pinned("pinned")
    print("Completed keys", flush=True)
    replays.report(replays.run(options.rounds, options.clients,
                               options.seconds), options.clients)
    print("Many claims in one transaction", flush=True)
    many.report_linear()
    many.report_full()


if __name__ == "__main__":
    main()
