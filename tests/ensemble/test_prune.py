import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import ilhash
from ilhash import ILH, HoldOut, Mix, codes, prune
from ilhash.evaluation import precision_at_k
from ilhash.methods import ITQ, LSH

SMALL = {"n_similar": 10, "n_dissimilar": 10, "n_train": 300}
HELD = HoldOut(100, n_base=400)


@pytest.fixture(scope="module")
def pool(digits):
    return ILH(**SMALL, n_bits=20).fit(digits[0], HELD.labels(digits[1]))


def scores(model, X, y, part, k, chosen):
    """Precision of some bits in the obvious way."""
    base, queries = (model.decision_function(X[rows]) > 0 for rows in (part.base, part.queries))
    packed = (codes.pack(side[:, chosen]) for side in (base, queries))
    return precision_at_k(next(packed), y[part.base], next(packed), y[part.queries], k)


def obvious(model, X, y, n_bits, k, held_out, weight):
    """Greedy forward selection by evaluating every candidate from scratch."""
    parts = held_out.validation_sets(y)
    weights = [1.0] if len(parts) == 1 else [1 - weight, weight]
    chosen = []
    for _ in range(n_bits):
        rest = [bit for bit in range(len(model.functions_)) if bit not in chosen]
        values = [
            sum(w * scores(model, X, y, part, k, [*chosen, bit]) for w, part in zip(weights, parts, strict=True))
            for bit in rest
        ]
        chosen.append(rest[int(np.argmax(np.round(values, 12)))])
    return chosen


def test_it_is_greedy_selection(digits, pool):
    pruning = prune(pool, *digits, 5, k=30, held_out=HELD)
    assert pruning.chosen == obvious(pool, *digits, 5, 30, HELD, None)
    (part,) = HELD.validation_sets(digits[1])
    for bits in range(1, 6):
        wanted = scores(pool, *digits, part, 30, pruning.chosen[:bits])
        assert pruning.curve[bits - 1] == pytest.approx(wanted, abs=1e-12)
    assert pruning.unseen is None
    assert pruning.report_unseen is None
    (report,) = HELD.report_sets(digits[1])
    wanted = [scores(pool, *digits, report, 30, pruning.chosen[:bits]) for bits in range(1, 6)]
    np.testing.assert_allclose(pruning.report_seen, wanted, atol=1e-12)
    assert np.array_equal(pruning.curve, pruning.seen)


def test_the_model_is_an_ordinary_one_and_its_prefixes_are_the_shorter_choices(digits, pool, tmp_path):
    X = digits[0]
    long, short = (prune(pool, *digits, n, k=30, held_out=HELD) for n in (9, 4))
    assert long.chosen[:4] == short.chosen
    assert isinstance(long.model, ILH)
    assert np.array_equal(long.model[:4].transform(X), short.model.transform(X))
    assert np.array_equal(long.model.transform(X), pool[long.chosen].transform(X))
    assert [report.bit for report in long.model.bits_] == long.chosen
    long.model.save(tmp_path / "m")
    assert np.array_equal(ilhash.load(tmp_path / "m").transform(X), long.model.transform(X))


def test_threads_do_not_matter_and_all_bits_may_be_kept(digits, pool):
    one, three = (prune(pool, *digits, 20, k=30, held_out=HELD, n_threads=n) for n in (1, 3))
    assert one.chosen == three.chosen
    assert np.array_equal(one.curve, three.curve)
    assert sorted(one.chosen) == list(range(20))


def test_useless_bits_come_last(digits):
    X, y = digits
    useless = X.astype(np.float64)
    mix = Mix([ILH(**SMALL, n_bits=6), LSH(n_bits=6)]).fit(useless, HELD.labels(y))
    for function in mix.families_[1].functions_:
        function.weights[:] = 0.0  # a constant bit
    mix._assemble([mix.families_[0], mix.families_[1]._with_bits(list(range(6)))], mix.family_)
    assert sorted(prune(mix, useless, y, 6, k=30, held_out=HELD).chosen) == list(range(6))


@pytest.fixture(scope="module")
def mixed(digits):
    held_out = HoldOut(80, n_base=300, classes=3)
    models = [ILH(**SMALL, n_bits=10), ITQ(n_bits=10)]
    return Mix(models).fit(digits[0], held_out.labels(digits[1])), held_out


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_seen_and_unseen_classes_are_weighed(digits, mixed, weight):
    pool, held_out = mixed
    pruning = prune(pool, *digits, 4, k=10, held_out=held_out, unseen_weight=weight)
    assert pruning.chosen == obvious(pool, *digits, 4, 10, held_out, weight)
    assert np.allclose(pruning.curve, (1 - weight) * pruning.seen + weight * pruning.unseen, atol=1e-12)
    assert isinstance(pruning.model, Mix)
    wanted = pool.decision_function(digits[0])[:, pruning.chosen]
    assert np.array_equal(pruning.model.decision_function(digits[0]) > 0, wanted > 0)


def test_both_kinds_of_classes_are_reported_on(digits, mixed):
    pool, held_out = mixed
    pruning = prune(pool, *digits, 4, k=10, held_out=held_out)
    for course, part in zip((pruning.report_seen, pruning.report_unseen), held_out.report_sets(digits[1]), strict=True):
        assert course[-1] == pytest.approx(scores(pool, *digits, part, 10, pruning.chosen), abs=1e-12)


def test_what_chance_chose_is_worth_nothing_on_other_points():
    """Labels that say nothing: the score of the choice is above chance, that of the report is not."""
    rng = np.random.default_rng(0)
    chosen, reported = [], []
    for seed in range(8):
        X, y = rng.normal(size=(600, 20)), rng.integers(0, 2, 600)
        held_out = HoldOut(60, seed=seed, n_report=200)
        pruning = prune(LSH(n_bits=64, random_state=seed).fit(X), X, y, 8, k=20, held_out=held_out)
        chosen.append(pruning.curve[-1])
        reported.append(pruning.report_seen[-1])
    assert np.mean(chosen) > 0.52
    assert abs(np.mean(reported) - 0.5) < 0.01


def test_a_pool_of_earlier_versions_may_choose_without_a_report(digits):
    before = HoldOut(100, n_base=400, n_report=0)
    pool = ILH(**SMALL, n_bits=6).fit(digits[0], before.labels(digits[1]))
    with pytest.raises(ValueError, match=r"only those that choose were held out, .* n_report=0 \(--report 0\)"):
        prune(pool, *digits, 3, k=30, held_out=HELD)
    pruning = prune(pool, *digits, 3, k=30, held_out=before)
    assert pruning.report_seen is pruning.report_unseen is None


def test_the_weight_turns_the_choice(digits, mixed):
    pool, held_out = mixed
    seen, unseen = (prune(pool, *digits, 8, k=10, held_out=held_out, unseen_weight=w) for w in (0.0, 1.0))
    assert seen.seen[-1] > unseen.seen[-1]
    assert unseen.unseen[-1] > seen.unseen[-1]


def test_other_methods_and_data_frames(digits):
    pandas = pytest.importorskip("pandas")
    X, y = pandas.DataFrame(digits[0], columns=[f"pixel {i}" for i in range(64)]), digits[1]
    model = ITQ(n_bits=12).fit(X)
    pruning = prune(model, X, y, 5, held_out=HELD)
    assert isinstance(pruning.model, ITQ)
    assert pruning.model.n_bits == 5
    assert np.array_equal(
        codes.unpack(pruning.model.transform(X), 5), codes.unpack(model.transform(X), 12)[:, pruning.chosen]
    )


def test_points_that_were_trained_on_are_refused(digits, pool):
    X, y = digits
    everything = ILH(**SMALL, n_bits=4).fit(X, y)
    for model, held_out in ((everything, HELD), (pool, HoldOut(100, seed=1)), (Mix([clone_of(everything)]), HELD)):
        fitted = model if hasattr(model, "functions_") else model.fit(X, y)
        with pytest.raises(ValueError, match="model must not have been trained on the points it is judged by"):
            prune(fitted, X, y, 2, held_out=held_out)
    assert len(prune(everything, X[::2].copy(), y[::2], 2, k=20, held_out=HoldOut(50)).chosen) == 2  # other points


def clone_of(model):
    return ILH(**model.get_params())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_bits": 21}, "n_bits must be at most the 20 bits of the pool, got 21"),
        ({"n_bits": 0}, "n_bits must be a whole number of at least 1, got 0"),
        ({"k": 401}, "k must be a whole number between 1 and the 400 base points, got 401"),
        ({"unseen_weight": 2}, "unseen_weight must be a number between 0 and 1, got 2"),
        ({"n_threads": 0}, "n_threads must be a whole number from 1 on"),
        ({"y": np.arange(10) % 3}, "y must have one entry per row of X, got 10 for 1797 rows"),
        ({"X": np.zeros((1797, 3))}, "64 features"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(digits, pool, changes, message):
    arguments = {"X": digits[0], "y": digits[1], "n_bits": 4, **changes}
    with pytest.raises(ValueError, match=message):
        prune(pool, **arguments, held_out=HELD)


def test_what_is_no_trained_model_is_refused(digits):
    with pytest.raises(TypeError, match="model must be a trained model of ilhash, got str"):
        prune("model", *digits, 4)
    with pytest.raises(NotFittedError):
        prune(ILH(n_bits=8), *digits, 4)
