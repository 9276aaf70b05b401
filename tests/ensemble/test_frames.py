"""Models on frames: ids and labels by name, the same codes as of arrays, frames out."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from numpy.testing import assert_array_equal

import ilhash
from ilhash import ILH, Mix

FEW = {"n_similar": 10, "n_dissimilar": 10}


@pytest.fixture(scope="module")
def items(blobs):
    """A table of ids, labels and vectors."""
    X, y = blobs
    names = np.array(["north", "east", "south", "west"])[y]
    return pandas.DataFrame({"sku": [f"item {i}" for i in range(800)], "category": names, "vector": list(X)})


def as_frame(kind, table):
    if kind == "pandas":
        return table
    lists = {name: [_plain(value) for value in table[name]] for name in table.columns}
    return polars.DataFrame(lists) if kind == "polars" else pyarrow.table(lists)


def _plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return None if isinstance(value, float) and np.isnan(value) else value


def columns(table):
    """The same with a column for each number."""
    X = np.stack(table["vector"])
    return pandas.DataFrame(
        {"sku": table["sku"], **{f"x{j}": X[:, j] for j in range(10)}, "category": table["category"]}
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("spread", [False, True])
def test_a_frame_gives_the_model_of_its_vectors(items, blobs, tmp_path, kind, spread):
    X, _ = blobs
    frame = as_frame(kind, columns(items) if spread else items)
    model = ILH(8, **FEW).fit(frame, y="category", ids="sku")
    wanted = ILH(8, **FEW).fit(X, items["category"])
    assert_array_equal(model.transform(frame), wanted.transform(X))
    assert model.left_out_ == ["sku", "category"]
    if spread:
        assert list(model.feature_names_in_) == [f"x{j}" for j in range(10)]
        features = columns(items).drop(columns=["sku", "category"])
        assert_array_equal(model.transform(as_frame(kind, features)), wanted.transform(X))
    else:
        assert_array_equal(model.transform(X), wanted.transform(X))
    model.save(tmp_path / "model")
    loaded = ilhash.load(tmp_path / "model")
    assert loaded.left_out_ == ["sku", "category"]
    assert_array_equal(loaded.transform(frame), wanted.transform(X))
    assert_array_equal(loaded[:4].transform(frame), wanted[:4].transform(X))
    model.add_bits(4, frame, y="category")
    longer = ILH(12, **FEW).fit(X, items["category"])
    assert_array_equal(model.transform(frame), longer.transform(X))
    assert_array_equal(model.training_rows(9, frame, "category"), longer.training_rows(9))
    index = ilhash.HammingIndex(wanted.transform(X), n_bits=8, ids=frame["sku"])
    assert index.search(wanted.transform(X[:1]), k=3).ids[0, 0].startswith("item")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_mix_methods_grow_prune_and_tune_take_names(items, tmp_path, kind, no_clock):
    frame, X = as_frame(kind, items), np.stack(items["vector"])
    mix = Mix([ILH(8, **FEW), ilhash.methods.ITQ(8)]).fit(frame, "category", ids="sku")
    mix.save(tmp_path / "mix")
    for one in (mix, ilhash.load(tmp_path / "mix")):
        assert_array_equal(one.transform(frame), mix.transform(X))
    itq = ilhash.methods.ITQ(8).fit(as_frame(kind, items[["sku", "vector"]]), ids="sku")
    assert_array_equal(
        itq.transform(frame.drop_columns(["category"]) if kind == "pyarrow" else frame[["sku", "vector"]]),
        ilhash.methods.ITQ(8).fit(X).transform(X),
    )
    held = ilhash.HoldOut(60)
    unnamed = as_frame(kind, items[["category", "vector"]])
    growth = ilhash.grow(ILH(**FEW), unnamed, "category", max_bits=8, patience=8, held_out=held)
    assert_array_equal(growth.model.transform(unnamed), growth.model.transform(X))
    pruning = ilhash.prune(growth.pool, unnamed, "category", 4, held_out=held)
    assert_array_equal(pruning.model.transform(unnamed), growth.pool[pruning.chosen].transform(X))
    found = ilhash.tune(frame, "category", ids="sku", n_bytes=1, minutes=0.01)
    assert_array_equal(found.model.transform(frame), found.model.transform(X))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("spread", [False, True])
def test_a_model_of_a_frame_goes_on_learning_from_frames(items, blobs, kind, spread):
    X, y = blobs
    frame, names = as_frame(kind, columns(items) if spread else items), items["category"]
    model = ILH(8, **FEW).fit(frame, y="category", ids="sku", check=False)
    plain = ILH(8, **FEW).fit(X, names, check=False)
    rows = np.random.default_rng(0).permutation(800).reshape(-1, 2)
    pairs = np.column_stack([rows, np.where(y[rows[:, 0]] == y[rows[:, 1]], 1, -1)])
    for given, label in (({"focus": ["north"]}, True), ({"pairs": pairs}, False)):
        one = model[:].extend(4, frame, *(["category"] if label else []), **given, check=False)
        other = plain[:].extend(4, X, *([names] if label else []), **given, check=False)
        assert_array_equal(one.transform(frame), other.transform(X))
    seen = np.arange(800) < 400
    model = ILH(8, **FEW).fit(frame[:400] if kind != "pyarrow" else frame.slice(0, 400), "category", ids="sku")
    plain = ILH(8, **FEW).fit(X[seen], names[seen])
    one = ilhash.refresh(model, frame, "category", n_new=4, old=(frame, "category"))
    other = ilhash.refresh(plain, X, names, n_new=4, old=(X, names))
    assert (one.kept, one.before, one.old_after) == (other.kept, other.before, other.old_after)
    ours, theirs = ilhash.learn(model, frame, pairs), ilhash.learn(plain, X, pairs)
    assert (ours.n_new, ours.before, ours.after) == (theirs.n_new, theirs.before, theirs.after)


def test_labels_that_are_missing_are_unknown(items, blobs):
    X, _ = blobs
    some = items["category"].to_list()
    some[::7] = [None] * len(some[::7])
    wanted = ILH(4, **FEW).fit(X, some)
    for kind in ("pandas", "polars", "pyarrow"):
        frame = as_frame(kind, items.assign(category=some))
        model = ILH(4, **FEW).fit(frame, "category", ids="sku")
        assert model.fingerprint() == wanted.fingerprint()


def test_other_columns_are_still_refused(items):
    table = columns(items)
    model = ILH(4, **FEW).fit(table, "category", ids="sku")
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table.assign(other=1.0))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table.rename(columns={"x3": "z"}))
    with pytest.raises(ValueError, match="ids must name one column of X, got 'id'"):
        ILH(4, **FEW).fit(table, "category", ids="id")


def test_frames_come_out_where_they_are_asked_for(items):
    model = ILH(12, **FEW).fit(items, "category", ids="sku")
    codes = model.transform(items)
    pandas_out = model.set_output(transform="pandas").transform(items.set_index("sku", drop=False))
    assert list(pandas_out.index) == list(items["sku"])
    assert list(pandas_out.columns) == ["ilh_byte0", "ilh_byte1"]
    assert_array_equal(pandas_out.to_numpy(), codes)
    polars_out = model.set_output(transform="polars").transform(as_frame("polars", items))
    assert isinstance(polars_out, polars.DataFrame)
    assert_array_equal(polars_out.to_numpy(), codes)
    assert_array_equal(model.set_output(transform="default").transform(as_frame("pyarrow", items)), codes)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_codes_are_written_with_their_ids(items, tmp_path, kind):
    frame = as_frame(kind, items)
    model = ILH(8, **FEW).fit(frame, "category", ids="sku")
    for path in (tmp_path / "codes.npy", tmp_path / "shards"):
        written = ilhash.write_codes(model, frame, path, ids="sku", rows_per_shard=300)
        assert written.ids.tolist() == items["sku"].tolist()
        assert_array_equal(written.read(), model.transform(frame))
