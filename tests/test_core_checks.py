"""What the core refuses to look at: arrays of a segment and tables of trees, as a file of a stranger may hold them."""

import numpy as np
import pytest

from ilhash import _core
from ilhash.search._segment import Segment

CODES, BITS = 300, 13


def segment() -> dict[str, object]:
    rng = np.random.default_rng(5)
    codes = np.packbits(rng.random((700, BITS)) < 0.3, axis=1)
    arrays = dict(Segment.build(codes, BITS, np.arange(700)).arrays)
    names = "tiles", "offsets", "rows"
    return {"n_codes": len(arrays["offsets"]) - 1, "n_bits": BITS} | {name: arrays[name].copy() for name in names}


def test_a_segment_that_was_built_is_sound():
    _core.check_segment(**segment(), pivots=None, ranges=None)


def test_a_segment_by_pivots_is_sound(monkeypatch):
    monkeypatch.setattr("ilhash.search._segment.PIVOTS_FROM", 1)
    rng = np.random.default_rng(0)
    centres = rng.random((8, 64)) < 0.5
    bits = centres[rng.integers(0, 8, 30_000)] ^ (rng.random((30_000, 64)) < 0.05)
    built = Segment.build(np.packbits(bits, axis=1), 64, np.arange(30_000))
    names = "tiles", "offsets", "rows", "pivots", "rings"
    tiles, offsets, rows, pivots, ranges = (built.arrays.get(name) for name in names)
    assert pivots is not None
    _core.check_segment(tiles, built.n_codes, 64, offsets, rows, pivots, ranges)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("tiles", (0, 1, 5), 1, "codes must have zeros behind their last bit, got others in 1 of"),
        ("offsets", 3, 0, "offsets must begin at 0 and ascend"),
        ("offsets", 3, 2**32 - 1, "offsets must begin at 0 and ascend"),
        ("rows", 0, 700, "rows must be smaller than their number, got another number in 1 of 700"),
        ("rows", 0, 699, "no row must have two codes"),
    ],
)
def test_a_forged_segment_is_refused(name, place, value, message):
    arrays = segment()
    arrays[name][place] = value
    with pytest.raises(ValueError, match=message):
        _core.check_segment(**arrays, pivots=None, ranges=None)


def forged_ranges(**change: np.ndarray) -> dict[str, object]:
    """1,024 codes of 13 bits in four blocks, with a pivot and a range for each."""
    ranges = np.tile(np.array([0, 0, BITS], np.uint16), (4, 1))
    tiles = np.zeros((16, 2, 64), np.uint8)
    rows = np.arange(1024, dtype=np.uint32)
    return {"tiles": tiles, "rows": rows, "pivots": np.zeros((1, 2), np.uint8), "ranges": ranges} | change


FORGED = [
    ({"ranges": np.tile(np.array([0, 60_000, 65_535], np.uint16), (4, 1))}, "ranges must hold distances"),
    ({"ranges": np.tile(np.array([0, 2, 1], np.uint16), (4, 1))}, "ranges must hold distances"),
    ({"pivots": np.full((1, 2), 255, np.uint8)}, "pivots must have zeros behind their last bit"),
]


@pytest.mark.parametrize(("change", "message"), FORGED)
def test_forged_pivots_are_refused(change, message):
    arrays = forged_ranges(**change)
    with pytest.raises(ValueError, match=message):
        _core.check_segment(n_codes=1024, n_bits=BITS, offsets=None, **arrays)


@pytest.mark.parametrize(("change", "message"), FORGED)
def test_forged_pivots_do_not_lead_a_search_out_of_its_memory(change, message):
    arrays = forged_ranges(**change)
    queries = np.full((3, 2), 0xF8, np.uint8)
    _core.nearest(
        arrays["tiles"],
        1024,
        BITS,
        None,
        arrays["rows"],
        False,
        queries,
        5,
        BITS,
        1,
        arrays["pivots"],
        arrays["ranges"],
    )


def trees(**change: list[float]) -> tuple[np.ndarray, ...]:
    table = {"feature": [0, 0, 1, 0, 0], "threshold": [0.5] * 5, "left": [1, 1, 3, 3, 4], "right": [2, 1, 4, 3, 4]}
    table |= {"value": [0.0, 1, 2, 3, 4], "roots": [0, 2]} | change
    kinds = {"threshold": np.float64, "value": np.float64}
    return tuple(np.array(values, kinds.get(name, np.int32)) for name, values in table.items())


def test_sound_trees_pass():
    _core.check_trees(*trees(), 2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": [1, 1, 0, 3, 4]}, "children of a node must stand behind it"),
        ({"right": [2, 1, 9, 3, 4]}, "children of a node must stand behind it"),
        ({"feature": [0, 0, 2, 0, 0]}, "a feature of a tree is out of range"),
        ({"roots": [5]}, "a root must be a node of the table"),
        ({"roots": [-1]}, "a root must be a node of the table"),
        ({"value": [0, np.nan, 0, 0, 0]}, "values of trees must be finite, got NaN or infinity in 1 of 5"),
        ({"threshold": [np.nan] * 5}, "thresholds of trees must be numbers, got NaN in 5 of 5"),
        ({"value": [0.0]}, "columns of a table of trees must have the same length"),
    ],
)
def test_forged_trees_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        _core.check_trees(*trees(**change), 2, 2)


def test_deep_trees_are_refused():
    with pytest.raises(ValueError, match="a tree is deeper than it may be"):
        _core.check_trees(*trees(), 2, 1)
