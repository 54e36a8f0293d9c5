"""What the histories and the tables have to agree on; each check names its invariant."""

import collections
import json

from history import GRANTED, answer, brief, duplicates, forever, seconds
from owner import RETENTION_S, TTL_S, WIDTH

BRIEF_TTL_S = 0.4               # of the operation "brief"
CLOCK_S = 0.002                 # two readings of one clock, rounded
OWNERS = ("complete", "fail", "release", "unknown", "heartbeat", "hold", "step", "step_done", "intend")
REQUEST_EQUAL = """
SELECT key, state FROM idem_record r WHERE fingerprint IS NOT NULL AND NOT EXISTS (
    SELECT FROM generate_series(0, 1) v WHERE r.fingerprint =
        idem_fingerprint(jsonb_build_object('key', key, 'variant', v)))
"""
STEPS_DIFFER = """
SELECT e.key, e.kind, e.response, s.result
FROM (SELECT * FROM effect WHERE kind LIKE 'step %') e
FULL JOIN (SELECT *, 'step ' || step AS kind FROM idem_step) s USING (operation, key, kind)
WHERE e.response IS DISTINCT FROM s.result::text AND operation <> 'gone'
"""
LATE_WRITES = """
SELECT e.key, e.kind, e.attempt, e.at, t.attempt, t.at FROM effect e
JOIN idem_event t USING (operation, key)
WHERE e.token IS NOT NULL AND t.intent IS NULL AND t.to_state = 'processing'
    AND e.attempt < t.attempt AND e.at > t.at AND operation <> 'gone'
"""
GUARDS = f"""
SELECT guard, array_agg(key) FROM idem_record WHERE state = 'succeeded' AND guard IS NOT NULL
GROUP BY guard HAVING count(*) > 1
UNION ALL
SELECT 'g' || right(key, -4)::int / {WIDTH}, array_agg(key) FROM effect
WHERE operation = 'once' AND kind = 'end' GROUP BY 1 HAVING count(*) > 1
"""
ATTEMPTS = """
SELECT key, state, attempt FROM idem_record r WHERE attempt <> 1 + (
    SELECT count(*) FROM idem_event e WHERE e.intent IS NULL AND e.to_state = 'processing'
        AND (e.tenant, e.operation, e.key) = (r.tenant, r.operation, r.key))
"""


def check(checks, history, one_clock=True):
    """Without one clock for all nothing is said about times that the server read."""
    for part in (check_commits, check_effects, check_answers, check_fences, check_granted,
                 check_fingerprints, check_questions, check_trail):
        part(checks, history)
    if one_clock:
        for part in (check_rebirths, check_late_writes, check_expiry, check_leases,
                     check_sending):
            part(checks, history)


def check_commits(checks, history):
    checks.none([tx["tx"] for tx in history.transactions
                 if tx["writes"] and tx["status"] in ("acked", "aborted")
                 and (tx["status"] == "acked") != (tx["tx"] in history.committed)],
                f"what was acknowledged is there, nothing else ({len(history.committed)})")
    checks.none([brief(op) for op in history.kept if op["f"] == "forget"],
                "1: nothing was committed with an unfinished claim")


def ends_written(history):
    effects = collections.defaultdict(list)
    for operation, key, kind, token, response, at in history.effects:
        if kind in ("end", "again"):
            effects[operation, key].append((token, response, at))
    return effects


def check_rebirths(checks, history):
    checks.none([(address, one, other) for address, all_of in ends_written(history).items()
                 if address[0] == "gone" for one, other in zip(all_of, all_of[1:])
                 if other[2] < one[2] + TTL_S + RETENTION_S],
                "1: what was purged was new only after its time")


def check_effects(checks, history):
    effects = ends_written(history)
    faults = []
    for address, (state, _, token, response, *_) in history.records.items():
        if address[0] == "gone":
            continue
        had = [effect[:2] for effect in effects[address]]
        wanted = 1 if state == "succeeded" else 0
        if len(had) != wanted or wanted and (
                had[0][0] not in (None, token) or response not in (None, had[0][1])):
            faults.append((address, state, token, response, had))
    checks.none(faults, "1: each success had its effect once, all others none"
                f" ({len(history.records)} commands)")
    checks.none([one for one in effects if one[0] != "gone" and one not in history.records],
                "1: there is no effect without a record")
    checks.none(history.db.execute(GUARDS), "1: of the commands with one guard one succeeded")
    checks.none(history.db.execute(STEPS_DIFFER), "1: each step was done once")


def check_answers(checks, history):
    answers = collections.defaultdict(set)
    for op in history.ends:
        answers[op["address"]].add(json.dumps(op["result"]))
    checks.none([brief(op) for op in history.replays
                 if json.dumps(answer(op)) not in answers[op["address"]]],
                f"2: each replay told what was stored, byte for byte ({len(history.replays)})")
    checks.none([one for one in answers.items() if one[0][0] != "gone" and len(one[1]) > 1],
                "2: there is one end of each")
    faults = []
    for op in history.ends:
        record = history.records.get(op["address"])
        if forever(op) and (record is None or op.get("token") not in (None, record[2])
                            or record[3] is not None and list(record[3:]) != op["result"]):
            faults.append((brief(op), record))
    checks.none(faults, f"2: each end is the one that is stored ({len(history.ends)})")
    states = collections.defaultdict(set)
    for op in history.replays:
        states[op["address"]].add(op["state"])
    checks.none([(address, told) for address, told in states.items() if address[0] != "gone"
                 and told != {history.records[address][0]}], "2: no final state changed")


def check_fences(checks, history):
    checks.none(duplicates(op["token"] for op in history.ops if op["f"] in
                           ("claim", "recovered") and op.get("token")),
                "3: each token was given once")
    checks.none(duplicates((*op["address"], op["attempt"]) for op in history.kept
                           if op["f"] in ("claim", "recovered") and op.get("token")
                           and op.get("lease") and forever(op)),
                "3: each attempt was given once")
    given = collections.defaultdict(list)
    for op in history.grants:
        # an atomic claim that is released has written nothing: who had it before has it still
        if op["kept"] and op["tx"]["status"] == "acked" and forever(op) and op.get("lease_until"):
            given[op["address"]].append((op["tx"]["end"], op["attempt"]))
    checks.none([brief(op) for op in history.kept if op["f"] in OWNERS and
                 any(end < op["s"] and attempt > (op["attempt"] or attempt)
                     for end, attempt in given[op["address"]])],
                "3: a stale token changed nothing")


def check_late_writes(checks, history):
    checks.none(history.db.execute(LATE_WRITES), "3: nobody wrote for a command he had lost")


def after_the_end(history):
    """What was asked for once the end was known."""
    known = history.known_ends()
    return [op for op in history.told if forever(op) and op["s"] > known.get(op["address"], 1e99)]


def check_granted(checks, history):
    after = after_the_end(history)
    checks.none([brief(op) for op in after if op["outcome"] not in
                 ("replay", "mismatch", "expired")],
                f"4: once the end was known, nothing else was told ({len(after)} answers)")
    decided, unknown = collections.defaultdict(list), collections.defaultdict(list)
    for tx in history.transactions:
        for op in tx["ops"]:
            if op["f"] == "resolve":
                decided[op["address"]].append(op)
    for op in history.kept:         # a saga may be released by a verdict, see check_questions
        if op["f"] == "unknown" and op["tx"]["status"] == "acked" and op["op"] != "saga":
            unknown[op["address"]].append(op)
    checks.none([(brief(op), brief(lost)) for op in history.grants for lost in unknown[op["address"]]
                 if lost["tx"]["end"] < op["s"]
                 and not any(lost["s"] < said["e"] and said["s"] < op["e"]
                             for said in decided[op["address"]])],
                f"4: what is unknown was granted after a decision only ({len(unknown)} commands)")


def check_expiry(checks, history):
    ends = collections.defaultdict(list)
    for op in history.ends:
        if op["tx"]["status"] == "acked":
            ends[op["address"]].append(op)
    checks.none([(brief(op), brief(end)) for op in history.grants if not forever(op)
                 for end in ends[op["address"]] if end["tx"]["end"] < op["s"]
                 and op["e"] < end["s"] + TTL_S + RETENTION_S - CLOCK_S],
                "4: what was purged was granted only after its time")
    faults = []
    for op in after_the_end(history):
        ttl = {"brief": BRIEF_TTL_S}.get(op["address"][0], 1e9)
        for end in ends[op["address"]]:
            if op["outcome"] == "replay" and op["s"] > end["tx"]["end"] + ttl + CLOCK_S or \
                    op["outcome"] == "expired" and op["e"] < end["s"] + ttl - CLOCK_S:
                faults.append((brief(op), brief(end)))
    checks.none(faults, "4: an answer is replayed until it expires, and no longer")


def binds(op):
    """Does it prove that the address is bound to its request?"""
    if op["f"] in ("complete", "fail"):
        return True
    return op["outcome"] in GRANTED and (op["f"] == "execute" or op.get("lease")) \
        or op["outcome"] == "replay" if op["f"] in ("claim", "execute", "replay") else False


def check_fingerprints(checks, history):
    checks.none(history.db.execute(REQUEST_EQUAL), "5: a fingerprint is that of a request")
    bound = collections.defaultdict(dict)
    for op in history.kept + history.replays:
        if forever(op) and op.get("v") is not None and binds(op):
            since = op["e"] if op["f"] == "replay" else op["tx"]["end"]
            since = since if op["tx"]["status"] == "acked" or op["f"] == "replay" else 1e99
            variants = bound[op["address"]]
            variants[op["v"]] = min(since, variants.get(op["v"], 1e99))
    checks.none([one for one in bound.items() if len(one[1]) > 1],
                f"5: each command has one request ({len(bound)})")
    faults, asked = [], 0
    for op in history.told:
        for variant, since in bound.get(op["address"], {}).items():
            if forever(op) and op["s"] > since:
                asked += 1
                if (op["outcome"] == "mismatch") != (op["v"] != variant):
                    faults.append((brief(op), variant))
    checks.none(faults, f"5: another request is told mismatch, nothing else ({asked} answers)")
    checks.none([brief(op) for op in history.told if op["response"] is not None
                 and op["f"] != "execute" and op["outcome"] not in ("replay", "duplicate")],
                "5: nobody else is shown the response")


def check_leases(checks, history):
    """By the clock at the moment of the grant, not that of the transaction's begin."""
    granted = [op for op in history.ops if op["f"] in ("claim", "recovered") and op.get("token")
               and op.get("lease")]
    checks.none([brief(op) for op in granted if not op["s"] - CLOCK_S <=
                 op["lease_until"] - seconds(op["lease"]) <= op["e"] + CLOCK_S],
                f"6: each lease began when it was granted ({len(granted)})")


    letting_go = collections.defaultdict(lambda: 1e99)
    held_until = {}                 # a heartbeat may bring the end nearer
    for op in history.kept:
        if op.get("lease_until") and op.get("token"):
            held_until[op["token"]] = min(op["lease_until"], held_until.get(op["token"], 1e99))
    for tx in history.transactions:
        for op in tx["ops"]:
            if op["f"] in ("release", "unknown"):
                letting_go[op["token"]] = min(op["s"], letting_go[op["token"]])
    held = {(*op["address"], op["attempt"]): op["token"] for op in granted
            if op["kept"] and forever(op)}
    faults = []
    for op in history.grants:
        token = held.get((*op["address"], op["attempt"] - 1))
        if token and op["e"] < min(held_until[token], letting_go[token]) - CLOCK_S:
            faults.append((brief(op), token, held_until[token]))
    checks.none(faults, "6: nobody took over before the end of a lease")


def taken_of(history):
    """What was handed out for certain: (intent, granted at, call), by operation id."""
    taken = collections.defaultdict(list)
    for op in history.kept:
        for intent in op.get("taken", ()):
            granted = intent["lease_until"] - op["lease_ms"] / 1000
            taken[intent["id"]].append((granted, intent, op))
    for all_of in taken.values():
        all_of.sort(key=lambda one: one[0])
    return taken


def words_of(history):
    """What was said about an intent: when it was first said with a token, and when at all."""
    by_token, by_id = {}, collections.defaultdict(list)
    for tx in history.transactions:
        for op in tx["ops"]:
            if op["f"] in ("confirm", "reject", "defer", "settle"):
                by_token[op["token"]] = min(op["s"], by_token.get(op["token"], 1e99))
                by_id[op["id"]].append(op["s"])
    return by_token, by_id


def check_sending(checks, history):
    taken, (by_token, _) = taken_of(history), words_of(history)
    total = sum(map(len, taken.values()))
    checks.none([(one[1], other[1]) for all_of in taken.values()
                 for one, other in zip(all_of, all_of[1:]) if other[0] < CLOCK_S * -1 + min(
                     one[1]["lease_until"], by_token.get(one[1]["token"], 1e99))],
                f"7: at most one worker had an intent at a time ({total} times)")
    given = {one[1]["token"]: one[0] for all_of in taken.values() for one in all_of}
    checks.none([(brief(op), one[1]) for op in history.kept
                 if op["f"] in ("confirm", "reject", "defer", "settle")
                 for one in taken[op["id"]] if one[2]["tx"]["status"] == "acked"
                 and one[2]["tx"]["end"] < op["s"]
                 and one[0] > given.get(op["token"], 1e99) + CLOCK_S],
                "3: the word of who has lost an intent changed nothing")
    noted = collections.defaultdict(lambda: 1e99)
    names = collections.defaultdict(set)
    for op in history.kept:
        if op["f"] == "intend":
            noted[op["id"]] = min(noted[op["id"]], op["tx"].get("sent", 1e99))
            names[(*op["address"], op["name"])].add(op["id"])
    checks.none([one for id_, all_of in taken.items() for one in all_of[:1]
                 if one[0] < noted[id_] - CLOCK_S],
                "7: nothing was handed out before it was committed")
    checks.none([one for one in names.items() if len(one[1]) > 1],
                f"7: each intent has one operation id ({len(names)})")
    doubtful = {intent["id"] for all_of in taken.values() for _, intent, _ in all_of
                if "called" in intent and intent["called"] is None}
    doubtful |= {op["id"] for tx in history.transactions for op in tx["ops"]
                 if op["f"] in ("called", "confirm") and op.get("called", True) is None}
    resend = {intent["id"]: intent["resend"] for all_of in taken.values()
              for _, intent, _ in all_of}
    checks.none([(id_, count) for id_, count in history.calls.items()
                 if count > 1 and not resend.get(id_) and id_ not in doubtful],
                f"7: what cannot be repeated was called once ({len(history.calls)})")
    checks.none([(id_, state, history.calls.get(id_)) for id_, state in history.intents.items()
                 if id_ not in doubtful and (state == "confirmed") != (id_ in history.calls)],
                f"7: confirmed is what has happened ({len(history.intents)})")


def check_questions(checks, history):
    """Nobody resumes a lapsed command while an intent of it is in flight."""
    taken, (_, by_id) = taken_of(history), words_of(history)
    open_at = collections.defaultdict(list)
    for id_, all_of in taken.items():
        for _, intent, op in all_of:
            if op["tx"]["status"] == "acked":
                end = min([said for said in by_id[id_] if said > op["s"]], default=1e99)
                open_at["saga", intent["key"]].append((op["tx"]["end"], end, id_))
    lapsed = set(history.db.execute("SELECT operation, key, attempt FROM idem_event WHERE"
                                    " (from_state, to_state) = ('processing', 'processing')"))
    checks.none([(brief(op), id_) for op in history.ops
                 if op["f"] in ("claim", "execute") and op["outcome"] == "resume"
                 or op["f"] == "recovered" and (*op["address"], op["attempt"]) in lapsed
                 for since, until, id_ in open_at[op["address"]]
                 if since < op["s"] and op["e"] < until],
                "7: no command was resumed with an open question")


def check_trail(checks, history):
    events = collections.defaultdict(list)
    chains = collections.defaultdict(list)
    for operation, key, intent, before, after, reason in history.db.execute(
            "SELECT operation, key, intent, from_state, to_state, reason FROM idem_event"
            " ORDER BY id"):
        if intent is None:
            chains[operation, key].append((before, after))
        if reason and "/" in reason:
            events[reason].append((operation, key, before, after))
    faults = []
    for address, (state, *_) in history.records.items():
        now = "none"
        for before, after in chains[address] + [(state, None)]:
            if before != now and (now, before) not in (
                    ("none", "processing"), ("none", "succeeded"), ("none", "failed"),
                    ("processing", "succeeded"), ("processing", "failed")):
                faults.append((address, state, chains[address]))
            now = after
    checks.none(faults, f"8: the trail leads to where each command is ({len(chains)})")
    checks.none(history.db.execute(ATTEMPTS), "8: each attempt after the first is in the trail")
    reasons = {op["reason"]: op for op in history.kept if op.get("reason")}
    checks.none([(reason, found) for reason, found in events.items() if reason not in reasons],
                f"8: what was refused or undone left no trail ({len(events)} reasons)")
    checks.none([(reason, found) for reason, found in events.items() if len(found) > 1],
                "8: no change was made twice")
    checks.none([brief(op) for reason, op in reasons.items()
                 if op["f"] in ("resolve", "defer") and reason not in events and
                 op.get("op") != "gone"], "8: each decision is in the trail")


def check_ground(checks, history, enough):
    """A run in which something never happened proves nothing about it."""
    counts = collections.Counter()
    for tx in history.transactions:
        counts[tx["status"]] += 1
        for op in tx["ops"]:
            counts[f"{op['f']} {op.get('err') or op.get('outcome') or 'done'}"] += 1
    print("# " + ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    if not enough:
        return
    wanted = [f"claim {outcome}" for outcome in (
        "execute", "resume", "replay", "in_progress", "mismatch", "expired", "unknown",
        "duplicate", "cancelled")]
    wanted += ["execute execute", "complete done", "complete ID002", "hold ID002", "fail done",
               "release done", "step_done done", "intend done", "dispatch done", "send done",
               "confirm done", "reject done", "defer done", "settle done", "recovered resume",
               "resolve done", "cancel cancelled", "prepared"]
    checks.none([what for what in wanted if not counts[what]], "all that was to be tried happened")
