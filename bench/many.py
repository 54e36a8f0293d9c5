"""Many atomic claims in one transaction: time, memory, and the lock table."""
from session import ServerError, Session

COUNT, PART = 10_000, 1000
SHOWN = (1, 2, 4, 8, 10)        # thousands
CLAIM = ("INSERT INTO tickets SELECT n, idem_claim('shop-1', 'many', n::text,"
         " '{{}}') FROM generate_series({}, {}) AS n")
COMPLETE = ("SELECT idem_complete(ticket, '{{}}') FROM tickets"
            " WHERE n BETWEEN {} AND {}")


def memory(session):
    """Bytes in use in the backend's memory contexts, by name."""
    rows = session.sql("SELECT name, sum(used_bytes)"
                       " FROM pg_backend_memory_contexts GROUP BY 1")
    return {rows.get_value(row, 0).decode(): int(rows.get_value(row, 1))
            for row in range(rows.ntuples)}


def thousands(session, statement):
    """CPU per claim in each thousand."""
    costs = []
    for start in range(0, COUNT, PART):
        cpu = session.cpu_us()
        session.sql(statement.format(start, start + PART - 1))
        costs.append((session.cpu_us() - cpu) / PART)
    return costs


def print_costs(name, costs):
    print(f"  {name:28}"
          + "".join(f"{costs[thousand - 1]:9.1f}" for thousand in SHOWN))


def print_memory(when, before, after):
    sizes = {name: (size - before.get(name, 0)) / COUNT
             for name, size in after.items()}
    names = [f"{name} {size:.0f}" for name, size
             in sorted(sizes.items(), key=lambda item: -item[1]) if size >= 1]
    print(f"  memory per claim, {when}: {sum(sizes.values()):.0f} bytes"
          + (f" ({', '.join(names)})" if names else ""))


def report_linear():
    """All claims first, then all completions: the most that can be open."""
    session = Session()
    session.sql("CREATE UNLOGGED TABLE tickets (n integer PRIMARY KEY,"
                " ticket idem_ticket)")
    session.sql("BEGIN")            # caches are not what is counted
    session.sql(CLAIM.format(-10, -1))
    session.sql(COMPLETE.format(-10, -1))
    session.sql("COMMIT")

    session.sql("BEGIN")
    before = memory(session)
    claims = thousands(session, CLAIM)
    claimed = memory(session)
    completions = thousands(session, COMPLETE)
    completed = memory(session)
    session.sql("COMMIT")
    after = memory(session)

    print(f"  {'CPU µs each, the thousand to':28}"
          + "".join(f"{thousand * PART:>9}" for thousand in SHOWN))
    print_costs("idem_claim", claims)
    print_costs("idem_complete", completions)
    print_memory("claimed", before, claimed)
    print_memory("completed", before, completed)
    print_memory("committed", before, after)


def report_full():
    """Claims until the lock table is full; the session must survive it."""
    session = Session()
    session.prepare(claim="SELECT (idem_claim('shop-1', 'full', $1)).outcome")
    slots = int(session.value(
        "SELECT current_setting('max_locks_per_transaction')::int"
        " * (current_setting('max_connections')::int"
        " + current_setting('max_prepared_transactions')::int)"))
    session.sql("BEGIN")
    try:
        for claims in range(3 * slots):
            session.run("claim", b"%d" % claims)
        raise RuntimeError(f"{claims} claims held with {slots} lock slots")
    except ServerError as error:
        print(f"  a lock table of {slots} slots refuses claim {claims + 1}:")
        for line in str(error).splitlines():
            print(f"    {line}")
    session.sql("ROLLBACK")
    session.sql("SELECT idem_complete(idem_claim('shop-1', 'full', '0'))")
