"""What held-out points tell of a larger base, and how far they may be off."""

import numpy as np
import pytest

from ilhash.codes import pack
from ilhash.evaluation import RowLists, by_label
from ilhash.tuning._measured import GROUPS, MOST_FURTHER, among_some, further, left_out
from ilhash.tuning._parts import Retrieval


@pytest.mark.parametrize(("k", "share"), [(10, 1 / 8), (10, 0.1), (20, 1 / 8), (100, 1 / 8)])
def test_precision_that_falls_off_exponentially_is_told_rightly(k, share):
    near = max(1, round(share * k))
    ranks = np.arange(1, 4_000)
    relevant = np.exp(-ranks / k)
    # The rank of the j-th of a share of all items: how likely it is that j - 1 of those before it are among them.
    at = np.zeros((2 * near + 1, len(ranks)))
    at[1] = share * (1 - share) ** (ranks - 1)
    for j in range(2, 2 * near + 1):
        at[j, 1:] = share * np.convolve(at[j - 1], (1 - share) ** (ranks - 1))[: len(ranks) - 1]
    once, twice = (at[1 : n + 1].dot(relevant).mean() for n in (near, 2 * near))
    weight = further(k, near, share)
    assert (1 + weight) * once - weight * twice == pytest.approx(relevant[:k].mean(), rel=1e-6)
    assert 0 < weight < MOST_FURTHER


def test_what_is_as_large_as_all_needs_no_correction_and_noise_is_bounded():
    assert further(5, 5, 1.0) == 0.0
    assert further(10, 1, 0.01) == MOST_FURTHER


def test_relevance_among_some_of_the_items():
    rng = np.random.default_rng(0)
    base, queries = rng.integers(0, 5, 60), rng.integers(0, 6, 20)
    places = np.flatnonzero(rng.random(60) < 0.4)
    labels = by_label(base, queries)
    lists = RowLists(
        np.append(0, np.cumsum([len(labels.rows(q)) for q in range(20)])),
        np.concatenate([labels.rows(q) for q in range(20)]),
        60,
    )
    for relevance in (labels, lists):
        some = among_some(relevance, places)
        assert some.n_base == len(places)
        for query in range(20):
            assert sorted(some.rows(query)) == np.flatnonzero(base[places] == queries[query]).tolist()


def test_the_error_is_that_of_fresh_points():
    rng = np.random.default_rng(1)
    means = rng.normal(size=(8, 24))

    def told():
        y = rng.integers(0, 8, 400)
        codes = pack(means[y] + 1.6 * rng.normal(size=(400, 24)) > 0)
        retrieval = Retrieval.among(np.arange(400), by_label(y, y), 1, further=0.4)
        measured = retrieval.measured(codes, 24)
        naive = measured.values.std() / np.sqrt(len(y))
        return measured.mean(), measured.error, naive

    found = np.array([told() for _ in range(80)])
    spread = found[:, 0].std()
    assert 0.8 * spread < found[:, 1].mean() < 1.3 * spread
    assert found[:, 2].mean() < spread  # points near the same items are no independent witnesses


def test_points_are_left_out_in_groups_of_equal_size():
    sizes = np.bincount(left_out(100))
    assert len(sizes) == GROUPS
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(left_out(100), left_out(100))
