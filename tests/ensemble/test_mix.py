"""A mix keeps the contract of all methods; what differs is overridden below."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.methods.contract import MethodContract

import ilhash
from ilhash import ILH, HammingIndex, Mix, codes
from ilhash.affinity import affinity_from_pairs
from ilhash.methods import CCAITQ, ITQ, LSH, TPCA

SMALL = {"n_similar": 10, "n_dissimilar": 10}


def _pairs_of(y):
    return np.array([(i, j, 1.0 if y[i] == y[j] else -1.0) for i in range(0, 300, 2) for j in range(i + 1, i + 60)])


def half_and_half(n_bits, **common):
    """Make a mix of two families, or of one where there is one bit."""
    first = {**SMALL, **common}
    parts = [ILH(n_bits=n_bits - n_bits // 2, **first), ITQ(n_bits=n_bits // 2, **common)]
    return Mix(parts if n_bits > 1 else parts[:1])


class TestMix(MethodContract):
    name = "Mix"
    limit = 130
    reason = "directions? in which the 600 training points vary"

    class method:  # noqa: N801  what the contract asks of a class of methods
        supervised = False

    def make(self, **changes):
        return half_and_half(changes.pop("n_bits", self.bits), **changes)

    def test_more_bits_than_there_can_be_are_refused_with_the_reason(self, data):
        with pytest.raises(ValueError, match=self.reason):
            self.make(n_bits=130).fit(*data)

    def test_a_prefix_is_the_shorter_model_or_there_is_none(self, data):
        """Of nested families it is, family by family; of others the bits are those of the longer model."""
        X, y = data
        long = Mix([ILH(n_bits=6, **SMALL), TPCA(n_bits=5)]).fit(X, y)
        short = Mix([ILH(n_bits=4, **SMALL), TPCA(n_bits=2)]).fit(X, y)
        assert long.nested
        assert np.array_equal(long.prefix(4, 2).transform(X), short.transform(X))
        joint = self.make().fit(X, y)
        assert not joint.nested
        wanted = joint.decision_function(X)[:, :8]
        np.testing.assert_allclose(joint[:8].decision_function(X), wanted, rtol=1e-4, atol=1e-4)

    def test_random_state_none_and_generators(self, data):
        drawn = self.make(random_state=None).fit(*data)
        again = self.make()
        for model, family in zip(again.models, drawn.families_, strict=True):
            model.random_state = family.seed_
        assert np.array_equal(drawn.decision_function(data[0]), again.fit(*data).decision_function(data[0]))

    def test_fewer_training_points_are_drawn_at_random(self, data):
        few = [self.make(n_train=200, random_state=seed).fit(*data) for seed in (0, 1)]
        assert [family.n_train_ for family in few[0].families_] == [200, 200]
        assert not np.array_equal(*(model.decision_function(data[0]) for model in few))

    def test_labels(self, data, model):
        """Families that learn from labels do, the others do not look at them."""
        X, y = data
        without = self.make().fit(X)
        assert np.array_equal(without.decision_function(X)[:, 6:], model.decision_function(X)[:, 6:])
        assert not np.array_equal(without.decision_function(X)[:, :6], model.decision_function(X)[:, :6])
        with pytest.raises(ValueError, match="learns from labels"):
            Mix([CCAITQ(n_bits=4), ITQ(n_bits=4)]).fit(X)
        with pytest.raises(ValueError, match="one entry per row"):
            self.make().fit(X, y[:-1])

    def test_save_and_load(self, data, model, tmp_path):
        model.save(tmp_path / "m")
        again = ilhash.load(tmp_path / "m")
        assert type(again) is Mix
        assert repr(again) == repr(model)
        assert [family.seed_ for family in again.families_] == [0, 0]
        assert np.array_equal(again.family_, model.family_)
        assert np.array_equal(again.decision_function(data[0]), model.decision_function(data[0]))
        again.save(tmp_path / "m2")
        assert sorted(f.name for f in (tmp_path / "m").iterdir()) == sorted(f.name for f in (tmp_path / "m2").iterdir())

    def test_clone_parameters_and_repr(self, model):
        fresh = clone(model)
        assert repr(fresh) == repr(model)
        assert not hasattr(fresh, "functions_")
        assert fresh.n_bits == 11
        assert fresh.set_params(ilh__n_bits=3, itq__max_iter=7).n_bits == 8
        assert fresh.get_params()["itq__max_iter"] == 7
        assert model.models[1].max_iter == 50  # a clone has parts of its own
        assert list(model.get_feature_names_out()) == ["mix_byte0", "mix_byte1"]
        with pytest.raises(ValueError, match="parameters of Mix must be models or begin with ilh, itq, got 'n_bits'"):
            fresh.set_params(n_bits=3)

    @pytest.mark.parametrize("name", ["affinity", "pairs", "client", "checkpoint"])
    def test_what_it_cannot_use_is_refused(self, data, tmp_path, name):
        """What no family can use."""
        with pytest.raises(ValueError, match=f"{name} must be None for a mix unless one of its .* got ITQ, LSH"):
            Mix([ITQ(n_bits=3), LSH(n_bits=3)]).fit(*data, **{name: tmp_path / "c"})
        assert not (tmp_path / "c").exists()

    @pytest.mark.parametrize("name", ["affinity", "pairs"])
    def test_other_supervision_is_answered_by_what_it_takes(self, data, name):
        """A family that must have labels has none; before any bit is trained."""
        given = {"pairs": np.array([[0, 1, 1], [0, 2, -1]]), "affinity": scipy.sparse.eye_array(600)}
        mix, moved = Mix([ILH(n_bits=3), CCAITQ(n_bits=3), ITQ(n_bits=3)]), []
        reason = f"CCAITQ learns from labels alone; ILH takes {name}, and methods that need no supervision, such as ITQ"
        with pytest.raises(ValueError, match=f"^{name} must be None for a mix with CCAITQ, got .*: {reason}"):
            mix.fit(data[0], **{name: given[name]}, progress=lambda *at: moved.append(at))
        assert moved == []

    def test_pairs_and_graphs_reach_ilh_and_leave_the_others_alone(self, data):
        X, y = data
        pairs = _pairs_of(y)
        graph = affinity_from_pairs(pairs, len(X)).matrix
        for known in ({"pairs": pairs}, {"affinity": graph}):
            mix = Mix([ILH(n_bits=4, **SMALL), ITQ(n_bits=5), LSH(n_bits=2)]).fit(X, **known)
            alone = [ILH(n_bits=4, **SMALL).fit(X, **known), ITQ(n_bits=5).fit(X), LSH(n_bits=2).fit(X)]
            for family, wanted in zip(mix.families_, alone, strict=True):
                assert np.array_equal(family.transform(X), wanted.transform(X))
            assert np.array_equal(mix.training_rows(3, X, **known), alone[0].training_rows(3, X, **known))
            assert np.array_equal(mix.training_rows(5, X, **known), alone[1].training_rows(1))

    def test_graphs_and_pairs_reach_families_that_can_all_use_them(self, data):
        X, y = data
        pairs = _pairs_of(y)
        mix = Mix([ILH(n_bits=2, **SMALL), ILH(n_bits=2, random_state=1, **SMALL)]).fit(X, pairs=pairs)
        alone = ILH(n_bits=2, random_state=1, **SMALL).fit(X, pairs=pairs)
        assert np.array_equal(mix.families_[1].transform(X), alone.transform(X))
        assert np.array_equal(mix.training_rows(3, X, pairs=pairs), alone.training_rows(1, X, pairs=pairs))

    def test_a_checkpoint_has_a_folder_for_each_family_that_is_ilh(self, data, tmp_path):
        models = [ILH(n_bits=2, **SMALL), ITQ(n_bits=2), ILH(n_bits=3, random_state=1, **SMALL)]
        wanted = Mix(models).fit(*data).transform(data[0])
        moved = []
        Mix(models).fit(*data, checkpoint=tmp_path / "c")
        assert sorted(folder.name for folder in (tmp_path / "c").iterdir()) == ["0-ilh", "2-ilh"]
        assert len(list((tmp_path / "c" / "2-ilh").glob("bit-*"))) == 3
        again = Mix(models).fit(*data, checkpoint=tmp_path / "c", progress=lambda *at: moved.append(at))
        assert moved == [(2, 7), (4, 7), (7, 7)]  # what is there already is there at once
        assert np.array_equal(again.transform(data[0]), wanted)

    def test_training_rows_are_those_that_were_read(self, data):
        """In test_training_rows.py, bit by bit of its families."""
        model = self.make(n_train=250).fit(*data)
        assert [len(model.training_rows(bit)) for bit in range(11)] == [250] * 11

    def test_it_is_listed_with_one_line(self):
        assert "Mix" in dir(ilhash)


# ------------------------------------------------------------------------------------------------ side by side


@pytest.fixture(scope="module")
def mix(digits):
    models = [ILH(n_bits=9, **SMALL), ITQ(n_bits=6), LSH(n_bits=5), ILH(n_bits=3, **SMALL, random_state=5)]
    return Mix(models).fit(*digits)


def test_codes_are_those_of_the_families_side_by_side(digits, mix):
    X, y = digits
    alone = [clone(model).fit(X, y).transform(X) for model in mix.models]
    wanted = np.concatenate([codes.unpack(a, m.n_bits) for a, m in zip(alone, mix.models, strict=True)], axis=1)
    assert mix.n_bits == wanted.shape[1] == 23
    assert np.array_equal(mix.transform(X), codes.pack(wanted))
    assert np.array_equal(mix.family_, np.repeat([0, 1, 2, 3], [9, 6, 5, 3]))
    index = HammingIndex(mix.transform(X), n_bits=23)
    assert (index.search(mix.transform(X[:3]), 1).distances == 0).all()


def test_families_keep_their_own_origins(digits):
    X, y = digits[0] + np.linspace(0, 500, 64), digits[1]
    mix = Mix([ILH(n_bits=6, **SMALL), ITQ(n_bits=5, n_train=300, random_state=3)]).fit(X, y)
    assert not np.array_equal(mix.families_[0].origin_, mix.families_[1].origin_)
    assert not hasattr(mix, "origin_")
    for bit, function in enumerate(mix.functions_):
        relative = (X[:50] - mix.families_[mix.family_[bit]].origin_).astype(np.float32)
        np.testing.assert_allclose(
            function.margins(relative), mix.decision_function(X[:50])[:, bit], rtol=1e-2, atol=0.1
        )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 22), min_size=1, max_size=30), st.data())
def test_any_bits_in_any_order(digits, mix, chosen, data):
    X = digits[0][:40]
    part = mix[chosen]
    assert part.n_bits == len(chosen)
    bits = codes.unpack(mix.transform(X), 23)
    assert np.array_equal(codes.unpack(part.transform(X), len(chosen)), bits[:, chosen])
    again = data.draw(st.lists(st.integers(0, len(chosen) - 1), min_size=1, max_size=9))
    assert np.array_equal(codes.unpack(part[again].transform(X), len(again)), bits[:, np.array(chosen)[again]])


def test_parts_are_saved_in_their_order(digits, mix, tmp_path):
    part = mix[[20, 3, 10, 4, 11, 21]]
    assert [type(family).__name__ for family in part.families_] == ["ILH", "ITQ", "ILH"]
    part.save(tmp_path / "m")
    again = ilhash.load(tmp_path / "m")
    assert np.array_equal(again.decision_function(digits[0]), part.decision_function(digits[0]))
    assert np.array_equal(again.family_, [2, 0, 1, 0, 1, 2])
    assert np.array_equal(pickle.loads(pickle.dumps(part)).transform(digits[0]), part.transform(digits[0]))  # noqa: S301


def test_prefixes_by_family(digits, mix):
    part = mix.prefix({0: 4, 2: 2})
    assert np.array_equal(part.family_, [0, 0, 0, 0, 1, 1])
    bits = codes.unpack(mix.transform(digits[0]), 23)
    assert np.array_equal(codes.unpack(part.transform(digits[0]), 6), bits[:, [0, 1, 2, 3, 15, 16]])
    assert mix.prefix(9, 6, 5, 3).n_bits == 23
    shuffled = mix[[22, 8, 0, 10]]
    assert np.array_equal(shuffled.prefix({0: 1, 2: 1}).family_, [1, 0])  # the order of the bits is kept
    for counts, message in (
        ((1, 2, 3, 4, 5), "counts must be for families 0 to 3"),
        (({7: 1},), "counts must be for families 0 to 3"),
        ((10,), "counts must be at most the 9 bits of family 0, got 10"),
        ((-1,), "counts must be a whole number of at least 0, got -1"),
        ((0, 0), "a model must keep at least one bit"),
    ):
        with pytest.raises(ValueError, match=message):
            mix.prefix(*counts)


def test_classifiers_are_saved_family_by_family(digits, tmp_path):
    pytest.importorskip("skops")
    from sklearn.naive_bayes import GaussianNB

    X, y = digits
    bayes = ILH(n_bits=2, hash_function=GaussianNB(), **SMALL)
    mix = Mix([bayes, ITQ(n_bits=3), clone(bayes).set_params(random_state=1)]).fit(X, y)
    for _ in range(2):  # the second time over the first
        mix.save(tmp_path / "m")
    assert len(list((tmp_path / "m").glob("*.skops"))) == 4
    assert np.array_equal(ilhash.load(tmp_path / "m").transform(X), mix.transform(X))
    document = json.loads((tmp_path / "m" / "config.json").read_text())
    assert [family["model"] for family in document["families"]] == ["ILH", "ITQ", "ILH"]


def test_progress_counts_all_bits(digits):
    seen = []
    Mix([LSH(n_bits=4), ILH(n_bits=3, **SMALL)]).fit(*digits, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 7), (5, 7), (6, 7), (7, 7)]


def test_equal_kinds_have_names_of_their_own():
    mix = Mix([ILH(n_bits=4), ILH(n_bits=5)])
    assert mix.set_params(ilh2__n_bits=6).n_bits == 10
    assert mix.set_params(models=[LSH(n_bits=2)]).n_bits == 2


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([], ValueError, r"models must be a list of at least one model, got \[\]"),
        (None, ValueError, "models must be a list of at least one model, got None"),
        ([ILH(n_bits=2), "ITQ"], TypeError, "got 1 others such as 'ITQ'"),
        ([Mix([ILH(n_bits=2)])], TypeError, "got 1 others such as Mix"),
        ([ILH(n_bits=0)], ValueError, "n_bits must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_models_are_refused(digits, models, error, message):
    with pytest.raises(error, match=message):
        Mix(models).fit(*digits)


def test_trained_models_are_put_side_by_side(digits, tmp_path):
    X, y = digits
    one, other = ILH(n_bits=5, **SMALL).fit(X, y), ITQ(n_bits=4).fit(X)
    mix = Mix.of([one, other])
    assert np.array_equal(mix.decision_function(X), np.hstack([one.decision_function(X), other.decision_function(X)]))
    mix.save(tmp_path / "mix")
    assert np.array_equal(ilhash.load(tmp_path / "mix").transform(X), mix.transform(X))
    assert (one.n_bits, other.n_bits) == (5, 4)


def test_models_that_do_not_fit_together_are_refused(digits):
    X, _ = digits
    with pytest.raises(ValueError, match="trained on vectors of the same features, got 64, 10"):
        Mix.of([ITQ(n_bits=4).fit(X), ITQ(n_bits=4).fit(X[:, 20:30])])
    with pytest.raises(NotFittedError):
        Mix.of([ITQ(n_bits=4)])
    with pytest.raises(ValueError, match="models must be a list of at least one model"):
        Mix.of([])
