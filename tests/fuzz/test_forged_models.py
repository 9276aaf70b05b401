"""Forged models load and encode, or are refused in the words that docs/files.md promises; nothing else."""

import importlib.util
import json
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz import _harness, models
from tests.fuzz.models import BASES, SAMPLES, Model, sealed

import ilhash
from ilhash.storage import DamagedFileError, StorageError, UnknownFormatError

CORPUS = sorted(Path(__file__).with_name("corpus").glob("models/*"))

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and time of Linux"),
    pytest.mark.skipif(importlib.util.find_spec("skops") is None, reason="skops is an extra"),
]


def failures(outcome):
    return [f"{failure.forged}: {failure.outcome} ({failure.kept})" for failure in outcome.failures]


def test_forged_models(tmp_path):
    outcome = _harness.run("tests.fuzz.models", seconds=12, seed=0, corpus=tmp_path)
    assert not failures(outcome)
    assert outcome.tried > 50


@pytest.mark.slow
def test_many_forged_models(tmp_path):
    outcome = _harness.run("tests.fuzz.models", n=20_000, seed=3, corpus=tmp_path)
    assert not failures(outcome)
    assert outcome.counts["works"] > 2000  # what is still a model is still read


@pytest.mark.parametrize("folder", CORPUS, ids=lambda folder: folder.name)
def test_what_failed_once_is_refused_or_works(folder, tmp_path):
    (tmp_path / "model").symlink_to(folder)
    outcome, allowed = _harness.judged(models, tmp_path)
    assert allowed, outcome


# ---------------------------------------------------------------------------------------------- the harness itself


TARGET = """
import os
import numpy as np
ALLOWED = (ValueError, FileNotFoundError)
def swallow():
    try:
        np.ones(1 << 30)
    except MemoryError as error:
        raise ValueError from error
def forge(rng, folder):
    return "it"
def attempt(folder):
"""


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        *(("raise KeyError(1)", "raw KeyError"), ("while True: pass", "hang"), ("os.abort()", "crash")),
        *(("np.ones(1 << 30)", "raw "), ("os.system('true')", "acted"), ("open('/tmp/x', 'a')", "acted")),
        *(("raise ValueError", "ValueError"), ("swallow()", "memory"), ("os.remove('/tmp/none')", "acted")),
        ("pass", "works"),
    ],
)
def test_the_harness_sees_what_it_must(case, outcome, tmp_path):
    (tmp_path / "target.py").write_text(f"{TARGET}    {case}\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        found = _harness.run("target", n=2, memory=1 << 30, case_seconds=0.5, corpus=tmp_path / "kept")
    assert found.tried == 2
    assert all(name.startswith(outcome) for name in found.counts)
    assert len(found.failures) == (0 if outcome in ("works", "ValueError") else 2)


# ---------------------------------------------------------------------------------------------- what was found by hand


class Forgery:
    """A saved model of which arrays and values are set one by one, every checksum being right again."""

    def __init__(self, name):
        self.model = Model(next(base for base in BASES if base.name == name))

    @property
    def arrays(self):
        return self.model.tensors._arrays()

    def set(self, **arrays):
        named = {name.replace("__", "."): array for name, array in arrays.items()}
        self.model.tensors._store({**self.arrays, **named})
        return self

    def load(self, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.write(tmp_path / "model")
            return ilhash.load(tmp_path / "model")


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("ilh-linear", "linear__0__weights"),
        ("ilh-linear", "origin"),
        ("ilh-kernel-common", "kernel__0__centers"),
        ("ilh-kernel-pool", "pool__0__weights"),
        ("ilh-boosted", "trees__0__bias"),
        ("sh", "cosine__0__phase"),
        ("agh", "anchors__0__weights"),
        ("ilh-tree", "trees__0__value"),
        ("classifiercode", "codeword__0__scores__linear__0__bias"),
    ],
)
def test_values_that_are_no_numbers_are_refused(name, array, value, tmp_path):
    forgery = Forgery(name)
    old = forgery.arrays[array.replace("__", ".")]
    with pytest.raises(DamagedFileError, match=r"finite|NaN"):
        forgery.set(**{array: changed(old, (0,) * old.ndim, value)}).load(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "value", "words"),
    [
        ("ilh-features", "linear__0__features", 6, "at most 5"),
        ("ilh-features", "linear__0__features", -1, "at least 0"),
        ("ilh-features", "linear__0__features", 5, "must ascend"),
        ("ilh-linear", "linear__0__bits", 1, "each once"),
        ("ilh-linear", "linear__0__bits", 4, "each once"),
        ("ilh-kernel-common", "kernel__0__width", 0.0, "at least"),
        ("ilh-kernel-common", "kernel__0__width", -1.0, "at least"),
        ("ilh-kernel-common", "kernel__0__common", 2, "at most 1"),
        ("ilh-kernel-pool", "pool__0__chosen", 24, "at most 23"),
        ("ilh-kernel-pool", "pool__0__chosen", -1, "at least 0"),
        ("ilh-kernel-pool", "pool__0__chosen", 23, "must ascend"),
        ("agh", "anchors__0__nearest", 0, "at least 1"),
        ("agh", "anchors__0__nearest", 9, "at most its 8 anchors"),
        ("agh-layers", "anchors__0__cuts", 0.5, "two finite cuts"),
        ("ilh-tree", "trees__0__left", 0, "be trees of"),
        ("ilh-tree", "trees__0__feature", 6, "be trees of"),
        ("mix", "family", 1, "as often as it has bits"),
        ("mix", "family", 2, "at most 1"),
    ],
)
def test_numbers_that_would_index_memory_are_refused(name, array, value, words, tmp_path):
    forgery = Forgery(name)
    old = forgery.arrays[array.replace("__", ".")]
    with pytest.raises(DamagedFileError, match=words):
        forgery.set(**{array: changed(old, (0,) * old.ndim, value)}).load(tmp_path)


def test_codewords_of_one_value_are_refused(tmp_path):
    forgery = Forgery("classifiercode")
    ones = forgery.arrays["codeword.0.ones"]
    with pytest.raises(DamagedFileError, match="classes of both values"):
        forgery.set(codeword__0__ones=np.ones_like(ones)).load(tmp_path)


def test_scores_within_scores_are_refused(tmp_path):
    forgery = Forgery("classifiercode")
    inner = {f"codeword__0__scores__{name.replace('.', '__')}": array for name, array in forgery.arrays.items()}
    with pytest.raises(DamagedFileError, match="scores of other kinds"):
        forgery.set(**{name: array for name, array in inner.items() if "origin" not in name}).load(tmp_path)


def chain(n):
    """A tree of which every second node is a leaf: n levels."""
    own = np.arange(2 * n + 1, dtype=np.int32)
    inner = own % 2 == 0
    inner[-1] = False
    left, right = np.where(inner, own + 1, own), np.where(inner, own + 2, own)
    columns = {"left": left, "right": right, "feature": np.zeros(len(own)), "roots": np.zeros(1)}
    nodes = {name: column.astype(np.int32) for name, column in columns.items()}
    return nodes | {"threshold": np.zeros(len(own)), "value": np.ones(len(own))}


def test_a_chain_of_nodes_is_refused_beyond_a_depth(tmp_path):
    def forged(table):
        return Forgery("ilh-tree").set(**{f"trees__0__{name}": array for name, array in table.items()})

    forged(chain(5000)).load(tmp_path).transform(np.zeros((70, 6)))
    for folder, table in (
        ("deep", chain(200_000)),
        ("roots", {**chain(5000), "roots": np.zeros(200_000, np.int32)}),
        ("shared", {**chain(5000), "roots": np.arange(0, 10_000, 2, dtype=np.int32)}),
    ):
        (tmp_path / folder).mkdir()
        with pytest.raises(DamagedFileError, match="be trees of"):
            forged(table).load(tmp_path / folder)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("n_features", 2**31, "6 as the origin, got 2147483648"),
        ("n_bits", 10**9, "'n_bits', 4"),
        ("n_bits", True, "a whole number"),
        ("seed", -1, "a whole number"),
        ("feature_names", ["a"], "a list of 6 parts"),
        ("feature_names", [1] * 6, "a list of str"),
        ("parameters", {"n_bits": 4, "nonsense": 1}, "those of ILH, got 'nonsense' too"),
        ("parameters", {"n_bits": "many"}, "n_bits must be a whole number"),
        ("parameters", {"n_similar": [[[[1]]]]}, "a deeper list"),
        ("draws", [], "what each bit was drawn by"),
        ("bits", [], "one report for each bit"),
        ("files", {}, "name the file of the arrays"),
        ("model", "Unheard", "known kind"),
        ("model", "ilh", "known kind"),
        ("model", ["ILH"], "a text"),
    ],
)
def test_values_of_the_description_are_checked(key, value, words, tmp_path):
    model = Model(next(SAMPLES.glob("*/models/ilh-linear")))
    model.write(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    config.write_bytes(sealed({**json.loads(config.read_text()), key: value}))
    with pytest.raises((DamagedFileError, UnknownFormatError), match=words) as said:
        ilhash.load(tmp_path / "model")
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("name", ["../outside.safetensors", "/etc/passwd", "config.json", "arrays.safetensors", ""])
def test_files_have_our_own_names(name, tmp_path):
    Model(next(SAMPLES.glob("*/models/ilh-linear"))).write(tmp_path / "model")
    (tmp_path / "outside.safetensors").write_bytes(next((tmp_path / "model").glob("arrays-*")).read_bytes())
    config = tmp_path / "model" / "config.json"
    document = json.loads(config.read_text())
    document["files"]["arrays"]["name"] = name
    config.write_bytes(sealed(document))
    with pytest.raises(DamagedFileError, match="the name of its role and content"):
        ilhash.load(tmp_path / "model")


@pytest.mark.parametrize("n", [700, 3000, 200_000])
def test_deep_documents_are_refused(n, tmp_path):
    Model(next(SAMPLES.glob("*/models/sh"))).write(tmp_path / "model")
    config = tmp_path / "model" / "config.json"
    text = config.read_bytes()
    config.write_bytes(text[:-1] + b', "deep": ' + b"[" * n + b"]" * n + b"}")
    with pytest.raises(StorageError):
        ilhash.load(tmp_path / "model")


LIMITED = """
import resource, sys, numpy as np, safetensors.numpy, ilhash
ilhash.ILH, ilhash.methods.Sign, ilhash.load
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (int(sys.argv[2]) << 20),) * 2)
try:
    model = ilhash.load(sys.argv[1])
    print(model.transform(np.zeros((3, model.n_features_in_), np.float32)).shape)
except ilhash.StorageError as error:
    print(type(error).__name__, error)
"""


def limited(folder, megabytes):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), str(megabytes)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


def test_memory_is_bounded_by_what_is_there(tmp_path):
    """A few hundred kilobytes that ask for 40 gigabytes: 100,000 bits of one feature each out of 100,000."""
    n = 100_000
    forgery = Forgery("sign")
    forgery.model.document |= {"n_bits": n, "n_features": n, "feature_names": []}
    forgery.set(
        origin=np.zeros(n, np.float32),
        linear__0__bits=np.arange(n, dtype=np.int32),
        linear__0__weights=np.ones((n, 1), np.float32),
        linear__0__bias=np.zeros(n, np.float32),
        linear__0__features=np.arange(n, dtype=np.int32)[:, None],
    )
    forgery.model.write(tmp_path / "model")
    assert limited(tmp_path / "model", 700) == "(3, 12500)\n"


def test_many_rows_of_many_centers_are_encoded_in_bounded_memory(tmp_path):
    """Blocks are cut by what is made of them: 200,000 centres for each of 2,000 rows are 1.6 GB in one array."""
    forgery, m = Forgery("kshcut-kernel"), 200_000
    forgery.set(kernel__0__centers=np.zeros((m, 6), np.float32), kernel__0__weights=np.ones((4, m), np.float32))
    forgery.model.write(tmp_path / "model")
    script = LIMITED.replace("np.zeros((3,", "np.zeros((2000,")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model"), "1500"], capture_output=True, text=True, check=False
    )
    assert done.stdout == "(2000, 1)\n", done.stderr[-500:]


def test_a_file_of_holes_is_refused_before_it_is_read(tmp_path):
    model = Model(next(SAMPLES.glob("*/models/ilh-linear")))
    _, arrays = model.write(tmp_path / "model")
    size = 50 << 30
    with arrays.open("r+b") as file:
        file.truncate(size)
    assert "a file of holes" in limited(tmp_path / "model", 200)
    config = tmp_path / "model" / "config.json"
    document = json.loads(config.read_text())
    document["files"]["arrays"]["bytes"] = size
    config.write_bytes(sealed(document))
    assert "a file of holes" in limited(tmp_path / "model", 200)


def test_a_header_that_claims_more_than_there_is(tmp_path):
    model = Model(next(SAMPLES.glob("*/models/ilh-linear")))
    model.tensors.header["origin"]["shape"] = [1 << 40]
    model.write(tmp_path / "model")
    with pytest.raises(DamagedFileError, match="must be a file of arrays"):
        ilhash.load(tmp_path / "model")
    header = json.dumps({"origin": {"dtype": "F32", "shape": [1 << 40, 0], "data_offsets": [0, 0]}}).encode()
    model.tensors.to_bytes = lambda: struct.pack("<Q", len(header)) + header
    (tmp_path / "zero").mkdir()
    model.write(tmp_path / "zero" / "model")
    with pytest.raises(DamagedFileError):
        ilhash.load(tmp_path / "zero" / "model")
