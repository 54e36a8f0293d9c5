"""Bytes a record takes, while its table grows in three ways."""
import figures
import loops
from commands import Execute, Rival
from session import Session

# how the table grows, and the database it does so in
WAYS = {"never vacuumed": "unvacuumed", "vacuumed as it grows": "vacuumed", "an old snapshot open": "pinned"}


def bytes_per_record(variant):
    """In table, indexes and TOAST."""
    return float(variant.session.value(
        f"SELECT pg_total_relation_size('{variant.table}')::float8 / count(*) FROM {variant.table}"))


def grow(variant, records, vacuum):
    loops.prepare(variant)
    done = int(variant.session.value(f"SELECT count(*) FROM {variant.table}"))
    while done < records:
        # As autovacuum's defaults have it: whenever a fifth has come.
        step = min(max(done // 5, 1000), records - done)
        loops.repeat(variant, step)
        done += step
        if vacuum:
            variant.session.sql(f"VACUUM {variant.table}")
    if done != int(variant.session.value(f"SELECT count(*) FROM {variant.table}")):
        raise RuntimeError(f"{variant.name}: not {done} records")


def report(records):
    print(f"  {f'bytes per record, of {records}':28}{'rival':>9}{'ours':>9}{'ratio':>9}")
    for way, database in WAYS.items():
        reader = Session(database=database)
        if database == "pinned":
            reader.sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.sql("SELECT 1")
        rival, ours = Rival(database), Execute(database)
        for variant in (rival, ours):
            grow(variant, records, database == "vacuumed")
        mine, theirs = bytes_per_record(ours), bytes_per_record(rival)
        print(f"  {way:28}{theirs:9.0f}{mine:9.0f}{mine / theirs:9.2f}")
        figures.add("P3", f"bytes per record, {way}", rival.name, "B", [mine], [theirs], at_most=0.6)
    parts = ours.session.sql(
        "SELECT relname, pg_table_size(c.oid)::float8 / n"
        " FROM pg_class c, (SELECT count(*) AS n FROM idem_record) AS total"
        " WHERE c.oid = 'idem_record'::regclass OR c.oid IN"
        " (SELECT indexrelid FROM pg_index WHERE indrelid = 'idem_record'::regclass) ORDER BY 2 DESC")
    print("  ours: " + ", ".join(f"{parts.get_value(n, 0).decode()} {float(parts.get_value(n, 1)):.0f}"
                                 for n in range(parts.ntuples)) + "\n", flush=True)
