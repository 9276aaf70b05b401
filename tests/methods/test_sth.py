import numpy as np
import pytest
import scipy.linalg
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.methods.contract import MethodContract
from tests.oracles import squared_distances

import ilhash
from ilhash.methods import STH
from ilhash.methods._base import TrainingSet
from ilhash.methods._sth import label_graph, laplacian_eigenvectors
from ilhash.vectors import gather


class TestSTH(MethodContract):
    name = "STH"
    parameters = {"n_neighbors": 20}  # noqa: RUF012
    seeded = False
    tolerance = 1e-2


class TestSTHWithKernels(MethodContract):
    name = "STH"
    parameters = {"n_neighbors": 20, "hash_function": "kernel", "n_centers": 30}  # noqa: RUF012
    tolerance = 1e-2


@pytest.fixture
def training(digits):
    X, y = digits[0][:300], digits[1][:300]
    indicator = (y[:, None] == np.arange(10)).astype(np.float32)
    return TrainingSet(gather(X, np.arange(300), np.zeros(64, np.float32)), indicator)


def test_the_graph_joins_near_points_of_one_label_and_bridges_others(training):
    values, labels = training.rows.values, training.labels.argmax(axis=1)
    graph = label_graph(values, training.labels, 8, 0.25).toarray()
    squared = squared_distances(values)
    same = labels[:, None] == labels[None, :]
    wanted = np.zeros((300, 300))
    for similar, weight in ((False, 0.25), (True, 1.0)):
        allowed = np.where(same == similar, squared, np.inf)
        for i in range(300):
            near = np.argsort(allowed[i], kind="stable")[:8]
            wanted[i, near] = wanted[near, i] = weight
    assert (graph != wanted).mean() < 1e-3  # of equal distances either may be taken


def test_a_point_alone_in_its_class_is_only_bridged(training):
    labels = training.labels[:, [0]].repeat(2, axis=1)
    labels[:, 1] = 1 - labels[:, 0]
    labels[:3] = [[1, 0], [0, 1], [0, 1]]
    graph = label_graph(training.rows.values[:3], labels[:3], 8, 0.25).toarray()
    assert np.array_equal(graph, [[0, 0.25, 0.25], [0.25, 0, 1], [0.25, 1, 0]])


def test_bits_are_laplacian_eigenvectors_cut_at_their_medians(training):
    model = STH(n_bits=12, n_neighbors=8, bridge=0.1)
    bits = model._bits(training, 0)
    factor = np.sqrt(training.rows.variance)
    factor = np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0).astype(np.float32)
    W = label_graph(training.centered() * factor, training.labels, 8, 0.1).toarray()
    degrees = W.sum(axis=1)
    values, vectors = scipy.linalg.eigh(np.diag(degrees) - W, np.diag(degrees))
    assert values[1] > 1e-6  # bridges join the classes: only one vector is constant
    assert np.diff(values[:14]).min() > 1e-6  # each eigenvector is itself, and not one of a plane of them
    wanted = vectors[:, 1:13]
    wanted = np.where(wanted > np.median(wanted, axis=0), 1, -1)
    agreement = (wanted * bits).mean(axis=0)
    assert np.array_equal(np.abs(agreement), np.ones(12))


def test_lanczos_finds_what_the_dense_solver_finds(training):
    graph = label_graph(training.rows.values, training.labels, 8, 0.1)
    few = laplacian_eigenvectors(graph, 10, 0)
    all_of_them = laplacian_eigenvectors(graph, 299, 0)
    np.testing.assert_allclose(few, all_of_them[:, :10], atol=1e-6 * np.abs(few).max())


def test_bits_are_balanced(digits):
    X, y = digits
    model = STH(n_bits=24, n_neighbors=30)
    rows = gather(X, np.arange(1796), np.zeros(64, np.float32))
    bits = model._bits(TrainingSet(rows, (y[:1796, None] == np.arange(10)).astype(np.float32)), 0)
    assert np.array_equal(bits.sum(axis=0), np.zeros(24))


def test_functions_are_the_linear_svms_of_the_bits(training):
    X, y = training.rows.values, training.labels.argmax(axis=1)
    model = STH(n_bits=3, n_neighbors=8, C=0.1, scaling="whole").fit(X, y)
    bits = STH(n_bits=3, n_neighbors=8, scaling="whole")._bits(training, 0)
    scaled = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0)[X.var(axis=0) > 0].mean())
    for bit in range(3):
        svm = LinearSVC(C=0.1, tol=1e-8, max_iter=100_000).fit(scaled, bits[:, bit])
        margins, wanted = model.decision_function(X)[:, bit], svm.decision_function(scaled)
        wanted *= np.sign(margins @ wanted)  # an eigenvector is one with either sign
        np.testing.assert_allclose(margins, wanted, atol=2e-2)


def test_more_bits_than_points_are_refused(digits):
    with pytest.raises(ValueError, match="one per eigenvector of 50 points"):
        STH(n_bits=50, n_train=50).fit(*digits)
    with pytest.raises(ValueError, match="bridge must be a positive number"):
        STH(bridge=0.0).fit(*digits)


def test_trees_as_hash_functions_are_saved_but_must_be_given_again_for_training(digits, tmp_path):
    X, y = digits[0][:300], digits[1][:300]
    model = STH(n_bits=3, n_neighbors=10, hash_function=DecisionTreeClassifier(max_depth=4)).fit(X, y)
    assert {f.kind for f in model.functions_} == {"trees"}
    model.save(tmp_path / "m")
    again = ilhash.load(tmp_path / "m")
    assert np.array_equal(again.transform(X), model.transform(X))
    with pytest.raises(ValueError, match=r"set_params\(hash_function=...\)"):
        again.fit(X, y)


def test_any_number_of_workers_gives_the_same_bytes(digits):
    X, y = digits[0][:300], digits[1][:300]
    one, two = (STH(n_bits=5, n_neighbors=10, n_jobs=n).fit(X, y).decision_function(X) for n in (1, 2))
    assert one.tobytes() == two.tobytes()
