"""Sixty-four sessions wait for the owner of one command: how fast are they answered?"""
import selectors
import statistics
import time
import uuid

import figures
from commands import OPERATION, REQUEST, TENANT
from session import Session

WAITERS, WATCHED_S = 64, 2


class Crowd:
    """An owner, and those who ask for the same while it is at work."""

    def __init__(self, name, call, sessions):
        self.name, self.call, self.times = name, call, []
        self.owner, *self.waiters = sessions
        for session in sessions:
            session.prepare(**{call: f"SELECT outcome, response FROM {call}($1, $2, $3, $4)"})
        self.pids = ",".join(str(waiter.conn.backend_pid) for waiter in self.waiters)
        self.selector = selectors.DefaultSelector()
        for waiter in self.waiters:
            self.selector.register(waiter.conn.socket, selectors.EVENT_READ, waiter)

    def begin(self, admin):
        """Until all of them wait for the owner."""
        values = TENANT, OPERATION, str(uuid.uuid4()).encode(), REQUEST
        self.owner.sql("BEGIN")
        self.response = self.expect(self.owner.run(self.call, *values), b"execute")
        for waiter in self.waiters:
            waiter.conn.send_query_prepared(self.call.encode(), values)
        blocked = ("SELECT count(*) FROM pg_stat_activity"
                   f" WHERE pid IN ({self.pids}) AND wait_event_type = 'Lock'")
        while int(admin.value(blocked)) < WAITERS:
            time.sleep(0.01)

    def end(self):
        """Seconds from the owner's COMMIT to the last answer."""
        answers, waiting = [], set(self.waiters)
        began = time.perf_counter()
        self.owner.sql("COMMIT")
        while waiting:
            for key, _ in self.selector.select():
                key.data.conn.consume_input()
                while key.data in waiting and not key.data.conn.is_busy():
                    result = key.data.conn.get_result()
                    if result:
                        answers.append(result)
                    else:
                        waiting.remove(key.data)
        lasted = time.perf_counter() - began
        for answer in answers:
            if self.expect(Session.checked(answer), b"replay") != self.response:
                raise RuntimeError(f"{self.name}: another response")
        if len(answers) != WAITERS:
            raise RuntimeError(f"{self.name}: {len(answers)} answers")
        return lasted

    def expect(self, result, outcome):
        if result.get_value(0, 0) != outcome:
            raise RuntimeError(f"{self.name}: {result.get_value(0, 0)}")
        return result.get_value(0, 1)

    def activity(self):
        """How often the waiters were on a CPU, and for how many microseconds."""
        fields = [waiter.schedstat.read_text().split() for waiter in self.waiters]
        return sum(int(field[2]) for field in fields), sum(int(field[0]) for field in fields) / 1000

    def watch(self):
        """What they do while they wait; each looks for a deadlock once, after a second or when it gets a CPU.

        The server may wake one with news of the catalog, so they get some tries: who polls has none without.
        """
        before = None
        for _ in range(20):
            time.sleep(1.5)
            earlier, before = before, self.activity()
            if earlier == before:
                break
        for _ in range(5):
            before = self.activity()
            time.sleep(WATCHED_S)
            seen = [after - start for start, after in zip(before, self.activity())]
            if seen == [0, 0]:
                break
        return seen


def run(rounds):
    admin = Session()
    sessions = [Session("public, rival") for _ in range(1 + WAITERS)]
    for session in sessions:
        session.sql("SET idempotency.wait = '5 min'")
    crowds = [Crowd("blocked in ON CONFLICT", "place_order", sessions),
              Crowd("idem_claim with wait", "claim_order", sessions)]
    for number in range(1 + rounds):
        for crowd in crowds[::-1] if number % 2 else crowds:
            crowd.begin(admin)
            if number == 0:                     # a round to warm up
                crowd.woken, crowd.burnt = crowd.watch()
            seconds = crowd.end()
            if number > 0:
                crowd.times.append(seconds * 1000)
    rival, ours = crowds
    print(f"  {'ms from COMMIT to the last answer':36}{'min':>9}{'median':>9}"
          f"   on a CPU in {WATCHED_S} s of waiting")
    for crowd in crowds:
        print(f"  {f'{WAITERS} {crowd.name}':36}{min(crowd.times):9.2f}{statistics.median(crowd.times):9.2f}"
              f"   {crowd.woken} times, {crowd.burnt:.0f} µs")
    print(flush=True)
    if ours.woken:
        raise RuntimeError("those who wait do not sleep")
    figures.add("P5", f"{WAITERS} claims with wait, COMMIT to the last answer", rival.name, "ms",
                ours.times, rival.times, at_most=1.0)
