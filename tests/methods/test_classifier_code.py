import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.methods.contract import MethodContract

from ilhash.codes import unpack
from ilhash.functions import LinearLearner
from ilhash.functions._codewords import codeword_margins
from ilhash.methods import ClassifierCode
from ilhash.methods._classifier_code import codewords
from ilhash.vectors import gather


class TestClassifierCode(MethodContract):
    name = "ClassifierCode"


class TestClassifierCodeOfScores(MethodContract):
    name = "ClassifierCode"
    parameters = {"code": "scores"}  # noqa: RUF012


class TestClassifierCodeOfKernelScores(MethodContract):
    name = "ClassifierCode"
    parameters = {"code": "scores", "hash_function": "kernel", "n_centers": 40}  # noqa: RUF012
    tolerance = 1e-2


class TestClassifierCodeOneHot(MethodContract):
    name = "ClassifierCode"
    parameters = {"code": "one-hot"}  # noqa: RUF012
    bits = 10
    other_bits = (10,)
    limit = 11
    reason = "n_bits must be 10 for one-hot codes, one per class"
    seeded = False
    checks = {"code": "ecoc"}  # noqa: RUF012  scikit-learn's data have two or three classes


def predicted_classes(X, y):
    """The class of the highest score of one SVM per class, each fitted alone."""
    origin = np.zeros(X.shape[1], np.float32)
    scores = []
    for label in np.unique(y):
        rows = gather(X, np.arange(len(X)), origin)
        scores.append(LinearLearner(0.01).fit(rows, np.where(y == label, 1, -1).astype(np.int8), None, 0).margins)
    return np.argmax(scores, axis=0)


def test_one_hot_codes_are_the_predicted_class(digits):
    X, y = digits
    bits = unpack(ClassifierCode(n_bits=10, code="one-hot").fit(X, y).transform(X), 10)
    assert (bits.sum(axis=1) == 1).all()
    assert (bits.argmax(axis=1) == predicted_classes(X, y)).mean() > 0.999
    assert (bits.argmax(axis=1) == y).mean() > 0.95


def test_codes_are_the_codewords_of_the_predicted_class(digits):
    X, y = digits
    bits = unpack(ClassifierCode(n_bits=15).fit(X, y).transform(X), 15)
    assert (bits == codewords(10, 15, 0).T[predicted_classes(X, y)]).all(axis=1).mean() > 0.999


def test_projections_of_the_scores_are_those(digits):
    X, y = digits
    one_hot = ClassifierCode(n_bits=10, code="one-hot").fit(X, y)
    relative = X - one_hot.origin_
    scores = np.stack([f.margins(relative) for f in one_hot.functions_[0].scores], axis=1)
    margins = ClassifierCode(n_bits=40, code="scores").fit(X, y).decision_function(X)
    centred = scores - scores.mean(axis=0)
    mixture = np.linalg.lstsq(centred, margins, rcond=None)[0]
    np.testing.assert_allclose(centred @ mixture, margins, atol=1e-3)
    assert abs(mixture.mean()) < 0.2
    assert abs(mixture.std() - 1.0) < 0.15


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 12), st.integers(1, 20), st.integers(0, 1000))
def test_codewords_are_balanced_nested_and_apart(n_classes, n_bits, seed):
    words = codewords(n_classes, n_bits, seed)
    ones = words.sum(axis=1)
    assert set(ones.tolist()) <= {n_classes // 2, (n_classes + 1) // 2}
    assert np.array_equal(words[: n_bits // 2], codewords(n_classes, n_bits // 2, seed))
    if n_bits >= 12:
        distances = (words.T[:, None] != words.T[None]).sum(axis=2)[np.triu_indices(n_classes, 1)]
        assert distances.min() >= 2


def test_64_codewords_of_ten_classes_are_almost_equidistant():
    words = codewords(10, 64, 0).T
    distances = (words[:, None] != words[None]).sum(axis=2)[np.triu_indices(10, 1)]
    assert distances.min() >= 32  # 64 * 5 / 9 on average is what balanced splits can give


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 1000))
def test_margins_are_positive_where_the_best_class_has_a_one(n_classes, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(20, n_classes)).astype(np.float32)
    words = codewords(n_classes, 9, seed)
    assert np.array_equal(codeword_margins(scores, words) > 0, words.T[scores.argmax(axis=1)] == 1)


def test_parameters_are_checked(digits):
    for change, message in (
        ({"code": "gray"}, "code must be one of 'ecoc', 'one-hot', 'scores'"),
        ({"hash_function": "tree"}, "hash_function must be one of 'linear', 'kernel'"),
        ({"C": -1.0}, "C must be 'auto' or a positive number"),
        ({"kernel_width": 0.0}, "kernel_width must be a positive number"),
        ({"hash_function": "trees", "code": "scores"}, "must be 'linear' or 'kernel' for code='scores', got 'trees'"),
    ):
        with pytest.raises(ValueError, match=message):
            ClassifierCode(**change).fit(*digits)


def test_a_class_that_no_training_point_has_does_not_break_kernel_scores():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60)
    model = ClassifierCode(n_bits=8, hash_function="kernel", code="scores", n_train=20, n_centers=10).fit(X, y)
    assert model.transform(X).shape == (60, 1)
