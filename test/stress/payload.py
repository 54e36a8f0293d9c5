"""Other spellings of a JSON value, and values that differ from it in one place."""

import json
from decimal import Decimal


def parse(text):
    """The value of a JSON text; numbers keep all their digits."""
    return json.loads(text, parse_float=Decimal)


def spell(value, rng=None):
    """A JSON text of the value: the plainest one, or with rng any other one."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return spell_string(value, rng)
    if isinstance(value, (int, Decimal)):
        return spell_number(value, rng)

    def space():
        return rng.choice(("", "", " ", "  ", "\n\t", "\r\n")) if rng else ""

    if isinstance(value, list):
        parts = [space() + spell(element, rng) + space() for element in value]
        return "[" + (",".join(parts) or space()) + "]"
    members = list(value.items())
    if rng:
        rng.shuffle(members)
    parts = [space() + spell_string(name, rng) + space() + ":" + space() + spell(member, rng)
             + space() for name, member in members]
    return "{" + (",".join(parts) or space()) + "}"


def spell_string(string, rng):
    out = []
    for char in string:
        if char == "/" and rng and rng.random() < 0.2:
            out.append("\\/")
        elif char in '"\\' or char < " " or rng and rng.random() < 0.05:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
        else:
            out.append(char)
    return '"' + "".join(out) + '"'


def spell_number(number, rng):
    plain = str(number)
    if not rng or isinstance(number, Decimal):
        return plain + ("0" if rng and "." in plain and "E" not in plain else "")
    if number == 0:
        return rng.choice(("0.0", "-0", "0e5", "0.000"))
    return rng.choice((f"{plain}.0", f"{plain}.000", f"{plain}e0", f"{plain}E+0", f"{plain}0e-1"))


def places(value, path=()):
    """Each path within the value with what is there, the value itself included."""
    yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, path + (name,))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from places(element, path + (index,))


def replaced(value, path, edit):
    """The value with what is at the path replaced by edit(of it)."""
    if not path:
        return edit(value)
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], edit)
    return copy


def other_string(string, rng):
    others = [string + "x", [string], None]
    if string:
        others += [string[:-1], string + string[-1], "\u00e9" + string[1:]]
    if string.swapcase() != string:
        others.append(string.swapcase())
    return rng.choice([other for other in others if other != string])


def other_number(number, rng):
    others = [number + 1, number - 1, str(number), number != 0]
    if isinstance(number, int):
        others.append(Decimal(f"{number}.{'0' * 40}1"))
    return rng.choice(others)


def without_one(container, rng):
    copy = container.copy()
    del copy[rng.choice(list(container) if isinstance(container, dict)
                        else range(len(container)))]
    return copy


def with_one(container, rng):
    new = rng.choice((None, 0, "", {}, []))
    if isinstance(container, list):
        return container + [new]
    return {**container, "x" * (1 + max(map(len, container), default=0)): new}


def renamed(container, rng):
    name = rng.choice(list(container))
    copy = container.copy()
    copy["x" * (1 + max(map(len, container)))] = copy.pop(name)
    return copy


# What is changed, where that is possible, and how.
CHANGES = {
    "string": (lambda v: isinstance(v, str), other_string),
    "number": (lambda v: isinstance(v, (int, Decimal)) and not isinstance(v, bool), other_number),
    "boolean": (lambda v: isinstance(v, bool),
                lambda v, rng: rng.choice((not v, None, str(v).lower(), int(v)))),
    "null": (lambda v: v is None, lambda v, rng: rng.choice((False, 0, "", "null", {}, []))),
    "removed": (lambda v: isinstance(v, (dict, list)) and v, without_one),
    "added": (lambda v: isinstance(v, (dict, list)), with_one),
    "renamed": (lambda v: isinstance(v, dict) and v, renamed),
    "reordered": (lambda v: isinstance(v, list) and len(v) > 1 and v[0] != v[-1],
                  lambda v, rng: v[::-1]),
}


def changes(value, rng):
    """One change of each kind, at a random place where there is one: (kind, changed value)."""
    everywhere = list(places(value))
    for kind, (possible, edit) in CHANGES.items():
        paths = [path for path, here in everywhere if possible(here)]
        if paths:
            yield kind, replaced(value, rng.choice(paths), lambda here: edit(here, rng))
