"""Forged indexes: real ones of every kind, with anything in them changed and every checksum computed again.

python -m tests.fuzz.indexes --n 40000 --seed 1
"""

import copy
import hashlib
import json
import random
import tempfile
import zlib
from pathlib import Path

import numpy as np
from tests.fuzz import _mutations as mutations
from tests.fuzz._harness import main

import ilhash
from ilhash import HammingIndex
from ilhash.search import _segment, verify

SAMPLES = Path(__file__).parents[1] / "samples"
ALLOWED = (ilhash.StorageError, OSError)  # FileNotFoundError among them
BLOCK = 1 << 18
PRECIOUS = {"segment-00000001-00000000.bin": b"another's segment", "thesis.txt": b"important", "lock": b"precious"}


# ---------------------------------------------------------------------------------------------- what is tried


def attempt(folder):
    """Do with an index whatever one can do; the first refusal is the outcome."""
    path, refused = folder / "index", []

    def refusal(use, *arguments):
        """Return the result of a use, or None where it was refused in one sentence."""
        try:
            return use(*arguments)
        except ALLOWED as error:
            if "\n" in str(error) or len(str(error)) > 1500:
                raise RuntimeError(f"an error must be one sentence, got {str(error)[:3000]!r}") from error
            refused.append(error)
            return None

    report = refusal(verify, path)
    for writable in (False, True):
        index = refusal(lambda writable=writable: HammingIndex.open(path, writable=writable))
        if index is None:
            continue
        with index:
            for use in READING + (CHANGING if writable else []):
                refusal(use, index)
    compare(folder)
    if report is not None and report.ok and refused:
        raise RuntimeError(f"verify must name what is refused, got nothing but {refused[0]}") from refused[0]
    if refused:
        raise refused[0]
    if not verify(path).ok:
        raise RuntimeError(f"what was changed must be sound, got {verify(path)}")
    return "as before" if report.ok else f"served but for {report}"


def compare(folder):
    """See whether the neighbour of the index is as it was."""
    found = {file.name: file.read_bytes() for file in (folder / "other").iterdir()}
    if found != PRECIOUS:
        raise RuntimeError(f"the folder beside the index must be as it was, got {found}")


def queries(index, n=3):
    rng = np.random.default_rng(0)
    return ilhash.codes.pack(rng.random((n, index.n_bits)) < 0.5), rng.normal(size=(n, index.n_bits)).astype(np.float32)


def look(index):
    if len(index.ids) != len(index) or index.n_distinct < 0:
        raise RuntimeError(f"an index must have as many ids as items, got {len(index.ids)} of {len(index)}")
    repr(index)


def search(index):
    codes, _ = queries(index)
    for threads in (1, 2):
        check_hits(index, index.search(codes, 5, n_threads=threads))
    index.search(codes, 5, allowed=index.ids[:3])
    index.search(codes, 10**6)


def within(index):
    index.within(queries(index)[0], index.n_bits // 3)
    index.within(queries(index)[0], index.n_bits)


def asymmetric(index):
    check_hits(index, index.search_asymmetric(queries(index)[1], 4))


def margins(index):
    if index._scale is not None:
        check_hits(index, index.search_margins(queries(index)[1], 4, shortlist=9))


def check_hits(index, hits):
    if hits.ids.shape != hits.distances.shape or hits.ids.shape[0] != 3 or hits.ids.shape[1] > len(index):
        raise RuntimeError(f"hits must be of items, got {hits}")


def iterate(index):
    for number, (name, code) in enumerate(index):
        if number == 50:
            index.codes([name])
            break
        len(code)


def new_items(index):
    held = set(index.ids.tolist())
    names = [f"new {i}" for i in range(99)] if index._kind == "str" else list(range(-50, 50))
    names = [name for name in names if name not in held][:3]
    codes, margins = queries(index, len(names))
    return codes, names, None if index._scale is None else margins


def add(index):
    codes, names, margins = new_items(index)
    index.add(codes, names, margins=margins)


def update(index):
    names = index.ids[:2]
    codes, margins = queries(index, len(names))
    index.update(codes, names, margins=None if index._scale is None else margins)


def remove(index):
    index.remove(index.ids[-2:])


def compact(index):
    index.compact()


READING = [len, look, search, within, asymmetric, margins, iterate, lambda index: index.bytes_per_item]
CHANGING = [add, remove, update, compact, look, search]


# ---------------------------------------------------------------------------------------------- what is forged


def forge(rng, folder):
    """Write an index of which one to three things were changed, beside a folder that nobody may touch."""
    name = rng.choice(sorted(BASES))
    index = copy.deepcopy(BASES[name])
    done = [index.change(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    (folder / "other").mkdir()
    for file, content in PRECIOUS.items():
        (folder / "other" / file).write_bytes(content)
    files = index.write(folder / "index", rng)
    if rng.random() < 0.06:
        done.append(mutations.other_file(rng, rng.choice([file for file in files if file.is_file()])))
    return f"{name}: {'; '.join(done)}"


class Index:
    """An index in parts that can be changed one by one."""

    def __init__(self, folder):
        self.manifest = json.loads((folder / "manifest.json").read_bytes())["manifest"]
        self.files = {}
        names = {}
        for key in ("segments", "removals"):
            for number, entry in enumerate(self.manifest[key]):  # the same names in every run
                names[entry["file"]] = f"{'segment' if key == 'segments' else 'removed'}-00000001-{number:08x}.bin"
                self.files[names[entry["file"]]] = File((folder / entry["file"]).read_bytes())
        stems = {old.removesuffix(".bin"): new.removesuffix(".bin") for old, new in names.items()}
        for file in self.files.values():
            file.arrays = {stems.get(name, name): array for name, array in file.arrays.items()}
        self.placed = {key: [names[entry["file"]] for entry in self.manifest[key]] for key in ("segments", "removals")}
        self.late, self.moved = [], {}  # changes of the manifest when the files are known; files under other names

    def change(self, rng):
        """Change one thing and say what."""
        kinds = ["manifest", "settings", "array", "array", "content", "content", "content", "header", "header"]
        kind = rng.choice([*kinds, "names", "block", "overlap", "dtype", "file", "entries"])
        if kind in ("manifest", "settings"):
            self.late.append((kind, rng.random()))
            return f"{kind} {self.late[-1][1]}"
        if kind == "file":
            return self.move(rng)
        if kind == "entries":
            return self.change_entries(rng)
        name = rng.choice(sorted(self.files))
        return f"{kind} {name} {getattr(self.files[name], f'change_{kind}')(rng)}"

    def move(self, rng):
        name = rng.choice(sorted(self.files))
        away = [
            "../other/segment-00000001-00000000.bin",
            "../other/thesis.txt",
            "sub/none.bin",
            "lock",
            "manifest.json",
        ]
        self.moved[name] = rng.choice([*away, *mutations.TEXTS, f"./{name}", f"{name}\n", name.replace("0", "\u0660")])
        return f"name {name} {self.moved[name]!r}"

    def change_entries(self, rng):
        how = rng.choice(["again", "drop", "swap", "shuffle"])
        key = rng.choice(["segments", "removals"])
        entries = self.placed[key]
        if how == "again" and entries:
            entries.append(rng.choice(entries))
        elif how == "drop" and entries:
            entries.remove(rng.choice(entries))
        elif how == "swap":
            self.placed["segments"], self.placed["removals"] = self.placed["removals"], self.placed["segments"]
        else:
            rng.shuffle(entries)
        return f"{how} {key}"

    def write(self, folder, rng):
        """Write all files, with checksums of what they are now; return them."""
        folder.mkdir()
        entries = {}
        for name, file in self.files.items():
            data, header = file.to_bytes()
            digest = hashlib.sha256(data[:header]).hexdigest()
            place = self.moved.get(name, name)
            entries[name] = {"file": place, "bytes": len(data), "header_bytes": header, "header_sha256": digest}
            usual = place if place.isprintable() and "/" not in place and 0 < len(place) < 200 else name
            (folder / (name if usual in (".", "..", "manifest.json") else usual)).write_bytes(data)
        document = dict(self.manifest)
        document |= {key: [dict(entries[name]) for name in names] for key, names in self.placed.items()}
        for kind, seed in self.late:
            if isinstance(document, dict):
                document = changed_manifest(kind, random.Random(seed), document)
        body = mutations.to_json(document)
        digest = hashlib.sha256(body).hexdigest().encode()
        (folder / "manifest.json").write_bytes(b'{"sha256": "%s", "manifest": %s}\n' % (digest, body))
        return sorted(folder.iterdir())


def changed_manifest(kind, rng, document):
    if kind == "manifest":
        return mutations.mutated(rng, document)[0]
    key = rng.choice(["settings", "notes"])
    part = dict(document.get(key, {}) if isinstance(document.get(key), dict) else {})
    how = rng.choice(["n_bits", "ids", "margin_scale", "next_id", "any"])
    part |= {
        "n_bits": {"n_bits": rng.choice([0, 1, 7, 8, 15, 16, 17, 19, 21, 24, 65535, 65536, 2**40, -1, True, 20.0])},
        "ids": {"ids": rng.choice(["int", "str", "int64", "", None, 1])},
        "margin_scale": {
            "margin_scale": rng.choice([[], [1] * 20, [0.0] * 20, [1e-60] * 20, [1e300] * 20, "x", [None]])
        },
        "next_id": {"next_id": rng.choice([-1, 0, 2**63 - 1, 2**63, 2**64, 1.5, "1", None])},
        "any": {rng.choice(mutations.TEXTS): mutations.value(rng)},
    }[how]
    return {**document, key: part}


class File:
    """A file of arrays: what its header says, and what it holds."""

    def __init__(self, data):
        line = data.split(b"\n", 1)[0] + b"\n"
        self.header = json.loads(line)
        self.arrays = {}
        for described in self.header["arrays"]:
            dtype, shape = np.dtype(described["dtype"]), described["shape"]
            begin, count = len(line) + described["offset"], int(np.prod(shape))
            self.arrays[described["name"]] = np.frombuffer(data, dtype, count, begin).reshape(shape).copy()
        self.block, self.rows, self.late, self.lies = BLOCK, None, [], {}

    def to_bytes(self):
        """Return the bytes of the file, and how many of them are the header."""
        described, values = [], b""
        for name, array in self.arrays.items():
            flat = np.ascontiguousarray(array).tobytes()
            flat += bytes(-len(flat) % 64)
            parts = [flat[first : first + self.block] for first in range(0, len(flat), self.block)]
            place = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": len(values), "bytes": len(flat)}
            place["crc32"] = "".join(f"{zlib.crc32(part):08x}" for part in parts)
            described.append({"name": name, **place, **self.lies.get(name, {})})
            values += flat
        header = {**self.header, "block": self.block, "arrays": described}
        if self.rows is not None:
            header["rows"] = self.rows
        for seed in self.late:
            header, _ = mutations.mutated(random.Random(seed), header)
        line = mutations.to_json(header)
        line += b" " * (-(len(line) + 1) % 64) + b"\n"
        return line + values, len(line)

    def any(self, rng):
        return rng.choice(sorted(self.arrays)) if self.arrays else None

    def follow(self):
        """Let the number of rows be that of the first array, as a careful forger would."""
        first = next(iter(self.arrays.values()), np.zeros(0))
        lengths = [len(array) if array.ndim else 0 for array in self.arrays.values()]
        removed = all(name.startswith("segment-") for name in self.arrays)
        self.rows = sum(lengths) if removed else len(first) if first.ndim else 0

    def change_header(self, rng):
        self.late.append(rng.random())
        return f"{self.late[-1]}"

    def change_array(self, rng):
        name = self.any(rng)
        if name is None:
            return "none"
        self.arrays[name], done = mutations.other_array(rng, self.arrays[name])
        if rng.random() < 0.8:
            self.follow()
        return f"{name} {done}"

    def change_names(self, rng):
        name, other = self.any(rng), self.any(rng)
        if name is None:
            return "none"
        how = rng.choice(["drop", "rename", "swap", "copy", "first"])
        if how == "drop":
            del self.arrays[name]
        elif how == "rename":
            self.arrays[rng.choice([*mutations.TEXTS, "rows", "pivots", "offsets", "ids"])] = self.arrays.pop(name)
        elif how == "swap":
            self.arrays[name], self.arrays[other] = self.arrays[other], self.arrays[name]
        elif how == "copy":
            more = ["rows", "offsets", "pivots", "rings", "margins", "ids", "id_text", "x", "segment-00000001-00000000"]
            self.arrays[rng.choice(more)] = self.arrays[other].copy()
        else:
            self.arrays = {name: self.arrays[name], **self.arrays}
        self.follow()
        return f"{how} {name}"

    def change_block(self, rng):
        self.block = rng.choice([1, 63, 64, 128, 4096, 1 << 18, (1 << 18) + 1, 1 << 30])
        return f"{self.block}"

    def change_overlap(self, rng):
        name, other = self.any(rng), self.any(rng)
        if name is not None:
            place = self.to_bytes()[1]
            self.lies[name] = {"offset": rng.choice([0, 64, -64, -place, 1, 2**62, 1 << 20])}
            if rng.random() < 0.5:
                self.arrays[name] = self.arrays[other].copy()
        return f"{name} {self.lies.get(name)}"

    def change_dtype(self, rng):
        name = self.any(rng)
        if name is not None:
            self.lies[name] = {
                "dtype": rng.choice(["|O", "|V8", "<M8[s]", "<c16", ">i8", "<i4", "|S8", "<U2", "O", "i8,i8"])
            }
        return f"{name} {self.lies.get(name)}"

    def change_content(self, rng):
        """Change what an array says without changing what it is."""
        name = self.any(rng)
        array = self.arrays.get(name)
        if array is None or not array.size or array.dtype.kind not in "iu":
            return "none"
        flat, ends = np.array(array).reshape(-1), np.iinfo(array.dtype)
        here, there = rng.randrange(flat.size), rng.randrange(flat.size)
        how = rng.choice(["swap", "same", "near", "end", "reverse", "bits", "sorted"])
        with np.errstate(all="ignore"):
            if how == "swap":
                flat[here], flat[there] = flat[there], flat[here]
            elif how == "same":
                flat[here] = flat[there]
            elif how == "near":
                flat[here] += flat.dtype.type(rng.choice([1, 2, 3, 63, 64, 100]))
            elif how == "end":
                flat[here] = rng.choice([ends.max, ends.min, min(len(array), ends.max), 0])
            elif how == "reverse":
                flat[...] = flat[::-1].copy()
            elif how == "sorted":
                flat.sort()
            else:
                flat.view(np.uint8)[here * flat.itemsize] ^= np.uint8(1 << rng.randrange(8))
        self.arrays[name] = flat.reshape(array.shape)
        return f"{name} {how} {here} {there}"


# ---------------------------------------------------------------------------------------------- what it is made of


def made_with_pivots(folder):
    """Write an index of crowded codes, whose file has pivots; some items are removed."""
    rng = np.random.default_rng(5)
    bits = (rng.random((8, 61)) < 0.5)[rng.integers(0, 8, 11_000)] ^ (rng.random((11_000, 61)) < 0.05)
    enough, _segment.PIVOTS_FROM = _segment.PIVOTS_FROM, 256
    try:
        with HammingIndex.open(folder, n_bits=61) as index:
            index.add(ilhash.codes.pack(bits))
            index.remove([5, 700, 10_999])
            if "pivots" not in index._segments[0].arrays:
                raise RuntimeError("an index of crowded codes must have pivots, got none")
    finally:
        _segment.PIVOTS_FROM = enough


def made_of_segments(folder):
    """Write an index of texts in several segments, with margins and removed items."""
    rng = np.random.default_rng(6)
    margins = rng.normal(size=(200, 9)).astype(np.float32)
    with HammingIndex.open(folder, n_bits=9, ids="str", margins=margins) as index:
        for first, last in ((0, 130), (130, 170), (170, 185), (185, 190)):
            names = [f"é{i * 7 % 200}\0" for i in range(first, last)]
            index.add(ilhash.codes.pack(margins[first:last] > 0), names, margins=margins[first:last])
        index.remove(index.ids[[1, 50, 99]])
        index.remove(index.ids[[3]])


def bases():
    """Return indexes by name, in parts."""
    found = {path.parent.name: path.parent for path in SAMPLES.glob("*/indexes/*/manifest.json")}
    parts = {name: Index(folder) for name, folder in sorted(found.items())}
    with tempfile.TemporaryDirectory() as folder:
        for make in (made_with_pivots, made_of_segments):
            make(Path(folder) / make.__name__)
            parts[make.__name__] = Index(Path(folder) / make.__name__)
    return parts


BASES = bases()


if __name__ == "__main__":
    main("tests.fuzz.indexes")
