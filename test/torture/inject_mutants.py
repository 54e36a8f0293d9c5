"""Sources with one fault each, which the injected errors have to find."""

import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))

# Name, then modes and scenario to run, and edits: file, what stands there exactly once, and what
# comes instead.
MUTANTS = {
    "a key lock outlives its savepoint": ("savepoint", "claim with a lease", [
        ("address.c", "	CurrentResourceOwner = CurTransactionResourceOwner;\n	result",
         "	CurrentResourceOwner = TopTransactionResourceOwner;\n	result")]),
    "lock_timeout is not restored": ("top", "claim: waits, owner rolls back", [
        ("address.c", "GUC_ACTION_SAVE", "GUC_ACTION_SET")]),
    "a claim outlives its savepoint": ("block", "claim, by", [
        ("pending.c", "if (event == SUBXACT_EVENT_ABORT_SUB)", "if (false)")]),
    "a claim is counted before it is there": ("block", "claim, by", [
        ("pending.c", "	reserve_note();\n	grow_buckets();", "	nopen++;\n	reserve_note();\n"
         "	grow_buckets();"),
        ("pending.c", "	nclaims++;\n	nopen++;", "	nclaims++;")]),
    "a claim is closed before that can be undone": ("block", "release, atomic", [
        ("pending.c", "	reserve_note();\n	nopen--;\n	claim->status = status;",
         "	nopen--;\n	claim->status = status;\n	reserve_note();")]),
    "half of the policies are taken for all": ("cold", "claim with a lease", [
        ("policy.c", "			cache_valid = false;\n			PG_RE_THROW();", "			PG_RE_THROW();")]),
    "every error of a wait is taken for its end": ("top", "claim: waits, owner rolls back", [
        ("address.c", "if (!ours || geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)", "if (!ours)")]),
    "what is pending after a wait is left to others": ("timeout", "claim: waits, owner rolls back", [
        ("address.c", "		CHECK_FOR_INTERRUPTS();\n", "")]),
    "a wait can leave its subtransaction behind": ("block", "claim: in progress, after a wait", [
        ("address.c", "		RollbackAndReleaseCurrentSubTransaction();",
         "		pfree(MemoryContextAlloc(context, 8));\n"
         "		RollbackAndReleaseCurrentSubTransaction();")]),
    "every error of a write is taken for a stranger's": ("top", "complete, leased, by token", [
        ("record.c", "written || !is_own_violation())",
         "written || (false && is_own_violation()))")]),
    "memory is asked for while a transaction aborts": ("savepoint", "hold, by token", [
        ("pending.c", "	while (nnotes > 0 && notes", "	pfree(palloc(8));\n"
         "	while (nnotes > 0 && notes")]),
    "a table stays open": ("top", "hold, by token", [
        ("record.c", "	table_close(table->rel, NoLock);", "")]),
    "an error of the random numbers is ignored": ("cold", "claim with a lease", [
        ("claim.c", "if (!pg_strong_random(stock, sizeof(stock)))",
         "if (!pg_strong_random(stock, sizeof(stock)) && false)")]),
}


def edit(name, changes):
    """Makes them in the scratch copy; returns what undoes them."""
    before = {}
    for file, old, new in changes:
        path = f"{os.environ['SCRATCH']}/src/src/{file}"
        with open(path, encoding="utf-8") as source:
            text = source.read()
        before.setdefault(path, text)
        if text.count(old) != 1:
            raise RuntimeError(f"{name} does not apply any more")
        write(path, text.replace(old, new))
    return before


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def mutants(names, attack):
    """How many faulty sources pass."""
    survived = 0
    points = os.environ["SCRATCH"] + "/points/everything.h"
    os.environ["COPT"] = f"-I{HERE}/points -include {points}"
    for name in names or MUTANTS:
        modes, scenario, changes = MUTANTS[name]
        before = edit(name, changes)
        subprocess.run([f"{HERE}/../build", os.environ["IDEM_DESTDIR"]], check=True)
        run = subprocess.run(attack("--modes", modes, scenario), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        for path, text in before.items():
            write(path, text)
        caught = [line[4:] for line in run.stdout.split("\n") if line.startswith("#   ")]
        if run.returncode and not caught:
            caught = ["it ended with " + run.stdout.strip().rsplit("\n", 1)[-1]]
        survived += not caught
        print(f"{'ok' if caught else 'not ok'} - {name}:"
              f" {caught[0][:150] if caught else 'survived'}", flush=True)
    print(f"# {survived} of {len(names or MUTANTS)} survived")
    return survived
