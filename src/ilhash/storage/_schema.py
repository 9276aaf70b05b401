"""What the arrays of a file must be, declared once: their types, and lengths by name that must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.storage._damage import DamagedFileError
from ilhash.storage._reading import checked_array


@dataclass(frozen=True)
class Values:
    """What one array must be.

    Attributes
    ----------
    dtype : str, its type, exactly
    shape : tuple of int or str
        Its lengths, at least 1. A name is a length that is known, or else that of the first array which has it.
    least, most : float, optional, bounds of all values
    below : str, optional, the name of a length that all values are below
    ascending : bool, whether every row ascends, and repeats nothing
    finite : bool, whether floats must be finite
    optional : bool, whether it may be absent
    """

    dtype: str
    shape: tuple[int | str, ...]
    least: float | None = None
    most: float | None = None
    below: str | None = None
    ascending: bool = False
    finite: bool = True
    optional: bool = False

    def check(self, array: Any, name: str, lengths: dict[str, int]) -> None:
        """Refuse an array that is something else; lengths that it is the first to have are added to the known ones."""
        shape: tuple[int, ...] = getattr(array, "shape", ())
        if len(shape) == len(self.shape):
            for symbol, length in zip(self.shape, shape, strict=True):
                if length > 0 and isinstance(symbol, str):
                    lengths.setdefault(symbol, length)
        wanted = tuple(symbol if isinstance(symbol, int) else lengths.get(symbol, 1) for symbol in self.shape)
        most = self.most if self.below is None else lengths[self.below] - 1
        checked_array(array, name, self.dtype, wanted, least=self.least, most=most, finite=self.finite)
        if self.ascending and not (np.diff(array, axis=-1) > 0).all():
            raise DamagedFileError(f"{name} must ascend, got values that do not")


def check_arrays(
    arrays: Mapping[str, NDArray[Any]], schema: Mapping[str, Values], lengths: Mapping[str, int], where: str
) -> None:
    """Refuse arrays that are not those of a schema.

    Parameters
    ----------
    arrays : mapping of str to ndarray, what the file holds
    schema : mapping of str to Values, what it must hold, and nothing else
    lengths : mapping of str to int, lengths that are known
    where : str, the beginning of their names in sentences
    """
    unknown = sorted(set(arrays) - set(schema))
    if unknown:
        raise DamagedFileError(
            f"{where} must hold {', '.join(schema)}, got {len(unknown)} others such as {unknown[0]!r}"
        )
    known = dict(lengths)
    for name, values in schema.items():
        if name in arrays or not values.optional:
            values.check(arrays.get(name), f"{where}.{name}", known)
