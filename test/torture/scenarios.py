"""What each public function is asked while errors are injected into it."""

import dataclasses

REQUEST = """'{"n": [1, 2.50, "x"], "t": true, "z": null, "skip": {"at": 1}}'"""
OTHER = """'{"n": 2}'"""
TICKET = "(SELECT ticket FROM mine WHERE name = '$K')"
INTENT = "idem_operation_id('t', 'o', '$K', 'i')"
TOLD = "(ticket).outcome, (ticket).state, (ticket).attempt, (ticket).reason, (ticket).request"
ANSWER = ("outcome, state, attempt, code, resource, response, headers, body, owner, reason,"
          " duplicate_of")


@dataclasses.dataclass
class Scenario:
    """A call, in $K's own corner: keys, operations and targets that begin with $K.

    setup     committed beforehand, each line by itself
    local     done before the call, in its transaction; leaves that many atomic claims open
    call      the statement that the errors are injected into
    finish    done after the call, so that the transaction can be committed
    blocker   done before the call by another session, in a transaction that ends as end says:
              before the call does, or with "late" after everything, by a rollback
    after     what a call that failed may have done: nothing, all, or (either) nothing or all
    top       the call cannot be made in a transaction

    A call that ends the transaction is committed, or it is not; finish, if any, is done after it.
    """
    name: str
    call: str
    setup: str = ""
    local: str = ""
    open: int = 0
    finish: str = ""
    blocker: str = ""
    end: str = "late"
    after: str = "nothing"
    top: bool = False

    def in_transaction(self):
        """Does the transaction go on after the call?"""
        return not self.top and not self.ends()

    def ends(self):
        """Is the call one that ends the transaction?"""
        return self.call == "COMMIT" or self.call.startswith("PREPARE TRANSACTION")

    def once(self):
        """Can what the call ended not be ended again?"""
        return self.ends() or "PREPARED" in self.call


def keep(claim, name="$K"):
    """A claim whose ticket is kept."""
    return f"INSERT INTO mine SELECT '{name}', c FROM {claim} AS c"


def told(claim):
    return f"{keep(claim)} RETURNING {TOLD}"


def claim(key="$K", operation="o", request=REQUEST, options=""):
    return f"idem_claim('t', '{operation}', '{key}', {request}{options})"


def shown(function):
    """The row that it returns."""
    return f"SELECT to_jsonb({function}) - 'created_by' FROM {function}"


COMPLETE = f"SELECT idem_complete({TICKET}, '1')"
FULL = """'{"a" : 1}', 201, 'order $K', '{"h": [1]}', '\\x00ff'"""
LEASE = ", lease => '1 hour', owner => 'w'"
LEASED = keep(claim(options=LEASE))
GUARDED = keep(claim(options=f"{LEASE}, guard => 'g$K'"))
LAPSED = keep(claim(options=", lease => '1 us'"))
ATOMIC = keep(claim())
DONE = f"{ATOMIC}; SELECT idem_complete({TICKET}, {FULL})"
PARTS = f"'t', 'o', '$K', ({TICKET}).token"
INTEND = f"SELECT idem_intend({TICKET}, 'i', '$K', {REQUEST}, true, '1 hour')"
NOTED = f"{LEASED}\n{INTEND}"
SEND = f"SELECT idem_send({INTENT}, 'w', '1 hour')"
SENT = f"{NOTED}\n{SEND}"
TOKEN = f"(SELECT token FROM idem_intent WHERE operation_id = {INTENT})"
DOUBT = f"{NOTED}\nSELECT idem_send({INTENT}, 'w', '1 us')"
ASKED = f"{DOUBT}\nSELECT idem_reconcile('$K', 'r', 1, '1 hour')"
UNKNOWN = f"{LEASED}\nSELECT idem_unknown({TICKET}, 'no answer')"
DECIDED = ("SELECT idem_resolve('t', 'o', key, 'failed', 'no answer') FROM idem_record"
           " WHERE state = 'unknown'")

REPLICATED = "SET LOCAL idempotency.durability = 'replicated'"

BATCH = """idem_claim_batch('t', 'o', '{$K-a,$K-b,$K-c}', ARRAY['1', '[2, "x"]', NULL]::jsonb[]"""
KEEP_BATCH = f"INSERT INTO mine SELECT '$K', c FROM {BATCH}, guards => '{{g$K,h$K,NULL}}'%s) AS c"
COMPLETE_BATCH = ("SELECT idem_complete_batch(array_agg(ticket), '{1,\"[2, 3]\",NULL}') FROM mine"
                  " WHERE name = '$K'")
EXPIRED = (f"{keep(claim(operation='short'))};"
           f" SELECT idem_complete({TICKET}, {FULL})\nSELECT pg_sleep(0.001)")
TOMBSTONE = EXPIRED.replace("short", "gone") + "\nSELECT idem_sweep()"

PREPARE = "PREPARE TRANSACTION '$K'"
INDEXES = """CREATE INDEX IF NOT EXISTS by_hash ON idem_record USING hash (operation)
CREATE INDEX IF NOT EXISTS by_expression ON idem_record (lower(owner), state)
CREATE INDEX IF NOT EXISTS in_part ON idem_record (key) WHERE resource IS NOT NULL"""

SCENARIOS = [
    # first, while they have little to look at; what is stuck must not grow with each fault
    Scenario("stuck", "SELECT key, state, next_call FROM idem_stuck WHERE key = '$K'",
             setup=f"{DECIDED}\n{UNKNOWN}"),
    Scenario("overview", "SELECT count(*) > 0 FROM idem_overview"),

    # claims
    Scenario("claim", told(claim(operation="p", options=", guard => 'g$K', owner => 'w'")),
             finish=COMPLETE),
    Scenario("claim with a lease", told(claim(operation="p", options=f"{LEASE}, guard => 'g$K'"))),
    Scenario("claim, by a fingerprint", told(
        "idem_claim('t', 'o', '$K', fingerprint => decode('00' || repeat('0a', 32), 'hex'))"),
             finish=COMPLETE),
    Scenario("claim: replay", f"SELECT {ANSWER} FROM {claim()}", setup=DONE),
    Scenario("claim: mismatch", f"SELECT {ANSWER} FROM {claim(request=OTHER)}", setup=DONE),
    Scenario("claim: expired", f"SELECT {ANSWER} FROM {claim(operation='short')}", setup=EXPIRED),
    Scenario("claim: resume, leased", told(claim(options=LEASE)), setup=LAPSED),
    Scenario("claim: resume, atomic", told(claim(operation="p")),
             setup=keep(claim(operation="p", options=", lease => '1 us', guard => 'g$K'"), "old"),
             finish=COMPLETE),
    Scenario("claim: released before", told(claim()), finish=COMPLETE,
             setup=f"{keep(claim(options=LEASE), '$K-old')}\nSELECT idem_release(ticket, 'busy')"
                   " FROM mine WHERE name = '$K-old'"),
    Scenario("claim: unknown, intent in flight", f"SELECT {ANSWER} FROM {claim()}",
             setup=f"{LAPSED.replace('1 us', '20 ms')}\n{INTEND}\n{SEND}\nSELECT pg_sleep(0.02)"),
    Scenario("claim: unknown, too many attempts", f"SELECT {ANSWER} FROM {claim(operation='n')}",
             setup=keep(claim(operation="n", options=", lease => '1 us'"))),
    Scenario("claim: duplicate", f"SELECT {ANSWER} FROM"
             f" {claim('$K-b', options=', guard => $$g$K$$')}", setup=GUARDED),
    Scenario("claim: duplicate, here", f"SELECT {ANSWER} FROM"
             f" {claim('$K-b', options=', guard => $$g$K$$')}",
             local=keep(claim(options=", guard => 'g$K'")), open=1, finish=COMPLETE),
    Scenario("claim: in progress, here", f"SELECT {ANSWER} FROM {claim()}", local=ATOMIC, open=1,
             finish=COMPLETE),
    Scenario("claim: in progress", f"SELECT {ANSWER} FROM {claim()}", blocker=ATOMIC),
    Scenario("claim: in progress, after a wait",
             f"SELECT {ANSWER} FROM {claim(options=', wait => $$3 ms$$')}", blocker=ATOMIC),
    Scenario("claim: in progress, leased, after a wait",
             f"SELECT {ANSWER} FROM {claim(options=', wait => $$3 ms$$')}", setup=LEASED),
    Scenario("claim: the first of an operation", told(claim(operation="$K")), finish=COMPLETE),
    Scenario("claim: waits, owner rolls back", told(claim(options=", wait => '1 min'")),
             blocker=ATOMIC, end="ROLLBACK", finish=COMPLETE),
    Scenario("claim: waits, owner commits",
             f"SELECT {ANSWER} FROM {claim(options=', wait => $$1 min$$')}",
             blocker=DONE, end="COMMIT", after="all"),
    Scenario("claim: guard in use, after a wait",
             f"SELECT {ANSWER} FROM"
             f" {claim('$K-b', options=', guard => $$g$K$$, wait => $$3 ms$$')}",
             blocker=keep(claim(options=", guard => 'g$K'"))),
    Scenario("claim: waits for a guard",
             told(claim("$K-b", options=", guard => 'g$K', wait => '1 min'")),
             blocker=keep(claim(options=", guard => 'g$K'")), end="ROLLBACK", finish=COMPLETE),
    Scenario("claim: refused, blank key", "SELECT idem_claim('t', 'o', ' ')"),
    Scenario("claim: refused, key too long", "SELECT idem_claim('t', 'o', repeat('x', 300))"),
    Scenario("claim: refused, lock_timeout",
             f"SET LOCAL lock_timeout = '2 ms'; SELECT {claim(options=', wait => $$1 min$$')}",
             blocker=ATOMIC),
    Scenario("claim_batch", KEEP_BATCH % "" + f" RETURNING {TOLD}",
             finish=COMPLETE_BATCH),
    Scenario("claim_batch with leases", KEEP_BATCH % ", lease => '1 hour'" + f" RETURNING {TOLD}"),
    Scenario("claim_batch: waits", KEEP_BATCH % ", wait => '1 min'" + f" RETURNING {TOLD}",
             blocker=keep(claim("$K-b", request="""'[2, "x"]'""")), end="ROLLBACK",
             finish=COMPLETE_BATCH),
    Scenario("claim_batch: replays", f"SELECT {ANSWER} FROM {BATCH})",
             setup=f"{KEEP_BATCH % ''}; {COMPLETE_BATCH}"),
    Scenario("execute, jsonb", f"SELECT {ANSWER} FROM idem_execute('t', 'p', '$K', {REQUEST},"
             " 'handler(jsonb)', guard => 'g$K')"),
    Scenario("execute, idem_response", f"SELECT {ANSWER} FROM idem_execute('t', 'o', '$K',"
             f" {REQUEST}, 'handler_full(jsonb)')"),
    Scenario("execute: failed", f"SELECT {ANSWER} FROM idem_execute('t', 'o', '$K', NULL,"
             " 'handler_fail(jsonb)')"),
    Scenario("execute: replay", f"SELECT {ANSWER} FROM idem_execute('t', 'o', '$K', {REQUEST},"
             " 'handler(jsonb)')", setup=DONE),
    Scenario("execute: refused, no handler", f"SELECT idem_execute('t', 'o', '$K', {REQUEST},"
             " 'length(text)')"),
    Scenario("replay", f"SELECT {ANSWER} FROM idem_replay('t', 'o', '$K', {REQUEST})", setup=DONE),
    Scenario("replay: absent", f"SELECT {ANSWER} FROM idem_replay('t', 'o', '$K')"),
    Scenario("replay: in progress", f"SELECT {ANSWER} FROM idem_replay('t', 'o', '$K')",
             blocker=ATOMIC),
    Scenario("require", f"SELECT {ANSWER} FROM idem_require({TICKET})", setup=LEASED),
    Scenario("require: refused", f"SELECT idem_require({TICKET})",
             setup=f"{DONE}\nUPDATE mine SET ticket = idem_replay('t', 'o', '$K', {OTHER})"
                   " WHERE name = '$K'"),

    # the owner's verbs
    Scenario("complete, atomic", f"SELECT idem_complete({TICKET}, {FULL})", open=1,
             local=keep(claim(operation="p", options=", guard => 'g$K', owner => 'w'"))),
    Scenario("complete, leased", f"SELECT idem_complete({TICKET}, {FULL})", setup=GUARDED),
    Scenario("complete, leased, by token", f"SELECT idem_complete({PARTS}, {FULL})", setup=LEASED),
    Scenario("complete, atomic resume", f"SELECT idem_complete({TICKET}, {FULL})", open=1,
             setup=keep(claim(options=", lease => '1 us', guard => 'g$K'"), "old"), local=ATOMIC),
    Scenario("complete: the same again", f"SELECT idem_complete({TICKET}, {FULL})",
             setup=f"{LEASED}\nSELECT idem_complete({TICKET}, {FULL})"),
    Scenario("complete: waits", f"SELECT idem_complete({TICKET}, '1')", setup=LEASED,
             blocker=f"SELECT idem_hold({TICKET})", end="ROLLBACK"),
    Scenario("complete: refused, lock_timeout",
             f"SET LOCAL lock_timeout = '2 ms'; SELECT idem_complete({TICKET}, '1')",
             setup=LEASED, blocker=f"SELECT idem_hold({TICKET})"),
    Scenario("complete: refused, too large",
             f"SELECT idem_complete({TICKET}, to_json(repeat('x', 300)))", setup=LEASED,
             local="SET LOCAL idempotency.max_response_size = 100"),
    Scenario("complete: refused, stale", f"SELECT idem_complete({TICKET}, '1')",
             setup=f"{LAPSED}\nSELECT {claim(options=LEASE)}"),
    Scenario("complete_batch", COMPLETE_BATCH, local=KEEP_BATCH % "", open=3),
    Scenario("complete_batch, leased", COMPLETE_BATCH, setup=KEEP_BATCH % ", lease => '1 hour'"),
    Scenario("fail, atomic", f"SELECT idem_fail({TICKET}, '\"no\"')", local=ATOMIC, open=1),
    Scenario("fail, leased, by token", f"SELECT idem_fail({PARTS}, {FULL})", setup=GUARDED),
    Scenario("release, atomic", f"SELECT idem_release({TICKET}, 'busy')", local=ATOMIC, open=1),
    Scenario("release, leased", f"SELECT idem_release({TICKET}, 'busy')", setup=GUARDED),
    Scenario("release, leased, by token", f"SELECT idem_release({PARTS}, 'busy')", setup=LEASED),
    Scenario("release: refused, open intent", f"SELECT idem_release({TICKET})", setup=SENT),
    Scenario("unknown", f"SELECT idem_unknown({TICKET}, 'no answer')", setup=GUARDED),
    Scenario("heartbeat", f"SELECT idem_heartbeat({TICKET}, '2 hours')", setup=GUARDED),
    Scenario("heartbeat, by token", f"SELECT idem_heartbeat({PARTS}, '2 hours')", setup=LEASED),
    Scenario("hold", f"SELECT idem_hold({TICKET})", setup=LEASED),
    Scenario("hold, by token", f"SELECT idem_hold({PARTS})", setup=LEASED),

    # steps and intents
    Scenario("step", f"SELECT * FROM idem_step({TICKET}, 'pay', {REQUEST})",
             setup=f"{keep(claim(operation='s', options=LEASE))}\n"
                   f"SELECT idem_step_done({TICKET}, 'reserve', '7')"),
    Scenario("step: done", f"SELECT * FROM idem_step({TICKET}, 'reserve', {REQUEST})",
             setup=f"{keep(claim(operation='s', options=LEASE))}\n"
                   f"SELECT idem_step_done({TICKET}, 'reserve', '7', {REQUEST})"),
    Scenario("step: refused, other input", f"SELECT * FROM idem_step({TICKET}, 'reserve', {OTHER})",
             setup=f"{LEASED}\nSELECT idem_step_done({TICKET}, 'reserve', '7', {REQUEST})"),
    Scenario("step_done", f"SELECT idem_step_done({TICKET}, 'reserve', '{{\"a\": 7}}', {REQUEST})",
             setup=keep(claim(operation="s", options=LEASE))),
    Scenario("intend, leased", f"{shown('idem_intend')}({TICKET}, 'i', '$K', {REQUEST})",
             setup=LEASED),
    Scenario("intend, atomic", f"{shown('idem_intend')}({TICKET}, 'i', '$K', {REQUEST}, true,"
             " '1 hour')", local=keep(claim(operation="n")), open=1, finish=COMPLETE),
    Scenario("intend: again", f"{shown('idem_intend')}({TICKET}, 'i', '$K', {REQUEST}, true,"
             " '1 hour')", setup=SENT),
    Scenario("intend: refused, other target", f"SELECT idem_intend({TICKET}, 'i', 'other')",
             setup=NOTED),
    Scenario("send", f"{shown('idem_send')}({INTENT}, 'w', '1 hour')", setup=NOTED),
    Scenario("send: refused, not committed", f"SELECT idem_send({INTENT}, 'w', '1 hour')",
             setup=LEASED, local=INTEND),
    Scenario("dispatch", f"{shown('idem_dispatch')}('$K', 'w', 10, '1 hour')",
             setup=f"{NOTED}\nSELECT idem_intend({TICKET}, 'j', '$K', NULL, true)"),
    Scenario("dispatch: resend", f"{shown('idem_dispatch')}('$K', 'w', 10, '1 hour')",
             setup=DOUBT),
    Scenario("confirm", f"{shown('idem_confirm')}({INTENT}, {TOKEN}, '{{\"id\" : 1}}')",
             setup=SENT),
    Scenario("confirm: of an unknown command", f"{shown('idem_confirm')}({INTENT}, {TOKEN})",
             setup=f"{SENT}\nSELECT idem_unknown({TICKET}, 'lost')"),
    Scenario("confirm: again", f"{shown('idem_confirm')}({INTENT}, {TOKEN}, '1')",
             setup=f"{SENT}\nSELECT idem_confirm({INTENT}, {TOKEN}, '1')"),
    Scenario("confirm: refused, stale", f"SELECT idem_confirm({INTENT}, 1)", setup=SENT),
    Scenario("reject", f"{shown('idem_reject')}({INTENT}, {TOKEN}, 'no money', '1')", setup=SENT),
    Scenario("defer", f"{shown('idem_defer')}({INTENT}, {TOKEN}, 'busy')", setup=SENT),
    Scenario("retry", f"{shown('idem_retry')}({INTENT}, 'they are back')",
             setup=f"{SENT}\nSELECT idem_defer({INTENT}, {TOKEN}, 'busy')"),
    Scenario("reconcile", f"{shown('idem_reconcile')}('$K', 'r', 10, '1 hour')", setup=DOUBT),
    Scenario("settle: happened",
             f"{shown('idem_settle')}({INTENT}, {TOKEN}, 'happened', '[1]', '1')",
             setup=f"{ASKED}\nSELECT idem_unknown({TICKET}, 'lost')"),
    Scenario("settle: absent", f"{shown('idem_settle')}({INTENT}, {TOKEN}, 'absent', '[1]')",
             setup=ASKED),
    Scenario("settle: unclear", f"{shown('idem_settle')}({INTENT}, {TOKEN}, 'unclear', '[1]')",
             setup=ASKED),
    Scenario("settle: refused, contradiction",
             f"SELECT idem_settle({INTENT}, {TOKEN}, 'absent', '[1]')",
             setup=f"{ASKED}\nSELECT idem_settle({INTENT}, {TOKEN}, 'happened', '[1]')"),
    Scenario("operation_id", f"SELECT {INTENT} IS NULL"),

    # recovery, decisions, expiry
    Scenario("recover", "SELECT outcome, state, attempt, reason, request FROM"
             " idem_recover('r', 1000, '1 hour')",
             setup=f"{LAPSED}\n{keep(claim('$K-b', 'n', options=', lease => $$1 us$$'), '$K-b')}"),
    Scenario("recover: what was released", "SELECT outcome, state, attempt, reason, request FROM"
             " idem_recover('r', 1000, '1 hour')",
             setup=f"{UNKNOWN}\nSELECT idem_resolve('t', 'o', '$K', 'released', 'asked')"),
    Scenario("resolve: succeeded",
             f"SELECT idem_resolve('t', 'o', '$K', 'succeeded', 'asked', {FULL})",
             setup=UNKNOWN),
    Scenario("resolve: released", "SELECT idem_resolve('t', 'o', '$K', 'released', 'asked')",
             setup=UNKNOWN),
    Scenario("cancel", f"SELECT {ANSWER} FROM idem_cancel('t', 'o', '$K', 'not wanted')"),
    Scenario("cancel: what was released", f"SELECT {ANSWER} FROM idem_cancel('t', 'o', '$K', 'no')",
             setup=f"{GUARDED}\nSELECT idem_release({TICKET})"),
    Scenario("sweep", "SELECT * FROM idem_sweep(1000)", setup=EXPIRED),
    Scenario("sweep: purge", "SELECT * FROM idem_sweep(1000)", setup=TOMBSTONE),
    Scenario("sweep: purge, with a step", "SELECT * FROM idem_sweep(1000)",
             setup=f"{keep(claim(operation='gone', options=LEASE))}\n"
                   f"SELECT idem_step_done({TICKET}, 'reserve', '7')\n{COMPLETE}\n"
                   "SELECT pg_sleep(0.001)\nSELECT idem_sweep()"),
    Scenario("maintain", "CALL idem_maintain(effort => 1)", top=True, after="either",
             setup=f"{EXPIRED}\n{keep(claim('$K-b', 'n', options=', lease => $$1 us$$'), '$K-b')}"),
    Scenario("maintain: purge", "CALL idem_maintain(effort => 1, batch => 1)", top=True,
             after="either", setup=TOMBSTONE),
    Scenario("adopt", "SELECT idem_adopt()"),
    Scenario("adopt: physical", "SELECT idem_adopt(physical => true)", setup=SENT),

    # the rest
    Scenario("fingerprint", f"SELECT idem_fingerprint({REQUEST}, '{{/skip/at,/a~1b}}')"),
    Scenario("define", "SELECT * FROM idem_define('$K', ttl => '1 day', lease => '1 hour',"
             " steps => '{a,b}', ignore_paths => '{/a}', notify => 'c')"),
    Scenario("define: again", "SELECT * FROM idem_define('$K', steps => '{a,b,c}')",
             setup="SELECT idem_define('$K', steps => '{a,b}')"),
    Scenario("define: refused", "SELECT idem_define('$K', steps => '{a,a}')"),
    Scenario("tenant_allowed", "SELECT idem_tenant_allowed('t'), idem_tenant_allowed(NULL)"),
    Scenario("tenant_allowed, by a list", "SELECT idem_tenant_allowed('t')",
             local="""SET LOCAL idempotency.allowed_tenants = 'u, "t"'"""),
    Scenario("history", "SELECT count(*) FROM idem_history('t', 'o', '$K')", setup=SENT),
    Scenario("durability", "SELECT * FROM idem_durability()"),
    Scenario("replicated: claim", told(claim()), local=REPLICATED, finish=COMPLETE),
    Scenario("replicated: replay", f"SELECT {ANSWER} FROM idem_replay('t', 'o', '$K', {REQUEST})",
             local=REPLICATED, setup=DONE),
    Scenario("replicated: commit", "COMMIT", local=f"{REPLICATED}; {DONE}", after="either"),
    Scenario("commit", "COMMIT", local=DONE, after="either"),
    Scenario("commit: after a hold", "COMMIT", setup=LEASED, after="either",
             local=f"SELECT idem_hold({TICKET})"),
    Scenario("commit: refused", "COMMIT", local=ATOMIC),
    Scenario("prepare, committed", PREPARE, local=DONE, finish="COMMIT PREPARED '$K'"),
    Scenario("prepare, rolled back", PREPARE, local=DONE, finish="ROLLBACK PREPARED '$K'"),
    Scenario("prepare: after a hold", PREPARE, setup=LEASED, local=f"SELECT idem_hold({TICKET})",
             finish="COMMIT PREPARED '$K'"),
    Scenario("prepare: refused", PREPARE, local=ATOMIC),
    Scenario("commit prepared", "COMMIT PREPARED '$K'", setup=f"BEGIN; {DONE}; {PREPARE}",
             top=True, after="either"),
    Scenario("rollback prepared", "ROLLBACK PREPARED '$K'", setup=f"BEGIN; {DONE}; {PREPARE}",
             top=True, after="either"),
    Scenario("progress", "SELECT count(*) FROM idem_progress"),
    Scenario("stat", "SELECT operation FROM idem_stat WHERE operation = 'o'"),
    Scenario("stat_get", "SELECT operation FROM idem_stat_get() WHERE operation = 'o'"),
    Scenario("stat_reset", "SELECT idem_stat_reset('o')"),
    Scenario("the table's trigger", "UPDATE idem_record SET resource = 'x' WHERE key = '$K'",
             setup=LEASED),
    Scenario("the table's trigger: refused", "DELETE FROM idem_record WHERE key = '$K'",
             setup=DONE),
]

COPY = """CREATE TABLE IF NOT EXISTS seen (about text, old text, new text)
CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $see$ BEGIN \
INSERT INTO seen VALUES (TG_TABLE_NAME, old::text, new::text); RETURN NULL; END $see$
CREATE OR REPLACE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON idem_record \
FOR EACH ROW EXECUTE FUNCTION see()
CREATE OR REPLACE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON idem_intent \
FOR EACH ROW EXECUTE FUNCTION see()"""
REFERRING = """CREATE TABLE IF NOT EXISTS referring (tenant text, operation text, key text, \
FOREIGN KEY (tenant, operation, key) REFERENCES idem_record DEFERRABLE INITIALLY DEFERRED)
DELETE FROM referring
SELECT idem_sweep()"""

# To be run last: they leave indexes that only the executor can write to, and
# triggers.
STRANGERS = [
    Scenario("indexes of a stranger: claim", told(claim(options=", guard => 'g$K'")),
             setup=INDEXES, finish=COMPLETE),
    Scenario("indexes of a stranger: complete", f"SELECT idem_complete({TICKET}, {FULL})",
             setup=f"{INDEXES}\n{LEASED}"),
    Scenario("indexes of a stranger: sweep", "SELECT * FROM idem_sweep(1000)",
             setup=f"{INDEXES}\n{EXPIRED}"),
    Scenario("triggers of a stranger: complete", f"SELECT idem_complete({TICKET}, {FULL})",
             setup=f"{COPY}\n{LEASED}"),
    Scenario("triggers of a stranger: intend",
             f"{shown('idem_intend')}({TICKET}, 'i', '$K', {REQUEST}, true, '1 hour')",
             setup=f"{COPY}\n{LEASED}"),
    Scenario("triggers of a stranger: purge", "SELECT * FROM idem_sweep(1000)",
             setup=f"{COPY}\n{TOMBSTONE}"),
    Scenario("keys of a stranger: purge", "SELECT * FROM idem_sweep(1000)",
             setup=f"{REFERRING}\n{TOMBSTONE}"),
    Scenario("keys of a stranger: keep", "SELECT * FROM idem_sweep(1000)",
             setup=f"{REFERRING}\n{TOMBSTONE}\n"
                   "INSERT INTO referring SELECT 't', operation, key FROM idem_record"
                   " WHERE operation = 'gone' AND key LIKE '$K%'"),
]
