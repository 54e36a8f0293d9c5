"""What happens to the server and to its sessions while clients are at work."""

import collections
import os
import random
import signal
import subprocess
import time

import psycopg

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

    def __init__(self, seed, create=None):
        self.create = create            # SQL that drops and creates the extension
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

    @staticmethod
    def start():
        """The orphans of a killed postmaster may still be there: then it is tried again."""
        while subprocess.run(["pg_ctl", "-D", os.environ["DATA"], "-l", os.environ["SERVER_LOG"],
                              "-s", "-w", "start"], check=False, stdin=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode:
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
        if self.create:
            if self.rng.random() < 0.3:
                self.counts["drop and create"] += 1
                # a prepared transaction may be in the way
                self.db.execute(f"SET lock_timeout = '200ms'; {self.create}")
        elif self.rng.random() < 0.1:
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
