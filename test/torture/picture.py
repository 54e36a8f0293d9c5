"""Draws the lanes of a failover: who was told what, when, and whether it was true."""

import html

WIDTH, LEFT, ROW, LANE = 960, 20, 16, 78


def draw(path, lanes):
    height = 40 + LANE * len(lanes)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
             ' font-family="sans-serif" font-size="11">',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             '<text x="20" y="16">each stroke: an answer to a client; grey: true, red: not what '
             'the new primary knows</text>']
    for number, (title, told, marks, untrue) in enumerate(lanes):
        parts += draw_lane(34 + number * LANE, title, told, marks, untrue)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts + ["</svg>"]) + "\n")


def draw_lane(top, title, told, marks, untrue):
    start, end = marks[0][0], marks[-1][0]

    def x_of(moment):
        return LEFT + 90 + (WIDTH - LEFT - 110) * (moment - start) / (end - start)

    yield f'<text x="{LEFT}" y="{top + 10}" font-weight="bold">{html.escape(title)}</text>'
    for row, (server, label) in enumerate((("a", "old primary"), ("bc", "new primary"))):
        y = top + 18 + row * (ROW + 2)
        yield f'<text x="{LEFT}" y="{y + 12}">{label}</text>'
        for colour, wanted in (("#999", False), ("#d00", True)):
            # one stroke per pixel is enough
            pixels = {round(x_of(one.time)) for one in told
                      if one.server in server and (one in untrue) == wanted}
            strokes = "".join(f"M{x} {y}v{ROW}" for x in sorted(pixels))
            if strokes:
                yield f'<path d="{strokes}" stroke="{colour}"/>'
    for moment, what in marks[1:-1]:
        x = x_of(moment)
        yield (f'<path d="M{x:.0f} {top + 16}v{2 * ROW + 6}" stroke="black"/>'
               f'<text x="{x + 2:.0f}" y="{top + 66}">{what}</text>')
