"""Archives of arrays from strangers: what NumPy reads, or one sentence, in memory that their size explains."""

import io
import tracemalloc
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from ilhash.storage import DamagedFileError, from_npz, to_npz

PATH = Path("some.npz")
NUMBERS = st.sampled_from(["<f4", "<f8", ">f4", "<i8", "|u1", "|b1", "<u2", "<f2"])


@contextmanager
def at_most(megabytes):
    """Fail where more memory is taken meanwhile."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes * 2**20, f"{peak / 2**20:.0f} MiB"


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text("abcdef_ü", min_size=1, max_size=8),
        NUMBERS.flatmap(lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0))),
        max_size=4,
    ),
    st.booleans(),
)
def test_arrays_come_back_as_numpy_reads_them(arrays, fortran):
    given = {name: np.asfortranarray(one) if fortran else one for name, one in arrays.items()}
    data = to_npz(given)
    found = from_npz(data, PATH)
    with np.load(io.BytesIO(data), allow_pickle=False) as wanted:
        assert set(found) == set(wanted) == set(arrays)
        for name, own in found.items():
            assert (own.dtype, own.shape) == (wanted[name].dtype, wanted[name].shape)
            assert own.tobytes() == wanted[name].tobytes()
            assert own.flags.writeable


def test_what_packs_too_well_is_written_as_it_is():
    zeros = {"zeros": np.zeros(10_000_000, np.uint8), "more": np.arange(3)}
    data = to_npz(zeros)
    assert len(data) > 10_000_000
    np.testing.assert_array_equal(from_npz(data, PATH)["zeros"], zeros["zeros"])
    assert len(to_npz({"a": np.arange(10_000)})) < 40_000


def _archive(content, method=zipfile.ZIP_DEFLATED, claimed=None, names=("a.npy",)):
    """Return an archive of one content under some names, which claims another size than there is."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name in names:
            archive.writestr(name, content)
        if claimed is not None:
            for entry in archive.infolist():
                entry.file_size = claimed  # in the directory at the end, which readers believe
    return buffer.getvalue()


def _npy(shape, dtype="<f4", content=b"", order="False"):
    head = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


def test_a_shape_that_is_not_there_takes_no_memory():
    with at_most(1):
        for shape in ("(1000000000000,)", "(1000000, 1000000)", "(3, 4)", "(4611686018427387904, 4)", "(0, 5, )"):
            with pytest.raises(DamagedFileError, match=r"must hold the \d+ bytes of its shape"):
                from_npz(_archive(_npy(shape, content=b"1234")), PATH)
    assert from_npz(_archive(_npy("(1,)", content=b"1234")), PATH)["a"].shape == (1,)


def test_bombs_are_refused_or_read_as_far_as_they_claim():
    bomb = _archive(_npy("(134217728,)", "|u1", bytes(2**27)))
    assert len(bomb) < 2**20
    with at_most(4), pytest.raises(DamagedFileError, match="must unpack to at most"):
        from_npz(bomb, PATH)
    small = _npy("(8,)", "|u1", bytes(8))
    hidden = _archive(small[:-8] + bytes(2**27), claimed=len(small))
    with at_most(4), pytest.raises(DamagedFileError, match="must be an archive of arrays"):
        from_npz(hidden, PATH)  # its content does not match its CRC
    overlapping = _archive(bytes(2**20), names=[f"{i}.npy" for i in range(64)])
    with at_most(4), pytest.raises(DamagedFileError, match="must unpack to at most"):
        from_npz(overlapping, PATH)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_without_a_bound_are_refused(method):
    with pytest.raises(DamagedFileError, match="must be stored or deflated, got another method for 1"):
        from_npz(_archive(_npy("(1,)", content=b"1234"), method), PATH)


@pytest.mark.parametrize(
    ("content", "names", "words"),
    [
        (_npy("(1,)", "|O", bytes(8)), ["a.npy"], "another header"),
        (_npy("(1,)", "<U4", bytes(16)), ["a.npy"], "another header"),
        (_npy("(1,)", "<M8", bytes(8)), ["a.npy"], "another header"),
        (_npy("(1,)", "<f3", bytes(3)), ["a.npy"], "TypeError"),
        (_npy("(-1,)", content=bytes(4)), ["a.npy"], "another header"),
        (_npy("(1,)", content=bytes(4))[:40], ["a.npy"], "another header"),
        (b"", ["a.npy"], "another header"),
        (_npy("(1,)", content=bytes(4)), ["a.txt"], "got 1 files of which 0 are"),
    ],
)
def test_what_is_no_plain_array_is_refused(content, names, words):
    with pytest.raises(DamagedFileError, match=words):
        from_npz(_archive(content, names=names), PATH)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_of_one_name_are_refused():
    with pytest.raises(DamagedFileError, match="got 2 files of which 1 are"):
        from_npz(_archive(_npy("(1,)", content=bytes(4)), names=["a.npy", "a.npy"]), PATH)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x05\x06", bytes(1000)])
def test_what_is_no_archive_is_refused(data):
    with pytest.raises(DamagedFileError, match="must be an archive of arrays"):
        from_npz(data, PATH)


def test_an_encrypted_archive_is_refused():
    data = bytearray(_archive(_npy("(1,)", content=bytes(4))))
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    with pytest.raises(DamagedFileError, match="must be an archive of arrays"):
        from_npz(bytes(data), PATH)


def test_any_change_gives_arrays_or_one_sentence():
    """Nobody checks a SHA-256 here: whatever NumPy or zipfile trip over must come out as the documented kind."""
    rng = np.random.default_rng(0)
    whole = to_npz({"x": rng.normal(size=(7, 3)), "y": np.arange(40), "z": np.zeros(900)})
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.integers(256)
        if rng.random() < 0.2:
            del data[rng.integers(len(data)) :]
        try:
            found = from_npz(bytes(data), PATH)
        except DamagedFileError:
            refused += 1
        else:
            assert all(isinstance(one, np.ndarray) for one in found.values())
    assert refused > 1500
