"""Values for every argument: half of each pool is good, the other half is at and beyond every bound.

A pool is (type, values, faulty): 2 * HALF values as text, None for NULL, and for each whether a call
that gets it has to be refused; None where nobody can tell.
"""

import json
import sys

import canonical

HALF = 32
LARGEST = 65536                 # idempotency.max_response_size of the fuzzed database

OPERATIONS = ["o", "order.create", "opération", "o" * 128, "po", "p.steps"]
STATES = ["processing", "released", "succeeded", "failed", "unknown", "cancelled"]
OUTCOMES = ["execute", "resume", "replay", "in_progress", "mismatch", "expired", "unknown",
            "duplicate", "cancelled", "absent"]
STRANGE = ["'; DROP TABLE idem_record; --", "\\000\\x00", "%s%n%x", "NULL", "{}", '{"a', "\u202eabc",
           "\ufeff", "e\u0301" * 60, "\U0001d518" * 20, "\x01\x02\x7f\x1b[0m", "a\nb\tc", '"', "\\",
           "a/b~c", "  x  ", "\u00a0", "\u2003"]
BLANKS = ["", " ", "\t\n\v\f\r ", " " * 300]
TIMES = ["-infinity", "infinity", "4713-01-01 BC", "294276-12-31", "2000-01-01", None]
BIG_NUMBERS = ["1e131071", "1e-16383", "-0", "0.000", "1.0000000000000000000000000000000000000",
               "9" * 400, "-1e-1000", "10000", "99999999", "0.0001", "1e4", "1E+4"]


def is_blank(text):
    return not text.strip(" \t\n\v\f\r")


def text_fault(text, limit):
    return text is None or is_blank(text) or len(text) > limit


def texts(random, limit, good=(), null=False):
    """Half good, half doubtful; the limit is in characters."""
    wide = random.choice(["x", "é", "\u6f22", "\U0001d518"])
    fine = list(good) + [t for t in STRANGE if len(t) <= limit] + [
        "x" * limit, wide * limit, "x" * (limit - 1), random.choice("abc") + canonical.make_text(random)]
    fine = [t for t in fine if not text_fault(t, limit) and "\0" not in t]
    doubtful = BLANKS + [None] * 3 + ["x" * (limit + 1), wide * (limit + 1), " " * limit + "x",
                                      " " * (limit - 1) + "x", "x" * (2 * limit), "x" * 1024, "x" * 1025,
                                      wide * 300, "y" * random.choice([3000] * 9 + [1_000_000])]
    doubtful += [canonical.make_text(random) for _ in range(HALF - len(doubtful))]
    chosen = [random.choice(fine) for _ in range(HALF)]
    if null:
        chosen[::2] = [None] * (HALF // 2)
    if good and not null:
        chosen[::2] = [random.choice(good) for _ in range(HALF // 2)]
    values = chosen + doubtful[:HALF]
    return "text", values, [False if null and v is None else text_fault(v, limit) for v in values]


def one_of(random, words, null=False):
    """A word of a list, or anything else."""
    good = [random.choice(words) for _ in range(HALF)]
    bad = [None, "", " ", words[0] + " ", words[0].upper(), words[0][:-1], "x" * 1000, "\U0001d518"]
    bad = [random.choice(bad + words) for _ in range(HALF)]
    return "text", good + bad, [not (v in words or null and v is None) for v in good + bad]


DAY_US = 86400 * 10 ** 6


def span(days, us, months=0):
    return f"{months} months {days} days {us} microseconds"


def durations(random, good, longest_us, zero=False, null=True):
    values = [random.choice(good + [None] * null) for _ in range(HALF)]
    edge = [(0, 0), (0, 1), (0, -1), (0, longest_us), (0, longest_us + 1), (1, -DAY_US), (1, -DAY_US + 1),
            (-1, DAY_US + 1), (-1, DAY_US), (2147483647, 0), (-2147483648, 0), (0, 2 ** 63 - 1),
            (0, -2 ** 63), (2147483647, 2 ** 63 - 1), (-2147483648, -2 ** 63), (106751991, 2 ** 63 - 1),
            (36500, 0), (36500, 1), (36501, -DAY_US)]
    bounded = [e for e in edge if not 2000 < e[0] * DAY_US + e[1] <= longest_us or longest_us > DAY_US]
    faulty = [False] * HALF
    for _ in range(HALF):
        days, us = random.choice(bounded)
        months = random.choice([0] * 6 + [1, -1, 12, 2147483647, -2147483648])
        total = days * DAY_US + us
        if random.random() < 0.3:
            values.append(None)
            faulty.append(not null)
        else:
            values.append(span(days, us, months))
            faulty.append(months != 0 or total < 0 or total > longest_us or total == 0 and not zero)
    return "interval", values, faulty


def deep(random, depth, open_, close):
    return open_ * depth + random.choice(["1", '""', "null", "[]"]) + close * depth


def documents(random, kind):
    """json or jsonb; json may have what jsonb refuses."""
    good = [canonical.spell(random, canonical.make(random)) for _ in range(HALF - 4)] + [None] * 4
    far = [deep(random, 200, "[", "]"), deep(random, 200, '{"a":', "}"), "[]", "{}", "null", '""', "0",
           "[" + ",".join(BIG_NUMBERS) + "]", json.dumps({str(i): i for i in range(1000)}),
           json.dumps(list(range(2000))), json.dumps({"x" * 255: "y" * 3000}), '{"a":1,"a":2,"a":{"a":3}}',
           json.dumps("x" * LARGEST), json.dumps("é" * (LARGEST // 6)), " " * 1000 + "1" + " " * 1000]
    if kind == "json":
        far += ['"\\u0000"', '{"\\u0000": 1}', '"\\ud800"', "1e999999", '"' + "x" * (LARGEST - 2) + '"',
                '"' + "x" * (LARGEST - 1) + '"', '"' + "x" * random.choice([LARGEST, 10 ** 6]) + '"',
                deep(random, 5000, "[", "]")]
    values = good + [random.choice(far) for _ in range(HALF)]
    if kind == "jsonb":
        return kind, values, None
    return kind, values, [v is not None and len(v.encode()) > LARGEST for v in values]


def as_bytea(data):
    return None if data is None else "\\x" + data.hex()


def bodies(random):
    values = [random.choice([None, b"", b"\0\xff", random.randbytes(random.randrange(70)),
                             random.randbytes(2000)]) for _ in range(HALF)]
    values += [random.choice([b"\0" * LARGEST, b"\0" * (LARGEST + 1), b"x" * (LARGEST - 1), b"\xff" * 70,
                              random.randbytes(5000), b"y" * random.choice([LARGEST + 2, 10 ** 6])]) for _ in range(HALF)]
    return "bytea", [as_bytea(v) for v in values], [v is not None and len(v) > LARGEST for v in values]


def is_fingerprint(data):
    return data is None or len(data) == 33 and data[0] in (0, 1)


def fingerprints(random):
    values = [random.choice([None, None, None, b"\0" * 33, b"\1" + b"f" * 32,
                             bytes([random.randrange(2)]) + random.randbytes(32)]) for _ in range(HALF)]
    values += [random.choice([b"", b"\0", b"\2" + b"f" * 32, b"\xff" * 33, random.randbytes(32),
                              random.randbytes(34), random.randbytes(random.randrange(71)), b"\1" * 33,
                              random.randbytes(10000)]) for _ in range(HALF)]
    return "bytea", [as_bytea(v) for v in values], [not is_fingerprint(v) for v in values]


def quote(item):
    if item is None:
        return "NULL"
    if isinstance(item, list):
        return "{" + ",".join(map(quote, item)) + "}"
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array(items):
    return None if items is None else quote(items)


def arrays(random, kind, pool, good_size=3):
    """Of elements of a pool: of one dimension; or empty, NULL, of two, or beginning elsewhere."""
    values = []
    for _ in range(HALF):
        values.append(array([random.choice(pool[:HALF]) for _ in range(good_size)]))
    for _ in range(HALF):
        items = [random.choice(pool) for _ in range(random.choice([0, 1, 2, 3, 3, 3, 40]))]
        small = [i for i in items if i is None or len(i) < 5000][:3] or [None]
        values.append(random.choice([
            array(items), None, "{}", array([small, small]), array([[small], [small]]),
            f"[5:{4 + len(small)}]={array(small)}", f"[-1:{len(small) - 2}]={array(small)}",
            array([None] * 3), array([random.choice(pool[:HALF])] * 3)]))
    return kind + "[]", values, None


def is_pointer(text):
    return text is not None and text.startswith("/") and "~" not in text.replace("~0", "").replace("~1", "")


def paths(random):
    values, faulty = [None] * 8, [False] * 8
    while len(values) < 2 * HALF:
        n = random.choice([0, 1, 2, 3])
        items = [canonical.pointer([random.choice(canonical.NAMES)
                                    for _ in range(random.randrange(1, 4))]) for _ in range(n)]
        if len(values) >= HALF:
            items += random.choice([[], ["/a"] * 61, ["/a"] * 64, ["/a"] * 65, [None], [""], ["a"],
                                    ["/~"], ["/~2"], ["/~01~10"], ["/"], ["//"], ["/" * 3000],
                                    ["/" + "x" * 100000]])
        two = len(values) >= HALF and items and random.random() < 0.1
        values.append(array([items, items] if two else items))
        faulty.append(bool(two) or len(items) > 64 or not all(map(is_pointer, items)))
    return "text[]", values, faulty


def numbers(random, kind, good, edges, low=None, high=None, null=False):
    values = [random.choice(good) for _ in range(HALF)] + [random.choice(edges) for _ in range(HALF)]
    faulty = None
    if low is not None:
        faulty = [not null if v is None else not low <= float(v) <= high for v in values]
    return kind, values, faulty


def row(fields):
    return "(" + ",".join("" if f is None else '"' + f.replace("\\", "\\\\").replace('"', '""') + '"'
                          for f in fields) + ")"


def answers(random, pools):
    """Rows of idem_response, for a handler."""
    def of(name):
        return random.choice(pools[name][1][:HALF] * 3 + pools[name][1])
    rows = [row([of("json"), random.choice([None, "0", "-1", "2147483647"]), of("resource"), of("headers"),
                 of("body"), random.choice([None, "succeeded", "failed"] * 3 + STATES + ["", "x" * 300])])
            for _ in range(2 * HALF)]
    return "idem_response", rows, None


def forged(random, pools):
    """Rows of idem_ticket that no claim ever gave."""
    def of(name):
        return random.choice(pools[name][1])
    rows = []
    for _ in range(2 * HALF):
        times = [random.choice(TIMES) for _ in range(4)]
        fields = [random.choice(OUTCOMES + ["", None, "x" * 500]), of("tenant"), of("operation"), of("key"),
                  of("token"), of("code"), random.choice(STATES + [None, ""]), *times, of("ttl"),
                  of("code"), of("text"), of("json"), of("jsonb"), of("body"), of("jsonb"), of("text"),
                  of("text"), of("key")]
        fields = [f if f is None or len(f) < 200000 else None for f in fields]
        if random.random() < 0.3:
            fields[random.randrange(len(fields))] = None
        rows.append(random.choice([row(fields)] * 9 + [row([None] * len(fields))]))
    return "idem_ticket", rows, None


def make_pools(random):
    sys.set_int_max_str_digits(0)
    keys = [f"k{random.randrange(10 ** 6)}" for _ in range(24)] + ["k1", "k2", "k3"]
    steps = ["reserve", "pay", "ship"]
    edges = ["0", "1", "-1", "2147483647", "-2147483648", None]
    pools = {
        "tenant": texts(random, 128, ["t", "acme", "Smith, Jones & Co"]),
        "operation": texts(random, 128, OPERATIONS),
        "key": texts(random, 255, keys),
        "guard": texts(random, 255, ["g1", "g2", "cart:7"], null=True),
        "owner": texts(random, 255, null=True),
        "worker": texts(random, 255),
        "resource": texts(random, 1024, null=True),
        "reason": texts(random, 1024),
        "note": texts(random, 1024, null=True),
        "name": texts(random, 128, steps),
        "target": texts(random, 128, ["bank", "mail"]),
        "policy": texts(random, 128, ["po", "p.steps"]),
        "notify": texts(random, 63, null=True)[:2] + (None,),
        "verdict": one_of(random, ["happened", "absent", "unclear"]),
        "decision": one_of(random, ["succeeded", "failed", "released"]),
        "level": one_of(random, ["client", "worker", "monitor", "operator"])[:2] + (None,),
        "ttl": durations(random, ["1 us", "1 ms", "1 hour", "36500 days"], 36500 * DAY_US),
        "must": durations(random, ["1 us", "1 ms", "1 hour", "36500 days"], 36500 * DAY_US, null=False),
        "lease": durations(random, ["1 us", "1 ms", "1 hour", "20 days"], 36500 * DAY_US),
        "wait": durations(random, ["0", "0", "1 us"], DAY_US, zero=True),
        "json": documents(random, "json"),
        "jsonb": documents(random, "jsonb"),
        "body": bodies(random),
        "fingerprint": fingerprints(random),
        "paths": paths(random),
        "code": numbers(random, "integer", ["200", "404", None], edges),
        "n": numbers(random, "integer", ["1", "2", "10"], edges + ["10000", "10001"], 1, 10000),
        "limit": numbers(random, "integer", ["10", "128"], edges)[:2] + (None,),
        "attempts": numbers(random, "integer", ["2", "3", None, None], edges, 1, 2 ** 31, null=True),
        "effort": numbers(random, "float8", ["1"], ["0", "0.01", "1", "1.1", "-1", "nan", "inf", "-inf",
                                                    "1e308", "1e-308", None]),
        "token": numbers(random, "bigint", ["1", "0", None], ["-1", "9223372036854775807",
                                                              "-9223372036854775808", None]),
        "bool": ("boolean", [random.choice(["t", "f"]) for _ in range(HALF)] +
                 [random.choice(["t", "f", None]) for _ in range(HALF)], None),
        "role": ("regrole", [random.choice(["fuzz_role", "postgres", "0", "4294967295", "pg_monitor", None])
                             for _ in range(2 * HALF)], None),
        "handler": ("regprocedure", [random.choice(
            ["h_json(jsonb)", "h_jsonb(jsonb)", "h_answer(jsonb)", "h_answer(jsonb)", "h_claims(jsonb)"])
            for _ in range(HALF)] + [random.choice(
                ["h_error(jsonb)", "h_strict(jsonb)", "h_set(jsonb)", "h_two(jsonb,jsonb)", "h_text(text)",
                 "h_wrong(jsonb)", "h_call(jsonb)", "jsonb_object_agg(\"any\",\"any\")", "0", "4294967295",
                 "rank()", "jsonb_in(cstring)", "idem_record_protect()", None]) for _ in range(HALF)], None),
        "uuid": ("uuid", [random.choice([None, "0" * 32, "f" * 32]) for _ in range(2 * HALF)], None),
        "setting": ("text", [random.choice(
            ["idempotency.allowed_tenants", "idempotency.ttl", "idempotency.wait", "idempotency.durability",
             "idempotency.max_response_size", "idempotency.tombstone_retention"])
            for _ in range(2 * HALF)], None),
        "value": ("text", [random.choice(
            ["*", "", "t", 't, "a b"', '"', '""', '"a""b"', ",", "t,", "*,t", "1h", "-1", "0", "1ms", "1e99",
             "local", "replicated", "2147483647", "99999999999", "x" * 70000, "é", '"' + "x" * 300 + '"',
             ",".join("t" * 5000), None]) for _ in range(2 * HALF)], None),
    }
    pools["text"] = texts(random, 1000)[:2] + (None,)
    pools["document"] = pools["json"][:2] + (None,)
    pools["headers"] = pools["jsonb"][:2] + (None,)
    pools["keys"] = arrays(random, "text", pools["key"][1])
    pools["guards"] = arrays(random, "text", pools["guard"][1])
    pools["requests"] = arrays(random, "jsonb", [v for v in pools["jsonb"][1] if v is None or len(v) < 9999])
    pools["responses"] = arrays(random, "json", [v for v in pools["json"][1] if v is None or len(v) < 99999])
    pools["prints"] = arrays(random, "bytea", pools["fingerprint"][1])
    pools["steps"] = arrays(random, "text", [*steps, None, "", "x" * 129])
    pools["answer"] = answers(random, pools)
    pools["ticket"] = forged(random, pools)
    return pools
