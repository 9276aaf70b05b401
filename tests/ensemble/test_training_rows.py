"""``training_rows`` gives back what a bit really read, from the seed alone or with the data given again."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import ilhash
from ilhash import ILH, HoldOut, Mix
from ilhash.ensemble import _bit, _ways
from ilhash.methods import ITQ, BaggedTPCA

SMALL = {"n_similar": 5, "n_dissimilar": 5}


@pytest.fixture(scope="module")
def reads():
    """Rows that trainers read, bit by bit in the order of their training; ``reads.twice`` are bits that draw again."""

    class Reads(list):
        twice = ()
        trying = False  # trial bits are not of the model

    found = Reads()
    pose, gather, two_sided = _bit.BitTrainer._pose, _bit.gather, _bit._Problem.two_sided
    codes = _ways._Trials.codes

    def tried(self, way):
        found.trying = True
        try:
            return codes(self, way)
        finally:
            found.trying = False

    def posed(self, draw, attempts, bit, watch):
        if attempts == 1 and not found.trying:
            found.append(None)
        return pose(self, draw, attempts, bit, watch)

    def gathered(X, rows, *others, **options):
        if not found.trying:
            found[-1] = rows  # of several draws the last is the one that is trained on
        return gather(X, rows, *others, **options)

    def sided(problem):
        again = not found.trying and len(found) - 1 in found.twice and problem.attempts < 3
        return not again and two_sided.__get__(problem)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_bit.BitTrainer, "_pose", posed)
        patch.setattr(_bit, "gather", gathered)
        patch.setattr(_ways._Trials, "codes", tried)
        patch.setattr(_bit._Problem, "two_sided", property(sided))
        yield found


@given(
    letters=st.sampled_from(["", "i", "t", "it", "tf"]),
    sampling=st.sampled_from(["disjoint", "random", "bootstrap"]),
    n_train=st.sampled_from([90, 150, "auto"]),
    twice=st.sets(st.integers(0, 6)),
    unknown=st.booleans(),
    start=st.sampled_from(["auto", "random", "projection"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_they_are_the_rows_that_the_trainer_read(blobs, reads, letters, sampling, n_train, twice, unknown, start, seed):
    X, y = blobs
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y) if unknown else y
    reads.clear()
    reads.twice = twice
    how = {"diversity": letters, "sampling": sampling, "n_train": n_train, "start": start}
    model = ILH(n_bits=5, **how, random_state=seed, **SMALL)
    model.fit(X, y).add_bits(2, X, y)
    assert [report.attempts for report in model.bits_] == [3 if bit in twice else 1 for bit in range(7)]
    again = (X, y) if unknown else ()
    for bit, rows in enumerate(reads):
        assert np.array_equal(model.training_rows(bit, *again), np.sort(rows))
        assert np.array_equal(model.training_rows(bit, X, y), np.sort(rows))


def test_they_outlive_files_parts_and_a_change_of_parameters(blobs, reads, tmp_path):
    X, y = blobs
    reads.clear()
    reads.twice = {1}
    model = ILH(n_bits=3, n_train=100, **SMALL).fit(X, y)
    model.set_params(sampling="bootstrap", n_train=60).add_bits(2, X, y)
    model.save(tmp_path / "m")
    loaded = ilhash.load(tmp_path / "m")
    for kept in (model, loaded, loaded[[4, 1]]):
        for place, report in enumerate(kept.bits_):
            assert np.array_equal(kept.training_rows(place), np.sort(reads[report.bit]))
    assert np.array_equal(loaded.training_rows(-1), np.sort(reads[4]))


def test_a_graph_and_withheld_points_need_the_data_again(blobs, reads):
    X, y = blobs
    reads.clear()
    reads.twice = ()
    near = scipy.sparse.random_array((800, 800), density=0.01, rng=0)
    affinity = scipy.sparse.csr_array(near + near.T).multiply(np.where(y[:, None] == y, 1.0, -1.0)).tocsr()
    graph = ILH(n_bits=2, n_train=100, **SMALL).fit(X, affinity=affinity)
    labels = HoldOut(100).labels(y)
    held = ILH(n_bits=2, n_train=100, **SMALL).fit(X, labels)
    for model, own, supervision in ((graph, reads[:2], {"affinity": affinity}), (held, reads[2:], {"y": labels})):
        for bit, rows in enumerate(own):
            assert np.array_equal(model.training_rows(bit, X, **supervision), np.sort(rows))
        with pytest.raises(ValueError, match="must be given again, since the model knows only where"):
            model.training_rows(0)
        with pytest.raises(ValueError, match="must be the data that the model was fitted on, got other data"):
            model.training_rows(0, X, y)


def test_bad_bits_are_refused(blobs):
    X, y = blobs
    model = ILH(n_bits=2, **SMALL).fit(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.training_rows(2)
    with pytest.raises(TypeError, match="bit must be a whole number, got slice"):
        model.training_rows(slice(2))


def test_each_bit_of_a_mix_asks_its_family(blobs):
    X, y = blobs
    mix = Mix([ILH(n_bits=3, **SMALL), BaggedTPCA(n_bits=5, member_bits=2, n_train=50), ITQ(n_bits=2, n_train=70)])
    part = mix.fit(X, y)[[1, 9, 6, 7, 2, 3]]
    first, second, third = mix.families_
    wanted = [(first, 1), (third, 1), (second, 3), (second, 4), (first, 2), (second, 0)]
    for bit, (family, own) in enumerate(wanted):
        assert np.array_equal(part.training_rows(bit), family.training_rows(own))
