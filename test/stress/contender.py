"""One of the processes that fight for the same commands; it notes what it was told."""

import collections
import contextlib
import random
import time
import uuid

import psycopg

WIDTH = 4           # commands fought for at one time
RATE_PER_S = 40     # commands left behind, and new ones taken up
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
WAITS = ("0", "0", "20 ms", "1 s", "10 s")

# What a claim or a replay answered, and when.
Told = collections.namedtuple("Told", "key start end by wrong outcome state attempt token response")
# A command that was ended by this process, and when the commit of that was acknowledged.
Ended = collections.namedtuple("Ended", "key end state token response")
# A claim that was granted and committed without an end.
Leased = collections.namedtuple("Leased", "key attempt token")


def request(key, wrong=False):
    return f'{{"key": "{key}", "wrong": {str(wrong).lower()}}}'


class Contender:
    def __init__(self, number, seed, start, end):
        self.rng = random.Random(f"{seed} {number}")
        self.number, self.start, self.end = number, start, end
        self.told, self.ended, self.leased = [], [], []
        self.open = []                  # tickets of leased claims left alone
        self.done = []                  # what is certainly ended by this process
        self.counts = collections.Counter()
        self.faults = []
        self.connect()

    def connect(self):
        self.db = psycopg.connect(autocommit=True, application_name=f"contender {self.number}")

    def connect_again(self):
        """A session may be terminated before it can say that it is there."""
        self.counts["terminated"] += 1
        while self.db.closed:
            with contextlib.suppress(psycopg.OperationalError):
                self.connect()

    def run(self):
        actions = {self.atomic: 6, self.with_lease: 6, self.late: 2, self.repeat: 2,
                   self.batch: 2, self.execute: 2, self.replay: 2, self.wrong: 1,
                   self.timeouts: 2}
        while time.monotonic() < self.end:
            action, = self.rng.choices(list(actions), actions.values())
            self.counts[action.__name__] += 1
            try:
                action()
                if self.rng.random() < 0.1:
                    self.look_for_locks()
            except psycopg.Error as error:
                self.note_error(action.__name__, error)
        self.db.close()
        return self.told, self.ended, self.leased, self.counts, self.faults

    def note_error(self, action, error):
        """Ends what was going on.  Only what this test itself provokes may happen."""
        if self.db.closed:
            self.connect_again()
            return
        self.counts[f"error {error.sqlstate}"] += 1
        if error.sqlstate != "57014" and (action, error.sqlstate) != ("timeouts", "55P03"):
            self.faults.append(f"{action}: {error.sqlstate} {error.diag.message_primary};"
                               f" {error.diag.message_detail}")
        self.rollback()

    def rollback(self):
        """Who was cancelled may be terminated before he comes to that, or be cancelled again."""
        try:
            self.db.execute("ROLLBACK")
        except psycopg.Error:
            self.db.close()
            self.connect_again()

    def look_for_locks(self):
        left, = self.db.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                " AND pid = pg_backend_pid()").fetchone()
        if left:
            self.faults.append(f"{left} locks are left after a transaction")

    def key(self):
        behind = int((time.monotonic() - self.start) * RATE_PER_S)
        return f"k{behind + self.rng.randrange(WIDTH)}"

    def begin(self):
        self.db.execute(f"BEGIN ISOLATION LEVEL {self.rng.choice(LEVELS)}")

    def refused(self, allowed, sql, args):
        """Whether the call is refused, and its transaction with it; otherwise it is in force."""
        try:
            self.db.execute(sql, args)
            return False
        except psycopg.Error as error:
            if error.sqlstate not in allowed:
                raise
            self.counts[f"refused {error.sqlstate}"] += 1
            return True

    # What can be asked and done, one call each.

    def note(self, key, start, by, wrong, row):
        told = Told(key, start, time.monotonic(), by, wrong, *row)
        self.told.append(told)
        self.counts[f"{by} {told.outcome}"] += 1
        return told

    def claim(self, key, wait=None, lease=None, wrong=False):
        start = time.monotonic()
        row = self.db.execute(
            "SELECT outcome, state, attempt, token, response::text FROM idem_claim("
            "'t', 'op', %s, %s::jsonb, wait => %s::interval, lease => %s::interval)",
            (key, request(key, wrong), wait or self.rng.choice(WAITS), lease)).fetchone()
        return self.note(key, start, "claim", wrong, row)

    def effect(self, key, response):
        self.db.execute("INSERT INTO effect VALUES (%s, %s)", (key, response))

    def answer(self):
        return f'{{"by" : {self.number}, "id":"{uuid.UUID(int=self.rng.getrandbits(128))}"}}'

    def finish(self, verb, told):
        """Ends the command within this transaction."""
        response = self.answer()
        if verb == "complete":
            self.effect(told.key, response)
        else:
            self.db.execute("SAVEPOINT work")
            self.effect(told.key, response)
            self.db.execute("ROLLBACK TO work")
        state = {"complete": "succeeded", "fail": "failed"}[verb]
        ended = Ended(told.key, None, state, told.token, response)
        self.db.execute(f"SELECT idem_{verb}('t', 'op', %s, %s::bigint, %s::json)",
                        (told.key, told.token, response))
        return ended

    def commit(self, *endings):
        self.db.execute("COMMIT")
        for ended in endings:
            ended = ended._replace(end=time.monotonic())
            self.ended.append(ended)
            self.done.append(ended)

    # What a contender does.

    def atomic(self):
        key = self.key()
        self.begin()
        if self.rng.random() < 0.3:
            self.db.execute("SAVEPOINT claim")
            self.claim(key)
            self.db.execute("ROLLBACK TO claim")    # and the claim with it
        told = self.claim(key)
        if not told.token:
            self.commit()
            return
        if self.rng.random() < 0.3:
            self.db.execute("SAVEPOINT lost")
            self.finish("complete", told)
            self.db.execute("ROLLBACK TO lost")
        time.sleep(self.rng.choice((0, 0, 0.02)))
        end = self.rng.choice(("complete", "complete", "complete", "fail", "release", "rollback",
                               "forget"))
        if end in ("complete", "fail"):
            self.commit(self.finish(end, told))
        elif end == "release":
            self.db.execute("SELECT idem_release('t', 'op', %s, %s, 'not now')",
                            (key, told.token))
            self.commit()
        elif end == "rollback":
            self.db.execute("ROLLBACK")
        elif not self.refused(("ID001",), "COMMIT", ()):
            self.faults.append(f"{key}: an unfinished claim was committed")

    def with_lease(self):
        lease = f"{self.rng.choice((1, 20, 100, 300))} ms"
        told = self.claim(self.key(), lease=lease)
        if not told.token:
            return
        self.leased.append(Leased(told.key, told.attempt, told.token))
        time.sleep(self.rng.choice((0, 0.01, 0.05)))
        if self.rng.random() < 0.3:
            self.open.append(told)
        else:
            self.end_lease(told)

    def end_lease(self, told):
        """Ends a leased claim, whether or not it still belongs to this process."""
        self.begin()
        if self.rng.random() < 0.5 and self.refused(
                ("ID002",), "SELECT idem_hold('t', 'op', %s, %s)", (told.key, told.token)):
            self.db.execute("ROLLBACK")
            return
        verb = self.rng.choice(("complete", "complete", "complete", "fail", "release",
                                "heartbeat"))
        if verb in ("release", "heartbeat"):
            self.refused(("ID002",), f"SELECT idem_{verb}('t', 'op', %s, %s, %s)",
                         (told.key, told.token, "later" if verb == "release" else "20 ms"))
            self.commit()
            return
        try:
            self.commit(self.finish(verb, told))
        except psycopg.Error as error:
            if error.sqlstate != "ID002":
                raise
            self.counts["refused ID002"] += 1
            self.db.execute("ROLLBACK")

    def late(self):
        if self.open:
            self.end_lease(self.open.pop(self.rng.randrange(len(self.open))))

    def repeat(self):
        """The same end again is accepted, any other one refused; neither does anything."""
        if not self.done:
            return
        done = self.rng.choice(self.done[-20:])
        verb = {"succeeded": "complete", "failed": "fail"}[done.state]
        for response, allowed in ((done.response, ()), (self.answer(), ("ID003",))):
            if not self.refused(allowed, f"SELECT idem_{verb}('t', 'op', %s, %s::bigint, %s::json)",
                                (done.key, done.token, response)) and allowed:
                self.faults.append(f"{done.key}: a second end was accepted")
        for verb in ("release", "heartbeat"):
            if not self.refused(("ID003",), f"SELECT idem_{verb}('t', 'op', %s, %s, '1 s')",
                                (done.key, done.token)):
                self.faults.append(f"{done.key}: {verb} of an ended command was accepted")

    def batch(self):
        keys = [self.key() for _ in range(3)]
        lease = self.rng.choice((None, "100 ms"))
        self.begin()
        start = time.monotonic()
        rows = self.db.execute(
            "SELECT t::text, key, outcome, state, attempt, token, response::text"
            " FROM idem_claim_batch('t', 'op', %s::text[], %s::jsonb[], wait => %s::interval,"
            " lease => %s::interval) t",
            (keys, [request(key) for key in keys], self.rng.choice(WAITS), lease)).fetchall()
        granted = []
        for ticket, key, *row in rows:
            told = self.note(key, start, "batch", False, row)
            if told.token:
                granted.append((ticket, Ended(key, None, "succeeded", told.token, self.answer())))
        for _, ended in granted:
            self.effect(ended.key, ended.response)
        if self.rng.random() < 0.2:
            self.db.execute("ROLLBACK")
            return
        self.db.execute("SELECT idem_complete_batch(%s::idem_ticket[], %s::json[])",
                        ([ticket for ticket, _ in granted],
                         [ended.response for _, ended in granted]))
        self.commit(*(ended for _, ended in granted))

    def execute(self):
        key, start = self.key(), time.monotonic()
        row = self.db.execute(
            "SELECT outcome, state, attempt, token, response::text"
            " FROM idem_execute('t', 'op', %s, %s::jsonb, 'handle(jsonb)', wait => %s::interval)",
            (key, request(key), self.rng.choice(WAITS))).fetchone()
        told = self.note(key, start, "execute", False, row)
        if told.outcome in ("execute", "resume"):
            self.ended.append(Ended(key, told.end, told.state, None, told.response))

    def replay(self):
        key, wrong, start = self.key(), self.rng.random() < 0.2, time.monotonic()
        self.begin()
        row = self.db.execute(
            "SELECT outcome, state, attempt, token, response::text"
            " FROM idem_replay('t', 'op', %s, %s::jsonb)", (key, request(key, wrong))).fetchone()
        self.note(key, start, "replay", wrong, row)
        self.commit()

    def wrong(self):
        """Another request under the same key; where nothing is known of the first, it is let go."""
        self.begin()
        self.claim(self.key(), wrong=True)
        self.db.execute("ROLLBACK")

    def timeouts(self):
        self.begin()
        self.db.execute(f"SET LOCAL {self.rng.choice(('lock_timeout', 'statement_timeout'))} = 5")
        self.claim(self.key(), wait="10 s")
        self.db.execute("ROLLBACK")
