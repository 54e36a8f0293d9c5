"""A thousand claims and completions of one transaction, in several ways."""
import statistics
import time
import uuid

import figures
from commands import REQUEST, TENANT
from session import Session

COUNT = 1000
OPERATION = b"order.import"
RESPONSE = b'{"order" : 1, "status" : "created"}'

LOOP = """
CREATE PROCEDURE one_by_one(tenant text, operation text, keys text[], request jsonb, response json)
LANGUAGE plpgsql AS $$
DECLARE
	each text;
BEGIN
	FOREACH each IN ARRAY keys LOOP
		PERFORM idem_complete(idem_claim(tenant, operation, each, request), response, 201);
	END LOOP;
END $$;

CREATE FUNCTION all_at_once(tenant text, operation text, keys text[], request jsonb, response json)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	tickets idem_ticket[];
	claimed bigint;
BEGIN
	SELECT array_agg(t), count(*) FILTER (WHERE outcome = 'execute') INTO tickets, claimed
	FROM idem_claim_batch(tenant, operation, keys, array_fill(request, ARRAY[cardinality(keys)])) AS t;
	PERFORM idem_complete_batch(tickets, array_fill(response, ARRAY[cardinality(keys)]));
	RETURN claimed;
END $$;
"""


class Way:
    statements = {}

    def __init__(self):
        self.session = Session()
        self.session.prepare(begin="BEGIN", commit="COMMIT", **self.statements)
        self.rates, self.cpu = [], []

    def measure(self):
        keys = [str(uuid.uuid4()).encode() for _ in range(COUNT)]
        cpu, began = self.session.cpu_us(), time.perf_counter()
        self.session.run("begin")
        self.run(keys)
        self.session.run("commit")
        self.rates.append(COUNT / (time.perf_counter() - began))
        self.cpu.append((self.session.cpu_us() - cpu) / COUNT)


class Single(Way):
    name = "single calls"
    statements = {"claim": "SELECT token FROM idem_claim($1, $2, $3, $4) WHERE outcome = 'execute'",
                  "complete": "SELECT idem_complete($1, $2, $3, $4, $5::json, 201)"}

    def run(self, keys):
        for key in keys:
            token = self.session.run("claim", TENANT, OPERATION, key, REQUEST).get_value(0, 0)
            self.session.run("complete", TENANT, OPERATION, key, token, RESPONSE)


class Pipelined(Single):
    """Without waiting for an answer, but for the tokens between the two halves."""
    name = "single calls, pipelined"

    def run(self, keys):
        self.session.conn.enter_pipeline_mode()
        claims = self.pipeline("claim", [(TENANT, OPERATION, key, REQUEST) for key in keys])
        self.pipeline("complete", [(TENANT, OPERATION, key, claim.get_value(0, 0), RESPONSE)
                                   for key, claim in zip(keys, claims)])
        self.session.conn.exit_pipeline_mode()

    def pipeline(self, name, calls):
        conn, results = self.session.conn, []
        # in parts that fit the buffers of both ends
        for start in range(0, len(calls), 100):
            part = calls[start:start + 100]
            for values in part:
                conn.send_query_prepared(name.encode(), values)
            conn.pipeline_sync()
            for _ in part:
                results.append(Session.checked(conn.get_result()))
                conn.get_result()               # the end of this one
            conn.get_result()                   # the sync
        return results


class ServerLoop(Way):
    name = "single calls, a loop in PL/pgSQL"
    statements = {"all": "CALL one_by_one($1, $2, $3, $4, $5)"}

    def run(self, keys):
        self.session.run("all", TENANT, OPERATION, array(keys), REQUEST, RESPONSE)


class Batch(Way):
    """In a function, as ServerLoop is."""
    name = "batches, called by a function"
    statements = {"all": "SELECT all_at_once($1, $2, $3, $4, $5)"}

    def run(self, keys):
        self.expect_all(self.session.run("all", TENANT, OPERATION, array(keys), REQUEST, RESPONSE).get_value(0, 0))

    @staticmethod
    def expect_all(claimed):
        if claimed != b"%d" % COUNT:
            raise RuntimeError(f"{claimed} of {COUNT} claimed")


class BatchStatements(Batch):
    """Two statements; the tickets go to the client and come back."""
    name = "batches, called by the client"
    statements = {"claim": "SELECT array_agg(t), count(*) FILTER (WHERE outcome = 'execute')"
                           " FROM idem_claim_batch($1, $2, $3,"
                           " array_fill($4::jsonb, ARRAY[cardinality($3::text[])])) AS t",
                  "complete": "SELECT idem_complete_batch($1, array_fill($2::json,"
                              " ARRAY[cardinality($1::idem_ticket[])]))"}

    def run(self, keys):
        claims = self.session.run("claim", TENANT, OPERATION, array(keys), REQUEST)
        self.expect_all(claims.get_value(0, 1))
        self.session.run("complete", claims.get_value(0, 0), RESPONSE)


def array(keys):
    return b"{%s}" % b",".join(keys)


def run(rounds):
    admin = Session()
    admin.sql(LOOP)
    ways = single, pipelined, loop, *batches = [Single(), Pipelined(), ServerLoop(), Batch(), BatchStatements()]
    for way in ways:                            # past custom plans and cold caches
        way.measure()
        way.rates.clear()
        way.cpu.clear()
    for _ in range(rounds):
        for way in ways:
            way.measure()
    made = int(admin.value("SELECT count(*) FROM idem_record WHERE state = 'succeeded'"
                           f" AND operation = '{OPERATION.decode()}' AND response::text = '{RESPONSE.decode()}'"))
    if made != (1 + rounds) * COUNT * len(ways):
        raise RuntimeError(f"{made} records")
    print(f"  {f'{COUNT} commands, one transaction':36}{'per s':>9}{'ratio':>9}{'CPU µs':>9}")
    for way in ways:
        rate = statistics.median(way.rates)
        print(f"  {way.name:36}{rate:9.0f}{rate / statistics.median(single.rates):9.2f}{min(way.cpu):9.1f}")
    for batch in batches:
        for way in (single, pipelined, loop):
            figures.add("P8", f"{batch.name}: {COUNT} claims and completions", way.name, "/s", batch.rates,
                        way.rates, rate=True, at_least=5.0 if way is single else None)
    print(flush=True)
