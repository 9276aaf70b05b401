"""The loop over blocks: every row once and in order, for any number of threads; what fails names its rows."""

import threading

import numpy as np
import pytest

from ilhash import ILH, methods
from ilhash.encoding import _shards, _stream, stream, write_codes
from ilhash.parallel import _blas

X = np.random.default_rng(0).normal(size=(1000, 7)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_stream, "BLOCK_BYTES", 4 * 7 * 64)


@pytest.mark.parametrize("n_threads", [1, 2, 5, None])
@pytest.mark.parametrize("stretch", [(0, None), (100, 900), (3, 4), (5, 5)])
def test_every_row_comes_once_and_in_order(n_threads, stretch):
    first, last = stretch[0], len(X) if stretch[1] is None else stretch[1]
    parts = list(stream(lambda rows, block: (rows, block.copy()), X, *stretch, n_threads))
    assert all(rows == seen and len(block) == rows.stop - rows.start <= 64 for rows, (seen, block) in parts)
    whole = np.concatenate([block for _, (_, block) in parts]) if parts else X[:0]
    assert np.array_equal(whole, X[first:last])


def test_a_very_wide_matrix_is_streamed_row_by_row(monkeypatch):
    monkeypatch.setattr(_stream, "BLOCK_BYTES", 8)
    assert len(list(stream(lambda rows, block: len(block), X[:5]))) == 5


def test_only_a_few_blocks_are_read_ahead():
    read, lock = [], threading.Lock()

    class Watched(np.ndarray):
        def __getitem__(self, which):
            if isinstance(which, slice):
                with lock:
                    read.append(which)
            return super().__getitem__(which)

    results = stream(lambda rows, block: rows.stop, X.view(Watched), n_threads=2)
    next(results)
    assert len(read) <= 3
    assert [result for _, result in results][-1] == 1000


@pytest.mark.parametrize("make", [lambda: ILH(n_bits=5, n_similar=10, n_dissimilar=10), lambda: methods.LSH(n_bits=5)])
def test_blocks_change_no_code_and_a_block_with_nan_is_named(make):
    model = make().fit(X, np.arange(1000) % 3)
    margins = model.decision_function(X)
    assert np.allclose(margins, np.concatenate([model.decision_function(X[i : i + 10]) for i in range(0, 1000, 10)]))
    assert np.array_equal(model.transform(X), np.packbits(margins > 0, axis=1))
    some = np.concatenate([block for _, block in model.encode_blocks(X, 100, 700, n_threads=2)])
    assert np.array_equal(some, model.transform(X)[100:700])
    bad = X.copy()
    bad[[70, 71], 0] = np.nan
    with pytest.raises(ValueError, match=r"X\[64:128\] must be finite .* got 2 of 64 rows that hold NaN"):
        model.transform(bad)


def test_threads_end_when_writing_fails_even_if_the_error_is_kept(tmp_path, monkeypatch):
    model = methods.LSH(n_bits=8).fit(X)
    honest, calls = _shards.write_file, []

    def full(*arguments, **options):
        calls.append(arguments)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return honest(*arguments, **options)

    monkeypatch.setattr(_shards, "write_file", full)
    with pytest.raises(OSError, match="No space left") as kept:
        write_codes(model, X, tmp_path / "codes", rows_per_shard=100)
    assert kept.value.__traceback__ is not None
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ilhash-encode")]
    assert _blas._inside == 0


@pytest.mark.parametrize("n_threads", [0, -2, "two"])
def test_a_wrong_number_of_threads_is_refused(n_threads):
    with pytest.raises(ValueError, match="n_threads must be a whole number from 1 on, or -1 for one per core"):
        list(methods.LSH(n_bits=8).fit(X).encode_blocks(X, n_threads=n_threads))
