"""Forged models: real ones of every kind, with anything in them changed and every checksum computed again.

python -m tests.fuzz.models --seconds 60 --seed 1
"""

import atexit
import contextlib
import functools
import hashlib
import importlib.util
import io
import json
import random
import shutil
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from tests.fuzz import _mutations as mutations
from tests.fuzz._harness import main

import ilhash

if importlib.util.find_spec("skops"):
    import skops.io  # noqa: F401  (before limits are set)

SAMPLES = Path(__file__).parents[1] / "samples"
NEWER = Path(tempfile.mkdtemp(prefix="ilhash-fuzz-"))  # models of kinds that no sample has yet
atexit.register(shutil.rmtree, NEWER, ignore_errors=True)


def _write_newer():
    X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    given = {"n_bits": 4, "n_train": 40, "n_similar": 5, "n_dissimilar": 5}
    kinds = {
        "ilh-kernel-pool": ilhash.ILH(hash_function="kernel", centers="pool", n_centers=8, **given),
        "ilh-boosted": ilhash.ILH(hash_function="trees", n_trees=3, tree_depth=2, diversity="tf", **given),
    }
    for name, model in kinds.items():
        model.fit(X, np.arange(60) % 3, check=False).save(NEWER / name)
    extended = ilhash.ILH(**given).fit(X, np.arange(60) % 3, check=False)
    extended.extend(3, X[:50], np.arange(50) % 2, check=False).save(NEWER / "ilh-extended")
    return [NEWER / name for name in (*kinds, "ilh-extended")]


BASES = sorted(path.parent for path in SAMPLES.glob("*/models/*/config.json")) + _write_newer()
WITH_CLASSIFIERS = [base for base in BASES if list(base.glob("*.skops"))]
ALLOWED = (ilhash.StorageError, FileNotFoundError, ImportError)


def attempt(folder):
    """Load a model and encode some vectors with it."""
    model = ilhash.load(folder / "model")
    rng, n_bits = np.random.default_rng(0), len(model.functions_)
    for n in (1, 70):  # few and many vectors are encoded in different ways
        with np.errstate(all="ignore"):
            codes = model.transform(rng.normal(size=(n, model.n_features_in_)).astype(np.float32))
        if codes.dtype != np.uint8 or codes.shape != (n, -(-n_bits // 8)):
            raise RuntimeError(
                f"codes must be uint8 of shape ({n}, {-(-n_bits // 8)}), got {codes.dtype} {codes.shape}"
            )
    repr(model)
    return type(model).__name__


def forge(rng, folder):
    """Write a model of which one to three things were changed."""
    base = rng.choice(WITH_CLASSIFIERS if rng.random() < 0.15 else BASES)
    model = Model(base)
    done = [model.change(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    files = model.write(folder / "model")
    if rng.random() < 0.06:
        done.append(mutations.other_file(rng, rng.choice(files)))
    return f"{base.name}: {'; '.join(done)}"


class Model:
    """A saved model in parts that can be changed one by one."""

    def __init__(self, folder):
        config, files = _parts(folder)
        self.document, files = json.loads(config), dict(files)
        self.tensors, self.blobs = Tensors(files.pop("arrays")), files
        self.changes = []  # of the description, made when the files are known

    def change(self, rng):
        """Change one thing and say what."""
        kinds = ["config", "config", "array", "array", "array", "header", "names"]
        kinds += ["skops", "skops", "skops", "skops"] if self.blobs else []
        kind = rng.choice(kinds)
        if kind == "config":
            seed = rng.random()
            self.changes.append(seed)
            return f"config {seed}"
        if kind == "skops":
            role = rng.choice(sorted(self.blobs))
            self.blobs[role], done = other_skops(rng, self.blobs[role])
            return f"skops {done}"
        return f"{kind} {getattr(self.tensors, f'change_{kind}')(rng)}"

    def write(self, folder):
        """Write all files, with checksums of what they are now; return them."""
        folder.mkdir()
        files = {}
        for role, data in {"arrays": self.tensors.to_bytes(), **self.blobs}.items():
            digest = hashlib.sha256(data).hexdigest()
            suffix = ".safetensors" if role == "arrays" else ".skops"
            files[role] = {"name": f"{role}-{digest[:16]}{suffix}", "bytes": len(data), "sha256": digest}
            (folder / files[role]["name"]).write_bytes(data)
        document = {**self.document, "files": files}
        for seed in self.changes:
            document, self.done = mutations.mutated(random.Random(seed), document)
        (folder / "config.json").write_bytes(sealed(document))
        return [folder / "config.json", *(folder / entry["name"] for entry in files.values())]


@functools.cache
def _parts(folder):
    config = (folder / "config.json").read_text()
    return config, {role: (folder / file["name"]).read_bytes() for role, file in json.loads(config)["files"].items()}


def sealed(document):
    """Return a description with the checksum that belongs to it, however strange it is."""
    if not isinstance(document, dict):
        return mutations.to_json(document)
    with contextlib.suppress(RecursionError):  # then no checksum belongs to it
        read = json.loads(mutations.to_json(document))  # of a name that stands there twice the last counts
        bare = {key: value for key, value in read.items() if key != "checksum"}
        document["checksum"] = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
    return mutations.to_json(document)


class Tensors:
    """A file of safetensors: header and values."""

    def __init__(self, data):
        size = struct.unpack("<Q", data[:8])[0]
        self.header, self.values = json.loads(data[8 : 8 + size]), data[8 + size :]
        self.raw = []  # changes of the header alone, which then may lie about the values

    def to_bytes(self):
        header = self.header
        for seed in self.raw:
            header, _ = mutations.mutated(random.Random(seed), header)
        text = mutations.to_json(header)
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + self.values

    def change_header(self, rng):
        self.raw.append(rng.random())
        return f"{self.raw[-1]}"

    def change_array(self, rng):
        arrays = self._arrays()
        if not arrays:
            return "none left"
        name = rng.choice(sorted(arrays))
        arrays[name], done = mutations.other_array(rng, arrays[name])
        self._store(arrays)
        return f"{name} {done}"

    def change_names(self, rng):
        arrays = self._arrays()
        if not arrays:
            return "none left"
        name, other = rng.choice(sorted(arrays)), rng.choice(sorted(arrays))
        how = rng.choice(["drop", "rename", "swap", "copy", "regroup"])
        if how == "drop":
            del arrays[name]
        elif how == "swap":
            arrays[name], arrays[other] = arrays[other], arrays[name]
        elif how == "rename":
            arrays[mutations._near(rng, name) or "x"] = arrays.pop(name)
        elif how == "copy":
            arrays[rng.choice(["", "a", "0.x", "linear.0", "codeword.0.scores.codeword.0.ones", f"{name}.x"])] = arrays[
                other
            ]
        else:
            beginning = name.rpartition(".")[0]
            whole = {key: array for key, array in arrays.items() if key.startswith(beginning)}
            new = rng.choice(
                ["linear.9", "trees.0", "pool.0", "codeword.0.scores.linear.0", "classifier.7", "7.linear.0", "x.0"]
            )
            arrays |= {new + key[len(beginning) :]: array for key, array in whole.items()}
        self._store(arrays)
        return f"{how} {name}"

    def _arrays(self):
        from safetensors.numpy import load

        whole = struct.pack("<Q", len(text := mutations.to_json(self.header))) + text + self.values
        return dict(load(whole))

    def _store(self, arrays):
        from safetensors.numpy import save

        changed = Tensors(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
        self.header, self.values = changed.header, changed.values


# ---------------------------------------------------------------------------------------------- skops


LOADERS = [
    "FunctionNode",
    "MethodNode",
    "PartialNode",
    "TypeNode",
    "ConstructorFromReduceNode",
    "ObjectNode",
    "TreeNode",
]
LOADERS += [
    "OperatorFuncNode",
    "LossNode",
    "ReduceNode",
    "DefaultDictNode",
    "SetNode",
    "SparseMatrixNode",
    "CachedNode",
]
LOADERS += [
    "RandomGeneratorNode",
    "RandomStateNode",
    "DTypeNode",
    "BytesNode",
    "BytearrayNode",
    "MaskedArrayNode",
    "SliceNode",
]
TYPES = [
    "os.system",
    "builtins.eval",
    "builtins.exec",
    "numpy.testing.measure",
    "subprocess.Popen",
    "functools.partial",
]
TYPES += [
    "operator.methodcaller",
    "sklearn.tree._tree.Tree",
    "sklearn.svm._classes.SVC",
    "builtins.list",
    "builtins.dict",
]
TYPES += ["sklearn.neighbors._kd_tree.KDTree", "sklearn.linear_model._logistic.LogisticRegression", "builtins.object"]
TYPES += ["numpy.random.RandomState", "ctypes.CDLL", "pathlib.PosixPath", "sklearn.pipeline.Pipeline", "numpy.ndarray"]


def other_skops(rng, data):
    """Return the file of a classifier with one thing changed, and in words what was done."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(members["schema.json"])
    except Exception:  # it was changed before, beyond reading
        return mutations.flipped(rng, data), "bytes"
    how = rng.choice(
        ["schema", "schema", "type", "loader", "member", "array", "array", "bytes", "extra", "zip", "evil"]
    )
    compression = zipfile.ZIP_STORED
    if how == "bytes":
        return mutations.flipped(rng, data, rng.choice(["flip", "cut", "longer"])), how
    if how in ("schema", "type", "loader", "evil"):
        members["schema.json"], done = _other_schema(rng, schema, how)
        how = f"{how} {done}"
    elif how == "array":
        name = rng.choice([name for name in members if name.endswith(".npy")] or ["x.npy"])
        members[name], done = _other_npy(rng, members.get(name, b""))
        how = f"{how} {name} {done}"
    elif how == "member":
        name = rng.choice(sorted(members))
        members[name] = mutations.flipped(rng, members[name], rng.choice(["flip", "cut", "longer"]))
    elif how == "extra":
        members[rng.choice(["x", "../x", "a/b.npy", "x" * 999])] = rng.randbytes(9)
    else:
        compression = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue(), how


def _other_schema(rng, schema, how):
    if how == "schema":
        changed, done = mutations.mutated(rng, schema)
        return mutations.to_json(changed), done
    nodes = [path[:-1] for path in mutations.places(schema) if path[-1] == "__loader__"]
    node = mutations.at(schema, rng.choice(nodes)) if nodes else {}
    if how == "loader":
        node["__loader__"] = rng.choice(LOADERS)
    if how == "evil":
        node["__loader__"] = rng.choice(LOADERS)
        node.setdefault(
            "content", {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": []}
        )
    if how in ("type", "evil"):
        node["__module__"], _, node["__class__"] = rng.choice(TYPES).rpartition(".")
    return mutations.to_json(schema), " ".join(str(node.get(f"__{key}__")) for key in ("loader", "module", "class"))


def _other_npy(rng, data):
    try:
        array, done = mutations.other_array(rng, np.load(io.BytesIO(data)))
    except ValueError:
        return mutations.flipped(rng, data), "flip"
    buffer = io.BytesIO()
    np.save(buffer, array)
    written = buffer.getvalue()
    if rng.random() < 0.3:  # a header that lies
        old, new = rng.choice(
            [(b"<f8", b"|O8"), (b"<f8", b"<U9"), (b"(", b"(9"), (b"(", b"(-"), (b"False", b"True "), (b"'", b'"')]
        )
        written = written.replace(old, new, 1)
    return written, done


if __name__ == "__main__":
    main("tests.fuzz.models")
