"""Plays a story with a process killed or a service failing at one point, and brings the command to its end.

A story (see ../attribution/story.py) says which programs, services and
variants there are, and compares the systems at the end.
"""

import itertools
import os
import sys
import time
import traceback
from typing import NamedTuple

import psycopg
from psycopg.rows import namedtuple_row

from commands import NOT_NOW
from services import ServiceProcess
from wire import Http, Postgres, Wire

ROUNDS = 8
STALLS = 3


class Variant(NamedTuple):
    """What happens after the crash."""

    name: str
    passes: tuple  # of the recovery program, in their order
    client: bool = False  # the client asks again before each pass; else only where passes are not enough
    crowd: bool = False  # two clients and two recovery programs at once
    waits_s: tuple = (0, 0)  # how old a call is at the first pass, and at the later ones
    key: str = ""  # tells the story which request it is to be


class Fault(NamedTuple):
    service: str
    at: str
    how: str


FAULTS = [("received", how) for how in ("kill", "drop", "hang", "late", "500", "503")] + [
    ("received", "down"),  # it does not run at all, and is back before anybody asks
    *(("done", how) for how in ("kill", "drop", "hang", "500")),
    ("done", "gone")]  # killed, and back only after the first pass of recovery


class Driver:
    def __init__(self, story):
        self.story = story
        self.database = psycopg.connect(autocommit=True, row_factory=namedtuple_row)
        self.database.execute("CREATE EXTENSION idempotency")
        with open(story.schema, encoding="utf-8") as file:
            self.database.execute(file.read())
        for name in story.services:
            os.mkdir(self.folder_of(name))
        self.services = {name: ServiceProcess(script, self.folder_of(name), *options)
                         for name, (script, *options) in story.services.items()}
        self.wire = Wire({"database": (Postgres, int(os.environ["PGPORT"])),
                          **{name: (Http, service.port) for name, service in self.services.items()}})
        self.keys = itertools.count(1)
        self.log = open(f"{os.environ['SCRATCH']}/programs.log", "a", encoding="utf-8")
        self.runs = {}  # key: what was done to it
        self.stalls = 0
        self.faults = []
        self.asked_again = {}

    @staticmethod
    def folder_of(service):
        """Where it stores what it knows."""
        return f"{os.environ['SCRATCH']}/{service}"

    def stop(self):
        for service in self.services.values():
            service.stop()

    def start(self, program, arguments, wired, sabotage=None):
        """A program as a process of its own, on the wire or past it.  Forked, as starting takes longer than running."""
        ports = {name: self.wire.port(name) if wired else port for name, (_, port) in self.wire.systems.items()}
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.dup2(self.log.fileno(), 1)
            os.dup2(self.log.fileno(), 2)
            os.environ.update(PGAPPNAME="story", PGHOST="127.0.0.1", PGPORT=str(ports.pop("database")),
                              PGSSLMODE="disable", PGGSSENCMODE="disable")
            os.environ.update({f"{name.upper()}_URL": f"http://127.0.0.1:{port}" for name, port in ports.items()})
            if sabotage:
                sabotage()
            status = program.main(arguments)
            sys.stdout.flush()
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)

    def process(self, program, arguments, point=None, wired=True, sabotage=None):
        """Runs a program to its end, or to its death at a point."""
        return self.expect(self.wire.carry(self.start(program, arguments, wired, sabotage), point))

    def expect(self, passage):
        """A process may end, say that it can do no more for now, or be killed here; nothing else."""
        if not passage.killed and passage.status not in (0, NOT_NOW):
            with open(self.log.name, encoding="utf-8") as log:
                print(log.read()[-3000:], file=sys.stderr)
            sys.exit(f"a process ended with status {passage.status} after {passage.trace}")
        return passage

    def work(self, tenant, key, **options):
        return self.process(self.story.worker, [tenant, key, self.story.request(key)], **options)

    def crowd(self, tenant, key, passes, sabotage):
        """Everybody at once."""
        programs = [(self.story.worker, [tenant, key, self.story.request(key)]), (self.story.recovery, passes)] * 2
        for pid in [self.start(*program, False, sabotage) for program in programs]:
            self.expect(self.wire.carry(pid))

    def settle_down(self, tenant, key, seconds):
        """Until nobody is at work on the command, all its leases have lapsed, and its open calls are as old as that."""
        until = time.monotonic() + 20
        while self.database.execute(
                "SELECT FROM pg_stat_activity WHERE application_name = 'story'"
                " UNION ALL SELECT FROM idem_record"
                " WHERE (tenant, key) = (%(tenant)s, %(key)s) AND lease_until > clock_timestamp()"
                " UNION ALL SELECT FROM idem_intent"
                " WHERE (tenant, key) = (%(tenant)s, %(key)s) AND settled_at IS NULL"
                "   AND (lease_until > clock_timestamp()"
                "        OR created_at + %(seconds)s * interval '1 s' > clock_timestamp())",
                {"tenant": tenant, "key": key, "seconds": seconds}).fetchone() is not None:
            if time.monotonic() > until:
                sys.exit(f"the leases of {tenant} {key} do not end")
            time.sleep(0.005)

    def state(self, tenant, key):
        row = self.database.execute("SELECT state FROM idem_record WHERE (tenant, key) = (%s, %s)",
                                    (tenant, key)).fetchone()
        return row and row.state

    def ended(self, tenant, key):
        return self.state(tenant, key) in ("succeeded", "failed")

    def restart_services(self):
        for service in self.services.values():
            service.start_again()

    def finish(self, variant, tenant, key, sabotage=None):
        """Brings the command to its end, as after a crash."""
        for turn in range(ROUNDS):
            if variant.crowd:
                self.crowd(tenant, key, variant.passes, sabotage)
            else:
                # Where three passes are not enough, a client has to ask again.
                if variant.client or turn >= 3:
                    if not variant.client and self.state(tenant, key):
                        self.asked_again.setdefault(variant.name, []).append(key)
                    if self.work(tenant, key, wired=False, sabotage=sabotage).status == 0:
                        return
                self.settle_down(tenant, key, variant.waits_s[1 if turn else 0])
                self.process(self.story.recovery, variant.passes, wired=False, sabotage=sabotage)
            self.restart_services()
            if self.ended(tenant, key):
                return
        self.faults.append(f"{tenant} {key}, {variant.name}: not at its end after {ROUNDS} rounds")

    def fail(self, fault):
        service = self.services[fault.service]
        if fault.how == "down":
            service.stop()
        else:
            service.will_fail(fault.at, "kill" if fault.how == "gone" else fault.how)

    def play(self, tenant, variant, point=None, fault=None, recover=False, recovery_point=None, sabotage=None):
        """One command from its first try to its end; how the worker and, if asked to, the first recovery fared."""
        key = f"{variant.key}-{next(self.keys)}"
        self.runs[key] = " ".join(f"{name} {value}" for name, value in (
            ("fault", fault), ("worker killed at", point), ("recovery killed at", recovery_point)) if value)
        self.runs[key] += f", then {variant.name}"
        if fault:
            self.fail(fault)
        worker = self.work(tenant, key, wired=not fault, point=point, sabotage=sabotage)
        if fault and worker.status == 0:
            self.faults.append(f"{tenant} {key}: its worker did not notice {fault}")
        if not fault or fault.how != "gone":
            self.restart_services()
        recovery = None
        if recover:
            self.settle_down(tenant, key, variant.waits_s[0])
            recovery = self.process(self.story.recovery, variant.passes, point=recovery_point)
        if worker.status != 0:
            self.finish(variant, tenant, key, sabotage)
        return worker, recovery

    def every_point(self, which, name, **run):
        """Kills a process (0: the worker, 1: the recovery) at every point of its way, which two runs have to agree on."""
        for _ in range(STALLS):
            way = self.play(**run)[which].trace
            if way == self.play(**run)[which].trace:
                break
            self.stalls += 1
        for point in range(1, 2 * len(way) + 1):
            for _ in range(STALLS):
                passage = self.play(**run, **{name: point})[which]
                if passage.killed and passage.trace == way[:(point + 1) // 2]:
                    break
                self.stalls += 1  # something took too long, so it took another way
            else:
                self.faults.append(f"{run['variant'].name}: {name} {point} not reached: {passage}")
        return way

    def every_worker_point(self, tenant, variant):
        """The worker's requests, at each of which it was killed twice."""
        return self.every_point(0, "point", tenant=tenant, variant=variant)

    def every_recovery_point(self, tenant, variant, lost):
        """The same of the recovery program, after a worker that died without the answer of LOST."""
        point = 2 * (self.play(tenant, variant)[0].trace.index(lost) + 1)
        return self.every_point(1, "recovery_point", tenant=tenant, variant=variant, point=point, recover=True)

    def every_fault(self, tenant, variant, service):
        """Lets a service fail in every way at both of its points; the number of ways."""
        for at, how in FAULTS:
            self.play(tenant, variant, fault=Fault(service, at, how))
        return len(FAULTS)
