import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

from ilhash import ILH, HoldOut, Mix, methods
from ilhash.affinity import Labels, LabelSets
from ilhash.ensemble._bit import BitTrainer


@pytest.fixture
def drawn(monkeypatch):
    """The rows that bits of ILH and training sets of other methods draw."""
    rows = []
    draw, take = BitTrainer._pose, methods._base.TrainingData.training_set

    def pose(self, drawn, *others):
        rows.append(drawn.rows)
        return draw(self, drawn, *others)

    def training_set(self, *arguments):
        made = take(self, *arguments)
        rows.append(made.numbers)
        return made

    monkeypatch.setattr(BitTrainer, "_pose", pose)
    monkeypatch.setattr(methods._base.TrainingData, "training_set", training_set)
    return rows


def test_no_bit_of_any_family_sees_what_is_held_out(digits, drawn):
    X, y = digits
    held_out = HoldOut(200, classes=[3, 7], seed=5)
    Mix([ILH(n_bits=9, n_similar=10), methods.ITQ(n_bits=8), methods.CCAITQ(n_bits=7)]).fit(X, held_out.labels(y))
    methods.SPLH(n_bits=4).fit(X, held_out.labels(y))
    seen, unseen = held_out.validation_sets(y)
    trained_on = np.unique(np.concatenate(drawn))
    assert len(drawn) >= 9 + 3
    report, report_unseen = held_out.report_sets(y)
    assert not np.isin([*seen.queries, *report.queries], trained_on).any()
    assert not np.isin(y[trained_on], [3, 7]).any()
    # All others are used.
    assert len(trained_on) == len(y) - 200 - len(report.queries) - np.isin(y, [3, 7]).sum()
    assert np.isin(y[[*unseen.queries, *report_unseen.queries]], [3, 7]).all()


def test_points_that_report_are_neither_searched_nor_choose(digits):
    y = digits[1]
    held_out = HoldOut(100, n_base=300, classes=2, seed=1, n_report=40)
    for part, report in zip(held_out.validation_sets(y), held_out.report_sets(y), strict=True):
        assert len(report.queries) == 40
        assert not np.isin(report.queries, [*part.queries, *part.base]).any()
        assert np.array_equal(report.base, part.base)
        assert np.array_equal(report.relevant, y[report.queries][:, None] == y[report.base])
    without = HoldOut(100, n_base=300, classes=2, seed=1, n_report=0)
    assert without.report_sets(y) == []
    for part, same in zip(held_out.validation_sets(y), without.validation_sets(y), strict=True):
        assert np.array_equal(part.queries, same.queries)


def test_validation_sets_are_what_they_say(digits):
    y = digits[1]
    seen, unseen = HoldOut(100, n_base=300, classes=2, seed=1).validation_sets(y)
    held = np.unique(y[unseen.queries])
    assert len(held) == 2
    for part in (seen, unseen):
        assert len(part.queries) == 100
        assert len(part.base) <= 300
        assert not np.isin(part.queries, part.base).any()
        assert np.array_equal(part.relevant, y[part.queries][:, None] == y[part.base])
    assert not np.isin(y[np.concatenate([seen.base, seen.queries])], held).any()
    assert np.isin(y[unseen.base], held).all()


def test_the_seed_alone_decides(digits):
    y = digits[1]
    first, again, other = (HoldOut(50, seed=seed).validation_sets(y)[0] for seed in (0, 0, 1))
    assert np.array_equal(first.queries, again.queries)
    assert not np.array_equal(first.queries, other.queries)


def test_the_default_number_of_queries():
    assert len(HoldOut().validation_sets(np.arange(4000) % 3)[0].queries) == 500
    assert len(HoldOut().validation_sets(np.arange(1000) % 3)[0].queries) == 200
    assert len(HoldOut().report_sets(np.arange(8000) % 3)[0].queries) == 500
    assert len(HoldOut().report_sets(np.arange(1000) % 3)[0].queries) == 100


def test_unlabelled_points_are_neither_queries_nor_base():
    y = np.arange(400) % 4
    y[::2] = -1
    (part,) = HoldOut(20).validation_sets(y)
    assert (y[np.concatenate([part.queries, part.base])] >= 0).all()
    names = np.array(["a", "b", "c", "unknown"])[np.arange(400) % 4]
    left = HoldOut(20).labels(names, "unknown")
    assert list(left.names) == ["a", "b", "c"]
    assert (left.codes < 0).sum() == 100 + 20 + 30  # unknown, that choose, that report


def test_several_labels_per_point(digits):
    X, y = digits
    indicator = OneHotEncoder(sparse_output=False).fit_transform(y[:, None]).astype(int)
    held_out = HoldOut(100)
    labels = held_out.labels(indicator)
    assert isinstance(labels, LabelSets)
    assert isinstance(held_out.labels(y), Labels)
    (part,), (single,) = held_out.validation_sets(indicator), held_out.validation_sets(y)
    assert np.array_equal(part.queries, single.queries)
    assert np.array_equal(part.relevant, single.relevant)
    assert not labels.indicator[[*part.queries, *held_out.report_sets(indicator)[0].queries]].nnz
    assert ILH(n_bits=2, n_similar=10).fit(X, labels).n_bits == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HoldOut(0), "n_queries must be a whole number of at least 1, got 0"),
        (lambda: HoldOut(n_report=-1), "n_report must be a whole number of at least 0, got -1"),
        (lambda: HoldOut(50, n_report=10).labels([0, 1, 2] * 20), "60 labelled beside the 10 that report, got 50"),
        (lambda: HoldOut(n_base=0), "n_base must be a whole number"),
        (lambda: HoldOut(seed=-1), "seed must be a whole number of at least 0, got -1"),
        (lambda: HoldOut(classes=-2), "classes must be a whole number of at least 0, got -2"),
        (lambda: HoldOut(classes="cat"), "classes must be how many to hold out, or a list of labels, got 'cat'"),
        (lambda: HoldOut(10, classes=3).labels([0, 1, 2] * 10), "classes must leave at least 2 of the 3"),
        (lambda: HoldOut(10, classes=[0, 1]).labels([0, 1, 2] * 20), "at least 2 classes to learn from, got 1"),
        (lambda: HoldOut(10, classes=[7]).labels([0, 1, 2] * 20), "classes must be labels of y, got 1 others"),
        (lambda: HoldOut(60).labels([0, 1, 2] * 20), "n_queries must leave points to search among the 60"),
        (lambda: HoldOut(classes=1).labels(np.eye(4, dtype=int)), "classes must be 0 where points have several labels"),
        (lambda: HoldOut().labels(None), "y must be labels, .* got None"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
