"""Keeps what was measured where docs/performance.md shows it, and prints the table.

usage: publish.py short|long FILE      FILE has what was noted; it replaces the same figures noted before
"""
import json
import pathlib
import sys

import figures
import pictures

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGE, FOLDER = DOCS / "performance.md", DOCS / "performance"
BEGIN, END = "<!-- figures, by bench/publish.py -->\n", "<!-- end of figures -->\n"
# title, and what the x axis is
PLOTS = {
    "P4": ("Replays a second", "clients"),
    "P7": ("Latency of claims, ms, while the rest goes on", "percentile"),
    "P9": ("Size of the table, MB, by day of churn", "day"),
    "P10": ("New commands a second, each commit flushed", "clients"),
}


def merge(name, new):
    """The file of all figures of a name, with the new ones in the place of the old."""
    path = FOLDER / f"{name}.jsonl"
    FOLDER.mkdir(exist_ok=True)
    path.touch()
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n"
                            for records in figures.read(path, new) for record in records), encoding="utf-8")


def draw(measured, series):
    (FOLDER / "ratios.svg").write_text(pictures.ratios([one for one in measured if one["target"]]), encoding="utf-8")
    for number, (title, across) in PLOTS.items():
        of_plot = [one for one in series if one["number"] == number]
        if of_plot:
            (FOLDER / f"{number}.svg").write_text(pictures.lines(title, across, of_plot), encoding="utf-8")


def table(measured):
    rows = [figures.HEADS, ["---"] * len(figures.HEADS), *map(figures.row, measured)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def main():
    name, new = sys.argv[1:]
    merge(name, new)
    # of what both have, the long one's
    measured, series = figures.read(*sorted(FOLDER.glob("*.jsonl"), reverse=True))
    draw(measured, series)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(before + BEGIN + table(measured) + END + rest.split(END)[1], encoding="utf-8")
    figures.print_table(figures.read(new)[0])


if __name__ == "__main__":
    main()
