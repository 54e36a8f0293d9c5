#!/usr/bin/env python3
"""Takes up what a crash has left behind: one pass, for a timer to start again and again.

usage: recovery.py [recover|reconcile]...    (both when none is named)
"""

import os
import sys

from worker import attribute
from commands import connect, recover
from http_call import call
from intents import reconcile


def look(url):
    """What there is under an operation id.  After the call's deadline it is final, see not_after()."""
    found = call("GET", url)
    return ("happened" if found.status == 200 else "absent"), found.body


def main(passes):
    with connect() as db:
        for name in passes or ("recover", "reconcile"):
            if name == "recover":
                recover(db, attribute)
            else:
                reconcile(db, "object store", lambda intent:
                          look(f"{os.environ['STORE_URL']}/objects/{intent.operation_id}"))
                reconcile(db, "billing", lambda intent:
                          look(f"{os.environ['BILLING_URL']}/billings/{intent.operation_id}"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
