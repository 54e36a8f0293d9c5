"""What happens to the server and to its sessions while clients are at work."""

import collections
import os
import random
import signal
import subprocess
import time

import psycopg

SETTINGS = "faults.conf"        # in the data directory, read by postgresql.conf
BROKEN = """
SELECT key, state, lease_until::text FROM idem_record
WHERE state = 'processing' AND (lease_until IS NULL OR NOT isfinite(lease_until))
UNION ALL
SELECT key, state, 'not listed by idem_stuck' FROM idem_record r
WHERE state = 'unknown' AND NOT EXISTS (
    SELECT FROM idem_stuck s WHERE s.intent IS NULL
        AND (s.tenant, s.operation, s.key) = (r.tenant, r.operation, r.key))
"""


class Faults:
    """Cancels and terminates sessions, kills processes of the server, stops and starts it."""

    settings = ()                   # lines of postgresql.conf
    errors = frozenset()            # what any call may end in
    early_errors = frozenset()      # the same, until mark() is called
    excuse = None                   # why the server may fail by itself
    large = 0                       # so many bytes some answers have
    needs_volume = False            # a small one, see shortages.py
    one_clock = True                # can times be compared?
    compared = True                 # can all histories be?

    def __init__(self, seed, folder, schema="", policies=""):
        """schema is SQL that drops and creates all that there is, but for the policies."""
        self.schema, self.policies = schema, policies
        self.folder = folder
        self.environment = {}           # of the server
        self.log_begin = os.path.getsize(os.environ["SERVER_LOG"])
        self.rng = random.Random(f"{seed} faults")
        self.counts = collections.Counter()
        self.broken = []                # what a look at the tables found in between
        self.db = None

    def connect(self):
        """Waits for the server; starts it, if nobody else will."""
        end = time.time() + 60
        while True:
            try:
                self.db = psycopg.connect(autocommit=True, application_name="faults")
                return
            except psycopg.OperationalError:
                if time.time() > end:
                    raise
                if not self.alive():
                    self.start()
                time.sleep(0.02)

    @staticmethod
    def postmaster():
        with open(os.environ["DATA"] + "/postmaster.pid", encoding="utf-8") as file:
            return int(file.readline())

    def alive(self):
        try:
            os.kill(self.postmaster(), 0)
            return True
        except (OSError, ValueError):
            return False

    def prepare(self):
        """Starts the server anew, with the settings and the environment of this kind."""
        self.db.close()
        self.stop("fast")
        self.reshape()
        with open(os.environ["DATA"] + "/" + SETTINGS, "w", encoding="utf-8") as conf:
            conf.write("\n".join((*self.settings, "")))
        self.start()
        self.connect()

    def reshape(self):
        """While the server is down."""

    def create(self):
        self.db.execute(self.schema + self.policies)

    def failures(self):
        """Lines of the log of this run that show that the server failed by itself."""
        with open(os.environ["SERVER_LOG"], encoding="utf-8", errors="replace") as log:
            log.seek(self.log_begin)
            lines = [line for line in log if "PANIC:" in line or "TRAP:" in line
                     or "terminated by signal" in line and "by signal 9" not in line]
        if self.excuse is None:
            return lines
        self.counts["PANIC"] = sum(self.excuse in line for line in lines)
        return [line for line in lines
                if self.excuse not in line and "signal 6: Aborted" not in line]

    def forget_prepared(self):
        for gid, in self.db.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
            self.db.execute(f"ROLLBACK PREPARED '{gid}'")

    def mark(self):
        """From now on nothing is allowed to end in one of the early errors."""
        with open(f"{self.folder}/marked", "w", encoding="utf-8"):
            pass

    def restore(self):
        """After the last fault."""

    def start(self):
        """The orphans of a killed postmaster may still be there: then it is tried again."""
        while subprocess.run(["pg_ctl", "-D", os.environ["DATA"], "-l", os.environ["SERVER_LOG"],
                              "-s", "-w", "start"], check=False, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             env={**os.environ, **self.environment}).returncode:
            time.sleep(0.1)

    def stop(self, mode):
        subprocess.run(["pg_ctl", "-D", os.environ["DATA"], "-s", "-w", "-m", mode, "stop"],
                       check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, seconds, kills, going):
        """Disturbs while going() says so, with so many kills spread over the time."""
        self.connect()
        begin = time.time()
        due = sorted(begin + self.rng.uniform(0, seconds) for _ in range(kills))
        while going():
            time.sleep(self.rng.uniform(0.02, 0.15))
            try:
                if due and time.time() >= due[0]:
                    due.pop(0)
                    self.kill()
                else:
                    self.disturb()
            except psycopg.Error:
                self.connect()

    def settle(self):
        """Waits until the last kill is over and done with."""
        steady = 0
        while steady < 10:
            try:
                self.db.execute("SELECT")
                steady += 1
                time.sleep(0.1)
            except psycopg.Error:
                self.connect()
                steady = 0

    def disturb(self):
        if self.compared and self.rng.random() < 0.1:
            self.broken += self.db.execute(BROKEN).fetchall()
            return
        how = self.rng.choice(("pg_cancel_backend", "pg_cancel_backend", "pg_terminate_backend"))
        self.counts[how] += self.db.execute(
            f"SELECT count({how}(pid)) FROM (SELECT pid FROM pg_stat_activity"
            " WHERE application_name LIKE 'client %' AND state <> 'starting'"
            " ORDER BY random() LIMIT 1) s").fetchone()[0]

    def kill(self):
        how, = self.rng.choices(("kill -9 backend", "kill -9 postmaster", "immediate stop",
                                 "fast stop"), (7, 3, 1, 1))
        self.counts[how] += 1
        if how == "kill -9 backend":
            pid, = self.db.execute(
                "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND (application_name LIKE 'client %' OR random() < 0.05)"
                " ORDER BY random() LIMIT 1").fetchone() or (None,)
            if pid:
                os.kill(pid, signal.SIGKILL)
        elif how == "kill -9 postmaster":
            os.kill(self.postmaster(), signal.SIGKILL)
            self.start()
        else:
            self.stop(how.split()[0])
            self.start()
        self.connect()
