"""PostgreSQL servers on hosts of their own: a primary and its standbys."""

import os
import subprocess
import time

import psycopg

PORT = 5499


def wait_until(question, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"timed out: {what}")
        time.sleep(0.05)
    return answer


class Server:
    def __init__(self, name, host, folder, bindir, common):
        self.name, self.host, self.bindir = name, host, bindir
        self.data = f"{folder}/{name}"
        self.socket = f"{folder}/{name}.socket"
        self.log = f"{folder}/{name}.log"
        os.mkdir(self.socket)
        os.chmod(self.socket, 0o777)
        self.common = common + f"""
listen_addresses = '*'
port = {PORT}
unix_socket_directories = '{self.socket}'
cluster_name = '{name}'
wal_log_hints = on
wal_keep_size = 1GB
hot_standby = on
max_connections = 60
fsync = off
wal_receiver_timeout = 5s
wal_sender_timeout = 5s
wal_retrieve_retry_interval = 200ms
deadlock_timeout = 100ms
"""

    def tool(self, name, *arguments, **options):
        return self.host.run(f"{self.bindir}/{name}", *arguments, **options)

    def create(self):
        self.tool("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync")
        self.write("postgresql.conf", self.common)
        self.write("pg_hba.conf", "host all all all trust\nhost replication all all trust\n")

    def write(self, name, text):
        with open(f"{self.data}/{name}", "a", encoding="utf-8") as file:
            file.write(text)

    def start(self):
        """After a kill -9 it has to wait until the last backend is gone."""
        wait_until(lambda: self.tool("pg_ctl", "-D", self.data, "-l", self.log, "-w", "-s", "start",
                                     check=False).returncode == 0, f"start of {self.name}", 15)

    def stop(self, mode="fast"):
        self.tool("pg_ctl", "-D", self.data, "-m", mode, "-w", "-s", "stop", check=False)

    def kill(self):
        """kill -9 of the postmaster and of all its children."""
        with open(f"{self.data}/postmaster.pid", encoding="ascii") as file:
            postmaster = int(file.readline())
        children = subprocess.run(["pgrep", "-P", str(postmaster)], capture_output=True,
                                  text=True, check=False).stdout.split()
        for pid in [postmaster] + [int(child) for child in children]:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass

    def local(self):
        """A session on its own host, whatever the network does."""
        return psycopg.connect(f"host={self.socket} port={PORT} user=postgres dbname=postgres",
                               autocommit=True)

    def value(self, query):
        with self.local() as db:
            return db.execute(query).fetchone()[0]

    def follow(self, primary):
        """What a standby needs to know; its data come from elsewhere."""
        self.write("postgresql.auto.conf",
                   f"primary_conninfo = 'host={primary.host.address} port={PORT} user=postgres"
                   f" application_name={self.name} connect_timeout=2'\n")
        self.write("standby.signal", "")

    def clone(self, primary):
        self.tool("pg_basebackup", "-D", self.data, "-h", primary.host.address, "-p", str(PORT),
                  "-U", "postgres", "-c", "fast", "--no-sync")
        self.write("postgresql.conf", self.common)
        self.follow(primary)

    def rewind(self, primary):
        """Comes back as a standby of the one that took its place."""
        self.tool("pg_rewind", "-D", self.data, "--no-sync", "--source-server",
                  f"host={primary.host.address} port={PORT} user=postgres dbname=postgres")
        self.write("postgresql.conf", self.common)
        self.follow(primary)

    def synchronous(self, names):
        with self.local() as db:
            db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            db.execute("SELECT pg_reload_conf()")

    def promote(self):
        with self.local() as db:
            db.execute("SELECT pg_promote(true, 30)")
            db.execute("CHECKPOINT")    # pg_rewind reads the timeline from the control file
