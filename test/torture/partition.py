"""Clients on both sides of a partition, and whether what they were told was true."""

import collections
import contextlib
import multiprocessing
import os
import pathlib
import random
import shutil
import subprocess
import time
import uuid

TOP = pathlib.Path(__file__).resolve().parents[2]
Told = collections.namedtuple("Told", "time side server what key response")


class Client:
    """One process on one side; it keeps its commands until they are answered.

    reach(connection or None, its server) finds the server to talk to: (connection, server)."""

    def __init__(self, lane, side, number, reach, end, seed):
        self.lane, self.side, self.number = lane, side, number
        self.reach, self.end = reach, end
        self.rng = random.Random(f"{seed} {number}")
        self.told, self.doubtful, self.known = [], [], []
        self.errors = collections.Counter()

    def run(self):
        db = at = None
        count = 0
        while not self.end.value:
            try:
                db, at = self.reach(db, at)
                if self.doubtful and self.rng.random() < 0.3:
                    self.try_command(db, at, self.doubtful.pop(0))
                elif self.known + self.doubtful and self.rng.random() < 0.3:
                    self.ask(db, at, self.rng.choice((self.known + self.doubtful)[-40:]))
                else:
                    count += 1
                    self.try_command(db, at, f"{self.side}{self.number}-{count}")
            except self.lane.faults as error:
                self.errors[getattr(error, "sqlstate", None) or type(error).__name__] += 1
                if db is not None:
                    with contextlib.suppress(*self.lane.faults):
                        db.close()
                db = None
                time.sleep(0.05)
        return self.told, self.errors

    def try_command(self, db, at, key):
        self.doubtful.append(key)
        answer = self.lane.command(db, key, str(uuid.uuid4()))
        if answer:
            self.doubtful.remove(key)
            self.known.append(key)
            self.note(at, "command", key, answer[1])

    def ask(self, db, at, key):
        response = self.lane.ask(db, key)
        if response is not None:
            self.note(at, "replay", key, response)

    def note(self, at, what, key, response):
        self.told.append(Told(time.time(), self.side, "abc"[at], what, key, response))


class Crowd:
    """Clients at work on their hosts until they are called home."""

    def __init__(self, seed):
        self.seed = seed
        self.end = multiprocessing.Value("i", 0)
        self.results, self.processes = multiprocessing.Queue(), []

    def start(self, host, lane, side, number, reach):
        self.processes.append(multiprocessing.Process(
            target=self.work,
            args=(host, Client(lane, side, number, reach, self.end, self.seed))))
        self.processes[-1].start()

    def work(self, host, client):
        host.enter()
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        self.results.put(client.run())

    def call_home(self):
        """What all of them were told, and the faults they met."""
        self.end.value = 1
        told, errors = [], collections.Counter()
        for _ in self.processes:
            more, faults = self.results.get(timeout=30)
            told += more
            errors += faults
        for process in self.processes:
            process.join()
        return sorted(told), errors

    def kill(self):
        self.end.value = 1
        for process in self.processes:
            process.kill()


class Verdict:
    """Which answers were untrue, and which commands ran twice."""

    def __init__(self, told, ground):
        self.told = told
        self.records, self.effects = ground
        self.untrue = [one for one in told if self.records.get(one.key) != one.response]
        answers = collections.defaultdict(set)
        for one in told:
            answers[one.key].add(one.response)
        self.two = {key for key, responses in answers.items() if len(responses) > 1}
        self.twice = self.two | {key for key, count in collections.Counter(
            key for key, _ in self.effects).items() if count > 1}

    def figures(self):
        commands = {one.key for one in self.untrue if one.what == "command"}
        replays = {one.key for one in self.untrue if one.what == "replay"}
        return {
            "answers": len(self.told),
            "untrue": len(commands | replays),
            "of these replays only": len(replays - commands),
            "told two responses": len(self.two),
        }

    def judge(self, checks, control):
        if control:
            checks.yes(self.untrue, f"it loses what was acknowledged ({self.figures()})")
            return
        keys = {key for key, _ in self.effects}
        checks.none(self.untrue, f"each answer was true ({len(self.told)} answers)")
        checks.none(self.twice, "nothing was done or told twice")
        checks.none(set(self.records) ^ keys, "each record has its effect")
        checks.none([key for key, response in self.effects if self.records.get(key) != response],
                    "and its response is what that effect made")


def show(figures, errors):
    print("# " + ", ".join(f"{what} {count}" for what, count in figures.items()))
    print("# faults met by clients: "
          + ", ".join(f"{what} {count}" for what, count in sorted(errors.items())), flush=True)


def build(folder):
    """The extension as this checkout has it; returns what a server needs to find it."""
    shutil.copytree(TOP, f"{folder}/src", symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "node_modules", "*.o", "*.so", "*.bc"))
    subprocess.run(["chown", "-R", "postgres", folder], check=True)
    subprocess.run(["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
                    f"{folder}/src/test/build", f"{folder}/inst"], check=True,
                   env={**os.environ, "SCRATCH": folder, "HOME": folder})
    return pathlib.Path(f"{folder}/inst/server.conf").read_text(encoding="utf-8")
