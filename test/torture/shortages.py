"""Faults of their own kind: what is short, set wrong, or replaced under the clients' feet."""

import contextlib
import glob
import mmap
import os
import re
import resource
import shutil
import struct
import subprocess
import time

import psycopg

from faults import Faults

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
VOLUME = "/mnt"                 # in a mount namespace of our own: a tmpfs of VOLUME_MB
VOLUME_MB = 96


class DiskFull(Faults):
    """The volume with all tables is full, again and again."""

    errors = {"53100"}
    needs_volume = True

    def prepare(self):
        super().prepare()
        os.makedirs(f"{VOLUME}/tables", exist_ok=True)
        if not self.db.execute("SELECT FROM pg_tablespace WHERE spcname = 'small'").fetchall():
            self.db.execute(f"CREATE TABLESPACE small LOCATION '{VOLUME}/tables'")
        self.db.execute("ALTER DATABASE postgres SET default_tablespace = small")
        self.connect()

    def disturb(self):
        if self.rng.random() < 0.8:
            super().disturb()
            return
        self.counts["disk full"] += 1
        try:
            self.fill(self.rng.choice((0, 8192, 100000)))
            with contextlib.suppress(psycopg.Error):
                self.press()
            time.sleep(self.rng.uniform(0.1, 0.6))
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{VOLUME}/ballast")
        self.connect()

    def press(self):
        """Makes somebody ask for room."""

    @staticmethod
    def fill(left):
        """Writes until nothing is left but so many bytes."""
        with open(f"{VOLUME}/ballast", "wb", buffering=0) as ballast:
            with contextlib.suppress(OSError):
                while ballast.write(b"x" * 65536) == 65536:
                    pass
            ballast.truncate(max(0, ballast.tell() - left))


class WalFull(DiskFull):
    """The same with the write-ahead log there, too: the server stops itself, and comes back."""

    settings = ("min_wal_size = 32MB", "max_wal_size = 48MB", "wal_recycle = off")
    excuse = "No space left on device"

    def reshape(self):
        wal = os.environ["DATA"] + "/pg_wal"
        if not os.path.islink(wal):
            shutil.move(wal, f"{VOLUME}/wal")
            os.symlink(f"{VOLUME}/wal", wal)

    def press(self):
        self.db.execute("SELECT pg_switch_wal()")


class LocksFull(Faults):
    """Other locks fill the lock table, but for a few."""

    settings = ("max_locks_per_transaction = 10", "max_connections = 30")
    errors = {"53200"}

    def disturb(self):
        if self.rng.random() < 0.7:
            super().disturb()
            return
        self.counts["lock table full"] += 1
        try:
            with contextlib.suppress(psycopg.errors.OutOfMemory):
                self.db.execute("SELECT pg_advisory_lock(i) FROM generate_series(1, 100000) i")
            self.db.execute("SELECT pg_advisory_unlock(i) FROM generate_series(1, %s) i",
                            (self.rng.randrange(40),))
            time.sleep(self.rng.uniform(0.02, 0.3))
        finally:
            with contextlib.suppress(psycopg.OperationalError):
                self.db.execute("SELECT pg_advisory_unlock_all()")


class MemoryFull(Faults):
    """Now and then the memory of a backend may not grow; some answers are large."""

    errors = {"53200", "58P01"}     # the second where a library cannot be loaded
    large = 300_000
    bound = None                    # the backend whose memory is limited

    def disturb(self):
        self.free()
        if self.rng.random() < 0.4:
            super().disturb()
            return
        pid, = self.db.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'client %'"
            " AND state <> 'starting' ORDER BY random() LIMIT 1").fetchone() or (None,)
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                size = int(file.read().split()[0]) * mmap.PAGESIZE
            limit = size + self.rng.choice((0, 200_000, 1_000_000))
            resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            self.bound = pid
            self.counts["memory limit"] += 1

    def free(self):
        if self.bound:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self.bound, resource.RLIMIT_AS,
                                 (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.bound = None

    restore = free


class ClockJumps(Faults):
    """The server's clock jumps, and each client has a time of its own."""

    one_clock = False
    BACK_S = 1                      # the server's own timeouts wait for a clock that went back

    def prepare(self):
        scratch = os.environ["SCRATCH"]
        library, file = f"{scratch}/clock.so", f"{scratch}/clock"
        if not os.path.exists(library):
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library,
                            f"{HERE}/clock.c"], check=True)
            with open(file, "wb") as offset:
                offset.write(struct.pack("q", 3600 * 10 ** 6))
        self.environment = {"LD_PRELOAD": library, "CLOCK_OFFSET": file}
        with open(file, "r+b") as offset:
            self.offset = mmap.mmap(offset.fileno(), 8)
        self.latest = 0
        super().prepare()

    def jump(self, seconds):
        now = struct.unpack("q", self.offset)[0] + int(seconds * 1e6)
        self.latest = max(now, self.latest)
        self.offset[:] = struct.pack("q", now)

    def disturb(self):
        if self.rng.random() < 0.6:
            super().disturb()
            return
        self.counts["clock jumps"] += 1
        self.jump(self.rng.choice((-1, 1)) * self.rng.choice((0.02, 0.2, self.BACK_S)))
        if self.rng.random() < 0.05:
            self.jump(60)

    def restore(self):
        self.offset[:] = struct.pack("q", self.latest + int(self.BACK_S * 1e6))


class Dropped(Faults):
    """The extension is dropped and created."""

    # Where it is not, or not any more; and what nobody can know of another one.  The server says
    # 0A000 of a driver's prepared statement whose result was of a type that was dropped.
    errors = {"42883", "42P01", "42704", "55000", "3F000", "40P01", "ID002", "ID003", "22023",
              "ID001", "0A000", "meets DROP"}
    compared = False

    def disturb(self):
        if self.rng.random() < 0.3:
            self.counts["drop and create"] += 1
            # a prepared transaction may be in the way
            self.db.execute("SET lock_timeout = '200ms';" + self.schema + self.policies)
        else:
            super().disturb()


class Updated(Faults):
    """The extension is of an older version when the clients begin, and then updated.

    After that, it is updated again and again between two versions that differ in nothing:
    every function is replaced, and an index made again."""

    errors = {"40P01"}
    # until it is of this version
    early_errors = {"42883", "42703", "42704", "42P01", "55000", "0A000", "meets DROP"}
    version = None

    def prepare(self):
        with open(f"{TOP}/idempotency.control", encoding="utf-8") as control:
            self.version = re.search(r"default_version *= *'(.*)'", control.read())[1]
        old, new = os.environ["IDEM_DESTDIR"], os.environ["SCRATCH"] + "/versions"
        if not os.path.exists(new):
            shutil.copytree(old, new)
            self.add_versions(os.path.dirname(
                glob.glob(f"{new}/**/idempotency.control", recursive=True)[0]), self.version)
        with open(f"{old}/server.conf", encoding="utf-8") as conf:
            self.settings = conf.read().replace(old, new).splitlines()
        super().prepare()

    @staticmethod
    def add_versions(folder, version):
        new = f"{folder}/idempotency--{version}.sql"
        old = f"{TOP}/test/upgrade/idempotency--0.9.sql"
        shutil.copy(old, folder)
        script = subprocess.run(
            [f"{TOP}/src/upgrade/draft", old, new, f"{TOP}/test/upgrade/before.sql",
             f"{TOP}/test/upgrade/after.sql"], check=True, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL).stdout
        with open(new, encoding="utf-8") as file:
            functions = re.findall(r"^CREATE FUNCTION.*?(?:;$|^\$\$;$|^END;$)(?=\nREVOKE|\nCOMMENT)",
                                   file.read(), re.M | re.S)
        again = "\n".join(["DROP INDEX @extschema@.idem_event_address;",
                           "CREATE INDEX idem_event_address ON @extschema@.idem_event"
                           " (tenant, operation, key);"]
                          + [one.replace("CREATE", "CREATE OR REPLACE", 1) for one in functions])
        for step, text in ((f"0.9--{version}", script), (f"{version}--next", again),
                           (f"next--{version}", again)):
            with open(f"{folder}/idempotency--{step}.sql", "w", encoding="utf-8") as file:
                file.write(text)

    def create(self):
        self.db.execute(self.schema.replace("CREATE EXTENSION idempotency",
                                            "CREATE EXTENSION idempotency VERSION '0.9'"))

    def disturb(self):
        if self.rng.random() < 0.9:
            super().disturb()
            return
        self.db.execute("SET lock_timeout = '200ms'")
        version, = self.db.execute("SELECT extversion FROM pg_extension"
                                   " WHERE extname = 'idempotency'").fetchone()
        to = "next" if version == self.version else self.version
        self.db.execute(f"ALTER EXTENSION idempotency UPDATE TO '{to}';"
                        + (self.policies if version == "0.9" else ""))
        if version == "0.9":
            self.mark()
        self.counts["update"] += 1

    def restore(self):
        self.db.execute(f"ALTER EXTENSION idempotency UPDATE TO '{self.version}'")


# The log stays where WalFull has brought it: that is the last one.
KINDS = {"none": Faults, "locks": LocksFull, "memory": MemoryFull, "clock": ClockJumps,
         "drop": Dropped, "update": Updated, "disk": DiskFull, "wal": WalFull}
