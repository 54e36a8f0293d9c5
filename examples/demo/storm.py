"""Runs order services and their clients as processes, kills them, and says what became of the orders.

usage: storm.py [--seed SEED]

First two short storms with services that have no idempotency keys, as a
control: without duplicates there, none with keys would prove nothing.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import psycopg

import report
from journal import Reader

HERE = os.path.dirname(os.path.abspath(__file__))
INTERPRETERS = {"py": sys.executable, "js": shutil.which("node")}
PATIENCE_S = 100


class Process:
    """A process of the demo that can be killed and started again with the same arguments."""

    def __init__(self, kind, language, name, journal, **options):
        self.kind, self.name = kind, name
        self.command = [INTERPRETERS[language], f"{HERE}/{kind}.{language}",
                        "--name", name, "--journal", journal]
        for option, value in options.items():
            self.command += [f"--{option.replace('_', '-')}", str(value)]
        self.start()

    def start(self):
        self.handle = subprocess.Popen(self.command, env={**os.environ, "PGAPPNAME": self.name})

    def kill(self):
        """kill -9; the pid, or None where there was no process to kill."""
        if self.handle.poll() is not None:
            return None
        self.handle.send_signal(signal.SIGKILL)
        return self.handle.pid if self.handle.wait() == -signal.SIGKILL else None

    def finished(self):
        """Whether a client has done its work.  Whatever else ends by itself is an error."""
        status = self.handle.poll()
        if status is not None and (status != 0 or self.kind == "service"):
            sys.exit(f"{self.name} ended by itself with status {status}")
        return status is not None


def listened_on(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports(count, chance):
    """Ports below those that the kernel gives to outgoing connections, which could take them."""
    ports = []
    while len(ports) < count:
        port = chance.randrange(10000, 30000)
        if port not in ports and not listened_on(port):
            ports.append(port)
    return ports


class Storm:
    """One storm: services in four ways or all in one, two clients per customer, and the plan of kills."""

    KINDS = ("service", "client", "session")

    def __init__(self, title, seed, orders, kills, call=None):
        self.title, self.orders = title, orders
        self.customers = ("acme", "globex")
        self.chance = random.Random(f"{seed} {title}")
        self.plan = [kind for kind, n in zip(self.KINDS, kills) for _ in range(n)]
        self.chance.shuffle(self.plan)
        self.killed = {kind: [] for kind in self.KINDS}
        self.services, self.clients, self.faults = [], [], []
        self.journal = tempfile.mkdtemp(prefix="journal.")
        self.seed = seed
        self.call = call

    def start(self):
        ways = [("js", "order_execute", "0"), ("js", "client", "2 s"),
                ("py", "client", "0"), ("py", "order_claim", "2 s")]
        self.services = [
            Process("service", language, f"service-{port}-{language}", self.journal, port=port,
                    call=self.call or call, wait=wait, lose=0.05, seed=f"{self.seed} {port}")
            for port, (language, call, wait) in zip(free_ports(4, self.chance), ways)]
        ports = [service.command[service.command.index("--port") + 1] for service in self.services]
        for port in ports:
            self.wait_for(port)
        self.clients = [
            Process("client", language, f"client-{customer}-{language}", self.journal,
                    customer=customer, orders=self.orders, ports=",".join(ports), burst=4,
                    hang_up=0.1, alter=0 if self.call else 0.3, seed=f"{self.seed} {customer}")
            for customer in self.customers for language in ("py", "js")]

    def wait_for(self, port):
        until = time.monotonic() + 20
        while not listened_on(int(port)):
            if time.monotonic() > until:
                sys.exit(f"no service listens on port {port}")
            time.sleep(0.02)

    def strike(self, kind, database):
        """Kills one of a kind in the middle of something.  Whether there was one."""
        if kind == "session":
            busy = database.execute("SELECT pid FROM pg_stat_activity WHERE state <> 'idle'"
                                    " AND application_name LIKE 'service-%' ORDER BY pid").fetchall()
            victim = self.chance.choice(busy) if busy else None
            if not victim or not database.execute("SELECT pg_terminate_backend(%s)", victim).fetchone()[0]:
                return False
            self.killed[kind].append(victim)
            return True
        living = [p for p in (self.services if kind == "service" else self.clients)
                  if p.handle.poll() is None]
        victim = self.chance.choice(living) if living else None
        pid = victim and victim.kill()
        if pid:
            self.killed[kind].append((victim.name, pid))
            victim.start()
        return bool(pid)

    def finished(self):
        """Whether all clients are; the services are asked as well, as none of them may be."""
        over = [process.finished() for process in self.services + self.clients]
        return all(over[len(self.services):])

    def run(self, database):
        """The nth of N kills comes when n/(N+1) of the acknowledgements are there: as many on any machine."""
        begin = spoken = time.monotonic()
        wanted = len(self.clients) * self.orders
        reader, plan, acknowledged = Reader(self.journal), list(self.plan), 0
        while not self.finished():
            acknowledged += sum(line["event"] == "acknowledged" for line in reader.news())
            due = (len(self.plan) - len(plan) + 1) / (len(self.plan) + 1) * wanted
            if plan and acknowledged >= due and self.strike(plan[0], database):
                plan.pop(0)
            now = time.monotonic()
            if now - spoken > 1:
                spoken = now
                print(f"  {now - begin:4.0f} s: {acknowledged}/{wanted} acknowledgements, "
                      + ", ".join(f"{len(self.killed[kind])} {kind}s killed" for kind in self.KINDS),
                      flush=True)
            if now - begin > PATIENCE_S:
                self.faults.append(f"not over after {PATIENCE_S} s")
                break
            time.sleep(0.01)
        if plan:
            self.faults.append(f"over before everything was killed: {plan} left")
        print(f"  {time.monotonic() - begin:4.0f} s: over", flush=True)

    def stop(self, database):
        """Ends all processes, and waits for what their sessions are still at."""
        for process in self.services + self.clients:
            process.handle.kill()
            process.handle.wait()
        until = time.monotonic() + 20
        while database.execute("SELECT FROM pg_stat_activity"
                               " WHERE application_name LIKE 'service-%'").fetchone() is not None:
            if time.monotonic() > until:
                sys.exit("sessions of the services do not end")
            time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=os.environ.get("SEED") or str(random.SystemRandom().randrange(10**6)))
    seed = parser.parse_args().seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))

    database = psycopg.connect(autocommit=True)
    database.execute("CREATE EXTENSION idempotency")
    for script in (f"{HERE}/../order.sql", f"{HERE}/schema.sql"):
        with open(script, encoding="utf-8") as file:
            database.execute(file.read())

    print(f"seed {seed} (again: SEED={seed} make demo)")
    storms = [Storm("plain insert", seed, 30, (1, 1, 1), "order_insert"),
              Storm("look, then insert", seed, 30, (1, 1, 1), "order_look_insert"),
              Storm("with keys", seed, 200, (15, 15, 10))]
    columns, faults = [], []
    for storm in storms:
        print(f"storm: {storm.title}, {len(storm.customers) * storm.orders} orders", flush=True)
        database.execute("TRUNCATE orders RESTART IDENTITY")
        try:
            storm.start()
            storm.run(database)
        finally:
            storm.stop(database)
        figures, wrong = report.examine(storm, database)
        columns.append(figures)
        faults += [f"{storm.title}: {fault}" for fault in storm.faults + wrong]

    print(report.table([storm.title for storm in storms], columns))
    for fault in faults[:20]:
        print("FAULT", fault)
    print(f"FAILED: {len(faults)} faults" if faults else "Every order was placed exactly once.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
