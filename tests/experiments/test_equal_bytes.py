"""Everything at equal bytes: scores are those of rankings by hand, peers have the bytes that they say."""

import sys

import numpy as np
import pytest

from ilhash import ILH, methods
from ilhash.evaluation import Protocol, precision_at_k
from ilhash.experiments.equal_bytes import (
    Bases,
    ByteRow,
    floats_row,
    losses,
    model_rows,
    models,
    precision_of_groups,
    quantizer_row,
    score_asymmetric,
    score_quantizer,
    score_vectors,
)
from ilhash.experiments.quantizers import make_quantizer
from ilhash.methods import UndefinedError

faiss = pytest.importorskip("faiss")
KS = (5, 20)


@pytest.fixture(scope="module")
def bases(digits):
    return Bases.of(*digits, Protocol(n_queries=100, k=KS, base="new"))


def by_hand(distances, base_y, query_y, k):
    """Expected precision where equal distances come in any order."""
    values = []
    for row, label in zip(distances, query_y, strict=True):
        edge = np.sort(row)[k - 1]
        before, at, right = row < edge, row == edge, base_y == label
        values.append(((before & right).sum() + (at & right).sum() * (k - before.sum()) / at.sum()) / k)
    return np.mean(values)


def test_parts_share_nothing_but_what_was_seen(digits):
    X = np.arange(len(digits[0]))[:, None]
    bases = Bases.of(X, digits[1], Protocol(n_queries=100, k=KS, base="new"))
    train, seen, new, queries = (
        {*part[0][:, 0].tolist()} for part in (bases.train, bases.seen, bases.new, bases.queries)
    )
    assert seen <= train
    assert not train & new
    assert not queries & (train | new)
    assert len(seen) == len(new) == min(len(train), len(X) - 100 - len(train))


def test_groups_are_ties():
    rng = np.random.default_rng(0)
    group, base_y, query_y = rng.integers(0, 12, 80), rng.integers(0, 4, 80), rng.integers(0, 6, 30)
    group[:12] = np.arange(12)
    nearest = np.stack([rng.permutation(12) for _ in query_y])
    distances = np.argsort(nearest, axis=1)[:, group]
    for k, score in precision_of_groups(group, base_y, nearest, query_y, [1, 7, 80]).items():
        assert score == pytest.approx(by_hand(distances, base_y, query_y, k), abs=1e-12)


def test_asymmetric_scores_are_those_of_distances_by_hand(bases):
    model = ILH(8, n_train=200).fit(*bases.train)
    margins = model.decision_function(bases.queries[0])
    codes = model.transform(bases.new[0])
    bits = np.unpackbits(codes, axis=1).astype(bool)
    assert len(np.unique(codes)) < len(codes)  # there are ties
    differ = (margins[:, None] > 0) != bits[None]
    distances = np.round((differ * np.abs(margins[:, None].astype(np.float64))).sum(axis=2), 9)
    for k, score in score_asymmetric(codes, bases.new[1], margins, bases.queries[1], KS).items():
        assert score == pytest.approx(by_hand(distances, bases.new[1], bases.queries[1], k), abs=1e-3)


def test_product_quantisers_are_searched_by_distance_to_what_they_keep(bases):
    quantizer = make_quantizer("PQ", 2, 64, len(bases.train[0])).fit(bases.train[0])
    codes = quantizer.encode(bases.new[0])
    assert codes.shape == (len(bases.new[0]), quantizer.n_bytes) == (len(bases.new[0]), 2)
    kept, asked = quantizer._index.sa_decode(codes), quantizer._rotated(bases.queries[0])
    distances = np.round(((asked[:, None].astype(np.float64) - kept[None]) ** 2).sum(axis=2), 6)
    found = score_quantizer(quantizer, *bases.new, *bases.queries, KS)
    for k, score in found.items():
        assert score == pytest.approx(by_hand(distances, bases.new[1], bases.queries[1], k), abs=2e-3)


@pytest.mark.parametrize(("name", "n_bytes"), [("PQ", 4), ("PCA-PQ", 4), ("OPQ", 4), ("RaBitQ", 12)])
def test_more_bytes_come_close_to_the_vectors(name, n_bytes, bases):
    few, many = (quantizer_row(name, bases, size, KS) for size in (n_bytes, 4 * n_bytes))
    floats = score_vectors(*bases.new, *bases.queries, KS)
    assert few.new[5] < floats[5] + 0.01
    assert many.new[5] > floats[5] - 0.04
    assert few.encode_us > 0
    assert not few.supervised
    assert few.float_query


def test_factors_of_rabitq_are_counted(bases):
    row = quantizer_row("RaBitQ", bases, 12, KS)
    assert (
        row.own_bytes == 12 == make_quantizer("RaBitQ", 12, 64, 500).fit(bases.train[0]).encode(bases.new[0]).shape[1]
    )
    assert quantizer_row("RaBitQ", bases, 32, KS).own_bytes == 16  # 64 dimensions are 8 bytes
    assert "beside its 8 of factors, got 8 bytes" in quantizer_row("RaBitQ", bases, 8, KS).note
    with pytest.raises(UndefinedError, match="PQ must have 256 points to learn from"):
        make_quantizer("PQ", 4, 64, 255)
    with pytest.raises(UndefinedError, match="OPQ must have a dimension for each byte, got 65 bytes for 64"):
        make_quantizer("OPQ", 65, 64, 999)


def test_without_faiss_the_row_says_how_to_get_it(bases, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    row = quantizer_row("PQ", bases, 4, KS)
    assert row.new == {}
    assert 'pip install "ilhash[faiss]"' in row.note


def test_rows_of_a_model_are_what_it_gives_by_hand(bases):
    plain, asymmetric = model_rows("ILH", lambda: ILH(16, n_train=200), bases, 2, KS)
    model = ILH(16, n_train=200).fit(*bases.train)
    asked = model.transform(bases.queries[0])
    for base, part in bases.measured.items():
        wanted = precision_at_k(model.transform(part[0]), part[1], asked, bases.queries[1], KS)
        assert list(getattr(plain, base).values()) == pytest.approx(wanted.tolist())
    assert (plain.float_query, asymmetric.float_query, plain.name) == (False, True, "ILH")
    assert plain.new != asymmetric.new
    (itq,) = model_rows("ITQ", lambda: methods.ITQ(800), bases, 100, KS)
    assert itq.new == {}
    assert "n_bits must be at most" in itq.note


def test_every_kind_of_functions_has_a_row():
    assert {"ILH", "ILH, kernel", "ITQ", "CCAITQ", "class, ECOC", "Sign"} <= set(models(100, 0))
    assert models(100, 0)["ILH, trees"](16).hash_function == "trees"


def test_where_we_lose_is_said():
    def row(name, new, seen, n_bytes=4):
        return ByteRow(name, n_bytes, n_bytes, True, False, {10: new}, {10: seen})

    rows = [row("ILH", 0.8, 0.9), row("ILH, asymmetric", 0.85, 0.9), row("PQ", 0.86, 0.85), row("ITQ", 0.8, 0.8)]
    assert losses(rows) == ["4 bytes, precision@10, new items: ILH, asymmetric .850 loses to PQ .860"]
    assert losses(rows[:2]) == []
    better = [*rows, row("ILH, kernel", 0.9, 0.9)]
    assert losses(better) == losses(rows)  # what is better with other functions does not hide it
    vectors = row("floats", 0.87, 0.95, 256)
    assert losses([*rows, vectors]) == [
        "4 bytes, precision@10, new items: ILH, asymmetric .850 loses to floats .870, PQ .860",
        "4 bytes, precision@10, seen items: ILH .900 loses to floats .950",
    ]


def test_vectors_are_a_row_of_their_own_bytes(bases):
    row = floats_row(bases, KS)
    assert (row.n_bytes, row.name) == (256, "floats")
    distances = ((bases.queries[0][:, None] - bases.seen[0][None]) ** 2).sum(axis=2)
    assert row.seen[5] == pytest.approx(by_hand(distances, bases.seen[1], bases.queries[1], 5), abs=0.01)
