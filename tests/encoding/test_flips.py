"""Files of codes and checkpoints of which a byte is another, or the end is missing: an error, or the same answers."""

import contextlib
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz._mutations import flipped

import ilhash
from ilhash import ILH, methods


class Folder:
    """Some files, of which one is damaged at a time."""

    def __init__(self, path):
        self.path, self.honest = path, {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}

    def damaged(self, rng):
        """Damage a file, and say which and how; ``mend`` undoes it."""
        self.file = rng.choice(sorted(self.honest))
        how = rng.choice(["flip", "flip", "flip", "flip", "cut", "longer"])
        data = flipped(rng, self.honest[self.file], how)
        self.file.write_bytes(data)
        return f"{how} {self.file.name}", data != self.honest[self.file]

    def mend(self):
        for file in self.path.rglob("*"):
            if file.is_file() and file not in self.honest:
                file.unlink()
        for file, data in self.honest.items():
            if not file.exists() or file.read_bytes() != data:
                file.write_bytes(data)


@pytest.fixture(scope="module")
def codes(digits, tmp_path_factory):
    model, folder = methods.LSH(n_bits=20).fit(digits[0]), tmp_path_factory.mktemp("codes")
    ilhash.write_codes(model, digits[0][:90], folder / "shards", rows_per_shard=40)
    ilhash.write_codes(model, digits[0][:90], folder / "codes.npy")
    wanted, fingerprint = model.transform(digits[0][:90]), model.fingerprint()

    def same(path):
        found = ilhash.open_codes(path)
        again = found.read()
        return found.n_bits == 20 and found.model in (fingerprint, None) and np.array_equal(again, wanted)

    return {
        "shards": (Folder(folder / "shards"), lambda: same(folder / "shards")),
        "file": (Folder(folder), lambda: same(folder / "codes.npy") and same(folder / "shards")),
    }


@pytest.fixture(scope="module")
def checkpoint(digits, tmp_path_factory):
    X, y = digits[0][:300], digits[1][:300]
    folder = tmp_path_factory.mktemp("checkpoint") / "bits"

    def fit():
        model = ILH(n_bits=3, n_train=150, n_similar=2, n_dissimilar=2).fit(X, y, checkpoint=folder)
        return [function.weights.tobytes() for function in model.functions_]

    wanted = fit()
    return Folder(folder), lambda: fit() == wanted


def silent(folder, same, n, seed):
    """Return damages after which the answers are others, without a word; and how many were refused."""
    rng, found, refused = random.Random(seed), [], 0
    for _ in range(n):
        done, other = folder.damaged(rng)
        try:
            if other and not same():
                found.append(done)
        except (ilhash.StorageError, FileNotFoundError, ValueError) as error:
            refused += 1
            if "\n" in str(error):
                found.append(f"{done}: {error}")
        finally:
            folder.mend()
    return found, refused


@pytest.mark.parametrize("kind", ["shards", "file"])
def test_no_flip_of_codes_is_silent(codes, kind):
    found, refused = silent(*codes[kind], 200, 0)
    assert found == []
    assert refused > 180


def test_no_flip_of_a_checkpoint_is_silent(checkpoint):
    found, refused = silent(*checkpoint, 40, 0)
    assert found == []
    assert refused > 20


@pytest.mark.slow
def test_no_flip_is_silent_at_length(codes, checkpoint):
    for kind in ("shards", "file"):
        found, refused = silent(*codes[kind], 4000, 1)
        assert found == []
        assert refused > 3600
    found, refused = silent(*checkpoint, 2000, 1)
    assert found == []
    assert refused > 1000


def test_every_byte_of_the_description_matters(codes, tmp_path):
    """Each bit of it once: the number of bits, above all."""
    folder, _ = codes["file"]
    for name in ("codes.npy", "codes.npy.json"):
        shutil.copy(folder.path / name, tmp_path / name)
    file = Path(tmp_path / "codes.npy.json")
    honest = file.read_bytes()
    for place in range(len(honest)):
        for bit in (1, 4, 32):
            file.write_bytes(honest[:place] + bytes([honest[place] ^ bit]) + honest[place + 1 :])
            with contextlib.suppress(ilhash.StorageError):
                assert ilhash.open_codes(tmp_path / "codes.npy").n_bits == 20
