"""The estimator: contracts on randomness, nesting, diversity, encoding."""

import os
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator
from tests.methods.contract import FINER_THAN_FLOAT32

import ilhash
from ilhash import ILH
from ilhash.evaluation import precision_at_k

SMALL = {"n_similar": 20, "n_dissimilar": 20}


def same_functions(a, b):
    """Byte for byte."""
    assert len(a.functions_) == len(b.functions_)
    for f, g in zip(a.functions_, b.functions_, strict=True):
        assert f.weights.tobytes() == g.weights.tobytes()
        assert np.float32(f.bias).tobytes() == np.float32(g.bias).tobytes()
        assert (f.features is None) == (g.features is None)
        if f.features is not None:
            assert np.array_equal(f.features, g.features)


def precision(model, X, y, k=50):
    codes = model.transform(X)
    return precision_at_k(codes[200:], y[200:], codes[:200], y[:200], k)


def test_scikit_learn_finds_nothing_to_object_to():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ILH(n_bits=8), on_fail=None, expected_failed_checks=FINER_THAN_FLOAT32)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 40


def test_two_clouds_one_bit_separates_them():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-5, 1, (100, 3)), rng.normal(5, 1, (100, 3))])
    y = np.repeat(["left", "right"], 100)
    bit = ILH(n_bits=1, **SMALL).fit(X, y).decision_function(X)[:, 0] > 0
    assert bit[:100].all() != bit[100:].all()
    assert len(set(bit[:100])) == len(set(bit[100:])) == 1


# ---------------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize("letters", ["t", "itf"])
def test_bits_are_the_same_bytes_for_any_number_and_kind_of_workers(digits, letters):
    X, y = digits
    one = ILH(n_bits=8, diversity=letters, **SMALL).fit(X, y)
    two = ILH(n_bits=8, diversity=letters, n_jobs=2, **SMALL).fit(X, y)
    same_functions(one, two)
    with joblib.parallel_config(backend="loky"):
        processes = ILH(n_bits=8, diversity=letters, n_jobs=2, **SMALL).fit(X, y)
    same_functions(one, processes)


def test_adding_bits_is_training_them_at_once_and_a_prefix_is_the_shorter_model(digits):
    X, y = digits
    long = ILH(n_bits=12, **SMALL).fit(X, y)
    short = ILH(n_bits=5, **SMALL).fit(X, y)
    same_functions(long[:5], short)
    short.add_bits(7, X, y)
    assert short.n_bits == 12
    same_functions(long, short)
    regrown = long[:3].add_bits(9, X, y)
    same_functions(long, regrown)
    assert np.array_equal(long.transform(X), regrown.transform(X))


def test_chosen_bits_are_columns_of_the_margins(digits):
    X, y = digits
    model = ILH(n_bits=10, **SMALL).fit(X, y)
    margins = model.decision_function(X)
    np.testing.assert_allclose(model[[3, 5, 8]].decision_function(X), margins[:, [3, 5, 8]], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model[-1].decision_function(X), margins[:, [-1]], rtol=1e-4, atol=1e-4)
    assert [report.bit for report in model[[3, 5, 8]].bits_] == [3, 5, 8]
    with pytest.raises(IndexError, match="between 0 and 9"):
        model[10]
    with pytest.raises(ValueError, match="at least one bit"):
        model[:0]
    with pytest.raises(TypeError, match="whole numbers"):
        model[[0.5]]


def test_another_seed_gives_other_bits_and_none_draws_one(digits):
    X, y = digits
    a, b = (ILH(n_bits=2, random_state=seed, **SMALL).fit(X, y) for seed in (0, 1))
    assert a.functions_[0].weights.tobytes() != b.functions_[0].weights.tobytes()
    c, d = (ILH(n_bits=2, random_state=None, **SMALL).fit(X, y) for _ in range(2))
    assert c.seed_ != d.seed_
    same_functions(c, ILH(n_bits=2, random_state=c.seed_, **SMALL).fit(X, y))


def test_results_do_not_depend_on_the_instruction_set(tmp_path):
    script = (
        "import sys, numpy as np; from ilhash import ILH, datasets; d = datasets.load('digits');"
        "m = ILH(n_bits=4, diversity='tf', n_features=0.2, n_similar=20, n_dissimilar=20).fit(d.X, d.y);"
        "np.save(sys.argv[1], np.stack([f.weights for f in m.functions_]))"
    )
    found = []
    for level in ("portable", ""):
        path = tmp_path / f"weights-{level}.npy"
        subprocess.run([sys.executable, "-c", script, path], check=True, env={**os.environ, "ILHASH_SIMD": level})
        found.append(np.load(path).tobytes())
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------------- diversity


def test_with_everything_off_all_bits_are_equal(digits):
    X, y = digits
    model = ILH(n_bits=4, diversity="", block_order="fixed", **SMALL).fit(X, y)
    assert len({f.weights.tobytes() for f in model.functions_}) == 1


def test_the_order_of_blocks_alone_makes_bits_differ(digits):
    X, y = digits
    model = ILH(n_bits=12, diversity="", **SMALL).fit(X, y)
    assert len({f.weights.tobytes() for f in model.functions_}) > 4
    assert len({report.seed for report in model.bits_}) == 1


@pytest.mark.parametrize("letters", ["i", "t", "f", "it", "if", "tf", "itf", "fti"])
def test_every_combination_of_letters_makes_bits_differ(digits, letters):
    X, y = digits
    model = ILH(n_bits=6, diversity=letters, block_order="fixed", **SMALL).fit(X, y)
    assert len({f.weights.tobytes() for f in model.functions_}) >= 4
    assert (len({report.seed for report in model.bits_}) > 1) == ("i" in letters)
    assert all((f.features is not None) == ("f" in letters) for f in model.functions_)


@pytest.mark.parametrize("sampling", ["disjoint", "random", "bootstrap"])
def test_training_sets_of_every_kind_learn(digits, sampling):
    X, y = digits
    model = ILH(n_bits=32, sampling=sampling, n_train=400, **SMALL).fit(X, y)
    assert precision(model, X, y) > 0.75
    assert model.n_disjoint_ == 4


def test_a_range_of_neighbours_draws_another_graph_for_each_bit(digits):
    X, y = digits
    model = ILH(n_bits=6, diversity="", block_order="fixed", n_similar=(5, 30), n_dissimilar=(5, 30)).fit(X, y)
    assert len({report.energies[0] for report in model.bits_}) > 3


def test_feature_subsets_by_number_and_fraction(digits):
    X, y = digits
    assert len(ILH(n_bits=1, diversity="f", n_features=7, **SMALL).fit(X, y).functions_[0].features) == 7
    assert len(ILH(n_bits=1, diversity="f", n_features=0.25, **SMALL).fit(X, y).functions_[0].features) == 16
    assert ILH(n_bits=1, diversity="f", n_features=1.0, **SMALL).fit(X, y).functions_[0].features is None


# ---------------------------------------------------------------------------------------------- supervision


def test_labels_pairs_and_graph_meet_at_one_core(blobs):
    X, y = blobs
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, len(y), (2, 30_000))
    keep = i != j
    i, j = i[keep], j[keep]
    pairs = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1), axis=0)
    weights = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1.0, -0.5)
    n = len(y)
    rows = scipy.sparse.coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    graph = scipy.sparse.csr_array(rows + rows.T)
    for supervision in ({"pairs": (pairs, weights)}, {"pairs": np.column_stack([pairs, weights])}, {"affinity": graph}):
        model = ILH(n_bits=16, n_train=300).fit(X, **supervision)
        assert precision(model, X, y) > 0.9
    a, b = (ILH(n_bits=3, n_train=300).fit(X, **s) for s in ({"pairs": (pairs, weights)}, {"affinity": graph}))
    same_functions(a, b)


def test_without_supervision_codes_follow_euclidean_neighbours(blobs):
    X, y = blobs
    assert precision(ILH(n_bits=16, **SMALL).fit(X), X, y) > 0.9


def test_several_labels_per_point(blobs):
    X, y = blobs
    indicator = np.zeros((len(y), 6), int)
    indicator[np.arange(len(y)), y] = 1
    indicator[y < 2, 4] = 1  # the first two clouds share a label: similar to each other
    model = ILH(n_bits=16, **SMALL).fit(X, indicator)
    assert (
        precision_at_k(
            *[part for half in (slice(200, None), slice(200)) for part in (model.transform(X[half]), (y < 2)[half])], 50
        )
        > 0.9
    )
    same_functions(model, ILH(n_bits=16, **SMALL).fit(X, scipy.sparse.csr_matrix(indicator)))


def test_unlabelled_points_are_never_drawn(blobs):
    X, y = blobs
    hidden = y.copy()
    hidden[::3] = -1
    X = X.copy()
    X[::3] = 1e6  # would ruin every statistic if they were drawn
    model = ILH(n_bits=8, **SMALL).fit(X, hidden)
    known = hidden >= 0
    assert min(report.accuracy for report in model.bits_) > 0.95
    assert precision(model, X[known], y[known]) > 0.9


def test_points_without_an_edge_take_no_part_in_the_fit(blobs):
    X, y = blobs
    pairs = np.array([(i, j, 1.0 if y[i] == y[j] else -1.0) for i in range(60) for j in range(i)])
    model = ILH(n_bits=4, n_train=50).fit(X, pairs=pairs)
    assert all(report.n_points <= 50 for report in model.bits_)
    assert model.n_disjoint_ == 1


# ---------------------------------------------------------------------------------------------- hash functions


def test_kernel_functions_common_and_private(digits):
    X, y = digits
    linear = precision(ILH(n_bits=16, **SMALL).fit(X, y), X, y)
    common = ILH(n_bits=16, hash_function="kernel", n_centers=200, **SMALL).fit(X, y)
    private = ILH(n_bits=16, hash_function="kernel", n_centers=200, centers="private", **SMALL).fit(X, y)
    assert len({id(f.basis) for f in common.functions_}) == 1
    assert len({f.basis.centers.tobytes() for f in private.functions_}) == 16
    assert precision(common, X, y) > linear
    assert precision(private, X, y) > linear
    both = ILH(n_bits=4, hash_function="kernel", centers="common", diversity="tf", n_centers=50, **SMALL).fit(X, y)
    assert all(len(f.features) == 32 for f in both.functions_)


def test_kernel_functions_of_a_pool(digits):
    X, y = digits
    given = {"hash_function": "kernel", "centers": "pool", "n_centers": 50, **SMALL}
    model = ILH(n_bits=8, **given).fit(X, y)
    assert {f.kind for f in model.functions_} == {"pool"}
    assert len({id(f.basis) for f in model.functions_}) == 1
    assert len(model.functions_[0].basis.centers) == 150
    assert len({f.chosen.tobytes() for f in model.functions_}) == 8
    grown = ILH(n_bits=5, **given).fit(X, y).add_bits(3, X, y)
    np.testing.assert_array_equal(grown.decision_function(X), model.decision_function(X))
    coefficients, centers, _ = model.kernel_expansions()
    assert coefficients.shape == (8, 150) == (8, len(centers))
    everything = ILH(n_bits=2, **given | {"n_centers": len(X)}).fit(X, y)  # a pool of no more than a bit uses
    assert {f.kind for f in everything.functions_} == {"kernel"}
    subsets = ILH(n_bits=2, diversity="tf", **given).fit(X, y)
    assert [(f.kind, len(f.basis.centers), len(f.features)) for f in subsets.functions_] == [("kernel", 50, 32)] * 2


@pytest.mark.parametrize("letters", ["", "i", "t", "itf"])
def test_boosted_trees_are_nested_and_better_than_linear_functions(digits, letters):
    X, y = digits
    given = {"hash_function": "trees", "n_trees": 30, "tree_depth": 4, "diversity": letters, **SMALL}
    given |= {"block_order": "fixed"}
    model = ILH(n_bits=8, **given).fit(X, y)
    assert {f.kind for f in model.functions_} == {"trees"}
    assert {len(f.roots) for f in model.functions_} == {30}
    grown = ILH(n_bits=5, n_jobs=2, **given).fit(X, y).add_bits(3, X, y)
    assert np.array_equal(grown.decision_function(X), model.decision_function(X))
    assert np.array_equal(model[:3].decision_function(X), model.decision_function(X)[:, :3])
    if letters:
        assert precision(model, X, y) > precision(ILH(n_bits=8, diversity=letters, **SMALL).fit(X, y), X, y)
    else:
        assert len({f.value.tobytes() for f in model.functions_}) == 1  # nothing but the letters makes bits different


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number"),
        ({"tree_depth": 0}, "tree_depth must be a whole number"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
    ],
)
def test_parameters_of_trees_that_are_wrong(digits, change, message):
    with pytest.raises(ValueError, match=message):
        ILH(n_bits=2, hash_function="trees", **change, **SMALL).fit(*digits)


@pytest.mark.parametrize(
    ("classifier", "kind"),
    [
        (DecisionTreeClassifier(max_depth=6), "trees"),
        (MLPClassifier((8,), max_iter=40), "classifier"),
        (KNeighborsClassifier(3), "classifier"),
    ],
)
def test_any_classifier_is_a_hash_function(digits, classifier, kind):
    X, y = digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the MLP does not converge in 40 iterations, and need not
        model = ILH(n_bits=8, hash_function=classifier, diversity="tf", **SMALL).fit(X, y)
    assert {f.kind for f in model.functions_} == {kind}
    margins = model.decision_function(X)
    assert margins.dtype == np.float32
    assert np.array_equal(np.packbits(margins > 0, axis=1), model.transform(X))
    if not hasattr(classifier, "decision_function"):
        assert np.abs(margins).max() <= 0.5
    assert not hasattr(classifier, "classes_")  # the user's object is left alone


def test_a_list_of_functions_is_cycled_over_bits(digits):
    X, y = digits
    model = ILH(n_bits=6, hash_function=["linear", DecisionTreeClassifier(max_depth=3), "kernel"], **SMALL).fit(X, y)
    assert [f.kind for f in model.functions_] == ["linear", "trees", "kernel"] * 2
    np.testing.assert_allclose(model[[2]].decision_function(X)[:, 0], model.decision_function(X)[:, 2], atol=1e-4)


@pytest.mark.parametrize("change", [lambda X: 1000 * X, lambda X: 0.001 * X, lambda X: X + 1e5, lambda X: X - 3e4])
@pytest.mark.parametrize("function", ["linear", "kernel", "trees"])
def test_scale_and_shift_of_x_do_not_matter(digits, change, function):
    X, y = digits
    X = X.astype(np.float64)
    wanted = precision(ILH(n_bits=24, hash_function=function, **SMALL).fit(X, y), X, y)
    got = precision(ILH(n_bits=24, hash_function=function, **SMALL).fit(change(X), y), change(X), y)
    assert abs(got - wanted) <= 0.01


def test_auxiliary_coordinates_never_end_with_a_worse_nested_objective(digits):
    X, y = digits
    two_step = ILH(n_bits=8, mac=[1e-12], **SMALL).fit(X, y)  # a penalty of nothing: two-step training, with E(h(X))
    mac = ILH(n_bits=8, mac=True, **SMALL).fit(X, y)
    same_functions(two_step, ILH(n_bits=8, **SMALL).fit(X, y))
    before = np.array([report.nested_energy for report in two_step.bits_])
    after = np.array([report.nested_energy for report in mac.bits_])
    assert (after <= before).all()
    assert (after < before).any()


# ---------------------------------------------------------------------------------------------- encoding


def test_codes_are_packed_msb_first_with_zero_padding(digits):
    X, y = digits
    model = ILH(n_bits=11, **SMALL).fit(X, y)
    codes, margins = model.transform(X), model.decision_function(X)
    assert codes.shape == (len(X), 2)
    assert codes.dtype == np.uint8
    assert np.array_equal(ilhash.codes.unpack(codes, 11), margins > 0)
    assert not (codes[:, 1] & 0b00011111).any()
    assert list(model.get_feature_names_out()) == ["ilh_byte0", "ilh_byte1"]


@pytest.mark.parametrize("fraction", [0.1, 0.6])
def test_gathered_and_multiplied_feature_subsets_agree_with_each_function(digits, fraction):
    X, y = digits
    model = ILH(n_bits=9, diversity="f", n_features=fraction, **SMALL).fit(X, y)
    relative = X.astype(np.float32) - model.origin_
    one_by_one = np.stack([f.margins(relative) for f in model.functions_], axis=1)
    np.testing.assert_allclose(model.decision_function(X), one_by_one, rtol=1e-4, atol=1e-4)


def test_batches_of_any_size_flip_only_bits_at_zero(digits):
    X, y = digits
    model = ILH(n_bits=32, **SMALL).fit(X, y)
    margins = model.decision_function(X)
    pieces = np.concatenate([model.decision_function(X[i : i + 7]) for i in range(0, len(X), 7)])
    differs = (margins > 0) != (pieces > 0)
    assert np.abs(margins[differs]).max(initial=0.0) < 1e-4


def test_dtypes_layouts_and_memory_maps_give_the_same_model(digits, tmp_path):
    X, y = digits
    wanted = ILH(n_bits=6, **SMALL).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    wide = np.zeros((len(X), 100), np.float32)
    wide[:, 20:84] = X
    others = [
        X.astype(np.float64),
        X.astype(np.uint8),
        X.astype(np.int64),
        X.astype(np.float16),
        X.astype(object),
        np.asfortranarray(X),
        wide[:, 20:84],
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        X.tolist(),
    ]
    for other in others:
        model = ILH(n_bits=6, **SMALL).fit(other, y)
        same_functions(wanted, model)
        assert np.array_equal(model.transform(other), wanted.transform(X))


def test_pipelines_and_clones(digits):
    X, y = digits
    pipeline = make_pipeline(StandardScaler(), ILH(n_bits=8, **SMALL))
    assert pipeline.fit_transform(X, y).shape == (len(X), 1)
    assert clone(pipeline[-1]).n_bits == 8


def test_reports_tell_what_happened(digits):
    X, y = digits
    seen = []
    model = ILH(n_bits=5, **SMALL).fit(X, y, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]
    for bit, report in enumerate(model.bits_):
        assert report.bit == bit
        assert report.converged
        assert report.sweeps == len(report.energies) - 1 >= 2
        assert all(a >= b for a, b in zip(report.energies, report.energies[1:], strict=False))
        assert 0.3 < report.balance < 0.7
        assert 0.8 < report.accuracy <= 1.0
        assert set(report.seconds) == {"gather", "affinity", "zstep", "function"}


def test_sweep_limit_is_reported(digits):
    X, _ = digits
    with pytest.warns(ConvergenceWarning, match="max_sweeps=1"):
        model = ILH(n_bits=2, max_sweeps=1, start="random", **SMALL).fit(X)
    assert not model.bits_[0].converged


def test_mnist_quality(mnist):
    X, y, Xq, yq = mnist
    score = {}
    for letters in "ti":
        model = ILH(n_bits=64, diversity=letters, n_train=5_000).fit(X, y)
        score[letters] = precision_at_k(model.transform(X), y, model.transform(Xq), yq, 500)
        if letters == "t":
            ones = [model[bit] for bit in range(16)]
            single = np.mean([precision_at_k(m.transform(X), y, m.transform(Xq), yq, 500) for m in ones])
    assert score["t"] >= 0.82
    assert score["t"] - score["i"] >= 0.01
    assert 0.14 <= single <= 0.18
