"""Figures: measurements that took turns with what they stand beside, as ratios."""
import json
import os
import pathlib
import statistics

HEADS = ("figure", "ours", "beside", "best", "median", "n", "target", "")


class Figure:
    """Ours beside theirs, one value a round each.

    Costs are compared by their smallest values, rates by their largest, as a
    busy machine only ever makes things worse: "best".  "median" is that of
    the rounds' ratios.  With a base (and another one of theirs, where that
    differs) it is what comes on top of it that is compared.
    """

    def __init__(self, number, what, beside, unit, ours, theirs, *, base=None, their_base=None,
                 at_most=None, at_least=None, rate=False):
        best = max if rate or at_least else min
        base = base or [0] * len(ours)
        their_base = their_base or base
        self.number, self.what, self.beside, self.unit = number, what, beside, unit
        self.ours = best(ours) - best(base)
        self.theirs = best(theirs) - best(their_base)
        self.best = self.ours / self.theirs
        self.median = statistics.median(
            (mine - floor) / (other - their_floor)
            for mine, other, floor, their_floor in zip(ours, theirs, base, their_base))
        self.rounds = len(ours)
        self.target = f"≤ {at_most}" if at_most else f"≥ {at_least}" if at_least else None
        self.reached = (None if not self.target else self.median <= at_most if at_most
                        else self.median >= at_least)


def note(record):
    """For the table and the plots: a line of the file that FIGURES names."""
    if "FIGURES" in os.environ:
        with open(os.environ["FIGURES"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def add(*args, **options):
    note(vars(Figure(*args, **options)))


def add_series(number, name, xs, ys):
    """What a plot draws as one line."""
    note({"number": number, "series": name, "x": list(xs), "y": list(ys)})


def read(*paths):
    """Figures and series; of one that was measured again the last."""
    figures, series = {}, {}
    for path in paths:
        for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "series" in record:
                series[record["number"], record["series"]] = record
            elif "what" in record:
                figures[record["number"], record["what"], record["beside"]] = record
    by_number = {"key": lambda record: int(record["number"][1:])}
    return sorted(figures.values(), **by_number), sorted(series.values(), **by_number)


def short(value, unit):
    return f"{value:.0f} {unit}" if abs(value) >= 100 else f"{value:.3g} {unit}"


def row(figure):
    return (f"{figure['number']}: {figure['what']}, beside {figure['beside']}",
            short(figure["ours"], figure["unit"]), short(figure["theirs"], figure["unit"]),
            f"{figure['best']:.2f}", f"{figure['median']:.2f}", str(figure["rounds"]),
            figure["target"] or "", {True: "reached", False: "MISSED", None: ""}[figure["reached"]])


def print_table(figures):
    rows = [HEADS] + [row(figure) for figure in figures]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        print("  ".join(cell.rjust(width) if number else cell.ljust(width)
                        for number, (cell, width) in enumerate(zip(cells, widths))).rstrip())
