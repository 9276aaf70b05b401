"""Classifiers of scikit-learn in files of skops, and the one door through which they come in again.

A file of skops is a zip of arrays and of a schema, a tree of nodes that says which objects to make. What nodes may
bring is decided here, before skops looks at them: objects of the classes below, which compute in NumPy alone, made of
plain values and arrays of numbers. Functions, methods and whatever else runs while it is made are never among them,
nor classes whose compiled code takes indices from their state without a check (trees, neighbours, libsvm). A caller who
trusts a file names further types.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from ilhash._extras import require
from ilhash.storage import DamagedFileError, Record, UntrustedFileError, plain_npy, reading

_LINEAR = {
    *("sklearn.linear_model._logistic.LogisticRegression", "sklearn.linear_model._logistic.LogisticRegressionCV"),
    *("sklearn.linear_model._ridge.RidgeClassifier", "sklearn.linear_model._ridge.RidgeClassifierCV"),
    *("sklearn.linear_model._stochastic_gradient.SGDClassifier", "sklearn.linear_model._perceptron.Perceptron"),
    "sklearn.linear_model._passive_aggressive.PassiveAggressiveClassifier",
    *("sklearn.svm._classes.LinearSVC", "sklearn.discriminant_analysis.LinearDiscriminantAnalysis"),
}
_CLASSES = _LINEAR | {
    *("sklearn.naive_bayes.GaussianNB", "sklearn.naive_bayes.BernoulliNB"),
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
    "sklearn.neural_network._multilayer_perceptron.MLPClassifier",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    *("sklearn.preprocessing._label.LabelBinarizer", "sklearn.preprocessing._data.StandardScaler"),
    "sklearn.pipeline.Pipeline",
}
_LOSSES = {f"sklearn.linear_model._sgd_fast.{name}" for name in ("Hinge", "SquaredHinge", "ModifiedHuber")}
_LOSSES |= {f"sklearn._loss._loss.{name}" for name in ("CyHalfBinomialLoss", "CyHalfSquaredError", "CyHuberLoss")}
_NUMBERS = {f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_NUMBERS |= {"numpy.float16", "numpy.float32", "numpy.float64", "numpy.bool", "numpy.bool_"}

# What a node may bring, by the name of what skops makes it with.
_KNOWN = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"} | _NUMBERS,
    "NdArrayNode": {"numpy.ndarray"} | _NUMBERS,
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "LossNode": _LOSSES,
    "ObjectNode": _CLASSES,
}

_SCHEMA = "schema.json"
_LARGEST_SCHEMA = 64 << 20  # bytes

Node = dict[str, Any]


def is_linear(classifier: Any) -> bool:
    """Whether a classifier's margin is coef_ x + intercept_, by its class."""
    return _full_name(type(classifier)) in _LINEAR


def classifier_to_bytes(classifier: Any) -> bytes:
    """Return a classifier as a file of skops."""
    door = _skops()
    data: bytes = door.dumps(classifier)
    unknown = door.get_untrusted_types(data=data)
    if unknown and not type(classifier).__module__.startswith("sklearn."):
        raise ValueError(
            f"hash_function must be a classifier of scikit-learn for the model to be saved, got "
            f"{type(classifier).__name__}, which would bring types that a loader does not trust: {', '.join(unknown)}"
        )
    return data


def classifier_from_bytes(data: bytes, trusted: Sequence[str], where: str) -> Any:
    """Do the inverse; nothing is made of a file that holds anything but what is known and trusted."""
    door = _skops()
    with reading(f"{where} must be a classifier in a file of skops", (Exception,)):  # zipfile and skops have their own
        types = _checked_types(data, frozenset(trusted), where)
        return door.loads(data, trusted=sorted(types))


def _skops() -> Any:
    return require("skops.io", "skops", "saving and loading classifiers other than SVMs and trees")


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# ------------------------------------------------------------------------------------------------ the file


def _checked_types(data: bytes, trusted: frozenset[str], where: str) -> set[str]:
    """Return the types that a file brings, if it is one that skops wrote and all of them may be made."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = _checked_members(archive, len(data), where)
        for name in sizes:
            if name.endswith(".npy"):
                _check_npy(archive.read(name), f"{name} of {where}")
        if not 0 < sizes.get(_SCHEMA, 0) <= _LARGEST_SCHEMA:
            raise DamagedFileError(f"{where} must have a {_SCHEMA} of at most {_LARGEST_SCHEMA} bytes, got none")
        schema = json.loads(archive.read(_SCHEMA))
    found = _types_in(schema, set(sizes), f"{_SCHEMA} of {where}")
    unknown = sorted({name for loader, name in found if name not in _KNOWN.get(loader, ()) and name not in trusted})
    if unknown:
        raise UntrustedFileError(
            f"{where} must hold known classifiers, got types that are not made from files unless you name them: "
            f"ilhash.load(path, trusted={unknown}) does; whoever made the file then decides what they hold and do, "
            "which may be to run code or to read what is not theirs"
        )
    return {name for _, name in found}


def _checked_members(archive: zipfile.ZipFile, size: int, where: str) -> dict[str, int]:
    """Return the sizes of the members of a zip that holds them one behind the other, as they are, and nothing else."""
    members = archive.infolist()
    explained = 22 + sum(76 + 2 * len(member.filename) + member.file_size for member in members)
    stored = all(
        member.compress_type == zipfile.ZIP_STORED
        and member.compress_size == member.file_size
        and re.fullmatch(r"schema\.json|[0-9]{1,20}\.np[yz]|[0-9a-f-]{36}\.bin", member.filename)
        for member in members
    )
    if not stored or explained != size or len({member.filename for member in members}) != len(members):
        raise DamagedFileError(f"{where} must be a file as skops writes it, got another kind of zip")
    return {member.filename: member.file_size for member in members}


def _check_npy(data: bytes, name: str) -> None:
    """Refuse an array that is not one of numbers, or that claims another size than it has."""
    shape = plain_npy(data, name).shape
    if max(shape, default=0) > len(data):
        raise DamagedFileError(f"{name} must have no length above its {len(data)} bytes, got the shape {shape}")


# ------------------------------------------------------------------------------------------------ the schema


def _types_in(schema: Any, files: set[str], where: str) -> set[tuple[str, str]]:
    """Return loaders and types of all nodes, checked as far as what skops makes of them depends on it."""
    root = Record(schema, where)
    root.whole("protocol", 2, 2)  # earlier ones mean other things by the same nodes
    found: set[tuple[str, str]] = set()
    same: dict[int, Node] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        loader, name = node.text("__loader__"), f"{node.text('__module__')}.{node.text('__class__')}"
        found.add((loader, name))
        if "__id__" in node:  # skops makes a node once, and takes it wherever its number stands
            number = node.whole("__id__")
            if same.setdefault(number, node.document) != node.document:
                raise DamagedFileError(f"{where} must have one node of each number, got two of {number}")
        if "file" in node and node.text("file") not in files:
            raise DamagedFileError(f"{where} must name files of its own, got {node.text('file')[:80]!r}")
        if loader == "RandomStateNode":
            _check_random_state(node)
        waiting += _children(loader, node)
    return found


def _children(loader: str, node: Record) -> Iterator[Record]:
    if loader == "DictNode":
        yield node.record("key_types")
        content = node.record("content")
        yield from (content.record(key) for key in content.document)
    elif loader in ("ListNode", "TupleNode"):
        yield from node.records("content")
    elif loader == "JsonNode":
        node.text("content", most=_LARGEST_SCHEMA)
    elif loader == "NdArrayNode" and node.one_of("type", ("numpy", "json")) == "numpy":
        node.text("file", r"[0-9]{1,20}\.npy")
    elif loader == "LossNode":
        yield node.record("__reduce__").record("args")
        yield node.record("content")
    elif loader in ("ObjectNode", "RandomStateNode"):
        if node.document.get("content") is not None:
            yield node.record("content")
    else:
        yield from _all_below(node)


def _all_below(node: Record) -> Iterator[Record]:
    """Yield the nodes anywhere in a node, however it holds them."""
    waiting: list[Any] = list(node.document.values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and "__loader__" in value:
            yield Record(value, node.where)
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _check_random_state(node: Record) -> None:
    """Refuse a state of which NumPy would take a place that is not there with the next number that is drawn."""
    state = node.record("content").record("content").record("state").record("content")
    place = json.loads(state.record("pos").text("content"))
    if type(place) is not int or not 0 <= place <= 624:
        raise DamagedFileError(f"{node.where} must have a place from 0 to 624 in a random state, got {place!r}")
