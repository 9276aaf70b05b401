"""The command line, as a person runs it: a process, its output and its exit code."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import ilhash


def ilhash_command(*arguments, check=True):
    run = subprocess.run([sys.executable, "-m", "ilhash", *map(str, arguments)], capture_output=True, text=True)
    if check:
        assert run.returncode == 0, run.stderr
    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory, digits):
    folder = tmp_path_factory.mktemp("files")
    X, y = digits
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return folder


def test_fit_encode_info(files, digits):
    out = ilhash_command(
        "fit", files / "X.npy", "--labels", files / "y.npy", "--bits", 12, "--n-similar", 20, "-o", files / "m"
    )
    assert "trained 12 bits on 1,797 vectors" in out.stdout
    out = ilhash_command("encode", files / "m", files / "X.npy", "-o", files / "codes.npy")
    assert "12 bits (2 bytes)" in out.stdout
    codes = np.load(files / "codes.npy")
    assert np.array_equal(codes, ilhash.load(files / "m").transform(digits[0]))
    assert json.loads((files / "codes.npy.json").read_text())["n_bits"] == 12
    out = ilhash_command("info", files / "m").stdout
    assert "12 bits, 64 features, functions: linear" in out
    assert "2 disjoint sets, then a fresh permutation" in out
    assert "training accuracy" in out


def test_other_methods_are_fitted_encoded_and_told_about(files, digits):
    X, y = digits
    out = ilhash_command(
        "fit", files / "X.npy", "--method", "itq", "--bits", 12, "--set", "iterations=5", "-o", files / "i"
    )
    assert "trained 12 bits on 1,797 vectors" in out.stdout
    ilhash_command("encode", files / "i", files / "X.npy", "-o", files / "itq.npy")
    wanted = ilhash.methods.ITQ(n_bits=12, iterations=5).fit(X)
    assert np.array_equal(np.load(files / "itq.npy"), wanted.transform(X))
    out = ilhash_command("info", files / "i").stdout
    assert "ITQ 12 bits, 64 features, functions: linear" in out
    assert "parameters other than default: {'iterations': 5, 'n_bits': 12}" in out
    ilhash_command(
        "fit",
        "digits",
        "--method",
        "ClassifierCode",
        "--C",
        0.1,
        "--set",
        "code=scores",
        "--seed",
        3,
        "-o",
        files / "c",
    )
    wanted = ilhash.methods.ClassifierCode(code="scores", C=0.1, random_state=3).fit(X, y)
    assert np.array_equal(ilhash.load(files / "c").transform(X), wanted.transform(X))
    ilhash_command("fit", files / "X.npy", "--method", "Sign", "-o", files / "sign")
    assert len(ilhash.load(files / "sign").functions_) == 64


def test_methods_are_listed():
    out = ilhash_command("methods").stdout
    assert all(name in out for name in ("ILH", *ilhash.methods.available()))


def test_same_seed_same_model_from_python_and_command_line(files, digits):
    ilhash_command("fit", files / "X.npy", "--labels", files / "y.npy", "--bits", 3, "--seed", 5, "-o", files / "s")
    with pytest.warns(UserWarning, match="too few points"):
        model = ilhash.ILH(n_bits=3, random_state=5).fit(*digits)
    assert np.array_equal(ilhash.load(files / "s").transform(digits[0]), model.transform(digits[0]))


def test_pairs_affinity_and_datasets_by_name(files, digits):
    _, y = digits
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(y), (2, 40_000))
    pairs = np.unique(np.stack([np.minimum(i, j), np.maximum(i, j)], axis=1)[i != j], axis=0)
    weights = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 1, -1)
    np.save(files / "pairs.npy", np.column_stack([pairs, weights]))
    half = scipy.sparse.coo_array((weights.astype(float), pairs.T), shape=(len(y), len(y)))
    scipy.sparse.save_npz(files / "graph.npz", scipy.sparse.csr_array(half + half.T))
    ilhash_command("fit", files / "X.npy", "--pairs", files / "pairs.npy", "--bits", 2, "-o", files / "p")
    ilhash_command("fit", files / "X.npy", "--affinity", files / "graph.npz", "--bits", 2, "-o", files / "g")
    X = np.load(files / "X.npy")
    assert np.array_equal(ilhash.load(files / "p").transform(X), ilhash.load(files / "g").transform(X))
    out = ilhash_command("fit", "digits", "--bits", 2, "--n-similar", 20, "-o", files / "d")
    assert "1,797 vectors" in out.stdout


def test_data_list_and_help():
    out = ilhash_command("data", "list").stdout
    assert all(name in out for name in ("digits", "mnist", "cifar10-gist", "endless", "ILHASH_DATA"))
    for command in ("fit", "encode", "info", "methods", "data", "demo"):
        assert "Usage" in ilhash_command(command, "--help").stdout
    assert ilhash.__version__ in ilhash_command("--version").stdout


def test_errors_are_one_sentence_with_exit_code_2_and_nothing_is_written(files):
    missing = files / "nothing.npy"
    for arguments in (
        ("fit", missing, "-o", files / "e"),
        ("fit", files / "X.npy", "--labels", missing, "-o", files / "e"),
        ("fit", files / "X.npy", "--labels", files / "X.npy", "-o", files / "e"),
        ("fit", files / "X.npy", "--labels", files / "y.npy", "--bits", 0, "-o", files / "e"),
        ("fit", files / "X.npy", "--labels", files / "y.npy", "--n-train", "few", "-o", files / "e"),
        ("fit", files / "X.npy", "--affinity", files / "X.npy", "-o", files / "e"),
        ("fit", files / "X.npy", "--labels", files / "y.npy", "-o", files),
        ("fit", files / "X.npy", "--method", "XYZ", "-o", files / "e"),
        ("fit", files / "X.npy", "--method", "ITQ", "--diversity", "t", "-o", files / "e"),
        ("fit", files / "X.npy", "--method", "ITQ", "--set", "speed=9", "-o", files / "e"),
        ("fit", files / "X.npy", "--method", "ITQ", "--set", "iterations", "-o", files / "e"),
        ("fit", files / "X.npy", "--method", "ITQ", "--pairs", files / "X.npy", "-o", files / "e"),
        ("fit", files / "X.npy", "--method", "STH", "-o", files / "e"),
        ("encode", files / "nothing", files / "X.npy", "-o", files / "e.npy"),
        ("encode", files / "nothing", files / "X.npy", "-o", files / "e.txt"),
        ("info", files / "nothing"),
    ):
        run = ilhash_command(*arguments, check=False)
        assert run.returncode == 2, run.stderr
        assert run.stderr.startswith("error: ")
        assert "Traceback" not in run.stderr
        assert run.stderr.count("\n") == 1
    assert not (files / "e").exists()
    assert not (files / "e.npy").exists()


def test_nothing_is_overwritten_without_force(files):
    base = ("fit", "digits", "--bits", 1, "--n-similar", 20, "-o", files / "keep")
    ilhash_command(*base)
    run = ilhash_command(*base, check=False)
    assert run.returncode == 2
    assert "--force" in run.stderr
    ilhash_command(*base, "--force")


def test_demo_draws_a_picture(tmp_path):
    out = ilhash_command("demo", "--output", tmp_path, "--bits", 32).stdout
    assert "precision@10" in out
    assert ilhash.evaluation.Protocol(n_queries=400, k=(10, 50, 100)).hash in out
    with ilhash.HammingIndex.open(tmp_path / "index-32-bits", writable=False) as index:
        assert len(index) == 1_397
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
