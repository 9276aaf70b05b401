"""Tables with ids, labels and vectors, and sparse matrices, from file to answer without a script."""

import json

import numpy as np
import pandas
import pytest
import scipy.sparse

import ilhash

FEW = ("--bits", 13, "--set", "n_similar=20", "--set", "n_dissimilar=20")
COLUMNS = ("--ids-column", "sku", "--labels-column", "category")


@pytest.fixture
def table(digits):
    X, y = digits
    names = np.array([f"digit {label}" for label in range(10)])[y]
    return pandas.DataFrame({"sku": [f"item {i}" for i in range(len(X))], "category": names, "vector": list(X)})


@pytest.mark.parametrize("parts", [1, 3])
def test_parquet_from_fit_to_push(tmp_path, digits, table, parts, ilhash_command):
    X = digits[0]
    items, new = tmp_path / "items.parquet", tmp_path / "new.parquet"
    if parts == 1:
        table.to_parquet(items, row_group_size=500)
    else:
        items = tmp_path / "items"
        items.mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(table)), parts)):
            table.iloc[part].to_parquet(items / f"{number}.parquet", index=False)
    table[:5].to_parquet(new)
    model, codes, index = tmp_path / "model", tmp_path / "codes.npy", tmp_path / "index"
    ilhash_command("fit", items, *COLUMNS, *FEW, "-o", model)
    trained = ilhash.load(model)
    assert trained.left_out_ == ["sku", "category"]
    wanted = ilhash.ILH(13, n_similar=20, n_dissimilar=20).fit(X, table["category"])
    assert trained.fingerprint() == wanted.fingerprint()
    ilhash_command("encode", model, items, "--ids-column", "sku", "-o", codes)
    assert ilhash.open_codes(codes).ids.tolist() == table["sku"].tolist()
    ilhash_command("index", codes, "-o", index)
    found = json.loads(
        ilhash_command("search", index, new, "--model", model, "--ids-column", "sku", "-k", 3, "--json").out
    )
    assert [row["query"] for row in found] == table["sku"][:5].tolist()
    assert all(row["distances"][0] == 0 for row in found)
    assert all(text.startswith("item ") for row in found for text in row["ids"])
    url = f"sqlite:///{tmp_path / 'items.db'}"
    ilhash_command("push", codes, url)
    pushed = json.loads(ilhash_command("search", url, new, "--model", model, "-k", 3, "--json").out)
    assert [row["ids"] for row in pushed] == [row["ids"] for row in found]
    output = tmp_path / "hits.csv"
    ilhash_command("search", index, new, "--model", model, "--ids-column", "sku", "-k", 1, "-o", output)
    assert output.read_text().splitlines()[1].startswith("item 0,1,item ")
    shards = tmp_path / "shards"
    ilhash_command("encode", model, items, "--ids-column", "sku", "-o", shards, "--rows-per-shard", 700)
    ilhash_command("index", shards, "-o", tmp_path / "second")
    assert "nothing damaged" in ilhash_command("verify", shards).out
    with (
        ilhash.HammingIndex.open(tmp_path / "second", writable=False) as one,
        ilhash.HammingIndex.open(index, writable=False) as other,
    ):
        assert len(one) == len(other) == len(table)


def test_a_parquet_table_learns_and_its_index_follows(tmp_path, digits, table, ilhash_command):
    y, items, index = digits[1], tmp_path / "items.parquet", tmp_path / "index"
    table["category"] = np.where(y < 5, "small", "large")
    table.to_parquet(items)
    ilhash_command("fit", items, *COLUMNS, "--bits", 32, "--set", "n_similar=20", "-o", tmp_path / "model")
    ilhash_command("encode", tmp_path / "model", items, "--ids-column", "sku", "-o", tmp_path / "codes.npy")
    ilhash_command("index", tmp_path / "codes.npy", "-o", index)
    rows = np.random.default_rng(0).integers(0, len(y), (2000, 2))
    rows = rows[(y[rows[:, 0]] // 5 == y[rows[:, 1]] // 5) & (rows[:, 0] != rows[:, 1])]
    with ilhash.Feedback.open(tmp_path / "log") as log:
        log.add(table["sku"][rows[:, 0]].tolist(), table["sku"][rows[:, 1]].tolist(), y[rows[:, 0]] == y[rows[:, 1]])
    learn = ("learn", tmp_path / "model", "--feedback", tmp_path / "log", "--vectors", items, "-o", tmp_path / "new")
    assert "since ids of --feedback are texts" in " ".join(ilhash_command(*learn, code=2).err.split())
    both = ilhash_command(*learn, "--ids-column", "sku", "--ids", "ids.txt", code=2).err
    assert "one of --ids and --ids-column must be given" in " ".join(both.split())
    out = ilhash_command(*learn, "--ids-column", "sku").out
    assert f"--follow {tmp_path / 'new'} --vectors {items} --ids-column sku" in out
    assert "must be given with --follow" in ilhash_command("index", "-o", index, "--ids-column", "sku", code=2).err
    ilhash_command("index", "-o", index, "--follow", tmp_path / "new", "--vectors", items, "--ids-column", "sku")
    with ilhash.HammingIndex.open(index, writable=False) as followed:
        wanted = ilhash.load(tmp_path / "new").transform(digits[0])
        assert np.array_equal(followed.codes(table["sku"].tolist()), wanted)


def test_csv_and_tune(tmp_path, digits, table, ilhash_command):
    X = digits[0]
    numbers = pandas.DataFrame(X, columns=[f"x{j}" for j in range(64)])
    numbers.insert(0, "number", np.arange(len(X)) + 1000)
    numbers["kind"] = digits[1]
    numbers.to_csv(tmp_path / "items.csv", index=False)
    model = tmp_path / "model"
    columns = ("--ids-column", "number", "--labels-column", "kind")
    ilhash_command("tune", tmp_path / "items.csv", *columns, "--bytes", 1, "--minutes", 0.01, "-o", model)
    ilhash_command("encode", model, tmp_path / "items.csv", "--ids-column", "number", "-o", tmp_path / "codes.npy")
    assert ilhash.open_codes(tmp_path / "codes.npy").ids.tolist() == numbers["number"].tolist()
    assert ilhash.load(model).n_features_in_ == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ids-column", "id"), "column 'id'"),
        (("--labels-column", "label"), "column 'label'"),
        (("--labels", "y.npy", "--labels-column", "category"), "one of --labels and --labels-column"),
    ],
)
def test_columns_that_are_not_there(tmp_path, table, options, words, ilhash_command):
    table.to_parquet(tmp_path / "items.parquet")
    error = ilhash_command("fit", tmp_path / "items.parquet", *options, "-o", tmp_path / "m", code=2).err
    assert words in " ".join(error.split())


def test_a_matrix_without_names_has_no_column(files, ilhash_command):
    error = ilhash_command("fit", files / "X.npy", "--labels-column", "category", "-o", files / "m", code=2).err
    assert "must be a table with a column 'category', .csv or .parquet, got .npy" in " ".join(error.split())


def test_ids_must_be_there_for_every_item(tmp_path, table, ilhash_command):
    table.loc[3, "sku"] = None
    table.to_parquet(tmp_path / "items.parquet")
    error = ilhash_command("fit", tmp_path / "items.parquet", *COLUMNS, "-o", tmp_path / "m", code=2).err
    assert "must have an id for every item, got none for 1 of 1797" in " ".join(error.split())


def test_sparse_matrices_from_fit_to_search(tmp_path, digits, ilhash_command):
    X, y = scipy.sparse.csr_array(digits[0]), digits[1]
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    scipy.sparse.save_npz(tmp_path / "new.npz", X[:4].tocsc())
    np.save(tmp_path / "y.npy", y)
    model, codes, index = tmp_path / "model", tmp_path / "codes.npy", tmp_path / "index"
    out = ilhash_command("fit", tmp_path / "X.npz", "--labels", tmp_path / "y.npy", *FEW, "-o", model).out
    assert "trained 13 bits on 1,797 vectors of 64 dimensions" in out
    wanted = ilhash.ILH(13, n_similar=20, n_dissimilar=20).fit(X, y)
    assert ilhash.load(model).fingerprint() == wanted.fingerprint()
    ilhash_command("encode", model, tmp_path / "X.npz", "-o", codes)
    np.testing.assert_array_equal(np.load(codes), wanted.transform(X))
    ilhash_command("index", codes, "-o", index)
    found = json.loads(ilhash_command("search", index, tmp_path / "new.npz", "--model", model, "--json").out)
    assert all(row["distances"][0] == 0 for row in found)
    error = ilhash_command("fit", tmp_path / "X.npz", "--method", "itq", "-o", tmp_path / "other", code=2).err
    assert "TruncatedSVD" in error
