"""Writes the function that fuzzes: it runs inside the server, a subtransaction for each call.

What it calls comes from pg_proc.  Arguments come from the pools, by the names and types of the
parameters, from tickets and intents that earlier calls gave, and from mutations of these.
"""

import re

from fuzz_driver import CAPTURE, CAPTURE_INTENT, CHOOSE, DRIVER, told, without_subtransactions
from fuzz_values import HALF

# By function and parameter, by parameter, by type: the pool.
POOLS = {
    ("idem_define", "operation"): "policy", ("idem_define", "comment"): "text",
    ("idem_define", "lease"): "lease", ("idem_intend", "target"): "target",
    ("idem_resolve", "state"): "decision", ("idem_dispatch", "lease"): "must",
    ("idem_send", "lease"): "must", ("idem_reconcile", "lease"): "must", ("idem_recover", "lease"): "must",
    ("idem_recover_one", "lease"): "must", ("idem_release", "reason"): "note",
    ("idem_text", "value"): "text", ("idem_text", "what"): "text", ("idem_duration", "what"): "text",
    ("idem_count", "what"): "text", ("idem_count", "value"): "n", ("idem_duration", "value"): "ttl",
    ("idem_maintain", "max_time"): "must", ("idem_maintain", "batch"): "n",
    ("idem_stat_reset", "operation"): "text", ("idem_tenant_allowed", "tenant"): "text",
    ("idem_operation_id", "name"): "text",
    # what other systems answer has no limit
    ("idem_confirm", "response"): "document", ("idem_reject", "response"): "document",
    ("idem_settle", "response"): "document",
    "tenant": "tenant", "operation": "operation", "key": "key", "guard": "guard", "owner": "owner",
    "worker": "worker", "resource": "resource", "reason": "reason", "name": "name", "step": "name",
    "target": "target", "notify": "notify", "verdict": "verdict", "level": "level", "ttl": "ttl",
    "lease": "lease", "max_lease": "lease", "tombstone_retention": "ttl", "resend_safe_for": "ttl",
    "wait": "wait", "headers": "headers", "body": "body", "fingerprint": "fingerprint",
    "ignore_paths": "paths", "code": "code", "n": "n", "max_chars": "limit", "max_attempts": "attempts",
    "effort": "effort", "keys": "keys", "guards": "guards", "requests": "requests",
    "responses": "responses", "fingerprints": "prints", "steps": "steps",
    ("json",): "json", ("jsonb",): "jsonb", ("boolean",): "bool", ("bigint",): "token",
    ("regrole",): "role", ("regprocedure",): "handler", ("uuid",): "uuid",
}

# Statements on the tables and settings, each undone at once: what they call is in C, too.
UNDONE = {
    "UPDATE idem_record": (
        "UPDATE idem_record SET state = {decision}, token = {token}, attempt = attempt + {code}, "
        "lease_until = CASE WHEN {bool} THEN clock_timestamp() END, reason = {text}, "
        "completed_at = CASE WHEN {bool} THEN clock_timestamp() END, fingerprint = {fingerprint}, "
        "expires_at = CASE WHEN {bool} THEN 'infinity'::timestamptz END, response = {json} "
        "WHERE tenant = m_tenant AND operation = m_operation AND key = m_key",
        "ID003 23502 23505 23514 22003 54000"),
    "DELETE FROM idem_record": ("DELETE FROM idem_record WHERE key = m_key", "ID003"),
    "INSERT INTO idem_policy": (
        "INSERT INTO idem_policy VALUES ({policy}, {ttl}, {lease}, {lease}, {wait}, {ttl}, {attempts}, "
        "{paths}, {bool}, {steps}, {code}, {text}, {notify})",
        "22004 22023 23502 23505"),
    "UPDATE idem_policy": (
        "UPDATE idem_policy SET ttl = {ttl}, wait = {wait}, ignore_paths = {paths}, steps = {steps}, "
        "notify = {notify}, version = {code}",
        "22004 22023 23502"),
    "set_config": ("PERFORM set_config({setting}, {value}, true)", "22023 22004 42501"),
    "settings in use": (
        "PERFORM set_config({setting}, {value}, true); "
        # an hour for somebody else's lease would be waited
        "IF current_setting('idempotency.wait') = '1h' THEN SET LOCAL idempotency.wait = '1ms'; END IF; "
        "PERFORM idem_tenant_allowed({tenant}); "
        "PERFORM idem_claim({tenant}, {operation}, {key}, lease => {must})",
        "22023 22004 42501 ID503"),
}

# What may come out of any call.  A 54000 is the server's: a value that is too large for it.
ANYWHERE = {"53200", "54000", "54001"}
WEIGHT = {"idem_grant": 0.02, "idem_revoke": 0.02, "idem_adopt": 0.01, "idem_maintain": 0.2,
          "idem_recover": 0.1, "idem_dispatch": 0.5, "idem_reconcile": 0.5, "idem_history": 0.3,
          "idem_define": 0.3, "idem_level_objects": 0.02, "idem_check_grant": 0.1, "idem_sweep": 0.3,
          "idem_stat_get": 0.1, "idem_levels": 0.05, "idem_claim": 6, "idem_fingerprint": 4,
          "idem_intend": 2, "idem_execute": 2, "idem_replay": 2, "settings in use": 0.2}

# A refusal with 22004 or 22023 must have a reason among these functions' arguments.
STRICT = {"idem_claim", "idem_replay", "idem_fingerprint", "idem_lock", "idem_check_address",
          "idem_cancel", "idem_hold", "idem_release", "idem_complete", "idem_fail",
          "idem_dispatch", "idem_reconcile", "idem_recover", "idem_sweep"}

ENUMERATE = """
SELECT p.oid, p.proname, p.prokind, l.lanname, p.proretset, p.prorettype::regtype::text,
       coalesce(p.proargnames, '{}'), p.pronargs, p.pronargdefaults,
       ARRAY(SELECT t::regtype::text FROM unnest(p.proargtypes) WITH ORDINALITY AS a (t, n) ORDER BY n),
       coalesce(obj_description(p.oid, 'pg_proc'), '')
FROM pg_proc p
JOIN pg_language l ON l.oid = p.prolang
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
     AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'idempotency'
WHERE p.prorettype <> 'trigger'::regtype
ORDER BY p.proname, p.pronargs, p.oid::regprocedure::text"""


class Function:
    def __init__(self, fields):
        (_, self.name, self.kind, self.language, self.is_set, self.result, names, self.nargs, _, self.types,
         self.comment) = fields
        self.args = list(zip(names[:self.nargs], self.types))
        self.by_token = self.types[:4] == ["text", "text", "text", "bigint"]


def errors_of(name, comments, seen=()):
    """The codes that the comment names, those of the functions it refers to included."""
    found = re.search(r"Errors: (.*?)(?: Tables: |$)", comments[name], re.S)
    if found is None:
        raise SystemExit(f"the comment of {name} names no errors")
    codes = set(re.findall(r"\b(?:\d[0-9A-Z]{4}|ID\d{3})\b", found[1]))
    for other in re.findall(r"idem_\w+", re.sub(r"evidence for idem_settle", "", found[1])):
        if other != name and other not in seen and other in comments:
            codes |= errors_of(other, comments, (*seen, name))
    return codes


class Writer:
    """The plpgsql of one call: where its arguments come from, and what its answer is good for."""

    def __init__(self, pools, number, name):
        self.pools, self.number, self.name = pools, number, name
        self.picks, self.values, self.types, self.faults = [], [], [], []

    def pick(self, pool):
        kind, _, faulty = self.pools[pool]
        place = f"i{len(self.picks) + 1}"
        self.picks.append(f"{place} := 1 + ((random() * 8192)::int & {HALF - 1}) + "
                          f"CASE WHEN random() < wild THEN {HALF} ELSE 0 END;")
        value = f"p_{pool}[{place}]" + (f"::{kind}" if kind.endswith("[]") else "")
        self.note(value, kind)
        if faulty is not None:
            self.faults.append(f"b_{pool}[{place}]")
        return value

    def note(self, value, kind):
        self.values.append(value)
        self.types.append(kind)
        return value

    def argument(self, function, name, kind):
        """An SQL expression for a parameter."""
        if kind == "idem_ticket":
            self.faults.append("m_bad")
            return self.note("m", kind)
        if kind == "idem_ticket[]":
            return self.note("ms", kind)
        if name in ("tenant", "operation", "key") and "key" in dict(function.args):
            if name == "key" and function.name != "idem_operation_id":
                self.faults.append("m_bad")
            return self.note(f"m_{name}", "text")
        if name == "intent" and kind == "uuid":
            return self.note("m_intent", kind)
        if name == "token" and kind == "bigint":
            return self.note("m_token" if function.by_token else "m_intent_token", kind)
        pool = POOLS.get((function.name, name)) or POOLS.get(name)
        if pool is None or self.pools[pool][0] != kind:
            pool = POOLS.get((kind,))
        if pool is None and kind in ("integer", "double precision"):
            pool = {"integer": "code", "double precision": "effort"}[kind]
        if pool is None:
            raise SystemExit(f"no generator for {name} {kind} of {function.name}")
        return self.pick(pool)

    def branch(self, body):
        picks = "\n\t\t\t\t".join(self.picks)
        bad = " OR ".join(f for f in self.faults) or "NULL"
        return (f"\t\t\tWHEN {self.number} THEN\n\t\t\t\t{picks}\n\t\t\t\tbad := {bad};\n"
                f"\t\t\t\tIF trace THEN RAISE LOG 'fuzz: %', {self.show()}; END IF;\n\t\t\t\t{body}\n")

    def show(self):
        """An expression for the call, as SQL text."""
        parts = [f"coalesce(quote_literal({v}::text) || '::{t}', 'NULL')"
                 for v, t in zip(self.values, self.types)] or ["''"]
        return f"'{self.name}(' || concat_ws(', ', {', '.join(parts)}) || ')'"


def loop(row, call, body):
    return f"FOR {row} IN SELECT * FROM {call} LOOP\n\t\t\t\t\t{body}\n\t\t\t\tEND LOOP;"


def check_ticket(function, args):
    """A ticket is about the address that was asked, and has the owner that was told."""
    wrong = "(t.tenant, t.operation, t.key) IS DISTINCT FROM (m_tenant, m_operation, m_key)"
    owner = [value for value, (name, _) in zip(args, function.args) if name == "owner"]
    if owner:
        wrong += f" OR t.outcome = 'execute' AND t.owner IS DISTINCT FROM {owner[0]}"
    return f"IF {wrong} THEN RAISE EXCEPTION 'not its ticket' USING ERRCODE = 'XX999'; END IF"


def remember(function, call, args):
    """The call, and what is kept of its answer."""
    name = function.name
    if "m_key" in args and function.result == "idem_ticket" and name != "idem_recover_one":
        call += f"; {check_ticket(function, args)}"
    row = "" if "m_key" in args else "m"
    ended = {"idem_complete": "'succeeded'", "idem_fail": "'failed'",
             "idem_resolve": f"nullif({args[3]}, 'released')" if name == "idem_resolve" else ""}
    if function.kind == "p":
        return f"CALL {call};"
    if name in ended:
        return f"d_void := {call}; {told(ended[name], row)}"
    if name == "idem_complete_batch":
        batch = told("'succeeded'", "t")
        return f"d_integer := {call}; FOREACH t IN ARRAY ms LOOP {batch} END LOOP;"
    if name in ("idem_execute", "idem_cancel"):
        return (f"t := {call}; IF t.outcome IN ('execute', 'resume', 'cancelled') AND t.completed_at IS NOT NULL "
                f"THEN {told('t.state', 't')} END IF;")
    if name == "idem_require":
        return f"t := {call};"
    if function.result == "idem_ticket":
        return loop("t", call, CAPTURE) if function.is_set else f"t := {call}; {CAPTURE}"
    if function.result == "idem_intent":
        return loop("n", call, CAPTURE_INTENT) if function.is_set else f"n := {call}; {CAPTURE_INTENT}"
    if function.is_set or name == "idem_define":
        return f"PERFORM count(*) FROM {call};"
    return f"d_{function.result.split()[0]} := {call};"


def write_call(function, writer):
    args = [writer.argument(function, name, kind) for name, kind in function.args]
    if function.name in ("idem_claim", "idem_replay"):
        writer.faults.append(f"({args[3]} IS NOT NULL AND {args[4]} IS NOT NULL)")
    if function.name == "idem_fingerprint":     # NULL for NULL, whatever the paths
        writer.faults = [f"({args[0]} IS NOT NULL AND {writer.faults[0]})"]
    if function.name == "idem_claim_batch":     # without keys nothing else is looked at
        writer.faults = [f"(cardinality({args[2]}) > 0 AND ({' OR '.join(writer.faults)}))"]
    return writer.branch(remember(function, f"{function.name}({', '.join(args)})", args))


def write_statement(statement, writer):
    body = re.sub(r"\{(\w+)\}", lambda found: writer.pick(found[1]), statement)
    writer.faults.clear()
    return writer.branch(f"{body};\n\t\t\t\tRAISE EXCEPTION USING ERRCODE = 'UNDO0';")


def write_driver(functions, pools):
    """Both drivers, the names of what they call, by number from 1, and every code allowed."""
    comments = {function.name: function.comment for function in functions}
    names, branches, shows, weights, allowed, strict, fresh = [], [], [], [], [], [], []
    claims, places, batch = [], 0, 0
    calls = [(f.name, f) for f in functions] + [(name, None) for name in UNDONE]
    for number, (name, function) in enumerate(calls, 1):
        writer = Writer(pools, number, name)
        if function is None:
            statement, codes = UNDONE[name]
            branches.append(write_statement(statement, writer))
            allowed.append(" ".join([*codes.split(), "UNDO0", *ANYWHERE]))
        else:
            branches.append(write_call(function, writer))
            allowed.append(" ".join(sorted(errors_of(name, comments) | ANYWHERE)))
        if name == "idem_complete_batch":
            batch = number
        places = max(places, len(writer.picks))
        names.append(name)
        shows.append(f"WHEN {number} THEN {writer.show()}")
        weights += [str(number)] * max(1, int(100 * WEIGHT.get(name, 1)))
        strict.append("t" if name in STRICT else "f")
        if name in ("idem_claim", "idem_execute"):
            claims.append(number)
        is_new = name in ("idem_claim", "idem_execute", "idem_replay", "idem_fingerprint", "settings in use")
        fresh.append("0.8" if is_new else "0.1")
    kinds = sorted({f.result for f in functions if not f.is_set} - {"idem_ticket", "idem_intent", "-"})
    declarations = [f"i{place + 1} int;" for place in range(places)]
    declarations += [f"d_{kind.split()[0]} {'text' if kind == 'void' else kind};" for kind in kinds
                     if kind not in ("idem_policy",)]
    load = []
    for pool, (kind, _, faulty) in pools.items():
        # arrays of different bounds cannot be elements of one
        declarations.append(f"p_{pool} {'text' if kind.endswith('[]') else kind}[];")
        load.append(f"p_{pool} := ARRAY(SELECT v FROM pool_{pool} ORDER BY place);")
        if faulty is not None:
            declarations.append(f"b_{pool} boolean[];")
            load.append(f"b_{pool} := ARRAY(SELECT faulty FROM pool_{pool} ORDER BY place);")
    declarations.append("weights CONSTANT int[] := '{%s}';" % ",".join(weights))
    declarations.append("allowed CONSTANT text[] := '{%s}';" % ",".join(f'"{a}"' for a in allowed))
    declarations.append("is_strict CONSTANT boolean[] := '{%s}';" % ",".join(strict))
    declarations.append("fresh CONSTANT float8[] := '{%s}';" % ",".join(fresh))
    text = DRIVER
    for mark, value in {"declarations": "\n\t".join(declarations), "load": "\n\t".join(load),
                        "choose": CHOOSE, "branches": "".join(branches), "shows": " ".join(shows),
                        "count": str(len(names)), "weight": str(len(weights)), "batch": str(batch),
                        "told": told("'succeeded'", "t")}.items():
        text = text.replace(f"@{mark}@", value)
    return text, without_subtransactions(text, claims), names, set(" ".join(allowed).split())
