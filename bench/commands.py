"""New commands: CPU, WAL and bytes of each variant, in interleaved rounds."""
import statistics
import uuid

import figures
from session import Session

TENANT, OPERATION = b"shop-1", b"order.create"
REQUEST = (b'{"customer": "c-20417", "total": "59.70", "currency": "EUR",'
           b' "items": [{"sku": "A-100", "quantity": 2, "price": "19.90"},'
           b' {"sku": "B-7", "quantity": 1, "price": "19.90"}]}')

ORDER = ("INSERT INTO orders (customer, total, items)"
         " VALUES (($1::jsonb)->>'customer', (($1::jsonb)->>'total')::numeric,"
         " ($1::jsonb)->'items') RETURNING id")


class Variant:
    """A way to run one command."""
    search_path = "public"

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
    """Called in FROM, as the others are: to read columns of a result costs a
    function scan, which is none of idempotency's business."""
    name = "no idempotency"
    statements = {"command": "SELECT 'execute', response"
                             " FROM plain_order($1, $2, $3, $4) AS response"}


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
    search_path, table = "rival, public", "command"
    statements = {"command": "SELECT outcome, response"
                             " FROM place_order($1, $2, $3, $4)"}


class RivalBare(Rival):
    name = "the same, no expires index"
    search_path = "bare, public"


class RivalOnce(Rival):
    """Works first, claims last: of two at once one is undone by an error."""
    name = "hand-written, one insert"
    search_path = "once, public"
    statements = {"command": "SELECT outcome, response"
                             " FROM place_order_once($1, $2, $3, $4)"}


class Execute(Protected):
    name = "idem_execute"
    table = "idem_record"
    statements = {"command": "SELECT outcome, response FROM idem_execute("
                             "$1, $2, $3, $4, 'handle_order(jsonb)')"}


class Claim(Protected):
    name = "idem_claim + idem_complete"
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
    search_path = Rival.search_path
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


def count_orders(session):
    return int(session.value("SELECT count(*) FROM orders"))


def run(rounds, batch):
    """Returns the two groups, each led by its baseline and its rival."""
    groups = [[Plain(), Rival(), RivalBare(), RivalOnce(), Execute(), Claim()],
              [PlainStatements(), RivalStatements(), ClaimStatements()]]
    variants = sum(groups, [])
    admin = Session()
    orders = count_orders(admin)
    for variant in variants:
        if isinstance(variant, Protected):
            variant.check()
        for _ in range(100):        # past custom plans and cold caches
            variant.command(str(uuid.uuid4()).encode())
        variant.session.wal()
    for number in range(rounds):
        for variant in variants:
            variant.measure(batch)
        # Autovacuum is off; dead rows of the rival shall not pile up for ever.
        if number % 20 == 0:
            admin.sql("VACUUM")
            admin.wal()
    made = count_orders(admin) - orders
    commands = (len(variants) * (100 + rounds * batch)
                + sum(isinstance(variant, Protected) for variant in variants))
    if made != commands:
        raise RuntimeError(f"{commands} commands made {made} orders")
    return groups


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
          f"{'extra':>9}{'ratio':>9}")
    for variant in group:
        line = (f"  {variant.name:28}"
                f"{statistics.median(variant.records):9.1f}"
                f"{variant.wal_median:9.0f}")
        if variant is not plain:
            extra = variant.wal_median - plain.wal_median
            line += (f"{extra:9.0f}"
                     f"{extra / (rival.wal_median - plain.wal_median):9.2f}")
        print(line)
    print()


def note(groups):
    """P1 and P2: what each costs more than no idempotency."""
    (plain, rival, _, once, *ours), (client_plain, client_rival, client_ours) = groups
    beside = [(mine, plain, theirs, plain) for mine in ours for theirs in (rival, once)]
    beside.append((client_ours, client_plain, client_rival, client_plain))
    beside.append((ours[0], plain, client_rival, client_plain))
    for number, unit, limit in (("P1", "µs", 0.5), ("P2", "B", 0.6)):
        for mine, base, theirs, their_base in beside:
            values = [one.cpu if number == "P1" else one.wal for one in (mine, theirs, base, their_base)]
            figures.add(number, f"{'CPU' if number == 'P1' else 'WAL'} of {mine.name}", theirs.name, unit,
                        values[0], values[1], base=values[2], their_base=values[3],
                        at_most=None if theirs is once else limit)
