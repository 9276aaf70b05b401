"""The three parts: nothing that chooses or reports is trained on, and values are those of plain counting."""

import numpy as np
import pytest
import scipy.sparse

from ilhash.affinity import affinity_from_pairs, supervision_from_labels
from ilhash.tuning._parts import FEWEST, MOST, Retrieval, parts_of

N = 960


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, 6)).astype(np.float32) + np.repeat(np.arange(6), N // 6)[:, None]


@pytest.fixture
def y():
    return np.repeat(np.arange(6), N // 6)


def parted(X, y=None, pairs=None, k=10, base="new", unseen=0.0, seed=0):
    known = affinity_from_pairs(pairs, len(X), similar_only=True) if pairs is not None else None
    if y is not None:
        known = supervision_from_labels(y, len(X), -1)
    return parts_of(X, known, k, base=base, unseen=unseen, seed=seed)


def rows_of(X, part):
    """Return which rows of X a part's vectors are."""
    where = {row.tobytes(): number for number, row in enumerate(X)}
    return [where[row.tobytes()] for row in np.asarray(part)]


def values_by_counting(retrieval, bits):
    """Return what of_codes must: every query against every base item, ties shared."""
    out = []
    for q, place in enumerate(retrieval.queries):
        others = [b for b in retrieval.base if not (retrieval.own[q] and b == place)]
        distance = np.array([(bits[b] != bits[place]).sum() for b in others])
        at = {int(b): n for n, b in enumerate(retrieval.base)}
        relevant = np.isin([at[int(b)] for b in others], retrieval.relevance.rows(q))
        edge = np.sort(distance)[retrieval.k - 1]
        before, tied = distance < edge, distance == edge
        hits = relevant[before].sum() + relevant[tied].sum() * (retrieval.k - before.sum()) / tied.sum()
        if not retrieval.finds:
            out.append(hits / retrieval.k)
        elif relevant.any():
            out.append(hits / relevant.sum())
    return np.array(out)


def all_kinds(X, y):
    rng = np.random.default_rng(1)
    same = np.array([(i, j) for i, j in rng.integers(0, N, (300_000, 2)) if y[i] == y[j] and i != j])
    few = same[:300]
    yield "labels", parted(X, y)
    yield "seen", parted(X, y, base="seen")
    yield "unseen", parted(X, y, unseen=0.5)
    yield "sets", parted(X, np.eye(6, dtype=int)[y] + np.eye(6, dtype=int)[(y + 1) % 6])
    yield "none", parted(X)
    for name, pairs in (("pairs", same), ("few pairs", few)):
        yield name, parted(X, pairs=np.column_stack([pairs, np.ones(len(pairs))]))


def test_values_are_those_of_counting(X, y):
    bits = np.random.default_rng(2).random((N, 9)) < 0.5
    packed = np.packbits(bits, axis=1)
    seen = set()
    for kind, parts in all_kinds(X, y):
        for retrieval in [*parts.choosing.values(), *parts.reporting.values()]:
            found = retrieval.of_codes(packed[retrieval.rows], 9)
            np.testing.assert_allclose(found, values_by_counting(retrieval, bits[retrieval.rows]), err_msg=kind)
            seen.add((kind, retrieval.finds))
    assert len(seen) == 7


def test_what_chooses_or_reports_is_not_trained_on(X, y):
    for kind, parts in all_kinds(X, y):
        if kind == "few pairs":
            continue
        trained = set(rows_of(X, parts.X))
        chooses = {row for part in parts.choosing.values() for row in part.rows[part.queries].tolist()}
        reports = {row for part in parts.reporting.values() for row in part.rows[part.queries].tolist()}
        assert len(trained) + len(chooses) + len(reports) == len(trained | chooses | reports), kind
        assert not trained & set(parts.reporting["new"].rows.tolist())
        if "seen" in parts.reporting:
            seen = parts.reporting["seen"]
            assert set(seen.rows[seen.base].tolist()) <= trained
            assert len(seen.base) == len(parts.reporting["new"].base)


def test_classes_as_if_unseen_are_not_trained_on(X, y):
    parts = parted(X, y, unseen=0.4)
    held = set(y[parts.choosing["unseen classes"].rows])
    assert len(held) == 1
    assert not held & set(parts.given["y"])
    assert parts.weights == {"new": 0.6, "unseen classes": 0.4}


def test_few_pairs_are_held_out_themselves(X, y):
    pairs = np.array([(i, i + 1, 1.0) for i in range(0, 600, 2)])
    parts = parted(X, pairs=pairs)
    left = scipy.sparse.coo_array(parts.given["affinity"])
    known = {(min(i, j), max(i, j)) for i, j in zip(left.row, left.col, strict=True)}
    sides = [parts.choosing["seen"], parts.reporting["seen"]]
    held = [
        {
            tuple(sorted((int(part.rows[q]), int(part.rows[other]))))
            for q in range(len(part.queries))
            for other in part.relevance.rows(q)
        }
        for part in sides
    ]
    assert not known & held[0]
    assert not known & held[1]
    assert not held[0] & held[1]
    assert known | held[0] | held[1] == {(i, i + 1) for i in range(0, 600, 2)}


def test_k_is_scaled_to_the_points_held_out(X, y):
    assert [parted(X, y, k=k).choosing["new"].k for k in (1, 8, 80)] == [1, 1, 10]
    assert parted(X, y).n_items == N


def test_unknown_labels_stay_unknown_and_join_the_training(X, y):
    labels = y.astype(object)
    labels[::2] = None
    parts = parted(X, labels)
    assert sum(label is None for label in parts.given["y"]) == N // 2
    assert all(labels[row] is not None for row in parts.choosing["new"].rows)


def test_vectors_themselves_are_measured_the_same_way():
    X = np.array([[0.0], [1.0], [10.0], [11.0]], np.float32)
    labels = supervision_from_labels([0, 0, 1, 0], 4, -1)
    from ilhash.evaluation import by_label

    among = Retrieval.among(np.arange(4), by_label(labels.codes, labels.codes), 1)
    assert among.of_vectors(X) == 0.5


@pytest.mark.parametrize(
    ("labels", "unseen", "said"),
    [
        (np.arange(N), 0.0, "classes of at least two points to be found by one another, got 960 of one each"),
        (np.zeros(N), 0.0, "at least 2 classes"),
        (np.where(np.arange(N) < 40, np.arange(N) % 2, -1), 0.0, f"at least {FEWEST * 8} points"),
        (np.arange(N) % 2, 0.5, "at least 3 classes"),
        (None, 0.5, "unseen must be 0 unless there is one label per point"),
    ],
)
def test_what_cannot_be_divided_is_said(X, labels, unseen, said):
    with pytest.raises(ValueError, match=said):
        parted(X, labels, unseen=unseen)


def test_classes_of_one_point_are_warned_of(X, y):
    y = y.copy()
    y[0] = 77
    with pytest.warns(UserWarning, match="at least two points to be found by one another, got one of 77"):
        parted(X, y)


def test_too_few_pairs_are_said(X):
    with pytest.raises(ValueError, match="at least 80 similar pairs to choose by, got 3"):
        parted(X, pairs=[(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)])


def test_parts_are_bounded():
    X = np.zeros((8 * MOST + 80, 1), np.float32)
    parts = parted(X + np.arange(len(X))[:, None], np.arange(len(X)) % 3)
    assert len(parts.choosing["new"].rows) == MOST
