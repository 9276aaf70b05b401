"""A column of codes that says what it is: an extension type of Arrow, "ilhash.codes", over fixed-size binary.

The number of bits, their order and the fingerprint of the model travel with the column, through Arrow's files and
streams and through Parquet. Who does not know the type reads the same bytes as plain fixed-size binary.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_count
from ilhash._extras import require
from ilhash._fingerprints import FINGERPRINT, fingerprint_of
from ilhash.storage import DamagedFileError

_pa = require("pyarrow", "io", "ilhash.ties.arrow")
_ExtensionType: Any = _pa.ExtensionType

__all__ = ["NAME", "CodesType", "from_arrow", "to_arrow"]

NAME = "ilhash.codes"
ORDER = "msb_first"  # the most significant bit of a byte is the first, as everywhere in ilhash
MOST_BITS = 65_535
LONGEST = 1_000  # characters of a description


class CodesType(_ExtensionType):  # type: ignore[misc]
    """The type of a column of codes.

    Parameters
    ----------
    n_bits : int, bits of a code
    model : fitted model or its fingerprint, optional, what made the codes

    Examples
    --------
    >>> CodesType(12).storage_type
    FixedSizeBinaryType(fixed_size_binary[2])
    """

    def __init__(self, n_bits: int, model: Any = None) -> None:
        self.n_bits = check_count("n_bits", n_bits, 1, MOST_BITS)
        self.model = fingerprint_of(model)
        super().__init__(_pa.binary(packed.bytes_per_code(self.n_bits)), NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        """Return what travels with a column."""
        return json.dumps({"n_bits": self.n_bits, "bit_order": ORDER, "model": self.model}).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> CodesType:
        """Make the type of what travelled with a column, by whomever it was written."""
        about = _described(serialized)
        made = cls(about["n_bits"], about["model"])
        if made.storage_type != storage_type:
            rule = f"a column of codes of {made.n_bits} bits must be of {made.storage_type}"
            raise DamagedFileError(f"{rule}, got {storage_type}")
        return made


def _described(serialized: bytes) -> dict[str, Any]:
    rule = f"a column of codes must say n_bits, bit_order {ORDER!r} and model"
    try:
        about = json.loads(bytes(serialized)[:LONGEST])
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or about.get("bit_order") != ORDER or set(about) != {"n_bits", "bit_order", "model"}:
        raise DamagedFileError(f"{rule}, got {bytes(serialized)[:80]!r}")
    n_bits, model = about["n_bits"], about["model"]
    whole = isinstance(n_bits, int) and not isinstance(n_bits, bool) and 1 <= n_bits <= MOST_BITS
    if not whole or not (model is None or (isinstance(model, str) and re.fullmatch(FINGERPRINT, model))):
        raise DamagedFileError(f"{rule}, got {bytes(serialized)[:80]!r}")
    return about


try:
    _pa.register_extension_type(CodesType(8))
except _pa.ArrowKeyError:  # somebody, perhaps this module before it was reloaded, has registered the name
    _pa.unregister_extension_type(NAME)
    _pa.register_extension_type(CodesType(8))


def to_arrow(codes: Any, n_bits: int, model: Any = None) -> Any:
    """Return codes as a column of Arrow.

    Parameters
    ----------
    codes : uint8 array (n, ceil(n_bits / 8)), packed codes
    n_bits : int, bits of a code
    model : fitted model or its fingerprint, optional, by default what codes of ``ilhash.open_codes`` say

    Returns
    -------
    pyarrow.ExtensionArray of :class:`CodesType`

    Examples
    --------
    >>> column = to_arrow(np.array([[160, 128]], np.uint8), 9)
    >>> column.type.n_bits, from_arrow(column).tolist()
    (9, [[160, 128]])
    """
    kind = CodesType(n_bits, getattr(codes, "model", None) if model is None else model)
    array = np.ascontiguousarray(packed.check(codes, kind.n_bits))
    storage = _pa.Array.from_buffers(kind.storage_type, len(array), [None, _pa.py_buffer(array)])
    return _pa.ExtensionArray.from_storage(kind, storage)


def from_arrow(column: Any, n_bits: int | None = None) -> NDArray[np.uint8]:
    """Return the codes of a column of Arrow.

    Parameters
    ----------
    column : pyarrow.Array or ChunkedArray, of :class:`CodesType`, or fixed-size binary without a description
    n_bits : int, optional, bits of a code; must be given where the column does not say

    Returns
    -------
    uint8 array (n, ceil(n_bits / 8)), packed codes; bits and model stand in ``column.type``

    Examples
    --------
    >>> import numpy as np
    >>> from_arrow(to_arrow(np.array([[160]], np.uint8), 3)).tolist()
    [[160]]
    """
    if not isinstance(column, _pa.Array | _pa.ChunkedArray):
        raise TypeError(f"column must be an array of pyarrow, got {type(column).__name__}")
    known = column.type.n_bits if isinstance(column.type, CodesType) else None
    wanted = known if n_bits is None else check_count("n_bits", n_bits, 1, MOST_BITS)
    if wanted is None:
        raise ValueError(f"n_bits must be given for a column that does not say it, got one of {column.type}")
    if known is not None and wanted != known:
        raise ValueError(f"n_bits must be that of the column ({known}), got {wanted}")
    if column.null_count:
        raise ValueError(f"column must have a code in every row, got {column.null_count} of {len(column)} without")
    chunks = column.chunks if isinstance(column, _pa.ChunkedArray) else [column]
    parts = [_bytes_of(chunk, packed.bytes_per_code(wanted)) for chunk in chunks]
    joined = np.concatenate(parts) if parts else np.zeros((0, packed.bytes_per_code(wanted)), np.uint8)
    return packed.check(joined, wanted, "column")


def _bytes_of(chunk: Any, width: int) -> NDArray[np.uint8]:
    storage = getattr(chunk, "storage", chunk)
    if not _pa.types.is_fixed_size_binary(storage.type) or storage.type.byte_width != width:
        raise ValueError(f"column must be of {width} bytes a row, got {storage.type}")
    if not len(storage):
        return np.zeros((0, width), np.uint8)
    data = np.frombuffer(storage.buffers()[1], np.uint8)
    first = storage.offset * width
    return data[first : first + len(storage) * width].reshape(-1, width)
