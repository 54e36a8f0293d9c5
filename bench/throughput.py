"""New commands a second of many clients, each commit flushed to the disk."""
import statistics

import figures
from commands import OPERATION, ORDER, REQUEST, TENANT
from pgbench import Script, measure
from session import Session

CALL = "SELECT {}(:tenant, :operation, gen_random_uuid()::text, :request{})"
ORDER_LINE = ORDER.replace("$1", ":request")
# name, script, where its records go; the first of the same form is the base
ONE_CALL = [
    ("no idempotency", CALL.format("plain_order", ""), None),
    ("hand-written PL/pgSQL", CALL.format("rival.place_order", ""), "rival.command"),
    ("idem_execute", CALL.format("idem_execute", ", 'handle_order(jsonb)'"), "idem_record"),
    ("idem_claim + idem_complete", CALL.format("claim_order", ""), "idem_record"),
]
STATEMENTS = [
    ("no idempotency, statements", f"BEGIN;\n{ORDER_LINE};\nCOMMIT", None),
    ("idem_claim, idem_complete", f"""BEGIN;
SELECT uuid, token FROM gen_random_uuid() AS uuid,
    idem_claim(:tenant, :operation, uuid::text, :request) WHERE outcome = 'execute' \\gset
{ORDER_LINE} \\gset
SELECT idem_complete(:tenant, :operation, :uuid, :token::bigint, json_build_object('order', :id::bigint), 201);
COMMIT""", "idem_record"),
]


def count(session, table):
    return int(session.value(f"SELECT count(*) FROM {table}"))


def run(rounds, clients, seconds):
    admin = Session()
    values = {"tenant": TENANT.decode(), "operation": OPERATION.decode(), "request": REQUEST.decode()}
    groups = [[Script(name, f"{text};\n" if not text.endswith("\\gset") else text, **values)
               for name, text, _ in group] for group in (ONE_CALL, STATEMENTS)]
    tables = ["orders", "rival.command", "idem_record"]
    before = {table: count(admin, table) for table in tables}
    done = measure(sum(groups, []), rounds, clients, seconds)
    made = {table: count(admin, table) - before[table] for table in tables}
    expected = dict.fromkeys(tables, 0)
    for script, (_, _, table) in zip(done, ONE_CALL + STATEMENTS):
        expected["orders"] += done[script]
        if table:
            expected[table] += done[script]
    if made != expected:
        raise RuntimeError(f"{made} rows were made by {expected} transactions")
    return groups


def report(groups, clients):
    heads = "".join(f"{f'by {number}':>12}{'ratio':>7}" for number in clients)
    print(f"  {'commands a second, by clients':30}{heads}")
    for plain, *others in groups:
        for script in (plain, *others):
            line = f"  {script.name:30}"
            for number in clients:
                rate = statistics.median(script.rates[number])
                line += f"{rate:10.0f}/s{rate / statistics.median(plain.rates[number]):7.2f}"
            print(line)
            figures.add_series("P10", script.name, clients,
                               [statistics.median(script.rates[number]) for number in clients])
        for script in others:
            if script.name.startswith("idem"):
                for number in clients:
                    figures.add("P10", f"{script.name}, clients: {number}", plain.name, "/s",
                                script.rates[number], plain.rates[number], at_least=0.9)
    print(flush=True)
