"""Model files: the same codes after a round trip, and a clear error for everything that can be wrong with them."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import ilhash
from ilhash import ILH
from ilhash.objective import minimal_loss

SMALL = {"n_similar": 20, "n_dissimilar": 20}

MODELS = {
    "linear": {},
    "feature subsets": {"diversity": "itf"},
    "kernel, common": {"hash_function": "kernel", "n_centers": 40},
    "kernel, private subsets": {"hash_function": "kernel", "n_centers": 40, "centers": "private", "diversity": "tf"},
    "kernel, pool": {"hash_function": "kernel", "n_centers": 40, "centers": "pool"},
    "boosted trees": {"hash_function": "trees", "n_trees": 9, "tree_depth": 3, "diversity": "tf"},
    "tree": {"hash_function": DecisionTreeClassifier(max_depth=5), "diversity": "tf"},
    "forest": {"hash_function": RandomForestClassifier(5)},
    "extra trees": {"hash_function": ExtraTreesClassifier(5)},
    "boosting": {"hash_function": GradientBoostingClassifier(n_estimators=5)},
    "mixed": {
        "hash_function": ["linear", DecisionTreeClassifier(max_depth=3), "kernel", MLPClassifier((4,), max_iter=9)]
    },
    "bayes": {"hash_function": GaussianNB()},
}


def fitted(digits, n_bits=10, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ILH(n_bits=n_bits, **SMALL, **parameters).fit(*digits)


@pytest.fixture
def saved(digits, tmp_path):
    model = fitted(digits)
    model.save(tmp_path / "model")
    return model, tmp_path / "model"


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(digits, tmp_path, name):
    model = fitted(digits, **MODELS[name])
    model.save(tmp_path / "model")
    again = ilhash.load(tmp_path / "model")
    assert np.array_equal(again.decision_function(digits[0]), model.decision_function(digits[0]))
    assert again.bits_ == model.bits_
    assert again.n_features_in_ == 64
    assert np.array_equal(again[3:6].transform(digits[0]), model[3:6].transform(digits[0]))


@pytest.mark.parametrize(
    "classifier",
    [DecisionTreeClassifier(max_depth=5), RandomForestClassifier(5), GradientBoostingClassifier(n_estimators=5)],
)
def test_trees_as_arrays_decide_like_scikit_learn(digits, classifier):
    from ilhash.functions._trees import trees_of

    X, y = digits[0].astype(np.float32), np.where(digits[1] < 5, 1, -1)
    classifier.fit(X, y)
    margins = trees_of(classifier, None).margins(X)
    if hasattr(classifier, "decision_function"):
        np.testing.assert_allclose(margins, classifier.decision_function(X), atol=1e-6)
    else:
        np.testing.assert_allclose(margins, classifier.predict_proba(X)[:, 1] - 0.5, atol=1e-6)


def test_a_fresh_process_encodes_the_same_bytes(digits, saved, tmp_path):
    model, path = saved
    np.save(tmp_path / "X.npy", digits[0])
    script = (
        "import sys, numpy as np, ilhash;"
        "sys.stdout.buffer.write(ilhash.load(sys.argv[1]).transform(np.load(sys.argv[2])).tobytes())"
    )
    out = subprocess.run(
        [sys.executable, "-c", script, path, tmp_path / "X.npy"], check=True, capture_output=True
    ).stdout
    assert out == model.transform(digits[0]).tobytes()


def test_bits_can_be_added_after_loading(digits, saved):
    _, path = saved
    grown = ilhash.load(path).add_bits(6, *digits)
    whole = fitted(digits, n_bits=16)
    for a, b in zip(grown.functions_, whole.functions_, strict=True):
        assert a.weights.tobytes() == b.weights.tobytes()


def test_what_a_file_cannot_hold_must_be_given_again(digits, tmp_path):
    for parameter, value in (("objective", minimal_loss()), ("hash_function", DecisionTreeClassifier(max_depth=2))):
        fitted(digits, **{parameter: value}).save(tmp_path / parameter)
        model = ilhash.load(tmp_path / parameter)
        assert "not saved" in repr(model)
        with pytest.raises(ValueError, match=rf"set_params\({parameter}=...\)"):
            model.add_bits(1, *digits)
        model.set_params(**{parameter: value}).add_bits(1, *digits)
        model.save(tmp_path / f"{parameter} again")


def test_feature_names_survive(digits, tmp_path):
    pandas = pytest.importorskip("pandas", reason="feature names come with data frames")
    frame = pandas.DataFrame(digits[0], columns=[f"pixel {i}" for i in range(64)])
    fitted((frame, digits[1])).save(tmp_path / "m")
    assert list(ilhash.load(tmp_path / "m").feature_names_in_) == list(frame.columns)


def test_there_is_no_pickle_in_the_files(digits, tmp_path):
    fitted(digits, **MODELS["mixed"]).save(tmp_path / "m")
    assert {file.suffix for file in (tmp_path / "m").iterdir()} == {".json", ".md", ".safetensors", ".skops"}


# ---------------------------------------------------------------------------------------------- damage


def arrays_file(path):
    return next(path.glob("arrays-*.safetensors"))


def test_every_byte_region_is_guarded(saved):
    _, path = saved
    file = arrays_file(path)
    good = file.read_bytes()
    for position in range(0, len(good), max(1, len(good) // 50)):
        bad = bytearray(good)
        bad[position] ^= 1
        file.write_bytes(bytes(bad))
        with pytest.raises(ValueError, match="altered"):
            ilhash.load(path)
    file.write_bytes(good[:-1])
    with pytest.raises(ValueError, match="truncated"):
        ilhash.load(path)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="no such file"):
        ilhash.load(path)


def test_an_altered_description_is_refused(saved):
    _, path = saved
    config = path / "config.json"
    text = config.read_text()
    config.write_text(text.replace('"seed": 0', '"seed": 1', 1))
    with pytest.raises(ValueError, match="checksum"):
        ilhash.load(path)
    config.write_text("{ nonsense")
    with pytest.raises(ValueError, match="JSON"):
        ilhash.load(path)
    config.write_text("[1, 2]")
    with pytest.raises(ValueError, match="another JSON document"):
        ilhash.load(path)
    config.write_bytes(os.urandom(200))
    with pytest.raises(ValueError, match="JSON"):
        ilhash.load(path)
    config.unlink()
    with pytest.raises(FileNotFoundError, match="not a model"):
        ilhash.load(path)


def test_a_newer_format_and_an_unknown_kind_are_refused(saved):
    _, path = saved
    config = path / "config.json"
    document = json.loads(config.read_text())
    config.write_text(json.dumps({**document, "format": 99}))
    with pytest.raises(ValueError, match=r"format 99 .*upgrade"):
        ilhash.load(path)
    other = {key: value for key, value in {**document, "model": "XYZ"}.items() if key != "checksum"}
    other["checksum"] = hashlib.sha256(json.dumps(other, sort_keys=True).encode()).hexdigest()
    config.write_text(json.dumps(other))
    with pytest.raises(ValueError, match=r"known kind .*'XYZ'"):
        ilhash.load(path)


def test_a_missing_path(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ilhash.load(tmp_path / "nothing")


# ---------------------------------------------------------------------------------------------- writing


def test_saving_replaces_a_model_and_leaves_nothing_behind(digits, saved):
    _, path = saved
    other = fitted(digits, n_bits=3)
    other.save(path)
    assert len(list(path.iterdir())) == 3
    assert np.array_equal(ilhash.load(path).transform(digits[0]), other.transform(digits[0]))


def test_a_folder_with_other_files_is_left_alone(digits, tmp_path):
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(ValueError, match="other files"):
        fitted(digits).save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(ValueError, match="the file"):
        fitted(digits).save(tmp_path / "thesis.txt")


KILLED = """
import sys, ilhash
models = [ilhash.load(path) for path in sys.argv[2:]]
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1])
"""


def killed_while_saving(digits, tmp_path, times):
    """Kill a process that keeps overwriting a model with two others; what is left must be one of the two."""
    a, b = fitted(digits, n_bits=4), fitted(digits, n_bits=9)
    a.save(tmp_path / "a")
    b.save(tmp_path / "b")
    a.save(tmp_path / "target")
    rng = np.random.default_rng(0)
    found = set()
    for _ in range(times):
        command = [sys.executable, "-c", KILLED, *(str(tmp_path / name) for name in ("target", "a", "b"))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        found.add(ilhash.load(tmp_path / "target").n_bits)
    assert found <= {4, 9}
    a.save(tmp_path / "target")
    assert len([f for f in (tmp_path / "target").iterdir() if not f.name.startswith(".writing")]) == 3


def test_kill_while_saving_leaves_a_whole_model(digits, tmp_path):
    killed_while_saving(digits, tmp_path, 6)


@pytest.mark.slow
def test_kill_while_saving_a_hundred_times(digits, tmp_path):
    killed_while_saving(digits, tmp_path, 100)


def test_without_skops_the_pip_command_is_named(digits, tmp_path, monkeypatch):
    model = fitted(digits, n_bits=1, hash_function=GaussianNB())
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r'pip install "ilhash\[skops\]"'):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m" / "config.json").exists()
