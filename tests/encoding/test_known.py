"""Codes of an extended model: bits that were encoded before are taken, the same bytes as encoding all of them."""

import numpy as np
import pytest

import ilhash
from ilhash import ILH, codes


@pytest.fixture(scope="module")
def models(digits):
    X, y = digits
    old = ILH(n_bits=13, n_similar=8, n_train=300).fit(X[y < 7], y[y < 7], check=False)
    return old, old[:].extend(6, X, y, check=False)


@pytest.mark.parametrize("target", ["new.npy", "shards"])
@pytest.mark.parametrize("source", ["old.npy", "old"])
def test_the_same_codes(digits, models, tmp_path, source, target):
    X, _ = digits
    old, new = models
    known = ilhash.write_codes(old, X, tmp_path / source, rows_per_shard=700)
    assert list(known.bit_fingerprints) == old.bit_fingerprints()
    for number, model in enumerate((new, new[[18, 3, 14, 0]], new[[5, 2]])):
        written = ilhash.write_codes(model, X, tmp_path / f"{number}-{target}", rows_per_shard=500, known=known)
        assert np.array_equal(written.read(), model.transform(X))
        assert written.model == model.fingerprint()
        assert list(written.bit_fingerprints) == model.bit_fingerprints()


def test_only_new_bits_are_computed(digits, models, tmp_path, monkeypatch):
    X, _ = digits
    old, new = models
    known = ilhash.write_codes(old, X, tmp_path / "old.npy")
    computed, stream = [], ILH.encode_blocks

    def watched(self, *given, **named):
        computed.append(len(self.functions_))
        return stream(self, *given, **named)

    monkeypatch.setattr(ILH, "encode_blocks", watched)
    ilhash.write_codes(new, X, tmp_path / "new.npy", known=known)
    assert computed[1:] == [6], "the first call looks at X and encodes nothing"


def test_codes_of_something_else_are_refused(digits, models, tmp_path):
    X, y = digits
    old, new = models
    known = ilhash.write_codes(old, X, tmp_path / "old.npy")
    other = ILH(n_bits=5, n_similar=8, n_train=300, random_state=3).fit(X, y, check=False)
    for model, vectors, said in (
        (new, X[::-1], "known must be codes of these vectors"),
        (new, X[:-1], "known must be codes of the 1796 vectors, got 1797"),
        (other, X, "got none of them"),
    ):
        with pytest.raises(ValueError, match=said):
            ilhash.write_codes(model, vectors, tmp_path / "new.npy", known=known)
    np.save(tmp_path / "bare.npy", old.transform(X))
    with pytest.raises(ValueError, match="must say which bits it holds"):
        ilhash.write_codes(new, X, tmp_path / "new.npy", known=ilhash.open_codes(tmp_path / "bare.npy", 13))
    assert not (tmp_path / "new.npy").exists()


def test_packed_bits_are_taken_and_put_beside_each_other():
    rng = np.random.default_rng(0)
    for n, n_bits, n_more in ((0, 3, 5), (7, 8, 3), (70_000, 13, 6), (5, 1, 1), (9, 16, 8)):
        first, second = rng.random((n, n_bits)) < 0.5, rng.random((n, n_more)) < 0.5
        both = codes.beside(codes.pack(first), n_bits, codes.pack(second), n_more)
        assert np.array_equal(codes.unpack(both, n_bits + n_more), np.hstack([first, second]))
        chosen = rng.integers(n_bits + n_more, size=11)
        part = codes.take_bits(both, n_bits + n_more, chosen)
        assert np.array_equal(codes.unpack(part, 11), np.hstack([first, second])[:, chosen])
