"""ILH on sparse X: what dense X gives, and every promise of a model."""

import copy

import joblib
import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator_sparse_array, check_estimator_sparse_matrix

import ilhash
from ilhash import ILH, Mix
from ilhash.functions import LinearFunction

FEW = {"n_similar": 20, "n_dissimilar": 20}


@pytest.fixture(scope="module")
def words():
    """Counts of 400 words in 900 texts of 6 topics, each with 15 words of its own."""
    rng = np.random.default_rng(0)
    y = np.arange(900) % 6
    chances = np.full((6, 400), 0.02)
    for topic in range(6):
        chances[topic, 15 * topic : 15 * topic + 15] = 0.25
    return scipy.sparse.csr_array((rng.random((900, 400)) < chances[y]) * rng.integers(1, 4, (900, 400))), y


def precision(model, X, y):
    codes = model.transform(X)
    return ilhash.evaluation.precision_at_k(codes, y, codes, y, k=[20], n_bits=len(model.functions_))[0]


def same(one, other):
    return one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("start", ["random", "projection"])
def test_bits_are_as_good_as_those_of_the_dense_matrix(words, start):
    X, y = words
    sparse, dense = (ILH(24, **FEW, start=start).fit(given, y) for given in (X, X.toarray()))
    assert_array_equal(sparse.origin_, np.zeros(400))
    assert sparse.scaling_ == dense.scaling_ == "whole"
    assert precision(sparse, X, y) > precision(dense, X.toarray(), y) - 0.02 > 0.85


def test_origin_and_rows_apart_training_is_that_of_the_dense_matrix(words):
    """With random starts the z-step sees no vector: the bits to learn are the same, and so is the SVM's objective."""
    X, y = words
    sparse, dense = (ILH(8, **FEW, start="random").fit(given, y) for given in (X, X.toarray()))
    assert [bit.energies for bit in sparse.bits_] == [bit.energies for bit in dense.bits_]
    agree = (sparse.decision_function(X) > 0) == (dense.decision_function(X.toarray()) > 0)
    assert agree.mean() > 0.97  # the dense ones are centred, which a regularised bias sees


def test_dense_rows_get_the_codes_of_sparse_ones(words):
    X, y = words
    model = ILH(16, **FEW).fit(X, y)
    margins = model.decision_function(X)
    np.testing.assert_allclose(model.decision_function(X.toarray()), margins, atol=1e-4)
    clear = np.abs(margins) > 1e-4
    bits = np.unpackbits(model.transform(X.toarray()), axis=1).astype(bool)
    assert_array_equal(bits[clear], (margins > 0)[clear])
    for kind in ("csc", "coo"):
        assert_array_equal(model.transform(X.asformat(kind)), model.transform(X))


@pytest.mark.parametrize("letters", ["t", "itf"])
@pytest.mark.parametrize("start", ["random", "projection"])
def test_bits_depend_on_seed_and_number_alone(words, tmp_path, letters, start):
    X, y = words
    given = {**FEW, "diversity": letters, "n_features": 0.3, "n_train": 200, "start": start}
    whole = ILH(12, **given).fit(X, y)
    assert same(whole[:5], ILH(5, **given).fit(X, y))
    assert same(ILH(5, **given).fit(X, y).add_bits(7, X.tocsc(), y), whole)
    assert same(ILH(12, **given, n_jobs=2).fit(X, y), whole)
    with joblib.parallel_config(backend="loky"):
        assert same(ILH(12, **given, n_jobs=2).fit(X, y), whole)
    whole.save(tmp_path / "model")
    loaded = ilhash.load(tmp_path / "model")
    assert same(loaded, whole)
    assert_array_equal(loaded.transform(X), whole.transform(X))
    assert_array_equal(copy.deepcopy(whole).transform(X), whole.transform(X))
    ILH(12, **given).fit(X, y, checkpoint=tmp_path / "bits")
    assert same(ILH(12, **given).fit(X, y, checkpoint=tmp_path / "bits"), whole)
    assert_array_equal(whole.training_rows(3), whole.training_rows(3, X, y))


def test_functions_of_few_features_see_their_own(words):
    X, y = words
    model = ILH(10, **FEW, diversity="f", n_features=30).fit(X, y)
    assert all(isinstance(one, LinearFunction) and len(one.features) == 30 for one in model.functions_)
    one_by_one = np.stack([one.margins(X.astype(np.float32)) for one in model.functions_], axis=1)
    np.testing.assert_allclose(model.decision_function(X), one_by_one, atol=1e-4)


def test_other_data_are_refused_when_bits_are_added(words):
    X, y = words
    model = ILH(4, **FEW).fit(X, y)
    other = X.copy()
    other.data = other.data + 1
    with pytest.raises(ValueError, match="must be the data that the model was fitted on"):
        model.add_bits(2, other, y)


@pytest.mark.parametrize("given", [{}, {"pairs": True}])
@pytest.mark.parametrize("start", ["random", "projection"])
def test_supervision_may_be_pairs_or_nothing(words, given, start):
    X, y = words
    if given:
        rng = np.random.default_rng(1)
        i, j = rng.integers(900, size=(2, 8000))
        given = {"pairs": np.column_stack([i, j, np.where(y[i] == y[j], 1, -1)])[i != j]}
    model = ILH(24, **FEW, start=start).fit(X, **given)
    assert precision(model, X, y) > 0.35  # by chance 0.17


def test_mac_and_several_labels(words):
    X, y = words
    assert precision(ILH(8, **FEW, mac=True).fit(X, y), X, y) > 0.5
    assert precision(ILH(24, **FEW).fit(X, [{topic, topic // 3} for topic in y]), X, y) > 0.5


def test_grow_prune_and_mix(words):
    X, y = words
    growth = ilhash.grow(ILH(**FEW), X, y, max_bits=16, patience=8, held_out=ilhash.HoldOut(100))
    assert growth.curve[-1] > 0.8
    pool = ILH(24, **FEW).fit(X, ilhash.HoldOut(100).labels(y))
    pruning = ilhash.prune(pool, X, y, 8, held_out=ilhash.HoldOut(100))
    assert_array_equal(pruning.model.transform(X), pool[pruning.chosen].transform(X))
    mix = Mix([ILH(8, **FEW), ILH(8, **FEW, diversity="f")]).fit(X, y)
    assert precision(mix, X, y) > 0.8


def test_what_needs_dense_vectors_names_the_way_out(words):
    X, y = words
    for method in (ilhash.methods.ITQ(8), ilhash.methods.LSH(8), ilhash.methods.KSH(8), ilhash.methods.FastHash(8)):
        with pytest.raises(TypeError, match=r"dense array here, got a sparse matrix .*TruncatedSVD"):
            method.fit(X, y)
    with pytest.raises(TypeError, match="TruncatedSVD"):
        Mix([ILH(8, **FEW), ilhash.methods.ITQ(8)]).fit(X, y)
    with pytest.raises(TypeError, match="TruncatedSVD"):
        ilhash.tune(X, y)
    centred = ILH(8, **FEW).fit(X.toarray() + 1.0, y)
    with pytest.raises(ValueError, match="trained on dense vectors, got a sparse matrix"):
        centred.transform(X)
    kernel = ILH(8, **FEW, hash_function="kernel", n_centers=20).fit(X.toarray(), y)
    with pytest.raises(TypeError, match="X must be dense for functions of kind kernel, got a sparse matrix"):
        kernel.transform(X)


def test_values_that_are_not_finite_are_counted(words):
    X, y = words
    bad = X.astype(np.float64)
    bad.data[[0, 1, 500]] = np.nan
    with pytest.raises(ValueError, match="of 900 rows that hold NaN"):
        ILH(4, **FEW).fit(bad, y)


def test_encoding_in_blocks_files_and_shards(words, tmp_path, monkeypatch):
    X, y = words
    model = ILH(12, **FEW).fit(X, y)
    codes = model.transform(X)
    stretch = list(model.encode_blocks(X, 100, 250))
    assert_array_equal(np.concatenate([block for _, block in stretch]), codes[100:250])
    monkeypatch.setattr("ilhash.encoding._stream.BLOCK_BYTES", 5000)
    assert len(list(model.encode_blocks(X))) > 5
    assert_array_equal(np.concatenate([block for _, block in model.encode_blocks(X, n_threads=2)]), codes)
    assert_array_equal(ilhash.write_codes(model, X, tmp_path / "codes.npy").read(), codes)
    assert_array_equal(ilhash.write_codes(model, X, tmp_path / "shards", rows_per_shard=350).read(), codes)
    assert_array_equal(ilhash.write_codes(model, X, tmp_path / "shards", rows_per_shard=350).read(), codes)
    other = X.copy()
    other.data = other.data * 2
    with pytest.raises(ValueError, match="shards of the same vectors"):
        ilhash.write_codes(model, other, tmp_path / "shards", rows_per_shard=350)


def test_pipelines_from_text():
    rng = np.random.default_rng(3)
    topics = [["hash", "code", "bit", "search"], ["apple", "pear", "plum", "fig"], ["rain", "snow", "wind", "sun"]]
    texts = [" ".join(rng.choice(topics[i % 3], 6)) + f" word{rng.integers(200)}" for i in range(600)]
    y = np.arange(600) % 3
    for vectorizer in (TfidfVectorizer(), HashingVectorizer(n_features=2**18)):
        pipeline = make_pipeline(vectorizer, ILH(16, **FEW)).fit(texts, y)
        codes = pipeline.transform(texts)
        assert ilhash.evaluation.precision_at_k(codes, y, codes, y, k=[50], n_bits=16)[0] > 0.95
    reduced = make_pipeline(TfidfVectorizer(), TruncatedSVD(20, random_state=0), ILH(16, **FEW)).fit(texts, y)
    assert reduced.transform(texts).shape == (600, 2)


def test_the_matrix_is_never_made_dense(words, monkeypatch):
    X, y = words
    wide = scipy.sparse.csr_array((X.data, X.indices * 30_000, X.indptr), shape=(900, 12_000_000))

    def no(self, *args, **kwargs):
        raise AssertionError("a sparse matrix was made dense")

    rows = scipy.sparse.csr_array
    monkeypatch.setattr(rows, "toarray", no)
    monkeypatch.setattr(rows, "todense", no)
    model = ILH(2, **FEW, start="random", scaling="whole").fit(wide[:, :3_000_000], y)
    assert model.transform(wide[:, :3_000_000]).shape == (900, 1)  # 900 rows of 3,000,000 floats are 11 GB


def test_scikit_learn_s_checks_of_sparse_input():
    check_estimator_sparse_matrix("ILH", ILH(4))
    check_estimator_sparse_array("ILH", ILH(4))
    assert ILH().__sklearn_tags__().input_tags.sparse
    assert not ILH(hash_function="kernel").__sklearn_tags__().input_tags.sparse
    assert not ilhash.methods.ITQ().__sklearn_tags__().input_tags.sparse
    assert not Mix([ILH(), ilhash.methods.ITQ()]).__sklearn_tags__().input_tags.sparse
