"""The documented encoding of a fingerprint once more, in Python, and requests to compare it on.

Tokens, each a tag and, for strings and numbers, a length and bytes; members of an object in jsonb's
order, by length and bytes; numbers as sign, weight and digits of base 10000 without zeros at either
end.  A request is made of None, bool, str, Decimal, list and dict.
"""

import hashlib
import json
import struct
from decimal import Decimal


def number(value):
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return b"#" + bytes(4) + b"#" + bytes(4)
    pad = exponent % 4
    text += "0" * pad
    text = "0" * (-len(text) % 4) + text
    groups = [int(text[at:at + 4]) for at in range(0, len(text), 4)]
    weight = (exponent - pad) // 4 + len(groups) - 1
    while groups[0] == 0:
        del groups[0]
        weight -= 1
    while groups[-1] == 0:
        del groups[-1]
    return (b"#" + struct.pack(">Hh", 0x4000 if sign else 0, weight) +
            b"#" + struct.pack(">I", 2 * len(groups)) + struct.pack(f">{len(groups)}H", *groups))


def counted(tag, text):
    data = text.encode()
    return tag + struct.pack(">I", len(data)) + data


def encode(value):
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, str):
        return counted(b"s", value)
    if isinstance(value, Decimal):
        return number(value)
    if isinstance(value, list):
        return b"[" + b"".join(map(encode, value)) + b"]"
    members = sorted(value.items(), key=lambda m: (len(m[0].encode()), m[0].encode()))
    return b"{" + b"".join(counted(b"k", k) + encode(v) for k, v in members) + b"}"


def digest(value):
    return b"\x01" + hashlib.sha256(encode(value)).digest()


def prune(value, pointers):
    """Without what the JSON Pointers, each a list of steps, lead to."""
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = [(str(place), item) for place, item in enumerate(value)]
    else:
        return value
    kept = []
    for step, item in inner:
        here = [p[1:] for p in pointers if p[0] == step]
        if [] not in here:
            kept.append((step, prune(item, here)))
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


def pointer(steps):
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


NAMES = ["a", "b", "at", "id", "0", "1", "01", "", "~", "/", "a/b", "~0", "é", "e\u0301", "\U0001d518",
         "trace_id", "x" * 127, "x" * 128, "\u0001", "A", "Ä"]


def make_text(random):
    kind = random.randrange(6)
    if kind < 2:
        return random.choice(NAMES)
    if kind == 2:
        return "x" * random.choice([1, 3, 4, 126, 127, 128, 255, 256, 1018, 1019, 1024, 1025, 5000])
    return "".join(chr(random.choice([random.randrange(1, 128), random.randrange(1, 0x800),
                                      random.randrange(0xe000, 0x10000),
                                      random.randrange(0x10000, 0x110000)]))
                   for _ in range(random.randrange(20)))


def make_number(random):
    kind = random.randrange(6)
    if kind == 0:
        return Decimal(random.choice([0, 1, -1, 9999, 10000, 10001, -10000, 99999999, 100000000]))
    if kind == 1:
        return Decimal(random.randrange(-2 ** 70, 2 ** 70))
    if kind == 2:
        far = [-16000, -4001, 4000, 131071] if random.random() < 0.02 else [-5, -4, -3, 3, 4, 5, 40]
        return Decimal((random.randrange(2), (random.randrange(1, 10),), random.choice(far)))
    return Decimal((random.randrange(2), tuple(random.choices(range(10), k=random.randrange(1, 40))),
                    random.randrange(-30, 30)))


def make(random, depth=0):
    """A request, small more often than not."""
    kind = random.randrange(8) if depth < 6 else random.randrange(5)
    if kind == 0:
        return random.choice([None, True, False])
    if kind < 3:
        return make_text(random)
    if kind < 5:
        return make_number(random)
    size = random.choice([0, 1, 1, 2, 2, 3, 4, 8] if depth else [1, 2, 3, 4, 5, 8])
    if kind == 5:
        return [make(random, depth + 1) for _ in range(size)]
    return {make_text(random): make(random, depth + 1) for _ in range(size)}


def change(random, value):
    """Another request that differs in one place."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        other = dict(value)
        name = random.choice(list(other))
        kind = random.randrange(4)
        if kind == 0:
            del other[name]
        elif kind == 1:
            other[name + "x"] = other.pop(name)
        else:
            other[name] = change(random, other[name])
        return other
    if isinstance(value, list) and value and random.random() < 0.8:
        other = list(value)
        place = random.randrange(len(other))
        kind = random.randrange(4)
        if kind == 0:
            del other[place]
        elif kind == 1:
            other.insert(place, None)
        else:
            other[place] = change(random, other[place])
        return other
    if isinstance(value, bool) or value is None:
        return {None: False, False: True, True: None}[value]
    if isinstance(value, str):
        return random.choice([value + "x", "x" + value, value[:-1] if value else "x", [value]])
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        more = Decimal((sign, digits + (1,), max(exponent - 1, -16380)))
        return random.choice([more, str(value)])
    return [value]


def pointers(random, value):
    """Steps that lead somewhere in the request, or nowhere."""
    found = []
    for _ in range(random.randrange(1, 5)):
        steps, at = [], value
        while isinstance(at, (dict, list)) and at and (not steps or random.random() < 0.7):
            step = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
            at = at[step]
            steps.append(str(step))
        if random.random() < 0.2:
            steps.append(random.choice(NAMES))
        found.append(steps or [random.choice(NAMES)])
    return found


def spell_text(random, text):
    out = []
    for char in text:
        if random.random() < 0.2:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[at]:02x}{units[at + 1]:02X}" for at in range(0, len(units), 2)]
        else:
            out.append(json.dumps(char, ensure_ascii=False)[1:-1])
    return '"' + "".join(out) + '"'


def spell_number(random, value):
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0") or "0"
    minus = "-" if sign else ""
    kind = random.randrange(4)
    if kind == 0:
        return f"{minus}{text}e{exponent}"
    if kind == 1 and exponent > -16000:
        return f"{minus}{text}.{'0' * random.randrange(1, 9)}E{exponent:+d}"
    if kind == 2 and exponent < 131000:
        return f"{minus}{text[0]}{'.' + text[1:] if text[1:] else ''}e{exponent + len(text) - 1}"
    plain = f"{value.copy_abs():f}"
    return minus + plain + ("0" * random.randrange(4) if "." in plain else "")


def spell(random, value):
    """One of the ways to write it down."""
    blank = random.choice(["", "", " ", "\n\t", "  "])
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return spell_text(random, value)
    if isinstance(value, Decimal):
        return spell_number(random, value)
    if isinstance(value, list):
        return "[" + ("," + blank).join(spell(random, item) for item in value) + blank + "]"
    members = [(name, spell(random, item)) for name, item in value.items()]
    random.shuffle(members)
    if members and random.random() < 0.2:       # of two with one name the last counts
        members.insert(0, (random.choice(members)[0], "[1]"))
    return "{" + blank + ",".join(f"{spell_text(random, name)}{blank}:{blank}{item}"
                                  for name, item in members) + "}"
