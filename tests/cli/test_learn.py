"""``ilhash learn``, and what ``info`` and ``verify`` say of feedback."""

import numpy as np
import pytest

import ilhash
from ilhash.feedback import FILE


@pytest.fixture
def judged(tmp_path, digits):
    """A model that tells 0 to 4 from 5 to 9, and judgements by digit of what it shows."""
    X, y = digits
    ilhash.ILH(32, n_similar=10, n_dissimilar=10, n_train=300).fit(X, y // 5).save(tmp_path / "model")
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, len(X), (1200, 2))
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (y[pairs[:, 0]] // 5 == y[pairs[:, 1]] // 5)]
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "ids.txt").write_text("".join(f"digit {row}\n" for row in range(len(X))))
    with ilhash.Feedback.open(tmp_path / "log") as log:
        ends = [[f"digit {row}" for row in column] for column in pairs.T.tolist()]
        log.add(*ends, y[pairs[:, 0]] == y[pairs[:, 1]])
        log.add("digit 0", "a stranger", time=0.0)
    return tmp_path


def learn(folder, *more):
    given = ("--feedback", folder / "log", "--vectors", folder / "X.npy", "--ids", folder / "ids.txt")
    return ("learn", folder / "model", *given, "-o", folder / "new", *more)


def test_learn_saves_what_the_library_learns(judged, digits, ilhash_command):
    out = ilhash_command(*learn(judged)).out
    with ilhash.Feedback.open(judged / "log", writable=False) as log:
        ids = (judged / "ids.txt").read_text().splitlines()
        wanted = ilhash.learn(ilhash.load(judged / "model"), digits[0], log.pairs(ids))
    assert wanted.better
    new = ilhash.load(judged / "new")
    assert np.array_equal(new.transform(digits[0]), wanted.model.transform(digits[0]))
    assert new.provenance()[-1].name == "feedback"
    assert "1 judgement about unknown ids" in out
    assert f"learnt {wanted.n_new} new bits" in out
    assert f"{wanted.before:.3f} with the model as it is, {wanted.after:.3f} with new bits" in out
    given = ("--vectors", judged / "X.npy", "--ids", judged / "ids.txt")
    assert " ".join(map(str, ("ilhash index -o INDEX --follow", judged / "new", *given))) in out
    ilhash_command("encode", judged / "model", judged / "X.npy", "-o", judged / "codes.npy")
    ilhash_command("index", judged / "codes.npy", "--ids", judged / "ids.txt", "-o", judged / "index")
    ilhash_command("index", "-o", judged / "index", "--follow", judged / "new", *given)
    with ilhash.HammingIndex.open(judged / "index", writable=False) as index:
        assert index.n_bits == 32 + wanted.n_new
        assert np.array_equal(index.codes(ids), wanted.model.transform(digits[0]))


def test_what_does_not_help_is_not_written(judged, digits, ilhash_command):
    with ilhash.Feedback.open(judged / "other") as log:
        pairs = np.random.default_rng(2).permutation(len(digits[0]))[:400].reshape(-1, 2)
        log.add(pairs[:, 0], pairs[:, 1], np.arange(200) % 2 == 0)  # which mean nothing
    given = ("--feedback", judged / "other", "--vectors", judged / "X.npy", "-o", judged / "new")
    assert "nothing was written: new bits do not surely help" in ilhash_command("learn", judged / "model", *given).out
    assert not (judged / "new").exists()


def test_learn_refuses_what_does_not_fit(judged, ilhash_command):
    (judged / "ids.txt").write_text("one\n")
    assert "--ids must have one id per vector" in ilhash_command(*learn(judged), code=2).err
    names = "".join(f"{row}\n" for row in range(1797))
    (judged / "ids.txt").write_text(names)
    assert "none that count" in ilhash_command(*learn(judged), code=2).err


def test_info_and_verify_know_feedback(judged, ilhash_command):
    out = ilhash_command("info", judged / "log").out
    assert "feedback: " in out
    assert "ids are texts" in out
    assert "judged from 1970-01-01T00:00:00" in out
    assert "nothing damaged" in ilhash_command("verify", judged / "log").out
    data = bytearray((judged / "log" / FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (judged / "log" / FILE).write_bytes(data)
    assert "damaged" in ilhash_command("verify", judged / "log", code=1).out
