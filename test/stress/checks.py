"""What the stress programs share: a server to run on, and checks that are counted."""

import os
import sys

STRESS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(STRESS))


def need_server(*settings):
    """Starts this program again inside test/with-cluster, unless it is there already.

    Each setting is a line of postgresql.conf."""
    if "SERVER_LOG" in os.environ:
        return
    command = [f"{TOP}/test/with-cluster"]
    for setting in settings:
        command += ["-c", setting]
    sys.stdout.flush()
    os.execv(command[0], command + [os.path.abspath(sys.argv[0])] + sys.argv[1:])


class Checks:
    """Prints each check as TAP, and at last how many passed and failed."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def none(self, faults, what):
        """Passes when there are no faults; prints some of them otherwise."""
        faults = list(faults)
        if not faults:
            self.passed += 1
            print(f"ok - {what}", flush=True)
            return
        self.failed += 1
        print(f"not ok - {what}: {len(faults)} faults")
        for fault in faults[:10]:
            print("#   " + str(fault).replace("\n", " "), flush=True)

    def yes(self, good, what):
        self.none([] if good else ["it is not so"], what)

    def skip(self, what, reason):
        self.skipped += 1
        print(f"ok - {what} # SKIP {reason}", flush=True)

    def end(self):
        """Prints the sum and ends the program."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}", flush=True)
        sys.exit(1 if self.failed else 0)
