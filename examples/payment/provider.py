"""Payment provider: POST /payments takes money and forgets the Idempotency-Key after --remembers seconds.

From then on the same key takes the money again.  GET /payments?reference=KEY
tells for ever which payment was made under a key, if any.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stories"))
from service import Refused, Service, Store, arguments, serve


class Provider(Service):
    store = None
    remembers_s = None

    def put(self, path, body):
        key = self.headers["Idempotency-Key"]
        if body["card"] == "empty":
            return 402, {"error": "card declined"}
        with self.store.open() as database:
            if not self.facts(database, key, time.time() - self.remembers_s):
                database.execute("INSERT INTO taken (key, tenant, reference, amount, taken_at) VALUES (?, ?, ?, ?, ?)",
                                 (key, body["tenant"], body["reference"], body["amount"], time.time()))
            return 201, self.facts(database, key, 0)

    def get(self, path):
        with self.store.open() as database:
            facts = self.facts(database, path.partition("?reference=")[2], 0)
        if not facts:
            raise Refused(404, {"error": "no such payment"})
        return 200, facts

    @staticmethod
    def facts(database, key, since):
        row = database.execute("SELECT id, amount FROM taken WHERE key = ? AND taken_at > ? ORDER BY id DESC",
                               (key, since)).fetchone()
        return row and {"payment": f"p{row[0]}", "amount": row[1]}


if __name__ == "__main__":
    options = arguments(remembers=float)
    Provider.remembers_s = options.remembers
    Provider.store = Store(f"{options.folder}/provider.db", """
        CREATE TABLE IF NOT EXISTS taken (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            key TEXT NOT NULL,
            tenant TEXT NOT NULL,
            reference TEXT NOT NULL,
            amount INTEGER NOT NULL,
            taken_at REAL NOT NULL)""")
    serve(Provider, options)
