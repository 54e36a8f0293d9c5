"""The wire: carries every message between one process and the systems it talks to, and kills the process at one.

Every request and its answer is counted, SQL and HTTP alike.  To the outside a
process is what it sends and what it learns; so with N requests there are 2 N
points at which its death makes a difference: before request n has arrived,
and after the system has acted on it but before the process knows.
"""

import os
import re
import select
import selectors
import signal
import socket
from typing import NamedTuple

PATIENCE_S = 20


class Passage(NamedTuple):
    """What became of a process: its requests in order, its exit status, and whether it was killed here."""

    trace: list
    status: int
    killed: bool


def message_end(data, start):
    """Where the PostgreSQL message that starts there ends, or None while part of it is missing."""
    end = start + 1 + int.from_bytes(data[start + 1:start + 5], "big")
    return end if len(data) >= start + 5 and len(data) >= end else None


class Postgres:
    """Frames of the PostgreSQL protocol, version 3."""

    def __init__(self):
        self.connected = False

    def request(self, data):
        """Name of a whole request; None while part of it is missing; empty if it has no answer."""
        if not self.connected:
            if len(data) < 4 or len(data) < int.from_bytes(data[:4], "big"):
                return None
            self.connected = True
            return "connect"
        start, kind, name = 0, b"", "?"
        while start < len(data):
            end = message_end(data, start)
            if end is None:
                return None
            kind = data[start:start + 1]
            if kind == b"Q":
                name = self.name(data[start + 5:end - 1])
            elif kind == b"P":
                name = self.name(data[start + 5:end].split(b"\0")[1])
            start = end
        if kind == b"X":
            return ""
        return name if kind in (b"Q", b"S") else None

    @staticmethod
    def name(sql):
        """What people call the statement: the function of the extension, or its first three words."""
        sql = sql.decode()
        function = re.search(r"idem_\w+", sql)
        return function[0] if function else " ".join(sql.split()[:3])

    @staticmethod
    def answered(data):
        """Whether the server is ready for the next request."""
        start = 0
        while start < len(data):
            end = message_end(data, start)
            if end is None:
                return False
            if data[start:start + 1] == b"Z":
                return True
            start = end
        return False


class Http:
    """Frames of HTTP with Content-Length."""

    def request(self, data):
        if not self.answered(data):
            return None
        method, path = data.decode().split()[:2]
        return f"{method} /{re.split('[/?]', path)[1]}"

    @staticmethod
    def answered(data):
        head, gap, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return bool(gap) and len(body) >= (int(length[1]) if length else 0)


class Link:
    """A connection of the process, and the one behind it."""

    def __init__(self, client, upstream, frames):
        self.client, self.upstream, self.frames = client, upstream, frames
        self.data = b""

    def close(self):
        self.client.close()
        self.upstream.close()

    def answer(self):
        """What the system says to the request that it was just given; cut short where it hangs up."""
        data = b""
        self.upstream.settimeout(PATIENCE_S)
        while not self.frames.answered(data):
            more = self.upstream.recv(65536)
            if not more:
                break
            data += more
        return data


class Wire:
    """Listens in place of each system; carry() serves one process at a time."""

    def __init__(self, systems):
        """systems: {name: (frames, port)}, all on this machine."""
        self.listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in systems}
        self.systems = systems

    def port(self, name):
        return self.listeners[name].getsockname()[1]

    def carry(self, pid, point=None):
        """Until the process ends.  2 n - 1: killed with request n lost; 2 n: with its answer lost."""
        trace, links = [], []
        ended = os.pidfd_open(pid)
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for name, listener in self.listeners.items():
                selector.register(listener, selectors.EVENT_READ, name)
            ready = []
            while not any(key.fd == ended for key in ready):
                ready = [key for key, _ in selector.select(PATIENCE_S)]
                if not ready:
                    self.kill(pid)
                    raise TimeoutError(f"process silent for {PATIENCE_S} s after {trace}")
                for key in ready:
                    if isinstance(key.data, Link):
                        if not self.serve(key.data, trace, pid, point):
                            selector.unregister(key.data.client)
                            key.data.close()
                    elif key.data:
                        link = self.accept(key.data)
                        links.append(link)
                        selector.register(link.client, selectors.EVENT_READ, link)
        for link in links:
            link.close()
        os.close(ended)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Passage(trace, status, status == -signal.SIGKILL)

    def accept(self, name):
        client, _ = self.listeners[name].accept()
        frames, port = self.systems[name]
        return Link(client, socket.create_connection(("127.0.0.1", port)), frames())

    def serve(self, link, trace, pid, point):
        """Passes on what has come; whether the link goes on."""
        more = link.client.recv(65536)
        link.data += more
        name = link.frames.request(link.data) if more else ""
        if not name:
            return name is None
        trace.append(name)
        if point == 2 * len(trace) - 1:
            self.kill(pid)
            return False
        link.upstream.sendall(link.data)
        link.data = b""
        answer = link.answer()
        if point == 2 * len(trace):
            self.kill(pid)
            return False
        try:
            link.client.sendall(answer)
        except ConnectionError:
            return False  # it did not wait for the answer
        return True

    @staticmethod
    def kill(pid):
        """kill -9, and until it is really dead."""
        pidfd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        select.select([pidfd], [], [])
        os.close(pidfd)
