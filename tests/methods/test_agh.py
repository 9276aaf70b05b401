import numpy as np
import pytest
import scipy.sparse
from tests.methods.contract import MethodContract

from ilhash.methods import AGH
from ilhash.methods._agh import graph_eigenvectors, second_layer


class TestAGH(MethodContract):
    name = "AGH"
    parameters = {"n_anchors": 40}  # noqa: RUF012
    limit = 40
    reason = "1 per eigenvector of the graph of 40 anchors"


class TestAGHInTwoLayers(MethodContract):
    name = "AGH"
    parameters = {"n_anchors": 40, "layers": 2}  # noqa: RUF012
    limit = 79
    reason = "2 per eigenvector of the graph of 40 anchors"


def mixtures(model, X):
    """Z of the definition, written out: the nearest anchors of each point and their shares."""
    anchors = model.functions_[0].anchors
    values = (X - model.origin_) * anchors.basis.factor
    squared = ((values[:, None, :] - anchors.basis.centers[None, :, :].astype(np.float64)) ** 2).sum(axis=2)
    kernel = np.exp(-squared / anchors.basis.width)
    kernel[squared > np.sort(squared, axis=1)[:, [anchors.nearest - 1]]] = 0.0
    return kernel / kernel.sum(axis=1, keepdims=True)


def test_margins_are_the_eigenvectors_of_the_whole_graph(digits):
    X = digits[0][:300].astype(np.float64)
    model = AGH(n_bits=6, n_anchors=30).fit(X)
    Z = mixtures(model, X)
    A = Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T  # N x N, as the paper defines it
    np.testing.assert_allclose(A.sum(axis=1), 1.0)
    values, vectors = np.linalg.eigh(A)
    np.testing.assert_allclose(model.report_["eigenvalues"], values[::-1][1:7], rtol=1e-3)
    margins = model.decision_function(X)
    np.testing.assert_allclose((margins**2).mean(axis=0), 1.0, rtol=1e-3)
    np.testing.assert_allclose(margins.mean(axis=0), 0.0, atol=1e-3)
    wanted = vectors[:, ::-1][:, 1:7] * np.sqrt(300)
    wanted *= np.sign(np.sum(wanted * margins, axis=0))
    np.testing.assert_allclose(margins, wanted, atol=2e-2)


def test_the_second_layer_cuts_where_the_graph_is_cut_least():
    rng = np.random.default_rng(0)
    Z = rng.random((60, 7)) ** 4
    Z /= Z.sum(axis=1, keepdims=True)
    sparse = scipy.sparse.csr_array(Z)
    w = graph_eigenvectors(sparse)[0][:, 0]
    L = np.eye(60) - Z @ np.diag(1 / Z.sum(axis=0)) @ Z.T
    y = Z @ w

    def beyond(upper, lower):
        return np.where(y > 0, y - upper, lower - y)

    upper, lower = second_layer(sparse, w)
    best = beyond(upper, lower)
    assert abs(best.sum()) < 1e-9
    for other in np.linspace(upper - 1, upper + 1, 41):
        balance = beyond(other, 0.0).sum()
        f = beyond(other, -balance / np.count_nonzero(y <= 0))
        assert abs(f.sum()) < 1e-9
        assert f @ L @ f >= best @ L @ best - 1e-9


def test_the_second_bit_divides_both_sides_of_the_first(digits):
    X = digits[0][:600]
    one, two = (AGH(n_bits=b, n_anchors=60, layers=layers).fit(X) for b, layers in ((3, 1), (6, 2)))
    bits = two.decision_function(X) > 0
    assert np.array_equal(bits[:, ::2], one.decision_function(X) > 0)
    upper, lower = two.functions_[1].cuts
    y = two.decision_function(X)[:, 0]
    assert np.array_equal(bits[:, 1], np.where(y > 0, y > upper, y < lower))


def test_groups_of_points_without_a_link_are_told_apart():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(place, 0.1, (60, 2)) for place in (0.0, 50.0, 200.0)])
    codes = AGH(n_bits=4, n_anchors=12, n_nearest=2).fit(X).transform(X)
    assert [len(np.unique(codes[i : i + 60])) for i in (0, 60, 120)] <= [3, 3, 3]
    assert not set(codes[:60].ravel()) & set(codes[60:120].ravel())


def test_parameters_are_checked(digits):
    for change, message in (
        ({"layers": 3}, "layers must be one of 1, 2"),
        ({"n_anchors": 1}, "n_anchors must be a whole number of at least 2"),
        ({"n_nearest": 0}, "n_nearest must be a whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            AGH(n_bits=2, **change).fit(digits[0])
