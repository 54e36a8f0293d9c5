"""The story of a payment: which programs and services play in it, and what has to agree at the end."""

import json
import os
import sqlite3
import sys
from collections import Counter
from contextlib import closing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "stories"))

import controls
import recovery
import worker
from driver import Fault, Variant
from play import play

REMEMBERS_S = 0.55
AFTER_S = REMEMBERS_S + 0.05
RELAY_FIRST = ("relay", "reconcile", "recover")
RECOVER_FIRST = ("recover", "relay", "reconcile")
RESTART = Variant("the client asks again", RECOVER_FIRST, client=True, key="order")
DECLINED = Variant("the client asks again, its card is empty", RECOVER_FIRST, client=True, key="declined")
REPEATED = Variant("recovery repeats the call", RELAY_FIRST, key="order")
ASKED = Variant("recovery asks the provider", ("reconcile", "recover", "relay"), key="order")
FORGOTTEN = Variant("recovery after the provider has forgotten", RELAY_FIRST, waits_s=(AFTER_S, AFTER_S), key="order")
LONG = Variant("recovery before and after the provider has forgotten", RELAY_FIRST, waits_s=(0, AFTER_S), key="order")
CROWD = Variant("clients and recovery at once", RECOVER_FIRST, crowd=True, key="order")


def resend_for_ever():
    """Sabotage: the worker believes that the provider never forgets."""
    worker.RESEND_SAFE_FOR = "1 hour"


class Payment:
    schema = f"{HERE}/schema.sql"
    services = {"provider": (f"{HERE}/provider.py", "--remembers", str(REMEMBERS_S))}
    operation = "order.pay"
    worker, recovery = worker, recovery
    variants = (RESTART, DECLINED, REPEATED, FORGOTTEN, CROWD)
    fault_variants = (RESTART, REPEATED, FORGOTTEN, LONG, CROWD)
    recovery_kills = ((REPEATED, "POST /payments"), (ASKED, "POST /payments"))
    faulty = ("provider",)
    controls = (
        ("a new operation id per try", controls.new_id_per_try,
         [dict(variant=RESTART, fault=Fault("provider", "done", "drop"))]),
        ("no answer taken for a failure", controls.silence_is_failure,
         [dict(variant=FORGOTTEN, fault=Fault("provider", "done", how)) for how in ("drop", "hang", "500")]),
        ("calls repeated for ever", resend_for_ever,
         [dict(variant=FORGOTTEN, fault=Fault("provider", "done", "drop"))]),
    )
    moral = "Every order was paid once, and the ledger is the money taken."

    @staticmethod
    def request(key):
        name, _, number = key.partition("-")
        return json.dumps({"amount": 100 + int(number), "card": "empty" if name == "declined" else "full"})

    @staticmethod
    def systems(driver, tenant):
        """(order, amount, payment) in the ledger and at the provider."""
        ledger = [tuple(row) for row in driver.database.execute(
            "SELECT reference, l.amount, payment FROM ledger l JOIN orders o ON o.id = order_id WHERE tenant = %s",
            (tenant,))]
        with closing(sqlite3.connect(f"{driver.folder_of('provider')}/provider.db")) as provider:
            taken = provider.execute("SELECT reference, amount, 'p' || id FROM taken WHERE tenant = ?",
                                     (tenant,)).fetchall()
        return {"ledger": ledger, "money taken": taken}

    def compare(self, driver, tenant):
        faults = []
        systems = self.systems(driver, tenant)
        counts = {name: Counter(reference for reference, _, _ in entries) for name, entries in systems.items()}
        orders = driver.database.execute(
            "SELECT reference, o.state, r.state AS ended, r.response FROM orders o JOIN idem_record r"
            " ON (r.tenant, r.key) = (o.tenant, o.reference) WHERE o.tenant = %s", (tenant,)).fetchall()
        for order in orders:
            request = json.loads(self.request(order.reference))
            wanted = 1 if request["card"] == "full" else 0
            if (order.state, order.ended) != (("paid", "succeeded") if wanted else ("declined", "failed")):
                faults.append(f"{order.reference} is {order.state} and {order.ended}")
            for name, entries in systems.items():
                if counts[name][order.reference] != wanted:
                    faults.append(f"{order.reference}: {name} {counts[name][order.reference]} times, not {wanted}")
                elif wanted and (order.reference, request["amount"], order.response["payment"]) not in entries:
                    faults.append(f"{order.reference}: its answer and {name} differ")
        (commands,) = driver.database.execute("SELECT count(*) FROM idem_record WHERE tenant = %s", (tenant,)).fetchone()
        if len(orders) != commands:
            faults.append(f"{commands} commands, but {len(orders)} orders")
        if sorted(systems["ledger"]) != sorted(systems["money taken"]):
            faults.append("the ledger is not the money taken")
        return faults

    def figures(self, driver, tenant):
        systems = self.systems(driver, tenant)
        return [("payments", len(systems["money taken"])),
                *((f"{name}, cents", sum(amount for _, amount, _ in entries)) for name, entries in systems.items())]


if __name__ == "__main__":
    play(Payment())
