"""Bad input: one sentence that says what, what it must be, and what it got; nothing else happens."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from ilhash import ILH

SMALL = {"n_bits": 2, "n_similar": 20, "n_dissimilar": 20}


def sentence(error):
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_counted(blobs, bad):
    X, y = blobs
    X = X.copy()
    X[[3, 70, 500], 2] = bad
    with pytest.raises(ValueError, match="3 of 800 rows"):
        ILH(**SMALL).fit(X, y)
    model = ILH(**SMALL).fit(blobs[0], y)
    with pytest.raises(ValueError, match="3 of 800 rows"):
        model.transform(X)


def test_nan_in_a_memory_map_is_found_in_the_drawn_rows(blobs, tmp_path):
    X, y = blobs
    broken = X.copy()
    broken[:, 0] = np.nan
    np.save(tmp_path / "X.npy", broken)
    with pytest.raises(ValueError, match=r"drawn rows of X .* NaN"):
        ILH(**SMALL).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)


def test_values_beyond_float32_are_refused(blobs):
    X, y = blobs
    X = X.astype(np.float64)
    X[5] = 1e300
    with pytest.raises(ValueError, match="too large for float32"):
        ILH(**SMALL, n_train=800).fit(X, y)
    X[5] = 1e25
    with pytest.raises(ValueError, match="rescale X"):
        ILH(**SMALL, n_train=800).fit(X, y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "2-D"),
        (np.zeros((2, 3, 4)), "2-D"),
        (np.zeros((0, 4)), "0 sample"),
        (np.zeros((10, 0)), "0 feature"),
        (np.zeros((10, 2), complex), "Complex data not supported"),
        (np.array([["a", "b"]] * 10), "must hold numbers"),
        (np.array([[{}, 1]] * 10, dtype=object), "does not convert"),
        (np.array([[1, "x"]] * 10, dtype=object), "does not convert"),
    ],
)
def test_arrays_of_the_wrong_shape_or_kind(X, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        ILH(**SMALL).fit(X, np.arange(len(X)) % 2)
    sentence(error)


@pytest.mark.parametrize("kind", ["kernel", "trees", LogisticRegression(), ["linear", "kernel"]])
def test_sparse_x_is_refused_by_other_functions_with_the_way_out(blobs, kind):
    X, y = blobs
    with pytest.raises(TypeError, match=r"must be 'linear' for sparse X, got .*TruncatedSVD") as error:
        ILH(**SMALL, hash_function=kind).fit(scipy.sparse.csr_matrix(X), y)
    sentence(error)


def test_other_number_of_features(blobs):
    X, y = blobs
    model = ILH(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match="9 features"):
        model.transform(X[:, :9])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(800), "1 class"),
        (np.full(800, -1), "no labelled point"),
        (np.arange(799) % 3, "799 for 800 rows"),
        (np.where(np.arange(800) % 2, 1, -1), "unlabeled=None"),
        (np.linspace(0, 1, 800), "class labels"),
        (np.full(800, np.nan), "no labelled point"),
        (np.array([None, "a"] * 400, dtype=object), "1 class"),
        (np.full((800, 3), 2), "0 and 1"),
        (np.zeros((800, 2, 2)), "3-D"),
        ([[1], 2] * 400, "sets or lists of labels in every row, got 400 of 800 others"),
    ],
)
def test_labels(blobs, y, message):
    with pytest.raises(ValueError, match=message) as error:
        ILH(**SMALL).fit(blobs[0], y)
    sentence(error)


def test_minus_one_and_one_are_classes_when_told_so(blobs):
    X, y = blobs
    model = ILH(**SMALL, unlabeled=None).fit(X, np.where(y < 2, 1, -1))
    assert min(report.accuracy for report in model.bits_) > 0.9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 0}, "n_bits must be a whole number of at least 1, got 0"),
        ({"n_bits": 2.5}, "n_bits"),
        ({"n_bits": True}, "n_bits"),
        ({"diversity": "tx"}, "letters i .* got 'tx'"),
        ({"diversity": "tt"}, "at most once"),
        ({"diversity": None}, "letters"),
        ({"sampling": "jackknife"}, "'disjoint', 'random', 'bootstrap', got 'jackknife'"),
        ({"n_train": 1}, "at least 2"),
        ({"n_train": "all"}, "'auto'"),
        ({"objective": "tsne"}, "'laplacian', 'ksh', 'bre'"),
        ({"hash_function": "forest"}, "scikit-learn classifier"),
        ({"hash_function": []}, "empty list"),
        ({"C": 0}, "positive number"),
        ({"C": "big"}, "positive number"),
        ({"C": float("nan")}, "positive number"),
        ({"n_similar": 0}, "n_similar"),
        ({"n_similar": (9, 3)}, "smallest, largest"),
        ({"diversity": "f", "n_features": 11}, "between 1 and the 10 features"),
        ({"diversity": "f", "n_features": 0.0}, "fraction in"),
        ({"centers": "mine"}, "'common', 'pool', 'private'"),
        ({"scaling": "rows"}, "'columns', 'whole'"),
        ({"block_order": "sorted"}, "'random', 'fixed'"),
        ({"max_sweeps": 0}, "max_sweeps"),
        ({"mac": [2, 1]}, "growing sequence"),
        ({"mac": "yes"}, "growing sequence"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_parameters(blobs, parameters, message):
    with pytest.raises(ValueError, match=message) as error:
        ILH(**{**SMALL, **parameters}).fit(*blobs)
    sentence(error)


def test_pairs_and_affinities(blobs):
    X, y = blobs
    model = ILH(**SMALL)
    graph = scipy.sparse.random_array((800, 800), density=0.01, rng=np.random.default_rng(0))
    symmetric = graph + graph.T
    for supervision, message in (
        ({"affinity": graph}, "symmetric"),
        ({"affinity": symmetric.toarray()}, "scipy sparse"),
        ({"affinity": symmetric[:10, :10]}, "800 x 800"),
        ({"affinity": scipy.sparse.csr_array((800, 800))}, "no entry"),
        ({"pairs": [[0, 800, 1]]}, "0 to 799"),
        ({"pairs": [[0, 1, 1], [1, 0, -1]]}, "contradict"),
        ({"pairs": [[4, 4, 1]]}, "itself"),
        ({"pairs": [[0, 1, 0]]}, "other than 0"),
        ({"pairs": [[0, 1]]}, "rows \\(i, j, weight\\)"),
        ({"pairs": np.zeros((0, 3))}, "at least one pair"),
        ({"pairs": [[0.5, 1, 1]]}, "whole numbers"),
        ({"y": y, "pairs": [[0, 1, 1]]}, "got y and pairs"),
    ):
        with pytest.raises((ValueError, TypeError), match=message) as error:
            model.fit(X, **supervision)
        sentence(error)


@pytest.mark.parametrize("given", [{"pairs": [[0, 1, 1], [2, 3, 1]]}, {"affinity": scipy.sparse.eye_array(800, k=1)}])
def test_similar_pairs_alone_give_directions_but_nothing_to_cut(blobs, given):
    if "affinity" in given:
        given = {"affinity": given["affinity"] + given["affinity"].T}
    with pytest.raises(ValueError, match="dissimilar"):
        ILH(start="random", **SMALL).fit(blobs[0], **given)
    model = ILH(**SMALL).fit(blobs[0], **given)
    assert (model.start_["kind"], model.start_["ways"]) == ("projection", ["hyperplane"])
    assert "similar pairs alone" in model.start_["reason"]
    assert {report.sweeps for report in model.bits_} == {0}


def test_too_many_training_points_are_all_used_with_a_warning(blobs):
    X, y = blobs
    with pytest.warns(UserWarning, match="n_train=5000 is more than the 800 points"):
        model = ILH(**SMALL, n_train=5000).fit(X, y)
    assert model.n_train_ == 800


def test_small_classes_give_one_warning_that_names_class_and_count(blobs):
    X, y = blobs
    names = np.array(["plenty", "many", "some", "rare"])[y]
    few = np.flatnonzero(names == "rare")[12:]
    keep = np.setdiff1d(np.arange(len(y)), few)
    with pytest.warns(UserWarning, match=r"class rare \(\d+ points for bit \d\)") as caught:
        ILH(n_bits=4, n_similar=20, n_dissimilar=20, start="random").fit(X[keep], names[keep])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ILH(n_bits=4, n_similar=20, n_dissimilar=20).fit(X[keep], names[keep])


def test_constant_features_and_duplicate_rows_do_no_harm(blobs):
    X, y = blobs
    X = np.concatenate([X, np.full((len(X), 2), 7.0), np.zeros((len(X), 1))], axis=1)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    for function in ("linear", "kernel"):
        model = ILH(**SMALL, hash_function=function).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert min(report.accuracy for report in model.bits_) > 0.9


def test_all_vectors_equal_still_gives_a_model():
    X, y = np.ones((60, 3)), np.arange(60) % 2
    model = ILH(n_bits=2, n_similar=5, n_dissimilar=5).fit(X, y)
    assert len(np.unique(model.transform(X), axis=0)) == 1


def test_inputs_are_never_written(blobs):
    X, y = (array.copy() for array in blobs)
    X.flags.writeable = y.flags.writeable = False
    model = ILH(**SMALL).fit(X, y)
    model.transform(X)
    assert np.array_equal(X, blobs[0])


def test_other_data_cannot_be_added_to(blobs):
    X, y = blobs
    model = ILH(**SMALL).fit(X, y)
    before = model.transform(X)
    for other_X, other_y in ((X[:-1], y[:-1]), (X + 1, y), (X, (y + 1) % 4)):
        with pytest.raises(ValueError, match="fitted on"):
            model.add_bits(2, other_X, other_y)
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.add_bits(0, X, y)
    assert np.array_equal(model.transform(X), before)
    assert model.n_bits == 2


def test_a_fit_that_fails_leaves_the_model_as_it_was(blobs):
    X, y = blobs
    fresh = ILH(**SMALL)
    with pytest.raises(ValueError, match="1 class"):
        fresh.fit(X, np.zeros(len(X)))
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    model = ILH(**SMALL).fit(X, y)
    before = model.transform(X)

    def stop(done, total):
        raise KeyboardInterrupt

    for call in (lambda: model.fit(X[:, :5], y, progress=stop), lambda: model.add_bits(3, X, y, progress=stop)):
        with pytest.raises(KeyboardInterrupt):
            call()
        assert np.array_equal(model.transform(X), before)
        assert model.n_bits == 2


def test_unfitted_models_say_so(blobs):
    for call in (ILH().transform, ILH().decision_function, lambda X: ILH().add_bits(1, X), lambda X: ILH()[0]):
        with pytest.raises(NotFittedError):
            call(blobs[0])
    with pytest.raises(NotFittedError):
        ILH().save("nowhere")


def test_a_bit_that_cannot_be_two_sided_says_so():
    X = np.random.default_rng(0).normal(size=(40, 3))
    # One dissimilar pair far from where training sets of two points fall.
    pairs = [[i, i + 1, 1.0] for i in range(0, 36, 2)] + [[38, 39, -1.0]]
    with pytest.raises(ValueError, match="both sides, got one side only in 10 draws"):
        ILH(n_bits=12, n_train=2).fit(X, pairs=pairs)


def test_no_warnings_on_good_input(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ILH(**SMALL).fit(*blobs)
