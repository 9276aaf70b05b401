"""Packed codes and every other layout of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilhash import codes

PAIRS = {
    "lsb_first": (codes.to_lsb_first, codes.from_lsb_first),
    "int8_offset": (codes.to_int8_offset, codes.from_int8_offset),
    "int8_view": (codes.to_int8_view, codes.from_int8_view),
    "hex": (codes.to_hex, codes.from_hex),
    "text": (codes.to_text, codes.from_text),
}


def some_bits(n, bits, seed):
    return np.random.default_rng(seed).random((n, bits)) < 0.5


tables = st.builds(some_bits, st.integers(0, 20), st.integers(1, 70), st.integers(0, 2**32 - 1))


@given(tables)
@settings(deadline=None, max_examples=100)
def test_packing_goes_both_ways(table):
    n, bits = table.shape
    packed = codes.pack(table)
    assert packed.shape == (n, codes.bytes_per_code(bits))
    back = codes.unpack(packed, bits)
    assert back.dtype == np.bool_
    assert np.array_equal(back, table)


@pytest.mark.parametrize("layout", PAIRS)
@given(table=tables)
@settings(deadline=None, max_examples=60)
def test_every_layout_goes_both_ways(layout, table):
    there, back = PAIRS[layout]
    bits = table.shape[1]
    packed = codes.pack(table)
    before = packed.copy()
    other = there(packed, bits)
    assert len(other) == len(packed)
    returned = back(other, bits)
    assert returned.dtype == np.uint8
    assert np.array_equal(returned, packed)
    assert np.array_equal(packed, before)  # no input is written


@given(tables)
@settings(deadline=None, max_examples=60)
def test_layouts_mean_what_they_say(table):
    bits = table.shape[1]
    packed = codes.pack(table)
    assert codes.to_text(packed, bits) == ["".join("01"[b] for b in row) for row in table.tolist()]
    assert codes.to_hex(packed, bits) == [row.tobytes().hex() for row in packed]
    assert np.array_equal(codes.to_lsb_first(packed, bits), np.packbits(table, axis=1, bitorder="little"))
    assert np.array_equal(codes.to_int8_offset(packed, bits), packed.astype(int) - 128)
    view = codes.to_int8_view(packed, bits)
    assert np.array_equal(view.astype(int), np.where(packed < 128, packed.astype(int), packed.astype(int) - 256))


def test_columns_of_a_larger_array_convert_too():
    wide = codes.pack(some_bits(9, 64, 0))
    part = wide[::2, 1:4]
    for there, back in PAIRS.values():
        assert np.array_equal(back(there(part, 24), 24), part)


def test_views_share_memory():
    packed = codes.pack(some_bits(4, 16, 0))
    assert np.shares_memory(codes.to_int8_view(packed, 16), packed)
    assert not np.shares_memory(codes.to_int8_offset(packed, 16), packed)


@pytest.mark.parametrize("n_bits", [0, -8, 2.0, True, "8"])
def test_a_number_of_bits_is_a_positive_whole_number(n_bits):
    for function in (codes.bytes_per_code, lambda b: codes.unpack(np.zeros((1, 1), np.uint8), b)):
        with pytest.raises(ValueError, match="n_bits must be a whole number of at least 1"):
            function(n_bits)


def test_wrong_width_and_dtype_are_refused():
    for bad in (np.zeros((3, 1), np.uint8), np.zeros((3, 2)), np.zeros(2, np.uint8), [[1, 2]]):
        for function in (codes.unpack, codes.to_lsb_first, codes.to_hex, codes.to_text, codes.to_int8_view):
            with pytest.raises(ValueError, match="codes of 9 bits must be a 2-D uint8 array of 2 columns, got shape"):
                function(bad, 9)
    with pytest.raises(ValueError, match="codes of 9 bits must be a 2-D int8 array of 2 columns"):
        codes.from_int8_view(np.zeros((3, 2), np.uint8), 9)
    with pytest.raises(ValueError, match="2-D array of bool, got shape \\(2, 8\\) float64"):
        codes.pack(np.zeros((2, 8)))
    with pytest.raises(ValueError, match="2-D array of bool"):
        codes.pack(np.zeros((2, 0), bool))
    with pytest.raises(ValueError, match="base_codes must be a 2-D uint8 array"):
        codes.check(np.zeros((2, 0), np.uint8), None, "base_codes")


def test_padding_must_be_zero_and_offenders_are_counted():
    packed = np.array([[0, 0b11100000], [0, 0b11110000], [0, 1]], np.uint8)
    message = "zeros in the 5 padding bits after bit 11, got others in 2 of 3 rows"
    with pytest.raises(ValueError, match=f"queries must have {message}"):
        codes.check(packed, 11, "queries")
    foreign = {
        codes.from_lsb_first: np.packbits(np.unpackbits(packed, axis=1), axis=1, bitorder="little"),
        codes.from_int8_offset: (packed.astype(int) - 128).astype(np.int8),
        codes.from_int8_view: packed.view(np.int8),
        codes.from_hex: [row.tobytes().hex() for row in packed],
    }
    for function, other in foreign.items():
        with pytest.raises(ValueError, match=message):
            function(other, 11)
    assert codes.check(packed, 16) is packed
    assert codes.check(packed) is packed


@pytest.mark.parametrize(
    ("function", "texts", "message"),
    [
        (codes.from_hex, ["00ff", "00f"], "4 hexadecimal digits each for 12 bits, got 1 of 2 rows of another length"),
        (codes.from_hex, ["00f0", "0x10", "no f"], "got 2 of 3 rows with other characters, the first '0x10'"),
        (codes.from_hex, ["00 0"], "other characters"),
        (codes.from_hex, ["00\u0660\u0660"], "other characters"),  # digits, but Arabic ones
        (codes.from_hex, [b"00f0"], "1 of 1 rows that are no str"),
        (codes.from_text, ["010101010101", "0101"], "12 characters '0' or '1' each, got 1 of 2 rows of another length"),
        (codes.from_text, ["010101010102"], "1 of 1 rows with other characters"),
        (codes.from_text, [12], "no str"),
    ],
)
def test_bad_text_is_refused(function, texts, message):
    with pytest.raises(ValueError, match=message):
        function(texts, 12)


def test_one_text_is_not_a_list_of_texts():
    for function in (codes.from_hex, codes.from_text):
        with pytest.raises(TypeError, match="sequence of str, got one str"):
            function("0101", 4)


def test_text_may_be_upper_case_and_a_numpy_array():
    assert codes.from_hex(np.array(["0AF0", "ffF0"]), 12).tolist() == [[10, 240], [255, 240]]
    assert codes.from_text(np.array(["101"]), 3).tolist() == [[160]]
    assert codes.from_text([], 3).shape == (0, 1)
