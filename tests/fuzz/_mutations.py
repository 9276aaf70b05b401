"""Ways to change JSON, arrays and files so that they stay what they are in form: grammar-aware, drawn from a Random."""

import copy
import json
import os
import re
import string

import numpy as np

NUMBERS = [
    0,
    -1,
    1,
    2,
    7,
    64,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32,
    2**53,
    2**63 - 1,
    2**63,
    2**64,
    10**30,
]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-300, 1e308, -1e308, float("nan"), float("inf"), float("-inf")]
TEXTS = [
    "",
    "a",
    "x" * 300,
    "../../x",
    "/etc/passwd",
    "a/b",
    ".",
    "..",
    "con",
    "\x00",
    "a\x00b",
    "\ud800",
    "\u202e",
    "é" * 9,
]
TEXTS += ["float32", "int8", "|O", ">f4", "NaN", "null", "1", "linear", "ILH", "Mix", "__class__", "%s%n", "\U0001f600"]

_DEEP = "deep: "


class Repeated(dict):
    """An object of which one name stands twice in the text."""

    def __init__(self, mapping, name, value):
        super().__init__(mapping)
        self._more = (name, value)

    def items(self):
        return [*super().items(), self._more]


def value(rng, depth=0):
    """Return any JSON value."""
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind in (1, 2):
        return rng.choice(NUMBERS) + rng.choice([0, 0, 1, -1])
    if kind == 3:
        return rng.choice(FLOATS)
    if kind in (4, 5):
        return rng.choice(TEXTS)
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {rng.choice(TEXTS): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return nested(rng)


def nested(rng):
    """Return what becomes a list or an object in itself, that deep, in the text: Python itself cannot go so far."""
    return f"{_DEEP}{rng.choice([3, 50, 900, 3000, 100_000])}{rng.choice('[{')}"


def places(document, path=()):
    """Yield the paths to all parts of a document."""
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def at(document, path):
    """Return the part at a path."""
    for key in path:
        document = document[key]
    return document


def mutated(rng, document):
    """Return a document with one part changed, and in words what was done."""
    document = copy.deepcopy(document)
    found = list(places(document))
    if not found:
        return value(rng), "another document"
    path = rng.choice(found)
    how = rng.choice(sorted(_WAYS))
    changed = _WAYS[how](rng, document, path, found)
    return document if changed is None else changed, f"{how} at {'.'.join(map(str, path))[:200]}"


def _other(rng, document, path, found):
    at(document, path[:-1])[path[-1]] = value(rng)


def _nearby(rng, document, path, found):
    holder, key = at(document, path[:-1]), path[-1]
    holder[key] = _near(rng, holder[key]) if isinstance(holder[key], int | float | str) else value(rng)


def _drop(rng, document, path, found):
    del at(document, path[:-1])[path[-1]]


def _copied(rng, document, path, found):
    at(document, path[:-1])[path[-1]] = copy.deepcopy(at(document, rng.choice(found)))


def _swap(rng, document, path, found):
    other = rng.choice(found)
    if path[: len(other)] != other and other[: len(path)] != path:
        here, there = at(document, path[:-1]), at(document, other[:-1])
        here[path[-1]], there[other[-1]] = there[other[-1]], here[path[-1]]


def _grow(rng, document, path, found):
    holder, key = at(document, path[:-1]), path[-1]
    if isinstance(holder[key], list):
        holder[key] = holder[key] * rng.choice([0, 2, 3, 1000] if len(holder[key]) < 100 else [0, 2])


def _rename(rng, document, path, found):
    holder, key = at(document, path[:-1]), path[-1]
    if isinstance(holder, dict):
        holder[rng.choice([rng.choice(TEXTS), f"{key}x", str(key).upper()])] = holder.pop(key)


def _near(rng, old):
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | float):
        return rng.choice([old + 1, old - 1, -old, old * 2, old * 1000, float(old), str(old), bool(old)])
    if not old:
        return "a"
    place = rng.randrange(len(old))
    return rng.choice(
        [old[:place], old[:place] + rng.choice(string.printable) + old[place + 1 :], old * 2, old.upper()]
    )


def _repeated(rng, document, path, found):
    """Let the last name of a path stand there twice."""
    if not isinstance(at(document, path[:-1]), dict):
        return None
    if len(path) == 1:
        return Repeated(document, path[0], value(rng))
    holder = at(document, path[:-2])
    holder[path[-2]] = Repeated(holder[path[-2]], path[-1], value(rng))
    return None


_WAYS = {"other": _other, "another": _other, "near": _nearby, "drop": _drop, "copy": _copied, "swap": _swap}
_WAYS |= {"grow": _grow, "rename": _rename, "repeat": _repeated}


def to_json(document):
    """Return a document as bytes; what cannot be UTF-8 is escaped."""

    def deep(found):
        depth = int(found[1])
        return b"[" * depth + b"]" * depth if found[2] == b"[" else b'{"a":' * depth + b"1" + b"}" * depth

    return re.sub(rb'"%s(\d+)(.)"' % _DEEP.encode(), deep, json.dumps(document).encode())


# ---------------------------------------------------------------------------------------------- arrays


DTYPES = [
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


def other_array(rng, array):
    """Return an array of another type, shape or content, and in words what was done."""
    how = rng.choice(["value", "value", "value", "all", "dtype", "shape", "cut", "grow", "empty", "noise", "order"])
    array = np.array(array)
    if how == "value" and array.size:
        array.flat[rng.randrange(array.size)] = _number_of(rng, array.dtype)
    elif how == "all":
        array[...] = _number_of(rng, array.dtype)
    elif how == "dtype":
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(DTYPES))
    elif how == "shape":
        shape = rng.choice([(-1,), (1, -1), (-1, 1), (1, 1, -1), array.shape[::-1], (*array.shape, 1)])
        array = array.reshape(shape)
    elif how in ("cut", "grow") and array.ndim:
        axis = rng.randrange(array.ndim)
        least = 0 if how == "cut" else array.shape[axis] + 1
        most = (
            array.shape[axis] if how == "cut" else rng.choice([array.shape[axis] + 3, 2 * array.shape[axis] + 2, 3000])
        )
        array = np.resize(
            array, [rng.randint(least, max(least, most)) if a == axis else n for a, n in enumerate(array.shape)]
        )
    elif how == "empty":
        array = np.empty([0 if n == rng.choice(array.shape or (0,)) else n for n in array.shape], array.dtype)
    elif how == "noise":
        noise = np.frombuffer(rng.randbytes(array.nbytes), np.uint8)
        array = noise.view(array.dtype).reshape(array.shape) if array.dtype != bool else array
    elif how == "order" and array.ndim:
        array = array[[rng.randrange(len(array)) for _ in range(len(array))]]
    return array, how


def _number_of(rng, dtype):
    """Return a number of a type that is at one of its ends, or near zero."""
    if dtype.kind == "f":
        return dtype.type(rng.choice([*FLOATS[:4], "nan", "inf", "-inf", np.finfo(dtype).max, np.finfo(dtype).tiny]))
    if dtype.kind == "b":
        return rng.random() < 0.5
    ends = np.iinfo(dtype)
    return dtype.type(rng.choice([0, 1, 2, 3, 5, 100, ends.max, ends.max - 1, ends.min, max(ends.min, -1)]))


# ---------------------------------------------------------------------------------------------- files


def other_file(rng, path):
    """Make something else of a file: another size or another kind of thing under its name; return in words what."""
    data = path.read_bytes()
    how = rng.choice(["sparse", "pipe", "link", "folder", "cut", "longer", "flip", "none", "device", "unreadable"])
    path.unlink()
    if how == "sparse":
        with path.open("wb") as file:
            file.write(data)
            file.truncate(rng.choice([1 << 20, 1 << 32, 50 << 30]))
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link":
        target = path.with_name("linked")
        target.write_bytes(data)
        path.symlink_to(rng.choice([target.name, "/dev/zero", "/dev/stdin", path.name, "nowhere"]))
    elif how == "folder":
        path.mkdir()
    elif how == "device":
        path.symlink_to("/dev/zero")
    elif how == "unreadable":
        path.write_bytes(data)
        path.chmod(0)
    elif how != "none":
        path.write_bytes(flipped(rng, data, how))
    return f"{how} {path.name}"


def flipped(rng, data, how="flip"):
    """Return bytes that were cut, made longer, or of which one is another."""
    if how == "cut" or not data:
        return data[: rng.randrange(len(data))] if data else b"\x00"
    if how == "longer":
        return data + rng.randbytes(rng.choice([1, 8, 4096]))
    place = rng.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
