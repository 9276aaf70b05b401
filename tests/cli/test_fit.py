"""``ilhash fit`` trains what the library trains, and passes on what was given alone."""

import json

import numpy as np
import pytest
import scipy.sparse

import ilhash
from ilhash import ILH, HoldOut, Mix

FEW = ("--n-similar", 20, "--n-dissimilar", 20)


@pytest.fixture
def trained(files, ilhash_command):
    """Fit with these options; returns the output and the model."""

    def run(name, *options, vectors=files / "X.npy"):
        out = ilhash_command("fit", vectors, *options, "-o", files / name).out
        return out, ilhash.load(files / name)

    return run


def test_same_seed_same_model_from_python_and_command_line(files, digits, trained):
    out, model = trained("m", "--labels", files / "y.npy", "--bits", 3, "--seed", 5, *FEW, "--n-jobs", 2)
    assert "trained 3 bits on 1,797 vectors of 64 dimensions" in out
    wanted = ILH(n_bits=3, random_state=5, n_similar=20, n_dissimilar=20, n_jobs=2).fit(*digits)
    assert model.get_params() == wanted.get_params()
    assert np.array_equal(model.transform(digits[0]), wanted.transform(digits[0]))


def test_what_is_not_given_is_left_to_the_estimator(files, trained):
    _, model = trained("few", "--labels", files / "y.npy", "--bits", 1, *FEW)
    assert model.get_params() == ILH(1, n_similar=20, n_dissimilar=20).get_params()
    _, model = trained("sign", "--method", "Sign")
    assert model.get_params() == ilhash.methods.Sign().get_params()


def test_every_option_is_a_parameter(files, trained):
    _, model = trained(
        *("all", "--labels", files / "y.npy", "--bits", 2, "--diversity", "tf", "--sampling", "random", *FEW),
        *("--n-train", 600, "--objective", "ksh", "--hash-function", "kernel", "--centers", "private", "--C", 2.5),
        *("--scaling", "whole", "--n-features", 7, "--mac", "--unlabeled", "none", "--seed", 4, "-j", 1),
        *("--set", "n_centers=30", "--set", "block_order=fixed"),
    )
    given = {"n_bits": 2, "diversity": "tf", "sampling": "random", "n_train": 600, "objective": "ksh", "C": 2.5}
    given |= {"hash_function": "kernel", "centers": "private", "scaling": "whole", "n_features": 7, "mac": True}
    given |= {"unlabeled": None, "random_state": 4, "n_jobs": 1, "n_centers": 30, "block_order": "fixed"}
    assert model.get_params() == ILH(n_similar=20, n_dissimilar=20, **given).get_params()


def test_other_methods(files, digits, trained):
    X, y = digits
    out, model = trained("itq", "--method", "itq", "--bits", 12, "--set", "max_iter=5")
    assert "trained 12 bits on 1,797 vectors" in out
    wanted = ilhash.methods.ITQ(n_bits=12, max_iter=5).fit(X)
    assert np.array_equal(model.transform(X), wanted.transform(X))
    options = ("--method", "ClassifierCode", "--C", 0.1, "--set", "code=scores", "--seed", 3)
    _, model = trained("class", *options, vectors="digits")
    wanted = ilhash.methods.ClassifierCode(code="scores", C=0.1, random_state=3).fit(X, y)
    assert np.array_equal(model.transform(X), wanted.transform(X))


def test_a_mix_with_points_held_out(files, digits, trained):
    out, mix = trained(
        *("mix", "--labels", files / "y.npy", "--method", "ilh:8+itq:7", "--n-similar", 10),
        *("--n-train", 300, "--seed", 3, "--hold-out", 120, "--hold-out-classes", 2),
    )
    assert "trained 15 bits" in out
    models = [ILH(8, n_similar=10, n_train=300, random_state=3), ilhash.methods.ITQ(7, n_train=300, random_state=3)]
    wanted = Mix(models).fit(digits[0], HoldOut(120, classes=2).labels(digits[1]))
    assert np.array_equal(mix.transform(digits[0]), wanted.transform(digits[0]))


def test_pairs_and_affinity(files, digits, trained):
    X, y = digits
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(y), (2, 40_000))
    pairs = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)[i != j], axis=0)
    weights = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    np.save(files / "pairs.npy", np.column_stack([pairs, weights]))
    half = scipy.sparse.coo_array((weights.astype(float), pairs.T), shape=(len(y), len(y)))
    scipy.sparse.save_npz(files / "graph.npz", scipy.sparse.csr_array(half + half.T))
    _, by_pairs = trained("p", "--pairs", files / "pairs.npy", "--bits", 2)
    _, by_graph = trained("g", "--affinity", files / "graph.npz", "--bits", 2)
    assert np.array_equal(by_pairs.transform(X), by_graph.transform(X))


def test_a_dataset_by_name_has_labels(digits, trained):
    out, model = trained("named", "--bits", 2, *FEW, vectors="digits")
    assert "1,797 vectors" in out
    wanted = ILH(2, n_similar=20, n_dissimilar=20).fit(*digits)
    assert np.array_equal(model.transform(digits[0]), wanted.transform(digits[0]))


def test_nothing_is_overwritten_without_force(files, ilhash_command):
    base = ("fit", "digits", "--bits", 1, *FEW, "-o", files / "keep")
    ilhash_command(*base)
    assert "--force" in ilhash_command(*base, code=2).err
    ilhash_command(*base, "--force")


REFUSED = [
    ("no vectors", "does not exist", "fit nothing.npy"),
    ("no labels", "does not exist", "fit X.npy --labels nothing.npy"),
    ("labels that are vectors", "must hold one integer or string per item", "fit X.npy --labels X.npy"),
    ("no bits", "n_bits must be", "fit X.npy --labels y.npy --bits 0"),
    ("points in words", "--n-train must be 'auto' or a number", "fit X.npy --labels y.npy --n-train few"),
    ("a dense affinity", "--affinity must be a file", "fit X.npy --affinity X.npy"),
    ("an unknown method", "method must be one of", "fit X.npy --method XYZ"),
    ("a parameter of others", "got diversity", "fit X.npy --method ITQ --diversity t"),
    ("an unknown parameter", "got speed", "fit X.npy --method ITQ --set speed=9"),
    ("a setting without a value", "--set must be name=value", "fit X.npy --method ITQ --set iterations"),
    ("pairs for ITQ", "pairs must be None for ITQ", "fit X.npy --method ITQ --pairs X.npy"),
    ("pairs for a mix", "pairs must be None for a mix with CCAITQ", "fit X.npy --method ilh:8+ccaitq:8 --pairs X.npy"),
    ("a checkpoint for ITQ", "checkpoint", "fit X.npy --method ITQ --checkpoint new-checkpoint"),
    ("a method without labels", "labels", "fit X.npy --method STH"),
    ("bits of a mix in words", "--method must be like ilh:64+itq:64", "fit X.npy --method ilh:8+itq:x"),
    ("an unknown part", "method must be one of", "fit X.npy --method ilh:8+xyz:9"),
    ("bits of a mix twice", "--bits must stand in --method", "fit X.npy --method ilh:8+itq:8 --bits 9"),
    ("a parameter of no part", "one of its methods, got C", "fit X.npy --method itq:8+lsh:8 --C 1"),
    ("held out without labels", "--hold-out must be given with --labels", "fit X.npy --hold-out 9"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "command"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_one_sentence_with_exit_code_2_and_nothing_written(files, ilhash_command, monkeypatch, words, command):
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    refused = ilhash_command(*command.split(), "-o", "new", code=2)
    assert refused.err.startswith("error: ")
    assert refused.err.count("\n") == 1
    assert words in refused.err
    assert sorted(files.rglob("*")) == before


def test_one_table_of_ids_labels_and_features(files, tmp_path, digits, trained, ilhash_command):
    """Vectors, labels and ids come from columns of one file; a label that is a feature, too, is refused."""
    X, y = digits[0][:300], digits[1][:300].astype(object)
    y[::7] = ""
    table = tmp_path / "table.csv"
    rows = [",".join(["id", "digit", *(f"x{j}" for j in range(64)), "note"])]
    rows += [",".join([f"p{i}", str(y[i]), *(f"{v:g}" for v in X[i]), "some text"]) for i in range(300)]
    table.write_text("\n".join(rows) + "\n")
    refused = ilhash_command("fit", table, "--labels", f"{table}::digit", "-o", tmp_path / "no", code=2).err
    assert "in line 3; table.csv::!digit leaves it out" in refused  # some digits are missing
    vectors = f"{table}::!digit"
    _, model = trained("of a table", "--labels", f"{table}::digit", "--bits", 3, "--n-similar", 5, vectors=vectors)
    wanted = ILH(3, n_similar=5).fit(X, np.where(y == "", None, y))
    assert np.array_equal(model.transform(X), wanted.transform(X))
    ilhash_command("encode", files / "of a table", vectors, "-o", tmp_path / "c.npy")
    ilhash_command("index", tmp_path / "c.npy", "-o", tmp_path / "idx", "--ids", f"{table}::id")
    found = json.loads(ilhash_command("search", tmp_path / "idx", tmp_path / "c.npy", "-k", 1, "--json").out)
    assert found[0]["distances"] == [0]
    assert found[0]["ids"][0].startswith("p")
    ids = ilhash_command("index", tmp_path / "c.npy", "-o", tmp_path / "idx2", "--ids", f"{table}::digit", code=2).err
    assert "an id for every item, got none for 43 of 300" in ids
    measured = ("evaluate", tmp_path / "c.npy", "--labels", f"{table}::digit", "--n-queries", 50, "-k", 5)
    assert "queries" in ilhash_command(*measured).out


def test_a_label_that_is_a_feature_too_is_refused(tmp_path, digits, ilhash_command):
    np.savetxt(tmp_path / "t.csv", np.column_stack([digits[1], digits[0]])[:200], delimiter=",", comments="",
               header=",".join(["digit", *(f"x{j}" for j in range(64))]))  # fmt: skip
    table = tmp_path / "t.csv"
    for command in ("fit", "grow"):
        refused = ilhash_command(command, table, "--labels", f"{table}::digit", "-o", tmp_path / "no", code=2).err
        assert "must leave out the column 'digit', which --labels takes" in " ".join(refused.split())
        assert f"{table}::!digit" in "".join(refused.split())
