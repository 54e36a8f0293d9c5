"""One function, called again and again with a fault at each point: what has to hold afterwards."""

import collections
import re
import threading

import psycopg
from psycopg import pq

from scenarios import ATOMIC, COMPLETE, REQUEST

MODES = ("top", "savepoint", "block", "cold", "cancel", "terminate", "timeout")

# After the first ones everything is in the caches; later faults must not leave so many bytes each.
# What a session knows of each operation's figures is bounded by idempotency.stat_operations.
WARM, ENOUGH, LEAK = 10, 60, 32
MEMORY = ("SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name IN"
          " ('TopMemoryContext', 'CacheMemoryContext') OR name ^@ 'idempotency'"
          " AND name <> 'idempotency figures'")


# What the extension makes of functions that report failure instead of throwing.
REPORTED = {"pg_strong_random": "XX000", "pg_cryptohash": "XX000", "EVP_Digest": "XX000", "EVP_MD": "53200"}


class Wrong(Exception):
    """Something is not as it must be after a fault."""


def same(what, is_now, should_be):
    if is_now != should_be:
        now = collections.Counter(is_now.split("\n"))
        then = collections.Counter(should_be.split("\n"))
        raise Wrong(f"{what}: {list(now - then)} instead of {list(then - now)}")


class Session:
    """A connection; what a statement answers is its rows as text, or an error's SQLSTATE."""

    def __init__(self):
        self.connection = psycopg.connect(autocommit=True)
        self.pid = self.connection.info.backend_pid
        self.error = ""
        self.points = 0
        self.faults = 0
        self.memory = None

    def ask(self, sql):
        try:
            result = self.connection.pgconn.exec_(sql.encode())
        except (MemoryError, psycopg.OperationalError):
            self.error = "the connection is gone"
            return "lost"
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK,
                             pq.ExecStatus.EMPTY_QUERY):
            self.error = ""
            return "\n".join("|".join(
                (result.get_value(row, column) or b"-").decode()
                for column in range(result.nfields)) for row in range(result.ntuples))
        self.error = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
        return (result.error_field(pq.DiagnosticField.SQLSTATE) or b"?").decode()

    def do(self, sql):
        """What has to succeed."""
        answer = self.ask(sql)
        if self.error:
            raise Wrong(f"{sql}: {answer} {self.error}")
        return answer

    def passed(self):
        """Where the fault was, or None; counts all points."""
        count, misplaced, where = self.do("SHOW inject.passed").split(" ", 2)
        self.points = int(count)
        if int(misplaced):
            raise Wrong(f"{misplaced} points where nothing may be thrown")
        return None if where == "nowhere" else where

    def fault(self):
        """After each: does memory stay with the session?"""
        self.faults += 1
        if self.faults not in (WARM, ENOUGH):
            return
        memory = int(self.do(MEMORY))
        if self.faults == WARM:
            self.memory = memory
        elif memory - self.memory > LEAK * (ENOUGH - WARM):
            raise Wrong(f"{ENOUGH - WARM} faults left {memory - self.memory} bytes in the session")

    def close(self):
        self.connection.close()


def plain(text, key):
    """Without what differs from one run to the next."""
    text = text.replace(key, "K")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+[+-]\d\d(:\d\d)?", "TIME", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UUID", text)
    text = re.sub(r'"created_by": "\d+"', '"created_by": "XID"', text)
    text = re.sub(r"\b\d\d:\d\d:\d\d(\.\d+)?", "SPAN", text)
    return re.sub(r"\b\d{12,}\b", "TOKEN", text)


class Run:
    """One scenario in one mode, fault after fault."""

    def __init__(self, campaign, scenario, mode):
        self.admin, self.blocker, self.main = campaign.admin, campaign.blocker, None
        self.campaign, self.scenario, self.mode = campaign, scenario, mode
        self.key = self.rows = self.kept = None
        self.expected = campaign.expected.get(scenario.name)

    def sql(self, *texts):
        return "; ".join(filter(None, texts)).replace("$K", self.key)

    def earlier(self, text):
        """The claim that is made before the call."""
        return text.replace("$K", f"earlier {self.key}")

    def seen(self):
        """What the session itself sees, and has."""
        return self.main.do(self.sql("SELECT concat_ws(E'\\n', kept(), rows_of('$K'))"))

    def locks(self):
        return self.admin.do(f"SELECT locks_of({self.main.pid})")

    def begin(self):
        scenario = self.scenario
        self.campaign.serial += 1
        self.key = f"k{self.campaign.serial:07d}"
        setup = [line if line.startswith("BEGIN") else f"BEGIN; {line}; COMMIT"
                 for line in filter(None, scenario.setup.split("\n"))]
        self.admin.do(self.sql(*setup))
        self.rows = self.admin.do(self.sql("SELECT rows_of('$K')"))
        if self.main is None or self.mode == "cold":
            self.reconnect()
        if scenario.blocker:
            self.blocker.do(self.sql("BEGIN", scenario.blocker))

    def reconnect(self):
        if self.main is not None:
            self.main.close()
        self.main = Session()
        self.kept = self.campaign.kept

    def unblock(self, how):
        if self.scenario.blocker:
            self.blocker.do(how)

    def arm(self, n):
        """Nothing has to be undone when a transaction ends."""
        how = self.mode if self.mode in ("cancel", "terminate", "timeout") else "error"
        local = "" if self.scenario.top else "LOCAL "
        return f"SET {local}inject.how = {how}; SET {local}inject.at = {n}"

    def disarm(self):
        if not self.scenario.ends():
            self.main.do(f"SET {'' if self.scenario.top else 'LOCAL '}inject.at = 0")

    def call(self, *before, wrap=False, first=True):
        """Makes the call; where somebody is in its way, he goes when it waits for him."""
        scenario, call = self.scenario, self.scenario.call
        if wrap:
            call = f"SELECT attempt($call${call}$call$)"
        if scenario.top:
            self.main.do(self.sql(*before))
            before = ()
        sql = self.sql(*before, call)
        if not scenario.blocker or scenario.end == "late" or not first:
            return self.main.ask(sql)
        answer = []
        thread = threading.Thread(target=lambda: answer.append(self.main.ask(sql)))
        thread.start()
        waits = f"SELECT count(*) FROM pg_locks WHERE pid = {self.main.pid} AND NOT granted"
        while thread.is_alive() and self.admin.do(waits) == "0":
            pass
        self.unblock(scenario.end)
        thread.join()
        return answer[0]

    def transaction(self, arm="", first=False):
        """A transaction up to the call; returns what that answered."""
        before = () if self.scenario.top else ("BEGIN", self.scenario.local)
        return self.call(*before, arm, first=first)

    def end(self, answer):
        """After a call that had no fault: finishes, commits and compares."""
        self.expect(answer)
        if self.scenario.in_transaction():
            self.main.do("ROLLBACK" if self.main.error else
                         self.sql(self.scenario.finish, "COMMIT"))
        elif self.scenario.finish and not self.main.error:
            self.main.do(self.sql(self.scenario.finish))
        self.after()

    def expect(self, answer):
        answer = plain(answer, self.key)
        if self.expected is None:
            self.expected = [answer, None]
        same("the answer", answer, self.expected[0])

    def is_refusal(self):
        return re.fullmatch("[0-9A-Z]{5}", self.expected[0]) is not None

    def after(self):
        """Nothing is left, and what had to happen happened once."""
        if self.scenario.end == "late":
            self.unblock("ROLLBACK")
        rows = plain(self.nothing_left(), self.key)
        if self.expected[1] is None:
            self.expected[1] = rows
            self.campaign.expected[self.scenario.name] = self.expected
        same("the rows at the end", rows, self.expected[1])

    def nothing_left(self):
        """In a session between two transactions; returns the rows."""
        same("settings after the end", self.main.do("SELECT kept()"), self.kept)
        locks, rows = self.admin.do(self.sql(
            f"SELECT coalesce(locks_of({self.main.pid}), 'none'), rows_of('$K')")).split("|", 1)
        same("locks after the end", locks, "none")
        return rows

    def unchanged(self, rows):
        """The rows after a fault."""
        allowed = self.scenario.after
        if allowed == "nothing" or (allowed == "either" and rows == self.rows):
            same("rows after the fault", rows, self.rows)
        else:
            same("rows after the fault", plain(rows, self.key), self.expected[1])

    def error(self, answer, where):
        """The error that comes out is the one that went in."""
        reported = next((state for name, state in REPORTED.items() if name in where), "")
        if answer not in ({"cancel": "57014"}.get(self.mode, "INJ00"), self.expected[0], reported):
            raise Wrong(f"the fault at {where} became {answer} {self.main.error}")

    def inject(self, n):
        """Makes the call with a fault at its nth point; returns where that was, or None."""
        self.begin()
        if self.mode == "savepoint":
            return self.in_savepoint(self.arm(n))
        if self.mode == "block":
            return self.in_block(self.arm(n))
        answer = self.transaction(self.arm(n), first=True)
        if self.mode == "terminate":
            return self.terminated(answer)
        if self.main.error:
            return self.failed(answer)
        # no fault, a cancel request that came too late, or a wait that was over anyway
        self.disarm()
        where = self.main.passed()
        if self.mode not in ("cancel", "timeout") and where:
            raise Wrong(f"the fault at {where} was swallowed")
        self.end(answer)
        return where

    def failed(self, answer):
        if self.scenario.top:
            self.disarm()
        elif not self.scenario.ends():
            self.main.do("ROLLBACK")
        where = self.main.passed()
        if where is None:
            self.expect(answer)         # a refusal, as it should be
            self.after()
            return None
        self.error(answer, where)
        self.again()
        return where

    def again(self):
        """After a fault: the call once more, unless the transaction was committed before it."""
        rows = self.nothing_left()
        self.unchanged(rows)
        if not self.scenario.once() or rows == self.rows:
            self.end(self.transaction())

    def terminated(self, answer):
        """The session may have answered before it ended."""
        lost = answer == "57P01" or self.main.ask("SELECT 1") != "1"
        pid = self.main.pid
        self.main.close()
        while self.admin.do(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}") != "0":
            pass
        self.reconnect()
        self.again()
        return "terminated" if lost else None

    def begin_with_another(self):
        """A transaction with a claim that has nothing to do with the call."""
        release = None if self.is_refusal() else "RELEASE local"
        self.main.do(self.sql("BEGIN", self.earlier(ATOMIC), "SAVEPOINT local", release,
                              self.scenario.local))
        return self.seen(), self.locks()

    def end_with_another(self, refused):
        self.main.do(self.sql("ROLLBACK TO local" if refused else self.scenario.finish,
                              self.earlier(COMPLETE), "COMMIT"))
        same("the claim before", self.main.do("SELECT outcome FROM " + self.earlier(
            f"idem_replay('t', 'o', '$K', {REQUEST})")), "replay")
        self.after()

    def in_savepoint(self, arm):
        main, where = self.main, None
        seen, locks = self.begin_with_another()
        answer = self.call("SAVEPOINT s", arm)
        refused = main.error
        if refused:
            main.do("ROLLBACK TO s")
            where = main.passed()
        else:
            self.disarm()
            if main.passed():
                raise Wrong(f"the fault at {main.passed()} was swallowed")
        if where is not None:
            self.error(answer, where)
            same("locks after the fault", self.locks(), locks)
            if self.scenario.after == "nothing":
                same("the transaction after the fault", self.seen(), seen)
            answer = self.call(first=False)
            refused = main.error
            if refused:
                main.do("ROLLBACK TO s")
        self.expect(answer)
        self.end_with_another(refused)
        return where

    def in_block(self, arm):
        main = self.main
        seen, locks = self.begin_with_another()
        answer = self.call(arm, wrap=True)
        self.disarm()
        where = main.passed()
        if where is None:
            self.end_with_another(answer != "done")
            return None
        if answer == "done":
            raise Wrong(f"the fault at {where} was swallowed")
        self.error(answer, where)
        same("locks after the fault", self.locks(), locks)
        if self.scenario.after == "nothing":
            same("the transaction after the fault", self.seen(), seen)
        same("COMMIT", main.ask("COMMIT"), "ID001")
        same("open claims", re.search(r"\d+", main.error).group(), str(1 + self.scenario.open))
        self.unchanged(self.nothing_left())
        self.end(self.transaction())
        return where
