"""Billing service: POST /billings bills once per Idempotency-Key, for ever; GET /billings/KEY tells."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stories"))
from service import Refused, Service, Store, arguments, serve


class Billing(Service):
    store = None

    def put(self, path, body):
        with self.store.open() as database:
            made = database.execute("INSERT INTO billing (operation_id, tenant, click, fee) VALUES (?, ?, ?, ?)"
                                    " ON CONFLICT DO NOTHING", (self.headers["Idempotency-Key"], body["tenant"],
                                                                body["click"], body["fee"])).rowcount
        return (201 if made else 200), self.facts(self.headers["Idempotency-Key"])

    def get(self, path):
        return 200, self.facts(os.path.basename(path))

    def facts(self, operation_id):
        with self.store.open() as database:
            row = database.execute("SELECT id, fee FROM billing WHERE operation_id = ?", (operation_id,)).fetchone()
        if row is None:
            raise Refused(404, {"error": "no such billing"})
        return {"id": row[0], "fee": row[1]}


if __name__ == "__main__":
    options = arguments()
    Billing.store = Store(f"{options.folder}/billing.db", """
        CREATE TABLE IF NOT EXISTS billing (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            operation_id TEXT NOT NULL UNIQUE,
            tenant TEXT NOT NULL,
            click TEXT NOT NULL,
            fee INTEGER NOT NULL)""")
    serve(Billing, options)
