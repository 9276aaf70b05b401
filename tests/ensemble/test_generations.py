"""Bits that join a model later: every other bit stays, and each depends on its own generation's data alone."""

import copy
import json

import numpy as np
import pytest

import ilhash
from ilhash import ILH, HammingIndex, Mix, codes, methods
from ilhash.ensemble import focused

QUICK = {"n_similar": 8, "n_train": 300}


@pytest.fixture(scope="module")
def old(digits):
    X, y = digits
    return X[y < 7], y[y < 7]


@pytest.fixture(scope="module")
def first(old):
    return ILH(n_bits=13, **QUICK).fit(*old, check=False)


def extended(model, digits, n=6, **given):
    return model[:].extend(n, *digits, check=False, **given)


def test_bits_that_are_there_stay(first, digits):
    model = extended(first, digits)
    assert model.n_bits == len(model.functions_) == len(model.bits_) == 19
    assert model[:13].fingerprint() == first.fingerprint()
    bits = codes.unpack(model.transform(digits[0]), 19)
    assert np.array_equal(bits[:, :13], codes.unpack(first.transform(digits[0]), 13))
    assert np.array_equal(model.decision_function(digits[0]) > 0, bits)


def test_a_generation_depends_on_its_own_data_alone(first, old, digits):
    X, y = digits
    other = ILH(n_bits=5, **QUICK).fit(X[::2], y[::2], check=False)  # another first generation, of the same seed
    ours, theirs = (extended(model, digits)[-6:] for model in (first, other))
    assert ours.fingerprint() == theirs.fingerprint()
    again = extended(ILH(n_bits=13, **QUICK, random_state=1).fit(*old, check=False), digits)
    assert again[-6:].fingerprint() != ours.fingerprint()
    twice = extended(extended(first, digits), digits)
    assert len({part.fingerprint() for part in (twice[13:19], twice[19:])}) == 2, "the number of a generation counts"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_some_and_more_are_all_at_once(first, digits, n_jobs):
    model = first[:].set_params(n_jobs=n_jobs)
    model.extend(2, *digits, check=False).add_bits(4, *digits)
    assert model.fingerprint() == extended(first, digits).fingerprint()


def test_more_bits_of_an_earlier_generation(first, old, digits):
    model = extended(first, digits).add_bits(3, *old)
    assert [part.n_bits for part in model.generations] == [16, 6]
    assert [one.generation for one in model.provenance()] == [0] * 13 + [1] * 6 + [0] * 3
    assert model.generations[0].fingerprint() == first[:].add_bits(3, *old).fingerprint()
    with pytest.raises(ValueError, match="extend trains bits on other data"):
        model.add_bits(1, digits[0][:100], digits[1][:100])


def test_any_choice_of_bits(first, digits):
    model = extended(first, digits)
    part = model[[3, 18, 0, 14]]
    whole = codes.unpack(model.transform(digits[0]), 19)
    assert np.array_equal(codes.unpack(part.transform(digits[0]), 4), whole[:, [3, 18, 0, 14]])
    assert part.bit_fingerprints() == [model.bit_fingerprints()[bit] for bit in (3, 18, 0, 14)]
    assert [report.bit for report in part.bits_] == [3, 5, 0, 1]
    assert len(model[-2:].generations) == 1
    assert extended(model[-2:], digits).generations[-1].generation_.number == 2


def test_where_bits_came_from(first, digits):
    model = extended(first, digits, name="all ten")
    one, last = model.provenance()[0], model.provenance()[-1]
    assert (one.generation, one.n_points, one.name) == (0, int((digits[1] < 7).sum()), None)
    assert (last.generation, last.n_points, last.name, last.method) == (1, 1797, "all ten", "ILH")
    assert one.data != last.data
    assert one.seed != last.seed
    assert last.date is not None
    assert len(model.training_rows(18)) == 300
    assert not np.array_equal(model.training_rows(18), model.training_rows(5))


@pytest.mark.parametrize("kind", ["kernel", "trees"])
def test_functions_of_another_kind(first, digits, kind, tmp_path):
    model = first[:].set_params(hash_function=kind, n_centers=20, n_trees=3)
    model.extend(4, *digits, check=False)
    assert {function.kind for function in model.functions_} == {"linear", kind}
    model.save(tmp_path / "model")
    assert np.array_equal(ilhash.load(tmp_path / "model").transform(digits[0]), model.transform(digits[0]))


def test_files_and_copies(first, digits, tmp_path):
    model = extended(first, digits, name="ten")
    model.save(tmp_path / "model")
    loaded = ilhash.load(tmp_path / "model")
    assert loaded.fingerprint() == model.fingerprint()
    assert loaded.provenance() == model.provenance()
    assert loaded.bit_fingerprints() == model.bit_fingerprints()
    assert np.array_equal(copy.deepcopy(loaded).transform(digits[0]), model.transform(digits[0]))
    assert loaded.extend(2, *digits, check=False).fingerprint() == extended(model, digits, 2).fingerprint()
    refitted = loaded.fit(digits[0], digits[1], check=False)
    assert len(refitted.generations) == 1


@pytest.mark.parametrize("harm", ["number", "nested", "another kind"])
def test_forged_generations_are_refused(first, digits, tmp_path, harm):
    from tests.fuzz.models import Model

    extended(first, digits).save(tmp_path / "model")
    forged = Model(tmp_path / "model")
    one = forged.document["generations"][1]
    if harm == "number":
        one["generation"]["number"] = 0
    elif harm == "nested":
        one["generations"] = []
    else:
        one["model"] = "Mix"
    forged.write(tmp_path / "forged")
    with pytest.raises(ilhash.StorageError, match="generation"):
        ilhash.load(tmp_path / "forged")


def test_a_checkpoint_of_a_generation(first, digits, tmp_path):
    want = extended(first, digits).fingerprint()
    model = first[:].extend(3, *digits, check=False, checkpoint=tmp_path / "run")
    assert len(list((tmp_path / "run").glob("bit-*"))) == 3
    assert extended(first, digits, checkpoint=tmp_path / "run").fingerprint() == want
    with pytest.raises(ValueError, match="must be of the same model and data"):
        extended(model, digits, checkpoint=tmp_path / "run")


def test_pairs_after_labels(first, digits):
    X, y = digits
    rng = np.random.default_rng(0)
    i, j = rng.integers(len(X), size=(2, 4000))
    pairs = np.column_stack([i, j, np.where(y[i] == y[j], 1, -1)])[i != j]
    model = first[:].extend(4, X, pairs=pairs, check=False)
    assert model.n_bits == 17


def test_a_failure_leaves_the_model(first, digits):
    model = first[:]
    X, y = digits
    for given, said in (
        ((0, X, y), "n must be a whole number of at least 1"),
        ((4, X[:, :5], y), "5 features"),
        ((4, X, y[:-1]), "one entry per row"),
    ):
        with pytest.raises(ValueError, match=said):
            model.extend(*given)
    with pytest.raises(ValueError, match="name must be a text of one line"):
        model.extend(2, X, y, name="two\nlines")
    with pytest.raises(ValueError, match="focus must be labels of y, got 1 others"):
        model.extend(2, X, y, focus=[77])
    assert model.fingerprint() == first.fingerprint()
    with pytest.raises(ValueError, match="of one generation to grow, got 2"):
        ilhash.grow(extended(first, digits), X, y, max_bits=30)


@pytest.mark.parametrize(("classes", "n_others"), [([8, 9], 500), ([6, 7, 8, 9], None)])
def test_half_of_the_points_are_of_the_focus_and_others_are_not_few(digits, classes, n_others):
    _, y = digits
    labels = focused(y, classes)
    known, own = labels.codes >= 0, np.isin(y, classes)
    assert (known & ~own).sum() == (n_others or own.sum())
    assert known[own].all()
    assert len(labels.names) == 10
    assert np.array_equal(labels.codes, focused(y, classes).codes)
    assert not np.array_equal(labels.codes, focused(y, classes, seed=1).codes)


def test_a_focus_keeps_points_withheld_that_were(digits):
    _, y = digits
    held = ilhash.HoldOut(n_queries=100, n_report=80).labels(y)
    labels = focused(held, [7, 8, 9])
    assert np.isin(held.withheld, labels.withheld).all()
    assert (labels.codes[labels.withheld] < 0).all()
    assert len(labels.withheld) > len(held.withheld)


def test_a_focus_is_labels_that_one_could_give(first, digits):
    X, y = digits
    short = first[:].extend(4, X, y, focus=[7, 8, 9], check=False)
    assert short.fingerprint() == first[:].extend(4, X, focused(y, [7, 8, 9]), check=False).fingerprint()
    assert short.add_bits(2, X, focused(y, [7, 8, 9])).n_bits == 19


@pytest.mark.filterwarnings("ignore:too few points for n_similar")
@pytest.mark.parametrize("n_members", [60, 90])
def test_points_that_a_focus_leaves_out_are_not_points_without_a_label(digits, n_members):
    X, y = digits
    base, queries = np.arange(len(y)) < 1200, np.flatnonzero((np.arange(len(y)) >= 1200) & (y == 9))
    kept = base & ((y != 9) | (np.cumsum(base & (y == 9)) <= n_members))
    items, labels, old = X[kept], y[kept], y[kept] != 9
    model = ILH(n_bits=32, n_similar=20).fit(items[old], labels[old], check=False)

    def share_of_new(one):
        index = HammingIndex(one.transform(items), n_bits=one.n_bits)
        return (labels[index.search(one.transform(X[queries]), 10).ids] == 9).mean()

    focus = model[:].extend(16, items, labels, focus=[9], check=False)
    assert focus.generations[1].start_["kind"] == "random"
    assert share_of_new(focus) > share_of_new(model)


def test_a_focus_takes_fewer_points_of_many():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 4)), np.minimum(np.arange(20_000) % 7, 2)
    model = ILH(n_bits=1, n_similar=5, n_dissimilar=5).fit(X, y, check=False)
    assert model.n_train_ == 5_000
    focus = model[:].extend(1, X, y, focus=[0, 1], check=False)
    assert [part.n_train_ for part in focus.generations] == [5_000, 4_000]
    again = focus[:].add_bits(1, X, focused(y, [0, 1]))
    assert again[:2].fingerprint() == focus.fingerprint()
    assert again.generations[1].n_train_ == 4_000
    assert focus.extend(1, X, y, check=False).generations[2].n_train_ == 5_000
    plain = model[:].set_params(n_train=300).extend(1, X, y, focus=[1], check=False)
    assert plain.generations[1].n_train_ == 300


def test_a_mix_is_extended(digits, old, tmp_path):
    mix = Mix([methods.ITQ(n_bits=8), ILH(n_bits=8, **QUICK)]).fit(*old, check=False)
    before = mix.fingerprint()
    mix.extend(5, *digits, name="later")
    assert mix.family_.tolist() == [0] * 8 + [1] * 13
    assert mix[:16].fingerprint() == before
    assert [one.method for one in mix.provenance()] == ["ITQ"] * 8 + ["ILH"] * 13
    mix.save(tmp_path / "mix")
    assert ilhash.load(tmp_path / "mix").provenance() == mix.provenance()
    with pytest.raises(ValueError, match="family must be one that is ILH"):
        mix.extend(1, *digits, family=0)
    with pytest.raises(ValueError, match="must have a family that is ILH to be extended, got ITQ"):
        Mix([methods.ITQ(n_bits=8)]).fit(digits[0]).extend(1, *digits)


def test_models_are_joined(digits, first):
    X, _ = digits
    itq = methods.ITQ(n_bits=6).fit(X)
    both = ilhash.join(extended(first, digits), itq)
    three = ilhash.join(both, itq, first)
    assert three.n_bits == 19 + 6 + 6 + 13
    parts = [codes.unpack(model.transform(X), model.n_bits) for model in (extended(first, digits), itq, itq, first)]
    assert np.array_equal(codes.unpack(three.transform(X), three.n_bits), np.hstack(parts))
    assert len(three.families_) == 4
    assert three.bit_fingerprints()[-13:] == first.bit_fingerprints()
    with pytest.raises(ValueError, match="same features, got 64, 5"):
        ilhash.join(itq, methods.LSH(n_bits=3).fit(X[:, :5]))
    for wrong in ((), ("model",)):
        with pytest.raises(TypeError, match="models must be"):
            ilhash.join(*wrong)


def test_files_of_before_are_of_one_generation(tmp_path, first):
    first.save(tmp_path / "model")
    from tests.fuzz.models import Model

    earlier = Model(tmp_path / "model")
    del earlier.document["generation"]
    earlier.write(tmp_path / "earlier")
    loaded = ilhash.load(tmp_path / "earlier")
    assert loaded.provenance()[0].date is None
    assert loaded.generation_.root_seed == loaded.seed_
    assert json.dumps(loaded.start_)
