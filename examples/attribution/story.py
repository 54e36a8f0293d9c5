"""The story of a click: which programs and services play in it, and what has to agree at the end."""

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

RESTART = Variant("the client asks again", ("recover", "reconcile"), client=True, key="click")
RECOVERY = Variant("recovery takes over", ("recover", "reconcile"), key="click")
CROWD = Variant("clients and recovery at once", ("recover", "reconcile"), crowd=True, key="click")
RECONCILED = Variant("reconciliation, then recovery", ("reconcile", "recover"), key="click")


def row_without_step(db, ticket, request):
    """Sabotage: the row commits by itself, before anybody asks whether it is there; the step is noted later."""
    row = db.execute("INSERT INTO attribution (tenant, click, campaign, fee) VALUES (%s, %s, %s, %s) RETURNING id",
                     (ticket.tenant, ticket.key, request["campaign"], request["fee"])).fetchone().id
    db.execute("SELECT idem_step_done(%s, 'row', 'true')", (ticket.whole,))
    return row


def no_step():
    worker.write_row = row_without_step


class Attribution:
    schema = f"{HERE}/schema.sql"
    services = {"store": (f"{HERE}/object_store.py",), "billing": (f"{HERE}/billing.py",)}
    operation = "click.attribute"
    worker, recovery = worker, recovery
    variants = (RESTART, RECOVERY, RECONCILED, CROWD)
    fault_variants = (RESTART, RECOVERY, RECONCILED)
    recovery_kills = ((RECOVERY, "POST /billings"), (RECONCILED, "PUT /objects"))
    faulty = ("store", "billing")
    controls = (
        ("a new operation id per try", controls.new_id_per_try,
         [dict(variant=RESTART, fault=Fault(service, "done", "drop")) for service in ("store", "billing")]),
        ("a row outside its step", no_step,
         [dict(variant=RESTART, fault=Fault("store", "done", "drop"))]),
    )
    moral = "Every click has one row, one object and one billing."

    @staticmethod
    def request(key):
        return json.dumps({"campaign": "spring", "fee": 5 + len(key)})

    @staticmethod
    def systems(driver, tenant):
        """What each of the three systems has for a tenant: (click, fee, what the answer calls it)."""
        rows = [(row.click, row.fee, row.id) for row in driver.database.execute(
            "SELECT click, fee, id FROM attribution WHERE tenant = %s", (tenant,))]
        objects = []
        for name in os.listdir(driver.folder_of("store")):
            with open(f"{driver.folder_of('store')}/{name}", encoding="utf-8") as file:
                if not name.startswith(".") and (content := json.load(file))["tenant"] == tenant:
                    objects.append((content["click"], content["fee"], name))
        with closing(sqlite3.connect(f"{driver.folder_of('billing')}/billing.db")) as billing:
            billings = billing.execute("SELECT click, fee, id FROM billing WHERE tenant = ?", (tenant,)).fetchall()
        return {"attribution": rows, "object": objects, "billing": billings}

    def compare(self, driver, tenant):
        faults = []
        systems = self.systems(driver, tenant)
        counts = {name: Counter(click for click, _, _ in entries) for name, entries in systems.items()}
        commands = driver.database.execute("SELECT key, response FROM idem_record WHERE tenant = %s", (tenant,)).fetchall()
        for command in commands:
            for name, entries in systems.items():
                if counts[name][command.key] != 1:
                    faults.append(f"{command.key} has {counts[name][command.key]} of {name}")
                elif (command.key, json.loads(self.request(command.key))["fee"], command.response[name]) not in entries:
                    faults.append(f"{command.key}: its answer names another {name} than there is")
        for name, entries in systems.items():
            if len(entries) != len(commands):
                faults.append(f"{len(commands)} commands, but {len(entries)} of {name}")
        return faults

    def figures(self, driver, tenant):
        return [(f"{name}s", len(entries)) for name, entries in self.systems(driver, tenant).items()]


if __name__ == "__main__":
    play(Attribution())
