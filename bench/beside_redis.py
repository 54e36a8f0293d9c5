"""Redis, SET NX EX and GET over loopback, beside a call of ours over loopback.

They do not promise the same: see docs/performance.md.
"""
import contextlib
import os
import socket
import statistics
import subprocess
import tempfile
import time
import uuid

import figures
from commands import OPERATION, ORDER, REQUEST, TENANT
from session import Session

TTL = b"86400"
LOCALHOST = "127.0.0.1"


class Redis:
    """A server of our own, its log flushed as `fsync` says, and one connection."""

    def __init__(self, fsync):
        with socket.socket() as probe:
            probe.bind((LOCALHOST, 0))
            port = probe.getsockname()[1]
        self.folder = tempfile.TemporaryDirectory(dir=os.environ["SCRATCH"])
        self.process = subprocess.Popen(
            ["redis-server", "--bind", LOCALHOST, "--port", str(port), "--dir", self.folder.name,
             "--appendonly", "yes", "--appendfsync", fsync, "--save", ""], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.socket = socket.create_connection((LOCALHOST, port))
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words)
                            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        line = self.answers.readline()
        if line[:1] != b"$":
            return line[1:-2]
        return None if line == b"$-1\r\n" else self.answers.read(int(line[1:]) + 2)[:-2]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class RedisAlone:
    """A key that is taken, and then answered with; nothing is done."""

    def __init__(self, fsync):
        self.name, self.redis = f"Redis alone, appendfsync {fsync}", Redis(fsync)

    def command(self, key):
        """(was it new, the answer)"""
        if self.redis.send(b"SET", key, b"processing", b"NX", b"EX", TTL) != b"OK":
            return False, self.redis.send(b"GET", key)
        response = self.work()
        if self.redis.send(b"SET", key, response, b"XX", b"EX", TTL) != b"OK":
            raise RuntimeError("a key is gone")
        return True, response

    def work(self):
        return b'{"order" : 1, "status" : "created"}'

    def stop(self):
        self.redis.stop()


class RedisAndOrder(RedisAlone):
    """The order is made in between, by a statement that commits by itself."""

    def __init__(self, fsync, commit):
        super().__init__(fsync)
        self.name = f"Redis and an order, {fsync}"
        self.session = Session(host=LOCALHOST, commit=commit)
        self.session.prepare(order=ORDER)

    def work(self):
        return b'{"order" : %s, "status" : "created"}' % self.session.run("order", REQUEST).get_value(0, 0)


class Execute:
    def __init__(self, commit):
        self.name = f"idem_execute, commit {commit}"
        self.session = Session(host=LOCALHOST, commit=commit)
        self.session.prepare(command="SELECT outcome, response FROM"
                                     " idem_execute($1, $2, $3, $4, 'handle_order(jsonb)')")

    def command(self, key):
        result = self.session.run("command", TENANT, OPERATION, key, REQUEST)
        return result.get_value(0, 0) == b"execute", result.get_value(0, 1)

    def stop(self):
        pass


def turn(way, count):
    """Microseconds of a new command and of the same one given again."""
    keys = [str(uuid.uuid4()).encode() for _ in range(count)]
    times = []
    for new in (True, False):
        began = time.perf_counter()
        answers = [way.command(key) for key in keys]
        times.append((time.perf_counter() - began) / count * 1e6)
        if new:
            first = answers
        if [answer[0] for answer in answers] != [new] * count or [a[1] for a in answers] != [a[1] for a in first]:
            raise RuntimeError(f"{way.name}: not what was expected of {'new' if new else 'known'} keys")
    return times


def run(rounds, count=200):
    with contextlib.ExitStack() as stack:
        pairs = []
        for fsync, commit in (("always", "on"), ("everysec", "off")):
            pairs.append([Execute(commit), RedisAlone(fsync), RedisAndOrder(fsync, commit)])
        ways = sum(pairs, [])
        for way in ways:
            stack.callback(way.stop)
            turn(way, 50)
            way.times = []
        for _ in range(rounds):
            for way in ways:
                way.times.append(turn(way, count))
    print(f"  {'µs, one client over TCP':36}{'new':>9}{'again':>9}")
    for ours, *others in pairs:
        for way in (ours, *others):
            new, again = zip(*way.times)
            print(f"  {way.name:36}{statistics.median(new):9.0f}{statistics.median(again):9.0f}")
            if way is not ours:
                our_new, our_again = zip(*ours.times)
                figures.add("P11", f"{ours.name}, new", way.name, "µs", our_new, new)
                figures.add("P11", f"{ours.name}, again", way.name, "µs", our_again, again)
    print(flush=True)
