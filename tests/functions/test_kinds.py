"""Kinds of hash functions: every registered one stacks, stores and loads itself, and a new one is one registration."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import ilhash
from ilhash import ILH
from ilhash.codes import unpack
from ilhash.functions import (
    AnchorFunction,
    Anchors,
    ClassifierFunction,
    CodewordFunction,
    CosineFunction,
    Encoder,
    Fitted,
    HashFunction,
    KernelFunction,
    Learner,
    LinearFunction,
    PoolFunction,
    RadialBasis,
    Stored,
    TreeFunction,
    _kernel,
    functions_from_arrays,
    functions_to_arrays,
    register,
)
from ilhash.functions._kinds import KINDS, LEARNERS
from ilhash.storage import DamagedFileError, Values

D = 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, D)).astype(np.float32)  # as many that feature subsets are gathered


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def subset(d):
    return np.sort(RNG.permutation(D)[:d]).astype(np.int32)


def linear(d=D):
    return LinearFunction(numbers(d), np.float32(RNG.normal()), None if d == D else subset(d))


def basis(d=D):
    return RadialBasis(numbers(5, d), np.ones(d, np.float32), 9.0, None if d == D else subset(d))


def kernels(phi):
    return [KernelFunction(phi, numbers(5), np.float32(RNG.normal())) for _ in range(3)]


def pooled(pool):
    chosen = [np.sort(RNG.permutation(5)[:m]).astype(np.int32) for m in (3, 3, 2)]
    return [PoolFunction(pool, own, numbers(len(own)), np.float32(RNG.normal())) for own in chosen]


def tree(features):
    nodes = ([4, 0, 0], [0.1, 0.0, 0.0], [1, 1, 2], [2, 1, 2], [0.0, -1.5, 0.7], [0])
    return TreeFunction(*map(np.array, nodes, ("i4", "f8", "i4", "i4", "f8", "i4")), 0.25, features)


def classifier(features):
    d = D if features is None else len(features)
    fitted = LogisticRegression().fit(X[:, :d], X[:, 0] > 0)
    return ClassifierFunction(fitted, numbers(d), numbers(d), features)


def anchors():
    own = Anchors(basis(), 2)
    return [AnchorFunction(own, numbers(5)), AnchorFunction(own, numbers(5), numbers(2))]


def codewords():
    scores = tuple(linear() for _ in range(3))
    return [CodewordFunction(scores, np.array(ones, np.uint8)) for ones in ([0, 1, 0], [1, 0, 1])]


BASIS = {"centers", "factor", "width", "common"}
TABLE = {"feature", "threshold", "left", "right", "value", "roots", "bias"}
SUBSET = {"features"}

# Some functions of each kind, and the names of the arrays of each of their groups: those of files that are out there.
EXAMPLES = {
    "linear": (
        [linear(), linear(2), linear(8), linear(), linear(2)],
        [{"weights", "bias"}, {"weights", "bias"} | SUBSET, {"weights", "bias"} | SUBSET],
    ),
    "kernel": (
        [*kernels(basis()), *kernels(basis(4))],
        [{"weights", "bias"} | BASIS, {"weights", "bias"} | BASIS | SUBSET],
    ),
    "pool": (
        [*pooled(basis()), *pooled(basis(4))],
        [{"chosen", "weights", "bias"} | BASIS] * 2 + [{"chosen", "weights", "bias"} | BASIS | SUBSET] * 2,
    ),
    "cosine": ([CosineFunction(numbers(D), np.float32(RNG.normal())) for _ in range(3)], [{"weights", "phase"}]),
    "anchors": (anchors(), [{"weights", "cuts", "nearest"} | BASIS]),
    "codeword": (codewords(), [{"ones", "scores.linear.0.weights", "scores.linear.0.bias", "scores.linear.0.bits"}]),
    "trees": ([tree(None), tree(subset(6))], [TABLE, TABLE | SUBSET]),
    "classifier": ([classifier(None), classifier(subset(6))], [{"shift", "factor"}, {"shift", "factor"} | SUBSET]),
}


def round_trip(functions):
    pytest.importorskip("skops.io", reason="skops is an extra")
    return functions_from_arrays(*functions_to_arrays(functions), D)


def own_margins(functions):
    return np.stack([function.margins(X) for function in functions], axis=1)


def test_there_is_an_example_of_every_kind():
    assert set(EXAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_margins_and_features_survive_a_round_trip(kind):
    functions, _ = EXAMPLES[kind]
    again = round_trip(functions)
    assert [type(function) for function in again] == [KINDS[kind]] * len(functions)
    assert np.array_equal(own_margins(again), own_margins(functions))
    for a, b in zip(again, functions, strict=True):
        assert (a.features is None) == (b.features is None)
        assert a.features is None or np.array_equal(a.features, b.features)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_arrays_have_the_names_that_they_always_had(kind):
    pytest.importorskip("skops.io", reason="skops is an extra")
    functions, names = EXAMPLES[kind]
    arrays, blobs = functions_to_arrays(functions)
    expected = {f"{kind}.{group}.{name}" for group, own in enumerate(names) for name in own | {"bits"}}
    assert set(arrays) == expected
    assert set(blobs) == ({"classifier-0", "classifier-1"} if kind == "classifier" else set())


@pytest.mark.parametrize("n", [1, 100])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_stacked_margins_are_those_of_each_function(kind, n):
    functions, _ = EXAMPLES[kind]
    margins = Encoder(functions, D).margins(X[:n])
    assert margins.dtype == np.float32
    np.testing.assert_allclose(margins, own_margins(functions)[:n], rtol=1e-5, atol=1e-5)


def test_kinds_may_be_mixed_in_any_order():
    every = [function for functions, _ in EXAMPLES.values() for function in functions]
    mixed = [every[i] for i in RNG.permutation(len(every))]
    np.testing.assert_allclose(Encoder(mixed, D).margins(X), own_margins(mixed), rtol=1e-5, atol=1e-5)
    assert np.array_equal(own_margins(round_trip(mixed)), own_margins(mixed))


def test_a_function_may_be_several_bits():
    twice = [function for functions, _ in EXAMPLES.values() for function in functions[:1] * 2]
    assert np.array_equal(own_margins(round_trip(twice)), own_margins(twice))
    np.testing.assert_allclose(Encoder(twice, D).margins(X), own_margins(twice), rtol=1e-5, atol=1e-5)


def test_functions_of_a_pool_that_is_too_large_for_one_matrix(monkeypatch):
    functions, _ = EXAMPLES["pool"]
    wanted = Encoder(functions, D).margins(X)
    monkeypatch.setattr(_kernel, "DENSE_BELOW", 1)
    np.testing.assert_allclose(Encoder(functions, D).margins(X), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [([0, 1, 5], "at most 4"), ([-1, 0, 1], "at least 0"), ([0, 2, 2], "must ascend"), ([2, 1, 0], "must ascend")],
)
def test_centres_that_a_pool_does_not_have_are_refused(chosen, sentence):
    arrays, blobs = functions_to_arrays(EXAMPLES["pool"][0][:1])
    arrays["pool.0.chosen"] = np.array([chosen], np.int32)
    with pytest.raises(DamagedFileError, match=sentence):
        functions_from_arrays(arrays, blobs, D)


# ---------------------------------------------------------------------------------------------- a new kind


@dataclass(frozen=True, eq=False)
class StumpFunction(HashFunction):
    """The side of a threshold that one feature is on: a kind that leaves all but its files to the defaults."""

    kind: ClassVar[str] = "stump"
    schema: ClassVar[dict] = {"slope": Values("float32", ("D",)), "cut": Values("float64", (1,))}
    slope: np.ndarray
    cut: float

    def margins(self, X):
        return np.asarray(X @ self.slope - self.cut, np.float32)

    @classmethod
    def to_stored(cls, functions):
        (own,) = functions
        return Stored({"slope": own.slope, "cut": np.array([own.cut])})

    @classmethod
    def from_stored(cls, stored):
        return [cls(stored.arrays["slope"], float(stored.arrays["cut"][0]))]


class StumpLearner(Learner):
    """Takes the feature whose means differ the most between the two sides."""

    def fit(self, rows, z, features, seed):
        apart = rows.values[z > 0].mean(axis=0) - rows.values[z < 0].mean(axis=0)
        best = np.abs(apart).argmax()
        slope = np.zeros_like(apart)
        slope[best] = np.sign(apart[best])
        function = StumpFunction(slope, float(slope @ rows.mean))
        return Fitted(function, function.margins(rows.values), z)


@pytest.fixture
def stump():
    register(StumpFunction, lambda settings: StumpLearner())
    yield
    KINDS.pop("stump", None)
    LEARNERS.pop("stump", None)


def test_a_new_kind_is_one_registration(stump, blobs, tmp_path):
    X, y = blobs
    model = ILH(n_bits=9, hash_function=["stump", "linear"], n_similar=20, n_dissimilar=20).fit(X, y)
    assert [function.kind for function in model.functions_] == (["stump", "linear"] * 5)[:9]
    assert min(report.accuracy for report in model.bits_) > 0.6
    margins = model.decision_function(X)
    np.testing.assert_allclose(
        margins[:, ::2], np.stack([f.margins(X - model.origin_) for f in model.functions_[::2]]).T
    )
    model.save(tmp_path / "model")
    again = ilhash.load(tmp_path / "model")
    assert np.array_equal(again.decision_function(X), margins)
    assert np.array_equal(unpack(again.transform(X), 9), margins > 0)


def test_a_two_step_method_takes_the_new_kind(stump, blobs):
    model = ilhash.methods.KSHcut(n_bits=3, hash_function="stump").fit(*blobs)
    assert {function.kind for function in model.functions_} == {"stump"}


def test_a_file_of_a_kind_that_is_not_known_here(stump):
    arrays, blobs = functions_to_arrays([StumpFunction(np.ones(D, np.float32), 0.0)])
    del KINDS["stump"]
    with pytest.raises(ValueError, match=r"must be of a known kind \(.*linear, .*\), got 'stump'"):
        functions_from_arrays(arrays, blobs, D)


def test_the_names_that_may_be_given_are_listed(stump, blobs):
    with pytest.raises(
        ValueError, match="must be 'kernel', 'linear', 'stump', 'trees' or a scikit-learn classifier, got 'log'"
    ):
        ILH(hash_function="log").fit(*blobs)


def test_two_kinds_cannot_have_one_name():
    other = type("Other", (StumpFunction,), {"kind": "linear"})
    with pytest.raises(ValueError, match="a name of its own, got 'linear' a second time"):
        register(other)
    assert KINDS["linear"] is LinearFunction
