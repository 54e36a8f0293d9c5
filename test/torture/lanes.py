"""The systems that a partition is tried on: each has a client and a failover."""

import contextlib
import signal
import time

import psycopg

from cluster import PORT, Server, wait_until

SCHEMA = """
CREATE EXTENSION idempotency;
CREATE TABLE effect (key text NOT NULL, response text NOT NULL);
"""
GIVE_UP = 1.5           # seconds until a client stops waiting for an answer
PATIENCE = 10           # seconds until a standby has to know what was answered at first


class Postgres:
    """A primary, a standby to fail over to, and one more that follows it."""

    faults = (psycopg.Error, OSError)

    def __init__(self, title, durability, names, cancel=None, control=False):
        self.title, self.durability, self.names = title, durability, names
        self.cancel = cancel            # None, "ask again" or "believe"
        self.control = control

    # -- the servers -------------------------------------------------------

    def create(self, network, folder, bindir, conf):
        self.servers = [Server(name, host, folder, bindir, conf)
                        for name, host in zip("abc", network.hosts)]
        a, b, c = self.servers
        a.create()
        a.write("postgresql.conf", f"idempotency.durability = '{self.durability}'\n")
        a.start()
        for standby in (b, c):
            standby.clone(a)
            standby.start()
        a.synchronous(self.names)
        wait_until(lambda: a.value("SELECT count(*) FROM pg_stat_replication"
                                   " WHERE state = 'streaming'") == 2, "two standbys")
        with a.local() as db:
            db.execute(SCHEMA)
        wait_until(lambda: b.value("SELECT to_regclass('effect') IS NOT NULL"), "the schema")

    def standby_answers(self, key):
        """What the standby says before it is promoted, once it has heard of the key."""
        b, until = self.servers[1], time.monotonic() + PATIENCE
        with b.local() as db:
            outcome = "absent"
            while outcome == "absent" and time.monotonic() < until:
                outcome = db.execute("SELECT outcome FROM idem_replay('t', 'op', %s)",
                                     (key,)).fetchone()[0]
            try:
                db.execute("SELECT idem_claim('t', 'op', 'never')")
                return outcome, "claimed"
            except psycopg.Error as error:
                return outcome, error.sqlstate

    def fail_over(self):
        a, b, c = self.servers
        b.promote()
        with c.local() as db:
            db.execute(f"ALTER SYSTEM SET primary_conninfo = 'host={b.host.address} port={PORT}"
                       " user=postgres application_name=c connect_timeout=2'")
            db.execute("SELECT pg_reload_conf()")
        b.synchronous("c" if self.names else "")
        wait_until(lambda: b.value("SELECT count(*) FROM pg_stat_replication"
                                   " WHERE application_name = 'c' AND state = 'streaming'") == 1,
                   "c follows b")

    def crash_old(self):
        """kill -9 of the cut-off primary, and its restart."""
        a = self.servers[0]
        a.kill()
        time.sleep(0.2)
        a.start()

    def bring_back(self):
        a, b, _ = self.servers
        a.stop("immediate")
        a.host.heal()
        a.start()                   # pg_rewind wants a clean end
        a.stop("fast")
        wait_until(lambda: a.tool("pg_isready", "-h", b.host.address, "-p", str(PORT), "-t", "1",
                                  check=False).returncode == 0, "the way from a to b")
        a.rewind(b)
        a.start()
        wait_until(lambda: b.value("SELECT count(*) FROM pg_stat_replication"
                                   " WHERE application_name = 'a' AND state = 'streaming'") == 1,
                   "a follows b")

    def stop(self):
        for server in self.servers:
            server.stop("immediate")

    def ground(self):
        """key -> response, and the effects, as the new primary has them."""
        return self.ground_of(self.servers[1])

    @staticmethod
    def ground_of(server):
        with server.local() as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            records = dict(db.execute("SELECT key, response #>> '{}' FROM idem_record"
                                      " WHERE state = 'succeeded'"))
            effects = db.execute("SELECT key, response FROM effect").fetchall()
        return records, effects

    # -- a client ----------------------------------------------------------

    def connect(self, address, **options):
        db = psycopg.connect(host=address, port=PORT, user="postgres", dbname="postgres",
                             connect_timeout=1, tcp_user_timeout=1500, autocommit=True, **options)
        db.add_notice_handler(lambda diag: self.warnings.append(diag.sqlstate))
        self.warnings = []
        return db

    def command(self, db, key, response):
        """What the client may believe: (outcome, response); None: ask again."""
        self.warnings.clear()
        with deadline(db, self.cancel):
            db.execute("BEGIN")
            outcome, token, stored = db.execute(
                "SELECT outcome, token, response #>> '{}' FROM idem_claim('t', 'op', %s)",
                (key,)).fetchone()
            if outcome == "execute":
                db.execute("INSERT INTO effect VALUES (%s, %s)", (key, response))
                db.execute("SELECT idem_complete('t', 'op', %s, %s::bigint, to_json(%s::text))",
                           (key, token, response))
                stored = response
            db.execute("COMMIT")
        # "canceling wait for synchronous replication": nobody knows
        if outcome not in ("execute", "replay") or self.warnings and self.cancel != "believe":
            return None
        return outcome, stored

    def ask(self, db, key):
        """A replay: the response, or None."""
        self.warnings.clear()
        with deadline(db, self.cancel):
            outcome, stored = db.execute(
                "SELECT outcome, response #>> '{}' FROM idem_replay('t', 'op', %s)",
                (key,)).fetchone()
        if outcome != "replay" or self.warnings and self.cancel != "believe":
            return None
        return stored


@contextlib.contextmanager
def deadline(db, cancel):
    """The client waits no longer: it cancels the statement, or drops the connection."""
    def ring(*_):
        if cancel:
            db.cancel()
        else:
            raise TimeoutError
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, GIVE_UP, GIVE_UP)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
