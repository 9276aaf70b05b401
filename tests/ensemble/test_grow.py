import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ilhash
from ilhash import ILH, HoldOut, grow
from ilhash.ensemble._grow import stopping_point
from ilhash.evaluation import precision_at_k

SMALL = {"n_similar": 10, "n_dissimilar": 10, "n_train": 300}
RULE = {"max_bits": 40, "k": 50, "patience": 6, "tolerance": 0.01}


@pytest.fixture(scope="module")
def growth(digits):
    return grow(ILH(**SMALL), *digits, **RULE)


def test_the_curve_is_precision_at_k_of_every_prefix(digits, growth):
    X, y = digits
    (part,) = HoldOut().validation_sets(y)
    base, queries = growth.pool.decision_function(X[part.base]) > 0, growth.pool.decision_function(X[part.queries]) > 0
    assert len(growth.curve) == len(growth.pool.functions_) > RULE["patience"]
    for bits in range(1, len(growth.curve) + 1):
        packed = [ilhash.codes.pack(side[:, :bits]) for side in (base, queries)]
        wanted = precision_at_k(packed[0], y[part.base], packed[1], y[part.queries], RULE["k"])
        assert growth.curve[bits - 1] == pytest.approx(wanted, abs=1e-9)
    (report,) = HoldOut().report_sets(y)
    assert len(growth.report) == len(growth.curve)
    for bits in (1, 7, len(growth.report)):
        packed = [growth.pool[:bits].transform(X[rows]) for rows in (report.base, report.queries)]
        wanted = precision_at_k(packed[0], y[report.base], packed[1], y[report.queries], RULE["k"])
        assert growth.report[bits - 1] == pytest.approx(wanted, abs=1e-9)


def test_the_rule_was_followed(growth):
    chosen, clear = stopping_point(growth.curve, RULE["patience"], RULE["tolerance"])
    assert growth.stopped
    assert growth.n_bits == chosen == len(growth.model.functions_) == growth.model.n_bits
    assert clear == len(growth.curve) == chosen + RULE["patience"]
    assert growth.curve[chosen:].max() <= growth.curve[chosen - 1] + RULE["tolerance"]


@pytest.mark.parametrize(("step", "n_jobs"), [(1, 1), (2, 2), (7, 3), (40, 2)])
def test_the_answer_does_not_depend_on_how_many_bits_are_trained_at_a_time(digits, growth, step, n_jobs):
    other = grow(ILH(**SMALL, n_jobs=n_jobs), *digits, **RULE, step=step)
    assert other.n_bits == growth.n_bits
    assert np.array_equal(other.curve, growth.curve)
    assert np.array_equal(other.model.weights(), growth.model.weights())
    assert np.array_equal(other.pool.transform(digits[0]), growth.pool.transform(digits[0]))


def test_kernel_functions_grow_alike(digits):
    few = {"max_bits": 11, "k": 50, "patience": 20}
    model = ILH(**SMALL, hash_function="kernel", n_centers=50)
    one, three = (grow(model, *digits, **few, step=step) for step in (1, 3))
    assert np.array_equal(one.curve, three.curve)
    assert not one.stopped
    assert len(one.curve) == 11


def test_the_model_is_an_ordinary_one(digits, growth, tmp_path):
    X, y = digits
    labels = HoldOut().labels(y)
    plain = ILH(**SMALL, n_bits=growth.n_bits).fit(X, labels)
    assert np.array_equal(plain.transform(X), growth.model.transform(X))
    assert np.array_equal(
        growth.pool.transform(X), growth.model[:].add_bits(RULE["patience"], X, growth.labels).transform(X)
    )
    growth.model.save(tmp_path / "m")
    assert np.array_equal(ilhash.load(tmp_path / "m").transform(X), growth.model.transform(X))


def test_a_grown_model_grows_further(digits, growth):
    again = grow(growth.model, *digits, **RULE)
    assert np.array_equal(again.curve, growth.curve)
    short = grow(growth.pool, *digits, **{**RULE, "max_bits": 5})
    assert np.array_equal(short.curve, growth.curve[:5])
    assert not short.stopped
    assert growth.pool.n_bits == len(growth.curve)  # what was given is not changed


def test_memory_maps_data_frames_and_names_of_labels(digits, growth, tmp_path):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    named = np.array([f"digit {label}" for label in y])
    few = {**RULE, "max_bits": 9}
    for other in (grow(ILH(**SMALL), mapped, y, **few), grow(ILH(**SMALL, unlabeled=None), X, named, **few)):
        assert np.array_equal(other.curve, growth.curve[:9])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    assert np.array_equal(grow(ILH(**SMALL), frame, y, **few).curve, growth.curve[:9])


def test_progress_sees_the_curve_grow(digits):
    seen = []
    grow(ILH(**SMALL), *digits, max_bits=20, k=50, patience=50, progress=lambda curve: seen.append(len(curve)))
    assert seen == sorted(seen)
    assert seen[-1] == 20


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(1, 10), st.floats(0, 0.3))
@settings(max_examples=200, deadline=None)
def test_the_rule_needs_no_more_than_it_saw(curve, patience, tolerance):
    chosen, clear = stopping_point(curve, patience, tolerance)
    assert 1 <= chosen <= len(curve)
    if clear is None:
        assert len(curve) - chosen < patience
    else:
        assert clear == chosen + patience
        assert stopping_point(curve[:clear], patience, tolerance) == (chosen, clear)
        assert stopping_point(curve[: clear - 1], patience, tolerance)[1] is None
    seen = curve[chosen : clear or len(curve)]
    assert all(value <= curve[chosen - 1] + tolerance for value in seen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_bits": 0}, "max_bits must be a whole number of at least 1, got 0"),
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": 5000}, "k must be a whole number between 1 and the 1259 base points, got 5000"),
        ({"patience": 0}, "patience must be a whole number of at least 1, got 0"),
        ({"tolerance": -0.1}, "tolerance must be a precision between 0 and 1, got -0.1"),
        ({"tolerance": "little"}, "tolerance must be a precision between 0 and 1, got 'little'"),
        ({"step": 0}, "step must be a whole number of at least 1, got 0"),
        ({"y": None}, "y must be labels"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(digits, changes, message):
    arguments = {"X": digits[0], "y": digits[1], **changes}
    with pytest.raises(ValueError, match=message) as error:
        grow(ILH(**SMALL), **arguments)
    assert "\n" not in str(error.value)


def test_other_models_are_refused(digits):
    with pytest.raises(TypeError, match="model must be an ILH, whose bits are trained one by one, got ITQ"):
        grow(ilhash.methods.ITQ(n_bits=8), *digits)
    trained = ILH(**SMALL, n_bits=2).fit(*digits)
    with pytest.raises(ValueError, match="model must be untrained, or trained on this X with the same points held out"):
        grow(trained, *digits)


def test_what_every_bit_warns_of_is_said_once(digits):
    with pytest.warns(UserWarning, match="too few points") as warned:
        grow(ILH(n_similar=150, n_train=300, start="random"), *digits, max_bits=6, step=1)
    assert len(warned) == 1
