"""Models that bring a classifier: whoever made the file, nothing in it is run, and no foreign memory is read."""

import io
import json
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.fuzz.models import Model

import ilhash
from ilhash import ILH
from ilhash.functions import ClassifierFunction, LinearFunction, functions_from_arrays, functions_to_arrays
from ilhash.functions._classifier import linear_of
from ilhash.functions._skops import classifier_from_bytes, classifier_to_bytes, is_linear
from ilhash.storage import DamagedFileError, UntrustedFileError

pytest.importorskip("skops.io", reason="skops is an extra")

D = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, D)).astype(np.float32)
Z = np.where(X[:, 0] + X[:, 1] > 0, 1, -1).astype(np.int8)

LINEAR = [
    *(LogisticRegression(), LogisticRegression(fit_intercept=False), LogisticRegressionCV(), LinearSVC()),
    *(SGDClassifier(), SGDClassifier(loss="log_loss", average=True), RidgeClassifier(), RidgeClassifierCV()),
    *(Perceptron(), LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr")),
]
OTHERS = [
    *(GaussianNB(), BernoulliNB(), QuadraticDiscriminantAnalysis(), MLPClassifier((4,), max_iter=9)),
    *(MLPClassifier((4, 3), solver="sgd", early_stopping=True, max_iter=9), MLPClassifier((3,), solver="lbfgs")),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


def fitted(classifier):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return classifier.fit(X, Z)


def function(classifier):
    return ClassifierFunction(fitted(classifier), np.zeros(D, np.float32), np.ones(D, np.float32))


def loaded(blob, trusted=None):
    arrays, blobs = functions_to_arrays([function(GaussianNB())])
    return functions_from_arrays(arrays, dict.fromkeys(blobs, blob), D, trusted)[0]


def parts_of(blob):
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def forged(change, classifier=None):
    """Return the file of a classifier whose schema was changed: ``change`` gets the node of its attributes."""
    parts = parts_of(classifier_to_bytes(fitted(classifier or GaussianNB())))
    schema = json.loads(parts["schema.json"])
    change(schema["content"])
    parts["schema.json"] = json.dumps(schema).encode()
    return zipped(parts)


# ---------------------------------------------------------------------------------------------- what comes back


@pytest.mark.parametrize("classifier", [*LINEAR, *OTHERS], ids=lambda c: type(c).__name__)
def test_known_classifiers_come_back_without_being_named(classifier):
    own = function(classifier)
    again = functions_from_arrays(*functions_to_arrays([own]), D)[0]
    assert np.array_equal(again.margins(X), own.margins(X))


@pytest.mark.parametrize("classifier", LINEAR, ids=lambda c: type(c).__name__)
def test_linear_classifiers_become_arrays_that_decide_the_same(classifier):
    shift, factor = X.mean(axis=0), 1.0 / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.fit((X - shift) * factor, Z)
    assert is_linear(classifier)
    margins = linear_of(classifier, shift, factor).margins(X)
    np.testing.assert_allclose(margins, classifier.decision_function((X - shift) * factor), rtol=2e-4, atol=2e-4)


def test_a_model_of_linear_classifiers_needs_no_skops(digits, tmp_path, monkeypatch):
    model = ILH(n_bits=3, hash_function=LogisticRegression(max_iter=300), n_similar=20, diversity="tf").fit(*digits)
    assert {type(function) for function in model.functions_} == {LinearFunction}
    assert min(report.accuracy for report in model.bits_) > 0.75
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    model.save(tmp_path / "m")
    assert np.array_equal(ilhash.load(tmp_path / "m").transform(digits[0]), model.transform(digits[0]))


@pytest.mark.parametrize(
    ("classifier", "name"),
    [
        (SVC(), "sklearn.svm._classes.SVC"),
        (KNeighborsClassifier(), "sklearn.neighbors._classification.KNeighborsClassifier"),
        (
            HistGradientBoostingClassifier(max_iter=2),
            "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        ),
        (DecisionTreeClassifier(), "sklearn.tree._tree.Tree"),
        (make_pipeline(StandardScaler(), SVC()), "sklearn.svm._classes.SVC"),
    ],
)
def test_classes_with_compiled_state_must_be_named(classifier, name):
    own = function(classifier)
    blob = classifier_to_bytes(own.classifier)
    with pytest.raises(UntrustedFileError, match="got types that are not made from files unless you name them") as said:
        loaded(blob)
    assert name in str(said.value)
    assert "ilhash.load(path, trusted=[" in str(said.value)
    assert "whoever made the file then decides" in str(said.value)
    names = str(said.value).partition("trusted=")[2].partition("]")[0].strip("[").split(", ")
    again = loaded(blob, [named.strip("'") for named in names])
    np.testing.assert_array_equal(again.margins(X), own.margins(X))


def test_trusted_is_a_list_of_names(tmp_path):
    with pytest.raises(TypeError, match="trusted must be a list of full names of types, got 'SVC'"):
        ilhash.load(tmp_path, trusted="SVC")


# ---------------------------------------------------------------------------------------------- attacks


def node(loader, name, **more):
    module, _, own = name.rpartition(".")
    return {"__class__": own, "__module__": module, "__loader__": loader, **more}


def json_node(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def list_node(*parts):
    return node("ListNode", "builtins.list", content=list(parts))


def tuple_node(*parts):
    return node("TupleNode", "builtins.tuple", content=list(parts))


def dict_node(key_types, content):
    return node("DictNode", "builtins.dict", key_types=key_types, content=content)


def run_by(command):
    """Attributes of a classifier that would run a command of Python while they are made, each in another way."""
    as_text = json_node(command)
    function_as_key = list_node(node("FunctionNode", "numpy.testing.measure"))
    eval_as_key = list_node(node("TypeNode", "builtins.eval"))
    return {
        # skops calls the type of a key with the key; numpy.testing.measure executes its argument (the first finding)
        "numpy.testing.measure as the type of a key": dict_node(function_as_key, {command: json_node(1)}),
        "eval as the type of a key": dict_node(eval_as_key, {command: json_node(1)}),
        "a call through __reduce__": node("ConstructorFromReduceNode", "builtins.exec", content=tuple_node(as_text)),
        "a loss that is a function": node(
            "LossNode",
            "builtins.exec",
            __reduce__={"args": tuple_node(as_text)},
            content=dict_node(list_node(), {}),
        ),
        "a list that is a function": node("ListNode", "builtins.exec", content=[as_text]),
        "a set that is a function": node("SetNode", "builtins.exec", content=[as_text]),
        "a number that is a function": node("NdArrayNode", "builtins.exec", type="numpy", file="1.npy"),
        "an operator": node(
            "OperatorFuncNode", "operator.methodcaller", attrs=tuple_node(json_node("__class__"), as_text)
        ),
        "a partial": node(
            "PartialNode",
            "functools.partial",
            content={
                "func": node("FunctionNode", "builtins.exec"),
                "args": tuple_node(as_text),
                "kwds": dict_node(list_node(), {}),
                "namespace": json_node(None),
            },
        ),
        "a method": node(
            "MethodNode",
            "sklearn.naive_bayes.GaussianNB",
            content={"func": "set_params", "obj": node("ObjectNode", "sklearn.naive_bayes.GaussianNB")},
        ),
        "a default factory": node(
            "DefaultDictNode",
            "collections.defaultdict",
            content={"main": dict_node(list_node(), {}), "default_factory": node("FunctionNode", "builtins.exec")},
        ),
        "an object with a state": node(
            "ObjectNode", "functools.partial", content=tuple_node(node("FunctionNode", "builtins.exec"), as_text)
        ),
        "a generator": node("RandomGeneratorNode", "numpy.random._generator.Generator", content={}),
        "an old function node": node(
            "FunctionNode", "builtins.exec", content={"module_path": "builtins", "function": "exec"}
        ),
    }


ATTACKS = run_by("")


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("protocol", [0, 2])
def test_nothing_that_a_schema_asks_for_is_run(attack, protocol, tmp_path):
    proof = tmp_path / "ran"
    command = f"open({str(proof)!r}, 'w').close()"

    def change(attributes):
        attributes["content"]["priors"] = run_by(command)[attack]

    blob = forged(change)
    if protocol == 0:
        parts = parts_of(blob)
        parts["schema.json"] = parts["schema.json"].replace(b'"protocol": 2', b'"protocol": 0')
        blob = zipped(parts)
    with pytest.raises((UntrustedFileError, DamagedFileError)) as said:
        loaded(blob)
    assert "\n" not in str(said.value)
    assert not proof.exists()


def test_a_whole_model_with_the_first_finding_runs_nothing(tmp_path):
    """The exploit as it was found: a saved model in a folder, all checksums right, opened in a fresh process."""
    proof = tmp_path / "ran"
    model = Model(ilhash_sample("ilh-skops"))
    role = sorted(model.blobs)[0]
    attack = run_by(f"open({str(proof)!r}, 'w').close()")["numpy.testing.measure as the type of a key"]

    def change(attributes):
        attributes["content"]["priors"] = attack

    model.blobs[role] = forged(change)
    model.write(tmp_path / "model")
    script = "import sys, skops.io, ilhash; ilhash.load(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "model"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ilhash.storage._damage.UntrustedFileError")
    assert "numpy.testing.measure" in done.stderr.splitlines()[-1]
    assert not proof.exists()


def ilhash_sample(name):
    from tests.fuzz.models import SAMPLES

    return next(SAMPLES.glob(f"*/models/{name}"))


def test_the_attack_is_one():
    """What the door keeps out is no straw man: skops alone, told to trust the names, runs it."""
    import skops.io

    ran = []
    np.testing.spied = ran.append
    try:
        key_types = list_node(node("FunctionNode", "numpy.testing.spied"))

        def change(attributes):
            attributes["content"]["priors"] = dict_node(key_types, {"yes": json_node(1)})

        skops.io.loads(forged(change), trusted=["numpy.testing.spied"])
    finally:
        del np.testing.spied
    assert ran == ["yes"]


def test_a_number_that_stands_for_two_nodes_is_refused():
    """skops makes the first node of a number and takes it for the second, of whatever kind that claims to be."""

    def change(attributes):
        attributes["content"]["priors"] = {**json_node(None), "__id__": 77}
        attributes["content"]["var_smoothing"] = {**json_node(1), "__id__": 77}

    with pytest.raises(DamagedFileError, match="one node of each number, got two of 77"):
        loaded(forged(change))


@pytest.mark.parametrize("place", [-1, 625, 10**9, "1", None])
def test_a_random_state_beyond_its_end_is_refused(place):
    def change(attributes):
        state = attributes["content"]["_random_state"]["content"]["content"]["state"]["content"]
        state["pos"]["content"] = json.dumps(place)

    with pytest.raises(DamagedFileError, match=r"a place from 0 to 624"):
        loaded(forged(change, MLPClassifier((2,), max_iter=2)))


def lying(parts, name, old, new):
    return {**parts, name: parts[name].replace(old, new, 1)}


@pytest.mark.parametrize("how", ["bzip", "extra", "twice", "behind", "huge", "objects", "elsewhere", "deep", "many"])
def test_zips_that_skops_does_not_write_are_refused(how):
    parts = parts_of(classifier_to_bytes(fitted(GaussianNB())))
    array = next(name for name in parts if name.endswith(".npy"))
    blob = zipped(parts)
    if how == "bzip":
        blob = zipped(parts, zipfile.ZIP_BZIP2)
    elif how == "extra":
        blob = zipped({**parts, "../x": b"x"})
    elif how == "twice":
        buffer = io.BytesIO(blob)
        with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("schema.json", parts["schema.json"])
        blob = buffer.getvalue()
    elif how == "behind":
        blob = b"#!/bin/sh\n" + blob
    elif how == "huge":
        blob = zipped(lying(parts, array, b"'shape': (", b"'shape': (99999999, "))
    elif how == "objects":
        blob = zipped({name: content.replace(b"'<f", b"'|O") for name, content in parts.items()})
    elif how == "elsewhere":
        blob = zipped(lying(parts, "schema.json", array.encode(), b"12.npy"))
    elif how == "deep":
        blob = zipped({**parts, "schema.json": b"[" * 100_000 + b"]" * 100_000})
    else:
        schema = json.loads(parts["schema.json"])
        schema["content"]["content"]["priors"] = nested_tuples(60)
        blob = zipped({**parts, "schema.json": json.dumps(schema).encode()})
    with pytest.raises(DamagedFileError):
        loaded(blob)


def nested_tuples(depth):
    """A tree of tuples in which each holds the one below twice by its number: 2**depth when it is walked."""
    inner = {**json_node(0), "__id__": 1}
    for level in range(depth):
        inner = {**tuple_node(inner, {**json_node(0), "__id__": level + 1}), "__id__": level + 2}
    return inner


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("theta_", None),
        ("theta_", 3),
        ("var_", [0, 1]),
        ("class_prior_", "x"),
        ("classes_", [1]),
        ("n_features_in_", 9),
    ],
)
def test_a_classifier_that_cannot_compute_is_refused(name, content):
    def change(attributes):
        attributes["content"][name] = json_node(content)

    with pytest.raises(DamagedFileError):
        loaded(forged(change))


def test_margins_that_are_no_numbers_are_refused():
    own = fitted(MLPClassifier((2,), max_iter=2))
    own.intercepts_[-1][:] = np.nan
    with pytest.raises(DamagedFileError, match="one finite margin per row"):
        loaded(classifier_to_bytes(own))


def test_a_file_of_skops_alone_goes_through_the_same_door():
    with pytest.raises(DamagedFileError, match="must be a classifier in a file of skops"):
        classifier_from_bytes(b"PK\x03\x04 nonsense", (), "it")
