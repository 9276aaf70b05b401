"""Random pairs as dissimilar ones: never a known pair, each once, as many as asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ilhash.affinity import affinity_from_pairs, with_random_dissimilar


@given(st.integers(3, 30), st.data())
def test_drawn_pairs_are_new_and_distinct(n_points, data):
    everything = [(i, j) for i in range(n_points) for j in range(n_points) if i != j]
    similar = data.draw(st.lists(st.sampled_from(everything), min_size=1, max_size=12))
    known = {frozenset(pair) for pair in similar}
    wanted = data.draw(st.integers(0, n_points * (n_points - 1) // 2 - len(known)))
    pairs = with_random_dissimilar(similar, n_points, n_dissimilar=wanted, random_state=data.draw(st.integers(0, 9)))
    assert pairs.dtype == np.int64
    assert pairs[: len(similar)].tolist() == [[i, j, 1] for i, j in similar]
    drawn = pairs[len(similar) :]
    assert (drawn[:, 2] == -1).all()
    assert (drawn[:, 0] < drawn[:, 1]).all()
    assert drawn.max(initial=0) < n_points
    others = {frozenset(pair) for pair in drawn[:, :2].tolist()}
    assert len(others) == wanted
    assert not others & known


def test_as_many_as_similar_ones_and_what_fit_takes():
    similar = np.column_stack([np.arange(100), np.arange(1, 101)])
    pairs = with_random_dissimilar(similar, 5000)
    assert len(pairs) == 200
    assert affinity_from_pairs(pairs, 5000).matrix.nnz == 400
    np.testing.assert_array_equal(pairs, with_random_dissimilar(similar, 5000))
    assert (pairs != with_random_dissimilar(similar, 5000, random_state=1)).any()


def test_every_pair_is_drawn_as_often():
    counts = np.zeros((6, 6))
    for seed in range(3000):
        for i, j, _ in with_random_dissimilar([(0, 1)], 6, n_dissimilar=2, random_state=seed)[1:]:
            counts[i, j] += 1
    drawn = counts[np.triu_indices(6, 1)][1:]
    assert counts[0, 1] == 0
    assert np.abs(drawn - 6000 / 14).max() < 5 * np.sqrt(6000 / 14)


@pytest.mark.parametrize(
    ("similar", "options", "message"),
    [
        ([[0, 1, 1]], {}, r"rows of two whole numbers, got int64 of shape \(1, 3\)"),
        ([[0.5, 1]], {}, "rows of two whole numbers, got float64"),
        ([[0, 1], [2, 2]], {}, r"two different rows between 0 and 3, got 1 of 2 others such as \(2, 2\)"),
        ([[0, 4]], {}, r"got 1 of 1 others such as \(0, 4\)"),
        ([[0, 1]], {"n_dissimilar": 6}, "at most the 5 pairs that are not similar, got 6"),
        ([[0, 1]], {"n_dissimilar": -1}, "n_dissimilar must be a whole number of at least 0, got -1"),
        ([[0, 1]], {"random_state": None}, "random_state must be a whole number of at least 0, got None"),
    ],
)
def test_what_is_no_pair(similar, options, message):
    with pytest.raises(ValueError, match=message):
        with_random_dissimilar(similar, 4, **options)
