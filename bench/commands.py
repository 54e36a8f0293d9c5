"""New commands: CPU, WAL and bytes of each variant, in interleaved rounds."""
import statistics
import uuid

from session import Session

TENANT, OPERATION = b"shop-1", b"order.create"
REQUEST = (b'{"customer": "c-20417", "total": "59.70", "currency": "EUR",'
           b' "items": [{"sku": "A-100", "quantity": 2, "price": "19.90"},'
           b' {"sku": "B-7", "quantity": 1, "price": "19.90"}]}')

ORDER = ("INSERT INTO orders (customer, total, items)"
         " VALUES (($1::jsonb)->>'customer', (($1::jsonb)->>'total')::numeric,"
         " ($1::jsonb)->'items') RETURNING id")


class Variant:
    """A way to run one command: its statements, and where its records go."""
    search_path = "public"
    table = None

    def __init__(self, database="postgres"):
        self.session = Session(self.search_path, database)
        self.session.prepare(**self.statements)
        self.cpu, self.wal, self.records = [], [], []

    def measure(self, count):
        keys = [str(uuid.uuid4()).encode() for _ in range(count)]
        wal, cpu = self.session.wal(), self.session.cpu_us()
        for key in keys:
            self.command(key)
        cpu = self.session.cpu_us() - cpu
        bytes_, records, images = [after - before for before, after
                                   in zip(wal, self.session.wal())]
        if images:
            raise RuntimeError(f"{self.name}: {images} full-page images;"
                               " somebody else wrote, or a checkpoint came")
        self.cpu.append(cpu / count)
        self.wal.append(bytes_ / count)
        self.records.append(records / count)

    def stored(self):
        """Bytes per record, in table, indexes and TOAST."""
        return float(self.session.value(
            f"SELECT pg_total_relation_size('{self.table}')::float8"
            f" / count(*) FROM {self.table}"))

    def expect(self, result, outcome):
        if result.get_value(0, 0) != outcome:
            raise RuntimeError(f"{self.name}: {result.get_value(0, 0)!r}"
                               f" instead of {outcome!r}")
        return result


class OneCall(Variant):
    """One statement is one command and one transaction."""
    def command(self, key, request=REQUEST, outcome=b"execute"):
        return self.expect(self.session.run("command", TENANT, OPERATION, key,
                                            request), outcome)


class Plain(OneCall):
    name = "no idempotency"
    statements = {"command":
                  "SELECT 'execute', plain_order($1, $2, $3, $4)"}


class Protected(OneCall):
    def check(self):
        """The two things a rival could save CPU by not doing."""
        key = str(uuid.uuid4()).encode()
        first = self.command(key)
        again = self.command(key, outcome=b"replay")
        if again.get_value(0, 1) != first.get_value(0, 1):
            raise RuntimeError(f"{self.name}: replayed another response")
        self.command(key, REQUEST.replace(b"c-20417", b"c-20418"),
                     b"mismatch")


class Rival(Protected):
    name = "hand-written PL/pgSQL"
    search_path, table = "rival, public", "rival.command"
    statements = {"command": "SELECT outcome, response"
                             " FROM place_order($1, $2, $3, $4)"}


class RivalBare(Rival):
    name = "the same, no expires index"
    search_path, table = "bare, public", "bare.command"


class Execute(Protected):
    name = "idem_execute"
    table = "idem_record"
    statements = {"command": "SELECT outcome, response FROM idem_execute("
                             "$1, $2, $3, $4, 'handle_order(jsonb)')"}


class Claim(Protected):
    name = "idem_claim + idem_complete"
    table = "idem_record"
    statements = {"command": "SELECT outcome, response"
                             " FROM claim_order($1, $2, $3, $4)"}


class Statements(Variant):
    """The client does the work between BEGIN and COMMIT."""
    def __init__(self):
        self.statements = {"begin": "BEGIN", "order": ORDER,
                           "commit": "COMMIT", **self.statements}
        super().__init__()

    def order(self):
        """Inserts the order; returns the stored answer's two fields."""
        order = self.session.run("order", REQUEST).get_value(0, 0)
        return (b'{"order" : %s, "status" : "created"}' % order,
                b"order/%s" % order)


class PlainStatements(Statements):
    name = "no idempotency"
    statements = {}

    def command(self, key):
        self.session.run("begin")
        self.order()
        self.session.run("commit")


class RivalStatements(Statements):
    name = "hand-written SQL"
    search_path, table = Rival.search_path, Rival.table
    statements = {
        "claim": "INSERT INTO command (created_at, tenant, operation, key,"
                 " state, fingerprint)"
                 " VALUES (now(), $1, $2, $3, 'processing', sha256(convert_to(($4::jsonb)::text, 'UTF8')))"
                 " ON CONFLICT (tenant, operation, key) DO NOTHING"
                 " RETURNING 'execute'",
        "complete": "UPDATE command SET state = 'succeeded',"
                    " completed_at = clock_timestamp(), response = $4,"
                    " expires_at = clock_timestamp() + interval '24 hours',"
                    " code = 201, resource = $5"
                    " WHERE tenant = $1 AND operation = $2 AND key = $3"}

    def command(self, key):
        self.session.run("begin")
        self.expect(self.session.run("claim", TENANT, OPERATION, key, REQUEST),
                    b"execute")
        response, resource = self.order()
        self.session.run("complete", TENANT, OPERATION, key, response,
                         resource)
        self.session.run("commit")


class ClaimStatements(Statements):
    name = "idem_claim, idem_complete"
    table = "idem_record"
    statements = {
        "claim": "SELECT outcome, token FROM idem_claim($1, $2, $3, $4)",
        "complete": "SELECT idem_complete($1, $2, $3, $4, $5, 201, $6)"}

    def command(self, key):
        self.session.run("begin")
        claim = self.expect(self.session.run("claim", TENANT, OPERATION, key,
                                             REQUEST), b"execute")
        response, resource = self.order()
        self.session.run("complete", TENANT, OPERATION, key,
                         claim.get_value(0, 1), response, resource)
        self.session.run("commit")


def run(rounds, batch):
    """Returns the two groups, each led by its baseline and its rival."""
    groups = [[Plain(), Rival(), RivalBare(), Execute(), Claim()],
              [PlainStatements(), RivalStatements(), ClaimStatements()]]
    variants = sum(groups, [])
    admin = Session()
    for variant in variants:
        if isinstance(variant, Protected):
            variant.check()
        for _ in range(100):        # past custom plans and cold caches
            variant.command(str(uuid.uuid4()).encode())
        variant.session.wal()
    vacuum_at = 1
    for number in range(1, rounds + 1):
        for variant in variants:
            variant.measure(batch)
        # As autovacuum's defaults do: whenever a fifth has come to a table.
        if number >= vacuum_at:
            admin.sql("VACUUM")
            admin.wal()
            vacuum_at = 1.2 * number
    for variant in variants:
        variant.bytes = variant.table and variant.stored()
    orders = int(admin.value("SELECT count(*) FROM orders"))
    commands = (len(variants) * (100 + rounds * batch)
                + sum(isinstance(variant, Protected) for variant in variants))
    if orders != commands:
        raise RuntimeError(f"{commands} commands made {orders} orders")
    return groups


def report_pinned(database, count=20_000):
    """Bytes per record where an old snapshot forbids to clean up."""
    reader = Session(database=database)
    reader.sql("BEGIN ISOLATION LEVEL REPEATABLE READ")
    reader.sql("SELECT 1")
    rival, ours = Rival(database), Execute(database)
    for variant in (rival, ours):
        for _ in range(count):
            variant.command(str(uuid.uuid4()).encode())
        print(f"  stored while an old snapshot is open, {variant.name}:"
              f" {variant.stored():.0f}"
              f" ({variant.stored() / rival.stored():.2f})")
    reader.sql("COMMIT")
    print()


def report(group):
    """Each variant's cost, its extra over the first line, and that extra as
    a share of the second line's, the rival's."""
    plain, rival = group[:2]
    for variant in group:
        variant.cpu_min = min(variant.cpu)
        variant.wal_median = statistics.median(variant.wal)

    print(f"  {'server CPU, µs per command':28}{'min':>9}{'median':>9}"
          f"{'extra':>9}{'ratio':>9}{'median':>9}")
    for variant in group:
        line = (f"  {variant.name:28}{variant.cpu_min:9.1f}"
                f"{statistics.median(variant.cpu):9.1f}")
        if variant is not plain:
            extra = variant.cpu_min - plain.cpu_min
            by_round = [(mine - base) / (theirs - base) for mine, base, theirs
                        in zip(variant.cpu, plain.cpu, rival.cpu)]
            line += (f"{extra:9.1f}"
                     f"{extra / (rival.cpu_min - plain.cpu_min):9.2f}"
                     f"{statistics.median(by_round):9.2f}")
        print(line)

    print(f"\n  {'WAL per command':28}{'records':>9}{'bytes':>9}"
          f"{'extra':>9}{'ratio':>9}{'stored':>9}{'ratio':>9}")
    for variant in group:
        line = (f"  {variant.name:28}"
                f"{statistics.median(variant.records):9.1f}"
                f"{variant.wal_median:9.0f}")
        if variant is not plain:
            extra = variant.wal_median - plain.wal_median
            line += (f"{extra:9.0f}"
                     f"{extra / (rival.wal_median - plain.wal_median):9.2f}"
                     f"{variant.bytes:9.0f}"
                     f"{variant.bytes / rival.bytes:9.2f}")
        print(line)
    print()
