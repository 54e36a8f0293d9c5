"""Plays all of a story and says what was found; the exit status is 1 for any difference."""

import signal
import sys
import time
from collections import Counter

import check
from driver import Driver

TENANT = "acme"


def controls(driver, story):
    """Sabotaged workers, each of which has to be caught."""
    for number, (title, sabotage, runs) in enumerate(story.controls, 1):
        tenant = f"control-{number}"
        for run in runs:
            driver.play(tenant, sabotage=sabotage, **run)
        found = story.compare(driver, tenant)
        print(f"control: {title}: {len(runs)} runs, " + (f"caught: {found[0]}" if found else "NOT CAUGHT"), flush=True)
        if not found:
            yield f"control not caught: {title}"


def play(story):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    begin = time.monotonic()
    driver = Driver(story)
    totals = Counter()

    def done(what, n, kind):
        totals[kind] += n
        print(f"{time.monotonic() - begin:5.0f} s  {what}: {n} {kind}", flush=True)

    try:
        for variant in story.variants:
            way = driver.every_worker_point(TENANT, variant)
            done(f"worker killed, {variant.name}", 2 * len(way), "kill points")
        for variant, lost in story.recovery_kills:
            way = driver.every_recovery_point(TENANT, variant, lost)
            done(f"worker killed without the answer of {lost}, recovery killed, {variant.name}",
                 2 * len(way), "kill points")
        for variant in story.fault_variants:
            for service in story.faulty:
                done(f"{service} failing, {variant.name}", driver.every_fault(TENANT, variant, service), "service faults")
        found = [*driver.faults, *story.compare(driver, TENANT), *check.trail(driver.database, TENANT),
                 *check.replays(driver.database, TENANT, story)]
        figures = [*totals.items(), ("runs", len(driver.runs)), ("  repeated, because something stalled", driver.stalls),
                   *check.figures(driver.database, TENANT), *story.figures(driver, TENANT),
                   *((f"claimed, yet ended only by the client: {name}", len(keys))
                     for name, keys in driver.asked_again.items())]
        found += controls(driver, story)
    finally:
        driver.stop()
    for what, n in figures:
        print(f"{what:<80} {n:>6}")
    for fault in found[:20]:
        print("FAULT", fault)
    for key, run in driver.runs.items():
        if any(fault.startswith(f"{key} ") or fault.startswith(f"{key}:") for fault in found[:20]):
            print(f"{key}: {run}\n" + "\n".join(check.told(driver.database, key)))
    print(f"FAILED: {len(found)} faults" if found else story.moral)
    sys.exit(bool(found))
