import numpy as np
from sklearn.decomposition import PCA
from tests.methods.contract import MethodContract

from ilhash.methods import TPCA


class TestTPCA(MethodContract):
    name = "TPCA"
    limit = 62
    reason = "directions? in which the 600 training points vary"
    seeded = False


def up_to_sign(a, b):
    """The columns of b, each turned to agree with a."""
    return b * np.sign(np.sum(a * b, axis=0))


def test_equals_the_signs_of_scikit_learns_pca(digits):
    X = digits[0].astype(np.float64)
    margins = TPCA(n_bits=20).fit(X).decision_function(X)
    wanted = up_to_sign(margins, PCA(20, svd_solver="full").fit_transform(X))
    np.testing.assert_allclose(margins, wanted, rtol=1e-3, atol=1e-3)
    assert ((margins > 0) == (wanted > 0))[np.abs(wanted) > 1e-3].all()


def test_equals_the_singular_vectors_where_there_are_more_features_than_points():
    X = np.random.default_rng(0).normal(size=(30, 100))
    model = TPCA(n_bits=29).fit(X)
    centred = X - X.mean(axis=0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    margins = model.decision_function(X)
    np.testing.assert_allclose(margins, up_to_sign(margins, centred @ right[:29].T), atol=1e-4)
    np.testing.assert_allclose(model.report_["variances"], singular[:29] ** 2 / 30, rtol=1e-4)
