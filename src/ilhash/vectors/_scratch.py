"""Float32 arrays that a thread keeps between bits: fresh memory costs page faults on every bit otherwise."""

from __future__ import annotations

import math
import threading

import numpy as np
from numpy.typing import NDArray

_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return an uninitialised array; the next call with the same name in this thread gives the same memory again."""
    size = math.prod(shape)
    arrays: dict[str, NDArray[np.float32]] = _kept.__dict__
    if name not in arrays or not size <= arrays[name].size <= 4 * size + 1024:
        arrays[name] = np.empty(size, np.float32)
    return arrays[name][:size].reshape(shape)
