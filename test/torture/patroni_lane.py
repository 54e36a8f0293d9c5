"""A cluster that Patroni looks after: on each host a member of etcd, Patroni, and its server."""

import contextlib
import http.client
import json
import random
import subprocess
import sys

import psycopg

from cluster import PORT, Server, wait_until
from lanes import SCHEMA, Postgres

REST, ETCD, PEER = 8008, 2379, 2380
NAMES = "abc"
SECONDS = {"ttl": 15, "loop_wait": 1, "retry_timeout": 5}
PARAMETERS = {
    "wal_keep_size": "1GB",
    "max_connections": 200,             # sessions that wait for a standby stay until it comes
    "fsync": "off",
    "wal_sender_timeout": "5s",
    "wal_receiver_timeout": "5s",
    "wal_retrieve_retry_interval": "200ms",
    "deadlock_timeout": "100ms",
}
PATIENCE = 300          # seconds, for a machine with more to do than it can
# Through etcd3 a Patroni older than this takes the lock from its successor when it wakes up late.
ETCD3_SINCE = [3, 0, 3]
TRUST = ["local all all trust", "host all all all trust", "host replication all all trust"]


def says(address, path):
    """Does the Patroni at this address say yes?"""
    connection = http.client.HTTPConnection(address, REST, timeout=1)
    try:
        connection.request("GET", f"/{path}")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def etcd_section():
    """By which of its interfaces Patroni has to use etcd."""
    version = subprocess.run(["patroni", "--version"], check=True, capture_output=True,
                             text=True).stdout.split()[-1]
    numbers = [int(number) for number in version.split(".")[:3]]
    return "etcd3" if numbers >= ETCD3_SINCE else "etcd"


class Node(Server):
    """One host; its server is started and stopped by Patroni only."""

    def __init__(self, name, host, folder, bindir, conf):
        super().__init__(name, host, folder, bindir, conf)
        self.folder, self.processes = folder, {}
        self.conf = f"{folder}/{name}.conf"         # what Patroni would not let through
        self.settings = f"{folder}/{name}.yml"
        with open(self.conf, "w", encoding="utf-8") as file:
            file.write(conf)

    def launch(self, name, *command):
        with open(f"{self.folder}/{self.name}.{name}.log", "w", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(
                self.host.command(*command), stdout=log, stderr=log)

    def start_etcd(self, hosts):
        here = self.host.address
        self.launch("etcd", "etcd", "--name", self.name,
                    "--data-dir", f"{self.folder}/{self.name}.etcd",
                    "--enable-v2", "--listen-client-urls", f"http://0.0.0.0:{ETCD}",
                    "--advertise-client-urls", f"http://{here}:{ETCD}",
                    "--listen-peer-urls", f"http://{here}:{PEER}",
                    "--initial-advertise-peer-urls", f"http://{here}:{PEER}",
                    "--initial-cluster", ",".join(f"{name}=http://{host.address}:{PEER}"
                                                  for name, host in zip(NAMES, hosts)))

    def start_patroni(self, hosts, dynamic):
        here = self.host.address
        settings = {
            "scope": "idem",
            "name": self.name,
            "restapi": {"listen": f"0.0.0.0:{REST}", "connect_address": f"{here}:{REST}"},
            etcd_section(): {"hosts": [f"{host.address}:{ETCD}" for host in hosts]},
            "bootstrap": {
                "dcs": dynamic,
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "no-sync"],
            },
            "postgresql": {
                "listen": f"*:{PORT}",
                "connect_address": f"{here}:{PORT}",
                "data_dir": self.data,
                "bin_dir": self.bindir,
                "pgpass": f"{self.folder}/{self.name}.pgpass",
                "custom_conf": self.conf,
                "parameters": {"unix_socket_directories": self.socket},
                "pg_hba": TRUST,
                "authentication": {"superuser": {"username": "postgres", "password": "x"},
                                   "replication": {"username": "postgres", "password": "x"}},
                "basebackup": ["no-sync"],
            },
            "watchdog": {"mode": "off"},
        }
        with open(self.settings, "w", encoding="utf-8") as file:
            json.dump(settings, file)               # which is YAML, too
        self.launch("patroni", "patroni", self.settings)

    def says(self, path):
        """Asked on the host itself, whatever the network does."""
        return self.host.run(sys.executable, "-c", "import http.client, sys\n"
                             f"it = http.client.HTTPConnection('127.0.0.1', {REST}, timeout=1)\n"
                             f"it.request('GET', '/{path}')\n"
                             "sys.exit(it.getresponse().status != 200)",
                             check=False).returncode == 0

    def signal(self, number):
        self.processes["patroni"].send_signal(number)

    def is_primary(self):
        return self.in_recovery() is False

    def is_standby(self):
        return self.in_recovery() is True

    def in_recovery(self):
        with contextlib.suppress(psycopg.Error):
            return self.value("SELECT pg_is_in_recovery()")
        return None

    def restart_by_hand(self):
        """kill -9 of the server and its restart, while Patroni looks away."""
        self.kill()
        self.start()

    def remove(self):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.stop("immediate")


class Patroni(Postgres):
    def __init__(self, title, durability, dynamic, control=False):
        super().__init__(title, durability, "", None, control)
        self.dynamic, self.nodes = dynamic, []

    def create(self, network, folder, bindir, conf):
        hosts = network.hosts
        self.nodes = [Node(name, host, folder, bindir, conf) for name, host in zip(NAMES, hosts)]
        parameters = {**PARAMETERS, "idempotency.durability": self.durability}
        dynamic = {**SECONDS, **self.dynamic,
                   "postgresql": {"use_pg_rewind": True, "parameters": parameters}}
        for node in self.nodes:
            node.start_etcd(hosts)
        for node in self.nodes:
            node.start_patroni(hosts, dynamic)
        with self.wait_healthy().local() as db:
            db.execute(SCHEMA)

    # -- what Patroni makes of it ------------------------------------------

    def leader(self, *but):
        """Who holds the lock and says so, or None."""
        for node in self.nodes:
            if node not in but and node.says("primary") and node.is_primary():
                return node
        return None

    def wait_leader(self, *but):
        """A leader that takes commands; the others of the cluster may be missing."""
        return wait_until(lambda: self.leader(*but), "a leader", PATIENCE)

    def wait_healthy(self):
        """Two standbys follow the leader, one of them synchronous where it has to be."""
        def healthy():
            leader = self.leader()
            with contextlib.suppress(psycopg.Error):
                if leader and leader.value("SELECT count(*) FROM pg_stat_replication"
                                           " WHERE state = 'streaming'") == 2 and (
                        not self.dynamic["synchronous_mode"]
                        or any(node.says("sync") for node in self.nodes)):
                    return leader
            return None
        return wait_until(healthy, "a leader and two standbys", PATIENCE)

    def switch_over(self):
        old = self.wait_leader()
        old.host.run("patronictl", "-c", old.settings, "switchover", "idem",
                     "--leader", old.name, "--force")
        return old, self.wait_leader(old)

    def stop(self):
        for node in self.nodes:
            node.remove()

    def ground(self):
        return self.ground_of(self.wait_leader())

    # -- a client ----------------------------------------------------------

    def reach(self, seed, number, addresses):
        """A client's way: to whom Patroni calls the leader, or to any server that takes writes."""
        rng = random.Random(f"{seed} way {number}")

        def reach(db, at):
            if db is not None:
                return db, at
            for now in rng.sample(range(len(addresses)), len(addresses)):
                if number % 2 and not says(addresses[now], "primary"):
                    continue
                with contextlib.suppress(psycopg.OperationalError):
                    return self.connect(addresses[now], target_session_attrs="read-write"), now
            raise OSError("no leader")
        return reach
