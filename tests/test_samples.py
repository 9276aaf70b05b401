"""Files that earlier versions wrote open, with the answers of their time (tests/samples/README.md)."""

import json
import shutil
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.tree import DecisionTreeClassifier

import ilhash
from ilhash import ILH, HammingIndex, datasets, experiments
from ilhash.cli import main
from ilhash.experiments import Cell

SAMPLES = Path(__file__).parent / "samples"
FOLDERS = sorted(path.parent for path in SAMPLES.glob("*/about.json"))
CLOSE = {"rtol": 1e-5, "atol": 1e-5}

# Parameters that have another name now than in the samples: a file of an earlier version keeps the old one.
RENAMED = {
    **dict.fromkeys(("iterations", "passes", "steps"), "max_iter"),
    **{"start": "init", "rate": "learning_rate", "batch": "batch_size", "decay": "alpha"},
    **{"n_trees": "n_estimators", "depth": "max_depth"},
    **{"regularisation": "regularization", "n_neighbours": "n_neighbors"},
}

KINDS = {
    *("ILH", "Mix", "Sign", "LSH", "TPCA", "BaggedTPCA", "ITQ", "SH", "AGH", "OrthogonalProjection", "BA", "CCAITQ"),
    *("STH", "SPLH", "BRE", "MLH", "KSH", "KSHcut", "FastHash", "SDH", "ClassifierCode"),
}


def below(pattern):
    """Parametrize over what the samples hold."""
    found = sorted(path for folder in FOLDERS for path in folder.glob(pattern) if path.is_dir())
    return pytest.mark.parametrize("sample", found, ids=lambda path: str(path.relative_to(SAMPLES)))


every_folder = pytest.mark.parametrize("sample", FOLDERS, ids=lambda path: path.name)


def answers(sample):
    with np.load(sample.with_name(sample.name + ".npz")) as archive:
        return dict(archive)


def copy_of(sample, tmp_path):
    return Path(shutil.copytree(sample, tmp_path / "copy"))


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# -------------------------------------------------------------------------------------------- models


def config(sample):
    return json.loads((sample / "config.json").read_text(encoding="utf-8"))


def load(sample):
    if list(Path(sample).glob("*.skops")):
        pytest.importorskip("skops")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # of the scikit-learn that trained a classifier
        return ilhash.load(sample)


def framed(model, X):
    """Return vectors with the names of their features, where the model knows some."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pytest.importorskip("pandas").DataFrame(X, columns=names)


def check_answers(model, wanted):
    X = framed(model, wanted["vectors"])
    np.testing.assert_array_equal(model.transform(X), wanted["codes"])
    np.testing.assert_allclose(model.decision_function(X), wanted["margins"], **CLOSE)


def as_loaded(value):
    """Return what a parameter of a file is after loading: of a classifier, in a list or not, its description stays."""
    if isinstance(value, list):
        return next((part["unavailable"] for part in value if isinstance(part, dict)), value)
    return value["unavailable"] if isinstance(value, dict) else value


def check_description(model, document):
    """Compare a model, or one of a mix, with what its file says."""
    assert type(model).__name__ == document["model"]
    parameters = {name: getattr(value, "description", value) for name, value in model.get_params(deep=False).items()}
    wanted = {RENAMED.get(name, name): as_loaded(value) for name, value in document["parameters"].items()}
    assert {name: parameters[name] for name in wanted} == wanted
    assert (len(model.functions_), model.n_features_in_, model.seed_) == tuple(
        document[name] for name in ("n_bits", "n_features", "seed")
    )
    assert list(getattr(model, "feature_names_in_", ())) == document["feature_names"]
    assert model.n_train_ == document["n_train"]
    if "bits" in document:
        reports = zip(model.bits_, document["bits"], strict=True)  # versions add what they know of a bit
        assert all({**asdict(report), **written} == asdict(report) for report, written in reports)
        assert model.start == document["parameters"].get("start", "random")
    else:
        assert model.report_ == document["report"]


def test_every_kind_of_model_has_a_sample():
    found = {config(path.parent)["model"] for path in SAMPLES.glob("2026-11/models/*/config.json")}
    assert found == KINDS


@below("models/*")
def test_a_model_encodes_as_it_did(sample, tmp_path):
    model, wanted = load(sample), answers(sample)
    check_answers(model, wanted)
    model.save(tmp_path / "again")
    check_answers(load(tmp_path / "again"), wanted)


@below("models/*")
def test_a_model_knows_what_was_written(sample):
    model, document = load(sample), config(sample)
    if document["model"] != "Mix":
        check_description(model, document)
        return
    assert len(model.functions_) == document["n_bits"]
    for family, about in zip(model.families_, document["families"], strict=True):
        check_description(family, about)


# -------------------------------------------------------------------------------------------- codes


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["ilhash", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0


@every_folder
@pytest.mark.parametrize("name", ["codes.npy", "shards"])
def test_codes_are_indexed_with_their_bits(sample, name, tmp_path, monkeypatch):
    run(monkeypatch, "index", sample / "codes" / name, "-o", tmp_path / "index")
    wanted = np.load(sample / "codes" / "answers.npy")
    with HammingIndex.open(tmp_path / "index", writable=False) as index:
        assert index.n_bits == 60
        np.testing.assert_array_equal(index.codes(np.arange(len(wanted))), wanted)


@every_folder
def test_shards_are_read(sample):
    codes = ilhash.open_codes(sample / "codes" / "shards")
    assert (codes.n_bits, len(codes), len(codes.names)) == (60, 50, 3)
    np.testing.assert_array_equal(codes.read(), np.load(sample / "codes" / "answers.npy"))


@every_folder
def test_shards_go_on_with_the_same_model_and_vectors(sample, tmp_path):
    folder = copy_of(sample / "codes" / "shards", tmp_path)
    before = bytes_of(folder)
    model, X = load(sample / "models" / "lsh"), np.load(sample / "codes" / "vectors.npy")
    (folder / "codes-000001.npy").unlink()
    ilhash.write_codes(model, X, folder, rows_per_shard=20)
    assert bytes_of(folder)["codes-000001.npy"] == before["codes-000001.npy"]
    np.testing.assert_array_equal(ilhash.open_codes(folder).read(), np.load(sample / "codes" / "answers.npy"))
    with pytest.raises(ValueError, match="same vectors"):
        ilhash.write_codes(model, X + 1, folder, rows_per_shard=20)


# -------------------------------------------------------------------------------------------- indexes


def check_hits(index, wanted):
    np.testing.assert_array_equal(index.ids.astype(wanted["all_ids"].dtype), wanted["all_ids"])
    np.testing.assert_array_equal(index.codes(index.ids), wanted["all_codes"])
    hits = index.search(wanted["queries"], 9)
    np.testing.assert_array_equal(hits.ids.astype(wanted["ids"].dtype), wanted["ids"])
    np.testing.assert_array_equal(hits.distances, wanted["distances"])
    near = index.within(wanted["queries"], 7)
    np.testing.assert_array_equal(near.offsets, wanted["near_offsets"])
    np.testing.assert_array_equal(near.ids.astype(wanted["near_ids"].dtype), wanted["near_ids"])
    np.testing.assert_array_equal(near.distances, wanted["near_distances"])
    ways = {"weighted": index.search_asymmetric, "rescored": index.search_margins}
    for name in [name for name in ways if f"{name}_ids" in wanted]:
        hits = ways[name](wanted["margins"], 9)
        np.testing.assert_array_equal(hits.ids.astype(wanted[f"{name}_ids"].dtype), wanted[f"{name}_ids"])
        np.testing.assert_allclose(hits.distances, wanted[f"{name}_distances"], **CLOSE)


@below("indexes/*")
def test_an_index_finds_what_it_found(sample, tmp_path):
    folder, wanted = copy_of(sample, tmp_path), answers(sample)
    with HammingIndex.open(folder, writable=False) as index:
        check_hits(index, wanted)
    with HammingIndex.open(folder, n_bits=20) as index:
        assert index.verify().ok
        check_hits(index, wanted)
        index.compact()
        check_hits(index, wanted)


@below("indexes/*")
def test_an_index_can_be_changed(sample, tmp_path):
    folder, wanted = copy_of(sample, tmp_path), answers(sample)
    texts, margins = wanted["all_ids"].dtype.kind == "U", wanted["margins"]
    new = np.array([f"neu-{number}" for number in range(7)], object) if texts else np.arange(5000, 5007)
    with HammingIndex.open(folder) as index:
        index.add(wanted["queries"], new, margins=margins if texts else None)
        assert (index.search(wanted["queries"], 1).distances == 0).all()
    with HammingIndex.open(folder) as index:
        assert len(index) == len(wanted["all_ids"]) + 7
        index.remove(new)
        check_hits(index, wanted)


# -------------------------------------------------------------------------------------------- checkpoints


SMALL = {"n_train": 60, "n_similar": 5, "n_dissimilar": 5, "random_state": 3}
KINDS_OF_FUNCTIONS = ["linear", "kernel", DecisionTreeClassifier(max_depth=2)]
RUNS = {
    "half": (ILH(n_bits=6, **SMALL), [0, 2, 5]),
    "finished": (ILH(n_bits=4, hash_function=KINDS_OF_FUNCTIONS, n_centers=8, **SMALL), [0, 1, 2, 3]),
}


@every_folder
@pytest.mark.parametrize("name", RUNS)
def test_a_run_goes_on_from_its_checkpoint(sample, name, tmp_path):
    sample = sample / "checkpoints" / name
    folder, wanted = copy_of(sample, tmp_path), answers(sample)
    model, kept = RUNS[name]
    trained = [bit for bit in range(model.n_bits) if bit not in kept]
    with np.load(sample.with_name("data.npz")) as data:
        X, y = data["X"], data["y"]
    steps = []
    resumed = clone(model).fit(X, y, checkpoint=folder, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(done, model.n_bits) for done in range(len(kept), model.n_bits + 1)]
    before, after = bytes_of(sample), bytes_of(folder)
    assert {file: after[file] for file in before} == before
    assert len(after) == len(before) + len(trained)
    assert [resumed.bits_[bit].seconds for bit in kept] == [seconds_of(sample, bit) for bit in kept]
    fresh = clone(model).fit(X, y)
    margins, anew = (one.decision_function(X) for one in (resumed, fresh))
    np.testing.assert_array_equal(margins[:, trained], anew[:, trained])
    # Another processor rounds sums in another way, and another version ends its search elsewhere near the minimum.
    np.testing.assert_allclose(margins, anew, rtol=1e-2, atol=1e-2)
    assert np.array_equal(resumed.transform(wanted["vectors"]), wanted["codes"])
    margins = resumed.decision_function(wanted["vectors"])
    np.testing.assert_allclose(margins[:, kept], wanted["margins"][:, kept], **CLOSE)


def seconds_of(checkpoint, bit):
    """Return the seconds that a kept bit took, which no other run takes."""
    with safe_open(checkpoint / f"bit-{bit:06d}.safetensors", "np") as content:
        return json.loads(content.metadata()["report"])["seconds"]


# -------------------------------------------------------------------------------------------- experiments, datasets


@every_folder
def test_every_cell_is_found_and_reads_as_it_was(sample, tmp_path):
    pytest.importorskip("matplotlib")
    folder = copy_of(sample / "experiments", tmp_path)
    names = ["unseen-classes", "asymmetric-search", "pruned-and-mixed"]
    results, summary = experiments.reproduce(names, scale="smoke", folder=folder)
    assert (summary.computed, summary.left, summary.failed) == (0, 0, [])
    files = sorted((sample / "experiments" / "cells").glob("*.json"))
    assert len(files) == 28
    for file in files:
        document = json.loads(file.read_text(encoding="utf-8"))
        cell = Cell(document["task"], document["params"], document["seed"])
        assert results.has(cell), file.name
        outcome = results.read(cell)
        assert (outcome.numbers, outcome.status) == (document["numbers"], document["status"])
        assert (outcome.reason, outcome.seconds) == (document["reason"], document["seconds"])
        check_arrays(outcome.arrays, file.with_suffix(".npz"), document["sha256"] is not None)


def check_arrays(arrays, file, stored):
    assert file.exists() == stored == bool(arrays)
    if stored:
        with np.load(file) as wanted:
            assert set(arrays) == set(wanted)
            for name in wanted:
                np.testing.assert_array_equal(arrays[name], wanted[name])


@every_folder
def test_a_computed_dataset_is_taken_as_it_was_kept(sample, tmp_path, monkeypatch):
    monkeypatch.setenv("ILHASH_CACHE", str(copy_of(sample / "computed", tmp_path)))
    source = tmp_path / "cifar10"
    source.mkdir()
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (source / name).touch()  # what is kept is looked for when the files are there, and they are not read then
    dataset = datasets.load("cifar10-gist", tmp_path)
    with np.load(sample / "computed" / "answers.npz") as wanted:
        np.testing.assert_array_equal(dataset.X, wanted["X"])
        np.testing.assert_array_equal(dataset.y, wanted["y"])
