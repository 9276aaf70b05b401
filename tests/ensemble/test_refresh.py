"""New bits are trained, the best of old and new ones stay."""

import numpy as np
import pytest

import ilhash
from ilhash import ILH, HoldOut, Mix, codes, methods
from ilhash.evaluation import precision_at_k

QUICK = {"n_similar": 8, "n_train": 300}


@pytest.fixture(scope="module")
def first(digits):
    X, y = digits
    return ILH(n_bits=16, **QUICK).fit(X[y < 7], y[y < 7], check=False)


def test_as_many_bits_and_better_ones(first, digits):
    X, y = digits
    refreshed = ilhash.refresh(first, X, y, n_new=16)
    model, kept = refreshed
    assert model.n_bits == 16
    assert 0 < len(kept) == 16 - refreshed.n_new < 16
    assert refreshed.after > refreshed.before + 0.02
    assert model.bit_fingerprints()[: len(kept)] == [first.bit_fingerprints()[bit] for bit in kept]
    assert not set(model.bit_fingerprints()[len(kept) :]) & set(first.bit_fingerprints())
    again = ilhash.refresh(first, X, y, n_new=16, n_threads=2)
    assert again.model.fingerprint() == model.fingerprint()


def test_what_it_says_is_measured_on_points_that_chose_nothing(first, digits):
    X, y = digits
    held_out = HoldOut(n_queries=200)
    refreshed = ilhash.refresh(first, X, y, n_new=8, held_out=held_out)
    (judged,) = held_out.report_sets(y)
    base, queries = (refreshed.model.transform(X[rows]) for rows in (judged.base, judged.queries))
    right = precision_at_k(base, y[judged.base], queries, y[judged.queries], k=10, n_bits=16)
    assert refreshed.after == pytest.approx(right)
    trained = {row for bit in range(len(refreshed.kept), 16) for row in _rows(refreshed.model, bit, X, y, held_out)}
    assert not trained & {*judged.queries.tolist(), *held_out.validation_sets(y)[0].queries.tolist()}


def _rows(model, bit, X, y, held_out):
    return model.training_rows(bit, X, held_out.labels(y)).tolist()


def test_old_points_count_as_much_as_is_wished(first, digits):
    X, y = digits
    apart = np.random.default_rng(0).permutation(np.flatnonzero(y < 7))[:600]
    old = (X[apart] + np.float32(0.01), y[apart])  # no bit was trained on these
    little, much = (ilhash.refresh(first, X, y, n_new=16, old=old, old_weight=w) for w in (0.05, 0.95))
    assert len(much.kept) >= len(little.kept)
    assert much.old_before is not None
    assert little.old_before == much.old_before


def test_a_mix_and_another_number_of_bits(digits):
    X, y = digits
    mix = Mix([ILH(n_bits=8, **QUICK), methods.ITQ(n_bits=8)]).fit(X[y < 7], y[y < 7], check=False)
    refreshed = ilhash.refresh(mix, X, y, n_new=8, n_bits=20, name="later")
    assert refreshed.model.n_bits == 20
    assert {one.name for one in refreshed.model.provenance()[len(refreshed.kept) :]} == {"later"}
    assert codes.bytes_per_code(20) == refreshed.model.transform(X).shape[1]


def test_bad_input_is_said(first, digits):
    X, y = digits
    for given, said in (
        ({"n_new": 0}, "n_new must be"),
        ({"n_bits": 99}, "at most the 48 bits"),
        ({"old": X}, "old must be a pair"),
        ({"old_weight": 2.0}, "old_weight must be"),
        ({"focus": [77]}, "focus must be labels"),
    ):
        with pytest.raises(ValueError, match=said):
            ilhash.refresh(first, X, y, **given)
    with pytest.raises(TypeError, match="model must be an ILH or a Mix"):
        ilhash.refresh(methods.ITQ(n_bits=4).fit(X), X, y)
    whole = ILH(n_bits=4, **QUICK).fit(X, y, check=False)
    with pytest.raises(ValueError, match="must not have been trained on the points it is judged by"):
        ilhash.refresh(whole, X, y)
