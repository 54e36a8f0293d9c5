"""Client that wants N orders placed: sends each many times at once until one try is acknowledged.

All its state is in its arguments and its journals: started again after a kill,
it goes on with the orders that were not acknowledged yet.
"""

import argparse
import http.client
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from os import getpid

from journal import Journal, Reader

parser = argparse.ArgumentParser()
parser.add_argument("--name", required=True)
parser.add_argument("--journal", required=True, help="folder")
parser.add_argument("--customer", required=True)
parser.add_argument("--orders", type=int, required=True)
parser.add_argument("--ports", required=True, help="of the services")
parser.add_argument("--burst", type=int, required=True, help="tries of an order at once")
parser.add_argument("--hang-up", type=float, required=True, help="share of tries that do not wait for the answer")
parser.add_argument("--alter", type=float, required=True, help="share of orders sent again with a changed body")
parser.add_argument("--seed", required=True)
options = parser.parse_args()

ports = options.ports.split(",")
acknowledged = {line["key"] for line in Reader(options.journal, options.name).news()
                if line["event"] == "acknowledged"}
journal = Journal(options.journal, options.name)
chance = random.Random(options.seed)
number = count(1)
tries = ThreadPoolExecutor(64)


def attempt(n, altered=False):
    """One try of order n.  Its status, or None when there was no answer."""
    key = f"order-{n}"
    name = f"{options.name}.{getpid()}.{next(number)}"
    body = json.dumps({"reference": f"R{n}", "item": ("tea", "coffee", "cocoa")[n % 3],
                       "quantity": n % 9 + 1 + altered})
    journal.write("try", name=name, key=key, customer=options.customer, altered=altered)
    connection = http.client.HTTPConnection("127.0.0.1", int(chance.choice(ports)), timeout=20)
    try:
        connection.request("POST", "/orders", body, {
            "Idempotency-Key": key, "X-Customer": options.customer, "X-Try": name})
        if chance.random() < options.hang_up:
            time.sleep(chance.random() * 0.05)
            journal.write("hung up", name=name)
            return None
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, http.client.HTTPException) as error:
        journal.write("no answer", name=name, error=repr(error))
        return None
    finally:
        connection.close()
    journal.write("answer", name=name, status=response.status, body=text,
                  replayed=response.headers["Idempotent-Replayed"] == "true")
    return response.status


def place(n):
    if f"order-{n}" in acknowledged:
        return
    for burst in count(1):
        statuses = list(tries.map(attempt, [n] * options.burst))
        if 201 in statuses:
            break
        if 422 in statuses:
            return  # asking again would not help; the report will say so
        time.sleep(min(0.02 * burst, 0.2))
    journal.write("acknowledged", key=f"order-{n}", customer=options.customer)
    # A bug of this client: the same key for another order.
    if chance.random() < options.alter:
        attempt(n, altered=True)


with ThreadPoolExecutor(3) as orders:
    for done in [orders.submit(place, n) for n in range(1, options.orders + 1)]:
        done.result()
