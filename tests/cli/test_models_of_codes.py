"""Codes, shards and indexes know the model that made them: another one is refused wherever it would be used."""

import json

import numpy as np
import pytest
from tests.cli.shared import N_BASE, N_BITS, as_lists, texts

import ilhash
from ilhash import HammingIndex, methods


@pytest.fixture(scope="module")
def made(tmp_path_factory, digits):
    """Two models of as many bits, and codes of each in both forms."""
    folder = tmp_path_factory.mktemp("made")
    X = digits[0]
    np.save(folder / "X.npy", X[:100])
    for name, seed in (("own", 0), ("other", 1)):
        model = methods.LSH(n_bits=N_BITS, random_state=seed).fit(X)
        model.save(folder / name)
        ilhash.write_codes(model, X[:1000], folder / f"{name}.npy")
        ilhash.write_codes(model, X[:1000], folder / f"{name}-shards", rows_per_shard=300)
        ilhash.write_codes(model, X[1000:], folder / f"{name}-queries.npy")
    np.save(folder / "y.npy", digits[1][:1000])
    np.save(folder / "queries-y.npy", digits[1][1000:])
    np.save(folder / "bare.npy", np.load(folder / "other-queries.npy"))
    return folder


REFUSED = "must be of the model whose codes the index holds"


@pytest.mark.parametrize("form", [".npy", "-shards"])
def test_an_index_refuses_another_model(made, tmp_path, ilhash_command, form):
    ilhash_command("index", made / f"own{form}", "-o", tmp_path / "idx")
    search = ("search", tmp_path / "idx", made / "X.npy", "--json", "--model")
    own, index = ilhash.load(made / "own"), ilhash.open_codes(made / "own.npy")
    wanted = HammingIndex(index.read(), n_bits=N_BITS).search(own.transform(np.load(made / "X.npy")))
    assert json.loads(ilhash_command(*search, made / "own").out) == as_lists(wanted)
    assert REFUSED in ilhash_command(*search, made / "other", code=2).err
    assert REFUSED in ilhash_command("search", tmp_path / "idx", made / "other-queries.npy", code=2).err
    ilhash_command("search", tmp_path / "idx", made / "own-queries.npy")
    ilhash_command("search", tmp_path / "idx", made / "bare.npy")  # nobody said whose they are
    add = ("index", "-o", tmp_path / "idx", "--add")
    for other in ("other-queries.npy", "other-shards"):
        assert REFUSED in ilhash_command(*add, made / other, code=2).err
    assert "holds 1,797 items" in ilhash_command(*add, made / "own-queries.npy").out
    update = ("index", made / "other.npy", "-o", tmp_path / "idx", "--update", "--ids", made / "y.npy")
    assert REFUSED in ilhash_command(*update, code=2).err


def test_an_index_that_does_not_know_its_model_takes_all(made, tmp_path, ilhash_command):
    np.save(tmp_path / "bare.npy", np.load(made / "own.npy"))
    ilhash_command("index", tmp_path / "bare.npy", "--bits", N_BITS, "-o", tmp_path / "idx")
    for name in ("own", "other"):
        ilhash_command("search", tmp_path / "idx", made / "X.npy", "--model", made / name)
    assert "model: not known" in ilhash_command("info", tmp_path / "idx").out


def test_queries_of_another_model_are_not_evaluated(made, ilhash_command):
    rest = ("--labels", made / "y.npy", "--query-labels", made / "queries-y.npy", "--queries")
    assert "mAP" in ilhash_command("evaluate", made / "own.npy", *rest, made / "own-queries.npy").out
    refused = ilhash_command("evaluate", made / "own-shards", *rest, made / "other-queries.npy", code=2)
    assert "--queries must be of the model of the codes" in refused.err


def test_in_python_too(made, tmp_path, digits):
    own, other = (ilhash.load(made / name) for name in ("own", "other"))
    codes, X = ilhash.open_codes(made / "own.npy"), digits[0][:50]
    index = HammingIndex(codes, n_bits=N_BITS)
    assert index.model == own.fingerprint() == codes.model
    assert np.array_equal(index.search_vectors(own, X, 5).ids, index.search(own.transform(X), 5).ids)
    margins = own.decision_function(X)
    found = index.search_vectors(own, X, 5, order="asymmetric")
    assert np.array_equal(found.ids, index.search_asymmetric(margins, 5).ids)
    for refused in (
        lambda: index.search_vectors(other, X),
        lambda: index.add(ilhash.open_codes(made / "other.npy")),
        lambda: index.add_blocks(ilhash.open_codes(made / "other-shards")),
        lambda: index.update(ilhash.open_codes(made / "other.npy"), np.arange(1000)),
        lambda: index.check_model(other.fingerprint()),
    ):
        with pytest.raises(ValueError, match=REFUSED):
            refused()
    with pytest.raises(ValueError, match=f"model must have the {N_BITS} bits of the index, got 5"):
        index.check_model(own[:5])
    with pytest.raises(ValueError, match="order must be one of"):
        index.search_vectors(own, X, order="vectors")
    with pytest.raises(TypeError, match="model must be a fitted model or the fingerprint of one, got int"):
        HammingIndex(n_bits=8, model=7)
    index.save(tmp_path / "saved")
    with HammingIndex.open(tmp_path / "saved") as again:
        assert again.model == own.fingerprint()
    with pytest.raises(ValueError, match=REFUSED):
        HammingIndex.open(tmp_path / "saved", model=other)
    with HammingIndex.open(tmp_path / "new", n_bits=N_BITS, model=own) as new:
        new.add(codes.read())  # bare arrays say nothing
        assert new.model == own.fingerprint()


# ---------------------------------------------------------------------------------------------- orders


def test_orders(retrieval, arrays, tmp_path, ilhash_command):
    model, X = ilhash.load(retrieval / "model"), np.load(retrieval / "base-X.npy")
    margins = model.decision_function(X)
    HammingIndex(arrays.base, n_bits=N_BITS, margins=margins).save(tmp_path / "idx")
    index = HammingIndex(arrays.base, n_bits=N_BITS, margins=margins)
    search = ("search", tmp_path / "idx", retrieval / "queries-X.npy", "--model", retrieval / "model", "-k", 4)
    asked = model.decision_function(arrays.queries_X)
    wanted = {
        "hamming": index.search(arrays.queries, 4),
        "asymmetric": index.search_asymmetric(asked, 4),
        "margins": index.search_margins(asked, 4, shortlist=50),
        "vectors": ilhash.search.rescore(index.search(arrays.queries, 50), arrays.queries_X, X, 4),
    }
    for order, hits in wanted.items():
        more = ["--shortlist", 50] if order in ("margins", "vectors") else []
        more += ["--vectors", retrieval / "base-X.npy"] if order == "vectors" else []
        found = json.loads(ilhash_command(*search, "--order", order, *more, "--json").out)
        assert [one["ids"] for one in found] == hits.ids.tolist(), order
        assert np.allclose([one["distances"] for one in found], hits.distances)
        said = ilhash_command(*search, "--order", order, *more).out
        assert ("exact" in said) == hits.exact


def test_vectors_of_items_with_texts_as_ids(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", "--ids", retrieval / "texts.txt")
    X = np.load(retrieval / "base-X.npy")
    search = ("search", tmp_path / "idx", retrieval / "queries-X.npy", "--model", retrieval / "model", "-k", 3)
    search += ("--order", "vectors", "--shortlist", N_BASE, "--vectors", retrieval / "base-X.npy", "--json")
    found = json.loads(ilhash_command(*search, "--ids", retrieval / "texts.txt").out)
    distances = np.linalg.norm(arrays.queries_X[:, None].astype(float) - X[None], axis=2)
    places = {name: row for row, name in enumerate(texts())}
    for one, own in zip(found, distances, strict=True):
        assert np.allclose(one["distances"], np.sort(own)[:3], rtol=1e-4)
        assert np.allclose(one["distances"], own[[places[name] for name in one["ids"]]], rtol=1e-4)
    assert "row numbers of vectors" in ilhash_command(*search, code=2).err
    assert "must be" in ilhash_command(*search, "--ids", retrieval / "numbers.npy", code=2).err


def test_hits_as_csv(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", "--ids", retrieval / "texts.txt")
    ilhash_command("search", tmp_path / "idx", retrieval / "queries.npy", "-k", 2, "-o", tmp_path / "hits.csv")
    hits = HammingIndex(arrays.base, n_bits=N_BITS, ids=texts()).search(arrays.queries, 2)
    lines = (tmp_path / "hits.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "query,rank,id,distance"
    assert lines[1:4] == [
        f"{q},{rank + 1},{hits.ids[q, rank]},{hits.distances[q, rank]}" for q, rank in ((0, 0), (0, 1), (1, 0))
    ]
    assert len(lines) == 1 + 2 * len(arrays.queries)


# ---------------------------------------------------------------------------------------------- changes


def test_items_are_updated_and_removed(retrieval, arrays, tmp_path, ilhash_command):
    ilhash_command("index", retrieval / "base.npy", "-o", tmp_path / "idx", "--ids", retrieval / "texts.txt")
    names = texts()
    (tmp_path / "some.txt").write_text("\n".join(names[: len(arrays.queries)]), encoding="utf-8")
    update = ("index", retrieval / "queries.npy", "-o", tmp_path / "idx", "--update", "--ids", tmp_path / "some.txt")
    assert f"updated {len(arrays.queries)} items" in ilhash_command(*update).out
    (tmp_path / "gone.txt").write_text("\n".join(names[-100:]), encoding="utf-8")
    out = ilhash_command("index", "-o", tmp_path / "idx", "--remove", tmp_path / "gone.txt").out
    assert "removed 100 items" in out
    assert f"holds {N_BASE - 100:,} items" in out
    with HammingIndex.open(tmp_path / "idx", writable=False) as index:
        assert sorted(index.ids.tolist()) == sorted(names[:-100])
        assert np.array_equal(index.codes(names[: len(arrays.queries)]), arrays.queries)
        assert np.array_equal(index.codes(names[1000:1100]), arrays.base[1000:1100])


WRONG = [
    # what is wrong, words of the sentence, command; b: the folder of bad things, f: that of good ones
    ("no codes", "codes must be given", "index -o b/new"),
    ("two changes", "got --add and --update", "index f/base.npy -o b/idx --add --update --ids f/texts.txt"),
    ("update without ids", "--update must be given with --ids", "index f/base.npy -o b/idx --update"),
    ("remove and codes", "without codes", "index f/base.npy -o b/idx --remove f/texts.txt"),
    ("remove what is not there", "ids must be in the index", "index -o b/idx --remove f/numbers.npy"),
    ("remove from nothing", "not a store", "index -o b/new --remove f/numbers.npy"),
    ("update what is not there", "ids must be in the index", "index f/base.npy -o b/idx --update --ids f/numbers.npy"),
    ("an order", "--order must be one of", "search b/idx f/queries.npy --order best"),
    ("no model", "must be given with --model", "search b/idx f/queries.npy --order asymmetric"),
    ("no margins", "an index of codes alone", "search b/idx f/queries-X.npy --model f/model --order margins"),
    ("no vectors", "--vectors must be given together", "search b/idx f/queries-X.npy --model f/model --order vectors"),
    ("vectors", "--vectors must be given together", "search b/idx f/queries.npy --vectors f/base-X.npy"),
    ("ids alone", "--ids must be given with --vectors", "search b/idx f/queries.npy --ids f/numbers.npy"),
    ("a shortlist", "--shortlist must be given with", "search b/idx f/queries.npy --shortlist 9"),
    ("a radius", "--radius", "search b/idx f/queries-X.npy --model f/model --order asymmetric --radius 2"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_one_sentence_with_exit_code_2_and_nothing_written(is_refused, words, command):
    is_refused(words, command)


# ---------------------------------------------------------------------------------------------- info, verify


def test_info_and_verify_take_whatever_was_written(made, tmp_path, ilhash_command):
    ilhash_command("index", made / "own.npy", "-o", tmp_path / "idx")
    model = ilhash.load(made / "own").fingerprint()
    said = {
        made / "own": "LSH 13 bits, 64 features",
        made / "own.npy": "codes: 1,000 of 13 bits (2 bytes each) in one file",
        made / "own-shards": "codes: 1,000 of 13 bits (2 bytes each) in 4 shards",
        tmp_path / "idx": "index: 1,000 items of 13 bits on",
    }
    for path, words in said.items():
        out = ilhash_command("info", path).out
        assert words in out
        assert path == made / "own" or f"model: {model}" in out
        assert "nothing damaged" in ilhash_command("verify", path).out


@pytest.mark.parametrize(
    ("what", "file"),
    [
        ("own", "arrays-*"),
        ("own", "config.json"),
        ("own.npy", "own.npy"),
        ("own.npy", "own.npy.json"),
        ("own-shards", "codes-000002.npy"),
        ("own-shards", "manifest.json"),
    ],
)
def test_damages_are_named(made, tmp_path, ilhash_command, what, file):
    import shutil

    folder = shutil.copytree(made, tmp_path / "copy")
    (path,) = (folder / what).glob(file) if (folder / what).is_dir() else folder.glob(file)
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)
    verified = ilhash_command("verify", folder / what, code=1)
    assert "damaged: " in verified.out
    assert path.name.partition(".")[0] in verified.out
