"""Runs that are killed, and go on from their checkpoint with the bytes of an undisturbed run."""

import io
import itertools
import json
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from safetensors import safe_open
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.ensemble.killed_trainer import SETTINGS, kill_with_files, train
from tests.fuzz.models import SAMPLES
from tests.storage.interrupts import interrupted_at

from ilhash import ILH
from ilhash.ensemble._bit import BitTrainer, TrainedBit
from ilhash.ensemble._checkpoint import Checkpoint, parameters_of_bits
from ilhash.storage import DamagedFileError, SealedArrays

ROOT = Path(__file__).parents[2]
SMALL = {"n_bits": 6, "n_train": 300, "n_similar": 10}


def contents(model):
    """What a model is, byte for byte: the arrays that it would save."""
    arrays = model._to_contents().arrays
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# ---------------------------------------------------------------------------------------------- kill -9


def killed_and_resumed(folder, times):
    """Kill a trainer at random moments; resume each time; return how many bits each resumed run found."""
    wanted = contents(train())
    rng = np.random.default_rng(0)
    found = []
    command = [sys.executable, "-m", "tests.ensemble.killed_trainer"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for turn in range(times):
            checkpoint = folder / str(turn)
            print(checkpoint, file=process.stdin, flush=True)
            child = int(process.stdout.readline())
            kill_with_files(child, checkpoint, "bit-*", rng.integers(0, SETTINGS["n_bits"]), rng)
            assert int(process.stdout.readline()) in (0, -signal.SIGKILL)
            found.append(len(list(checkpoint.glob("bit-*"))))
            assert contents(train(checkpoint)) == wanted
            assert len(list(checkpoint.glob("bit-*"))) == SETTINGS["n_bits"]
        process.stdin.close()
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")
def test_a_killed_trainer_goes_on(tmp_path):
    found = killed_and_resumed(tmp_path, 3)
    assert any(0 < n < SETTINGS["n_bits"] for n in found), found  # it was killed at work


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="fork and SIGKILL")
def test_a_trainer_killed_at_twenty_moments_goes_on(tmp_path):
    found = killed_and_resumed(tmp_path, 20)
    assert sum(0 < n < SETTINGS["n_bits"] for n in found) > 5, found


# ---------------------------------------------------------------------------------------------- going on


@pytest.mark.parametrize(
    "function",
    ["linear", "kernel", "trees", ["linear", LogisticRegression()], ["linear", GaussianNB()]],
    ids=["linear", "kernel", "trees", "linear classifier", "classifier"],
)
@pytest.mark.parametrize("letters", ["t", "itf"])
def test_what_is_kept_is_not_trained_again_and_is_the_same(digits, tmp_path, function, letters):
    X, y = digits
    model = ILH(hash_function=function, diversity=letters, n_centers=20, n_trees=9, **SMALL)
    wanted = contents(model.fit(X, y))
    assert contents(model.fit(X, y, checkpoint=tmp_path / "c")) == wanted
    for bit in (1, 4):
        (tmp_path / "c" / f"bit-{bit:06d}.safetensors").unlink()
    steps = []
    with joblib.parallel_config(backend="threading"):
        model.fit(X, y, checkpoint=tmp_path / "c", progress=lambda *at: steps.append(at))
    assert contents(model) == wanted
    assert steps == [(4, 6), (5, 6), (6, 6)]


def test_one_checkpoint_serves_fit_and_more_bits(digits, tmp_path):
    X, y = digits
    wanted = contents(ILH(**{**SMALL, "n_bits": 9}).fit(X, y))
    ILH(**SMALL).fit(X, y, checkpoint=tmp_path / "c").add_bits(3, X, y, checkpoint=tmp_path / "c")
    kept = files(tmp_path / "c")
    grown = ILH(**SMALL).fit(X, y).add_bits(3, X, y, checkpoint=tmp_path / "c")
    at_once = ILH(**{**SMALL, "n_bits": 9}).fit(X, y, checkpoint=tmp_path / "c")
    assert contents(grown) == contents(at_once) == wanted
    assert files(tmp_path / "c") == kept


def test_parameters_of_trees_count_where_there_are_trees(digits, tmp_path):
    X, y = digits
    for function, name in (("linear", "a"), (["linear", "trees"], "b")):
        ILH(**SMALL, hash_function=function, n_trees=4).fit(X, y, checkpoint=tmp_path / name)
    about = json.loads((tmp_path / "a" / "checkpoint.json").read_text())
    assert not {"n_trees", "tree_depth", "learning_rate"} & set(about["parameters"])  # those of earlier versions go on
    ILH(**SMALL, n_trees=5).fit(X, y, checkpoint=tmp_path / "a")
    with pytest.raises(ValueError, match="got another's: n_trees=4 there and 5 here"):
        ILH(**SMALL, hash_function=["linear", "trees"], n_trees=5).fit(X, y, checkpoint=tmp_path / "b")


def test_a_random_seed_goes_on_too(digits, tmp_path):
    X, y = digits
    first = ILH(**SMALL, random_state=None).fit(X, y, checkpoint=tmp_path / "c")
    (tmp_path / "c" / "bit-000003.safetensors").unlink()
    assert contents(ILH(**SMALL, random_state=None).fit(X, y, checkpoint=tmp_path / "c")) == contents(first)


def test_a_loss_of_ones_own_is_known_again(digits, tmp_path):
    X, y = digits

    def loss(distance, y):
        return np.where(y > 0, distance, 1.0 - distance)

    def other(distance, y):
        return np.where(y > 0, distance, 2.0 - 2.0 * distance)

    other.__qualname__ = loss.__qualname__
    ILH(**SMALL, objective=loss).fit(X, y, checkpoint=tmp_path / "c")
    ILH(**SMALL, objective=loss).fit(X, y, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="same model and data, got another's: objective="):
        ILH(**SMALL, objective=other).fit(X, y, checkpoint=tmp_path / "c")


def test_finished_bits_stay_when_a_later_one_fails(digits, tmp_path, monkeypatch):
    X, y = digits
    honest = BitTrainer.__call__

    def failing(self, bit):
        if bit == 4:
            raise ZeroDivisionError("nothing left")
        return honest(self, bit)

    monkeypatch.setattr(BitTrainer, "__call__", failing)
    model = ILH(**SMALL)
    with pytest.raises(ZeroDivisionError, match=r"^bit 4: nothing left$"):
        model.fit(X, y, checkpoint=tmp_path / "c")
    assert not hasattr(model, "functions_")
    monkeypatch.undo()
    steps = []
    model.fit(X, y, checkpoint=tmp_path / "c", progress=lambda *at: steps.append(at))
    assert steps[0] == (4, 6)
    assert contents(model) == contents(ILH(**SMALL).fit(X, y))


# ---------------------------------------------------------------------------------------------- refused


@pytest.fixture(scope="module")
def made(digits, tmp_path_factory):
    X, y = digits
    folder = tmp_path_factory.mktemp("made") / "c"
    ILH(**SMALL).fit(X, y, checkpoint=folder)
    return folder


def other_data(X, y):
    return X + 1.0, y


def other_labels(X, y):
    return X, np.roll(y, 1)


@pytest.mark.parametrize(
    ("changes", "data", "difference"),
    [
        ({"C": 1.0}, None, "C='auto' there and 1.0 here"),
        ({"n_similar": 21}, None, "n_similar=10 there and 21 here"),
        ({"random_state": 1}, None, "seed 0 there and 1 here"),
        ({}, other_data, "data of fingerprint"),
        ({}, other_labels, "data of fingerprint"),
    ],
)
def test_another_models_or_datas_checkpoint_is_refused(digits, made, changes, data, difference):
    X, y = data(*digits) if data else digits
    before = files(made)
    with pytest.raises(ValueError, match="must be of the same model and data, got another's") as refused:
        ILH(**{**SMALL, **changes}).fit(X, y, checkpoint=made)
    assert difference in str(refused.value)
    assert "\n" not in str(refused.value)
    assert files(made) == before


def test_a_folder_of_something_else_is_refused(digits, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="must be a new directory or one that holds a checkpoint"):
        ILH(**SMALL).fit(*digits, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint must be a directory for a checkpoint, got the file"):
        ILH(**SMALL).fit(*digits, checkpoint=tmp_path / "mine.txt")
    assert files(tmp_path) == {"mine.txt": b"mine"}


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_bit_is_named(digits, made, tmp_path, damage):
    folder = tmp_path / "c"
    shutil.copytree(made, folder)
    file = folder / "bit-000002.safetensors"
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes({"flip": bytes(data), "cut": bytes(data[:-9]), "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"bit-000002.safetensors must be as it was written.*remove it to train bit 2"):
        ILH(**SMALL).fit(*digits, checkpoint=folder)
    file.unlink()
    assert contents(ILH(**SMALL).fit(*digits, checkpoint=folder)) == contents(ILH(**SMALL).fit(*digits))


def test_a_damaged_description_is_refused(digits, made, tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(made, folder)
    about = folder / "checkpoint.json"
    text = about.read_text()
    about.write_text(text[:-5])
    with pytest.raises(ValueError, match="must be the description of a checkpoint, got something else"):
        ILH(**SMALL).fit(*digits, checkpoint=folder)
    about.write_text("[1]")
    with pytest.raises(ValueError, match="got another JSON document"):
        ILH(**SMALL).fit(*digits, checkpoint=folder)
    about.write_text(text.replace('"format": 2', '"format": 99'))
    with pytest.raises(ValueError, match="must have format 2, got format 99"):
        ILH(**SMALL).fit(*digits, checkpoint=folder)


# ---------------------------------------------------------------------------------------------- bits of elsewhere


def bit_file(folder, bit):
    return folder / f"bit-{bit:06d}.safetensors"


def test_a_bit_of_another_run_is_none_of_this_one(digits, made, tmp_path):
    X, y = digits
    ILH(**SMALL).fit(X, np.roll(y, 1), checkpoint=tmp_path / "other")
    folder = Path(shutil.copytree(made, tmp_path / "c"))
    shutil.copyfile(bit_file(tmp_path / "other", 3), bit_file(folder, 3))
    with pytest.raises(
        DamagedFileError, match=r"bit-000003.* written for another place; remove it to train bit 3 again"
    ):
        ILH(**SMALL).fit(X, y, checkpoint=folder)
    bit_file(folder, 3).unlink()
    assert contents(ILH(**SMALL).fit(X, y, checkpoint=folder)) == contents(ILH(**SMALL).fit(X, y))


def test_a_bit_of_another_number_is_none_of_this_one(digits, made, tmp_path):
    folder = Path(shutil.copytree(made, tmp_path / "c"))
    shutil.copyfile(bit_file(folder, 3), bit_file(folder, 2))
    with pytest.raises(
        DamagedFileError, match=r"bit-000002.* written for another place; remove it to train bit 2 again"
    ):
        ILH(**SMALL).fit(*digits, checkpoint=folder)


def test_in_a_checkpoint_of_format_1_a_bit_still_knows_its_number(tmp_path):
    sample = next(SAMPLES.glob("*/checkpoints/half"))
    folder = Path(shutil.copytree(sample, tmp_path / "c"))
    shutil.copyfile(bit_file(folder, 2), bit_file(folder, 1))
    with (
        np.load(sample.with_name("data.npz")) as data,
        pytest.raises(DamagedFileError, match="must be bit 1, got bit 2"),
    ):
        ILH(n_bits=6, n_train=60, n_similar=5, n_dissimilar=5, random_state=3).fit(
            data["X"], data["y"], checkpoint=folder
        )


def rewritten(checkpoint, bit, change):
    """Let ``change`` have the arrays and the report of a bit, and seal what it leaves as if it belonged there."""
    with safe_open(bit_file(checkpoint, bit), "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        report = json.loads(file.metadata()["report"])
    change(arrays, report)
    fingerprint = json.loads((checkpoint / "checkpoint.json").read_text())["fingerprint"]
    SealedArrays(text="report").write(
        bit_file(checkpoint, bit), arrays, json.dumps(report), place=f"{fingerprint} {bit}\n"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays, report: report.update(bit=5), "must be bit 2, got bit 5"),
        (lambda arrays, report: report.update(sweeps="many"), "'sweeps', a whole number"),
        (lambda arrays, report: report.pop("seed"), "'seed', a whole number"),
        (lambda arrays, report: arrays["linear.0.weights"].fill(np.nan), "must be finite"),
        (lambda arrays, report: arrays.update({"linear.0.weights": np.ones((1, 9), "f4")}), r"of shape \(1x64\)"),
        (lambda arrays, report: arrays.update({"linear.0.bits": np.array([1], "i4")}), "each once"),
        (lambda arrays, report: arrays.clear(), "each once"),
    ],
)
def test_forged_bits_are_refused(digits, made, tmp_path, change, words):
    folder = Path(shutil.copytree(made, tmp_path / "c"))
    rewritten(folder, 2, change)
    with pytest.raises(DamagedFileError, match=f"{words}.*; remove it to train bit 2 again"):
        ILH(**SMALL).fit(*digits, checkpoint=folder)


def test_a_classifier_that_would_run_code_is_trained_again(digits, tmp_path):
    pytest.importorskip("skops.io", reason="skops is an extra")
    X, y = digits
    model = ILH(hash_function=GaussianNB(), **{**SMALL, "n_bits": 2})
    wanted = model.fit(X, y, checkpoint=tmp_path / "c").decision_function(X)
    proof = tmp_path / "ran"

    def attack(arrays, report):
        blob = arrays["blob.classifier-0"].tobytes()
        parts = zipfile.ZipFile(io.BytesIO(blob))
        schema = json.loads(parts.read("schema.json"))
        function = {"__class__": "measure", "__module__": "numpy.testing", "__loader__": "FunctionNode"}
        prior = schema["content"]["content"]["priors"]
        keys = {**prior, "__class__": "list", "__loader__": "ListNode", "content": [function]}
        command = f"open({str(proof)!r}, 'w').close()"
        own = {"__loader__": "DictNode", "__class__": "dict", "key_types": keys, "content": {command: prior}}
        schema["content"]["content"]["priors"] = {**prior, **own}
        schema = json.loads(json.dumps(schema), object_hook=lambda node: (node.pop("__id__", None), node)[1])
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as forged:
            for name in parts.namelist():
                content = json.dumps(schema) if name == "schema.json" else parts.read(name)
                forged.writestr(name, content)
        arrays["blob.classifier-0"] = np.frombuffer(buffer.getvalue(), np.uint8)

    rewritten(tmp_path / "c", 1, attack)
    with pytest.warns(UserWarning, match=r"bit 1 is trained again: .*numpy\.testing\.measure"):
        again = model.fit(X, y, checkpoint=tmp_path / "c").decision_function(X)
    assert not proof.exists()
    np.testing.assert_array_equal(again, wanted)


# ---------------------------------------------------------------------------------------------- interrupts


# A file that was opened in the very line is closed when it is collected, with a ResourceWarning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_an_interrupt_at_every_line_of_keeping_a_bit(digits, made, tmp_path):
    model = ILH(**SMALL).fit(*digits)
    kept = {bit: TrainedBit(model.functions_[bit], model.bits_[bit]) for bit in range(6)}
    before = files(made)

    def begun(folder):
        parameters = parameters_of_bits(model.get_params(deep=False), model.start_["kind"], model.scaling_)
        return Checkpoint(folder, parameters, model.seed_, model.fingerprint_)

    for line in itertools.count():
        folder = Path(shutil.copytree(made, tmp_path / str(line)))
        bit_file(folder, 2).unlink()

        def then(folder=folder):
            found = begun(folder).read(range(6), 64)
            assert set(found) in ({0, 1, 3, 4, 5}, set(range(6)))
            begun(folder).write(2, kept[2])
            assert set(begun(folder).read(range(6), 64)) == set(range(6))
            now = files(folder)
            assert {name: now[name] for name in before if "000002" not in name} == {
                name: data for name, data in before.items() if "000002" not in name
            }

        if not interrupted_at(line, lambda folder=folder: begun(folder).write(2, kept[2]), then):
            break
        shutil.rmtree(folder)
    assert line > 100
