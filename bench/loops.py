"""The same calls, repeated by the server itself: CPU without any client."""
import statistics

import figures
from commands import OPERATION, REQUEST, TENANT, Claim, Execute, Plain, Rival, count_orders

# One transaction per command, as a client would have it.
PROCEDURE = """
	CREATE PROCEDURE pg_temp.repeat(text, text, text, jsonb, times integer)
	LANGUAGE plpgsql AS $$
	BEGIN
		FOR n IN 1..times LOOP
			$3 := gen_random_uuid();
			PERFORM {};
			COMMIT;
		END LOOP;
	END
	$$"""


def repeat(variant, times):
    """CPU per command."""
    cpu = variant.session.cpu_us()
    variant.session.sql(f"CALL pg_temp.repeat('{TENANT.decode()}',"
                        f" '{OPERATION.decode()}', NULL,"
                        f" '{REQUEST.decode()}', {times})")
    return (variant.session.cpu_us() - cpu) / times


def prepare(variant):
    call = variant.statements["command"].removeprefix("SELECT ")
    variant.session.sql(PROCEDURE.format(call))
    repeat(variant, 100)


def report(rounds, batch):
    variants = plain, rival, *ours = Plain(), Rival(), Execute(), Claim()
    orders = count_orders(plain.session)
    for variant in variants:
        prepare(variant)
    for _ in range(rounds):
        for variant in variants:
            variant.cpu.append(repeat(variant, batch))
    made, commands = count_orders(plain.session) - orders, len(variants) * (100 + rounds * batch)
    if made != commands:
        raise RuntimeError(f"{commands} commands made {made} orders")
    print(f"  {'CPU µs, called in a loop':28}{'min':>9}{'median':>9}"
          f"{'extra':>9}{'ratio':>9}")
    for variant in variants:
        line = (f"  {variant.name:28}{min(variant.cpu):9.1f}"
                f"{statistics.median(variant.cpu):9.1f}")
        if variant is not plain:
            extra = min(variant.cpu) - min(plain.cpu)
            line += (f"{extra:9.1f}"
                     f"{extra / (min(rival.cpu) - min(plain.cpu)):9.2f}")
        print(line)
    print()
    for variant in ours:
        figures.add("P1", f"CPU of {variant.name}, called in a loop", rival.name, "µs",
                    variant.cpu, rival.cpu, base=plain.cpu, at_most=0.5)
