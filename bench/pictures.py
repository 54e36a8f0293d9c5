"""Plots as SVG, for a light and for a dark page."""
import html
import math

LIGHT = {"ink": "#1f2328", "page": "#ffffff", "grid": "#d0d7de", "a": "#0969da", "b": "#bc4c00", "c": "#1a7f37",
         "d": "#8250df", "e": "#6e7781", "f": "#cf222e"}
DARK = {"ink": "#e6edf3", "page": "#0d1117", "grid": "#30363d", "a": "#58a6ff", "b": "#f0883e", "c": "#3fb950",
        "d": "#bc8cff", "e": "#8b949e", "f": "#ff7b72"}
COLOURS = "abcdef"
REACHED = {True: "c", False: "f", None: "e"}
ROW, LABEL = 18, 560            # pixels: a row, and where its label ends


def colours(theme):
    rules = [f"text {{ fill: {theme['ink']} }} .page {{ fill: {theme['page']} }}",
             f".grid {{ stroke: {theme['grid']} }} .target {{ stroke: {theme['ink']} }}"]
    return " ".join(rules + [f".{name} {{ stroke: {theme[name]}; fill: {theme[name]} }}" for name in COLOURS])


STYLE = f"""<style>
text {{ font: 12px sans-serif }} .small {{ font-size: 11px }} .title {{ font-weight: bold }}
.line, .target {{ stroke-width: 2 }} .line, .ring {{ fill: none }} .dot {{ stroke: none }}
{colours(LIGHT)}
@media (prefers-color-scheme: dark) {{ {colours(DARK)} }}
</style>"""


def page(width, height, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">',
                      STYLE, f'<rect class="page" width="{width}" height="{height}"/>', *parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", kind=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" class="{kind}">{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind="grid"):
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def ratios(figures):
    """A row a figure: its ratio's median (dot) and best (ring), and the target (bar)."""
    ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
    width, top = 960, 46
    height = top + ROW * len(figures) + 14

    def place(ratio):
        share = math.log(min(max(ratio, ticks[0]), ticks[-1]) / ticks[0]) / math.log(ticks[-1] / ticks[0])
        return LABEL + 20 + share * (width - LABEL - 50)

    parts = [text(12, 18, "ours / beside: median of the rounds (dot), of the best values (ring), target (bar)",
                  kind="title")]
    for tick in ticks:
        parts += [line(place(tick), top - 8, place(tick), height - 8),
                  text(place(tick), top - 12, f"{tick:g}", "middle", "small")]
    for number, figure in enumerate(figures):
        y = top + ROW * number + 8
        parts.append(text(LABEL, y + 4, f"{figure['number']}: {figure['what']} / {figure['beside']}", "end", "small"))
        if figure["target"]:
            target = place(float(figure["target"].split()[1]))
            parts.append(line(target, y - 7, target, y + 7, "target"))
        best, median = place(figure["best"]), place(figure["median"])
        parts.append(f'<g class="{REACHED[figure["reached"]]}">{line(best, y, median, y, "line")}'
                     f'<circle class="ring" cx="{best:.1f}" cy="{y}" r="5"/>'
                     f'<circle class="dot" cx="{median:.1f}" cy="{y}" r="4"/></g>')
    return page(width, height, parts)


def nice(value):
    """The least of 1, 2, 5, 10, 20 ... that is not less."""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def lines(title, across, series):
    """A line each, over values of x at equal distances; y begins at 0."""
    width, left, right, top, bottom = 720, 60, 470, 40, 280
    step = nice(max(max(one["y"]) for one in series) / 5)
    highest = step * math.ceil(max(max(one["y"]) for one in series) / step)
    xs = series[0]["x"]

    def at(number, y):
        return left + (right - left) * number / max(len(xs) - 1, 1), bottom - (bottom - top) * y / highest

    parts = [text(12, 18, title, kind="title"), text((left + right) / 2, bottom + 34, across, "middle", "small")]
    for number in range(round(highest / step) + 1):
        y = at(0, number * step)[1]
        parts += [line(left, y, right, y), text(left - 6, y + 4, f"{number * step:g}", "end", "small")]
    for number, x in enumerate(xs):
        if number % math.ceil(len(xs) / 12) == 0:
            parts.append(text(at(number, 0)[0], bottom + 16, f"{x:g}", "middle", "small"))
    for colour, (row, one) in zip(COLOURS, enumerate(series)):
        points = [at(number, y) for number, y in enumerate(one["y"])]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dots = "".join(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
        parts.append(f'<g class="{colour}"><path class="line" d="M{path}"/>{dots}'
                     f'{line(right + 16, top + row * 20, right + 36, top + row * 20, "line")}</g>')
        parts.append(text(right + 42, top + row * 20 + 4, one["series"], kind="small"))
    return page(width, bottom + 44, parts)
