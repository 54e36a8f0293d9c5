"""Instructions of commands and replays, and where they go; see README.md beside it."""
import argparse
import os
import pathlib
import re
import subprocess

import figures
from commands import OPERATION, REQUEST, TENANT
from session import Session

HERE = pathlib.Path(__file__).parent
ADDRESS = f"'{TENANT.decode()}', '{OPERATION.decode()}'"

# name, what a loop does with a key; keys of replays were completed before
WORK = {
    "no idempotency": f"PERFORM plain_order({ADDRESS}, key, request)",
    "hand-written PL/pgSQL": f"PERFORM rival.place_order({ADDRESS}, key, request)",
    "hand-written, one insert": f"PERFORM rival.place_order_once({ADDRESS}, key, request)",
    "idem_execute": f"PERFORM idem_execute({ADDRESS}, key, request, 'handle_order(jsonb)')",
    "idem_claim + idem_complete": f"PERFORM claim_order({ADDRESS}, key, request)",
}
REPLAYS = {
    "nothing": "NULL",
    "SELECT by primary key": "PERFORM c.state, c.response FROM rival.command c"
                             f" WHERE (c.tenant, c.operation, c.key) = ({ADDRESS}, n::text)",
    "SELECT, request compared":
        "PERFORM c.state, c.response, c.expires_at > clock_timestamp(),"
        " c.fingerprint = sha256(convert_to(request::text, 'UTF8')) FROM rival.command c"
        f" WHERE (c.tenant, c.operation, c.key) = ({ADDRESS}, n::text)",
    "idem_replay": f"PERFORM outcome, response FROM idem_replay({ADDRESS}, n::text, request)",
    "idem_claim": f"PERFORM outcome, response FROM idem_claim({ADDRESS}, n::text, request)",
}
ORDERS = "SELECT count(*) FROM orders"
FIRST = 50                      # calls that read catalogs and make plans
SEARCH_PATH = "SET search_path = public, rival"
LOOP = """
CREATE PROCEDURE {name}(times integer) LANGUAGE plpgsql AS $$
DECLARE
	request jsonb := '{request}';
	key text;
BEGIN
	FOR n IN 1..times LOOP
		key := gen_random_uuid();
		{work};
		COMMIT;
	END LOOP;
END $$"""

# what a reader may want to know of the server's own
SERVER = {"heap_insert", "btinsert", "index_getnext_slot", "LockAcquireExtended", "LockRelease", "XLogInsert",
          "CommitTransactionCommand", "GetSnapshotData", "jsonb_in", "pg_strong_random", "heap_form_tuple",
          "pg_cryptohash_update", "pg_cryptohash_final", "heap_toast_insert_or_update", "fmgr_info_cxt",
          "ExecEvalFieldSelect", "lookup_rowtype_tupdesc", "SPI_execute_plan_with_paramlist", "RelationGetIndexList",
          "relation_open", "index_open", "index_insert", "index_beginscan", "index_rescan", "index_endscan"}


def procedure(name):
    return re.sub("[^a-z]+", "_", f"loop_{name.lower()}")


def create(session, commands):
    session.sql("CREATE EXTENSION idempotency")
    for path, schema in (("business.sql", "public"), ("ours.sql", "public"), ("rival.sql", "rival")):
        session.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        session.sql(f"SET search_path = {schema}, public")
        session.sql((HERE / path).read_text())
    session.sql(SEARCH_PATH)
    for work, prefix in ((WORK, ""), (REPLAYS, "replay ")):
        for name, what in work.items():
            session.sql(LOOP.format(name=procedure(prefix + name), request=REQUEST.decode(), work=what))
    for function in ("place_order", "claim_order"):
        for first in range(1, commands, 1000):
            session.sql(f"SELECT {function}({ADDRESS}, n::text, '{REQUEST.decode()}')"
                        f" FROM generate_series({first}, {first + 999}) AS n")
    # every index some pages deep
    for name in WORK:
        session.sql(f"CALL {procedure(name)}(10000)")
    session.sql("VACUUM ANALYZE")
    session.sql("CHECKPOINT")


def callgrind(name, times):
    """Instructions of a backend that runs the loop, by function, its callees' included."""
    out = pathlib.Path(os.environ["SCRATCH"], "callgrind.out")
    ran = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
         os.path.join(os.environ["PG_BINDIR"], "postgres"), "--single", "-D", os.environ["DATA"], "postgres"],
        input=f"{SEARCH_PATH}\nCALL {procedure(name)}({FIRST})\nCALL {procedure(name)}({times})\n",
        check=True, capture_output=True, text=True)
    if "ERROR:" in ran.stderr:
        raise RuntimeError(ran.stderr)
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out],
                          check=True, capture_output=True, text=True).stdout
    counts = {}
    for count, function in re.findall(r"^\s*([\d,]+) \([^)]*\)\s+\S*?:(\w+)(?:'\d+)? \[", text, re.M):
        counts[function] = max(counts.get(function, 0), int(count.replace(",", "")))
    counts["in all"] = int(re.search(r"^\s*([\d,]+) .*PROGRAM TOTALS", text, re.M)[1].replace(",", ""))
    return counts


def per_command(name, commands):
    """What a longer run costs more, by function."""
    few, many = callgrind(name, commands // 4), callgrind(name, commands)
    return {function: (count - few.get(function, 0)) / (commands - commands // 4) for function, count in many.items()}


def report(title, work, prefix, rival, commands, limit):
    print(f"  {title:36}{'in all':>10}{'extra':>10}{'ratio':>8}")
    counts = {name: per_command(prefix + name, commands) for name in work}
    base = next(iter(counts.values()))["in all"]
    theirs = counts[rival]["in all"] - base
    for name, functions in counts.items():
        extra = functions["in all"] - base
        print(f"  {name:36}{functions['in all']:10.0f}{extra:10.0f}{extra / theirs:8.2f}", flush=True)
        if name.startswith("idem"):
            figures.add("P4" if prefix else "P1", f"instructions of {prefix}{name}", rival, "", [extra], [theirs],
                        at_most=limit)
    return counts


def print_functions(name, functions):
    own = {match for path in (HERE.parent / "src").glob("*.c")
           for match in re.findall(r"^(\w+)\(", path.read_text(), re.M)}
    print(f"\n  {name}: instructions, those of callees included")
    for function, count in sorted(functions.items(), key=lambda item: -item[1]):
        if function in SERVER | own and count > functions["in all"] / 200:
            print(f"  {count:10.0f}  {function}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=1000, help="of a loop (default 1000)")
    options = parser.parse_args()
    session = Session()
    create(session, options.commands)
    orders = int(session.value(ORDERS))
    server("-m", "fast", "stop")
    new = report("instructions of a command", WORK, "", "hand-written PL/pgSQL", options.commands, 0.5)
    old = report("instructions of a replay", REPLAYS, "replay ", "SELECT, request compared", options.commands, None)
    print_functions("idem_execute", new["idem_execute"])
    print_functions("replay by idem_claim", old["idem_claim"])
    server("-l", os.environ["SERVER_LOG"], "-w", "start")
    # two loops of each, and their first calls
    expected = len(WORK) * (options.commands + options.commands // 4 + 2 * FIRST)
    made = int(Session().value(ORDERS)) - orders
    if made != expected:
        raise RuntimeError(f"{made} orders instead of {expected}")


def server(*arguments):
    subprocess.run(["pg_ctl", "-D", os.environ["DATA"], "-s", *arguments], check=True)


if __name__ == "__main__":
    main()
