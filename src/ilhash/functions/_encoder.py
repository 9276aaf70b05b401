"""All functions of a model at once: those that can share work are stacked into one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.functions._base import HashFunction
from ilhash.functions._kernel import KernelFunction
from ilhash.functions._linear import LinearFunction, padded_weights

__all__ = ["GATHER_BELOW", "Encoder"]

# Linear functions of d out of D features: below this share of features, and from this number of vectors on, it is
# faster to gather features than to multiply by a matrix that is mostly zeros (measured: benchmarks/encode.py).
GATHER_BELOW = 0.25
GATHER_ROWS = 64

Chunk = NDArray[np.float32]


@dataclass(frozen=True)
class _Group:
    bits: list[int]
    margins: Callable[[Chunk], NDArray[np.float32]]


class Encoder:
    """Margins of many hash functions for chunks of vectors relative to the origin."""

    def __init__(self, functions: Sequence[HashFunction], n_features: int) -> None:
        self.n_bits = len(functions)
        self._groups = list(_groups(functions, n_features))

    def margins(self, chunk: Chunk) -> NDArray[np.float32]:
        """Return float32 (rows, bits)."""
        if len(self._groups) == 1:
            return self._groups[0].margins(chunk)
        out = np.empty((len(chunk), self.n_bits), np.float32)
        for group in self._groups:
            out[:, group.bits] = group.margins(chunk)
        return out


def _groups(functions: Sequence[HashFunction], n_features: int) -> list[_Group]:
    shelves: dict[object, list[int]] = {}
    for bit, function in enumerate(functions):
        shelves.setdefault(_shelf(function, bit, n_features), []).append(bit)
    return [_Group(bits, _stack([functions[bit] for bit in bits], n_features)) for bits in shelves.values()]


def _shelf(function: HashFunction, bit: int, n_features: int) -> object:
    """Functions on one shelf are computed together."""
    if isinstance(function, LinearFunction):
        few = function.features is not None and len(function.features) < GATHER_BELOW * n_features
        return ("gathered", len(function.weights)) if few else "product"
    if isinstance(function, KernelFunction):
        return ("kernel", id(function.basis))
    return bit


def _stack(functions: list[HashFunction], n_features: int) -> Callable[[Chunk], NDArray[np.float32]]:
    if all(isinstance(function, LinearFunction) for function in functions):
        linear = [function for function in functions if isinstance(function, LinearFunction)]
        few = linear[0].features is not None and len(linear[0].features) < GATHER_BELOW * n_features
        return _gathered(linear, n_features) if few else _product(linear, n_features)
    if all(isinstance(function, KernelFunction) for function in functions):
        return _kernel([function for function in functions if isinstance(function, KernelFunction)])
    (only,) = functions
    return lambda chunk: only.margins(chunk)[:, None]


def _product(functions: list[LinearFunction], n_features: int) -> Callable[[Chunk], NDArray[np.float32]]:
    weights = np.ascontiguousarray(padded_weights(functions, n_features).T)
    bias = np.array([function.bias for function in functions], np.float32)

    def margins(chunk: Chunk) -> NDArray[np.float32]:
        out = chunk @ weights
        out += bias
        return np.asarray(out)

    return margins


def _gathered(functions: list[LinearFunction], n_features: int) -> Callable[[Chunk], NDArray[np.float32]]:
    product = _product(functions, n_features)
    weights = np.stack([function.weights for function in functions])
    columns = np.stack([function.features for function in functions if function.features is not None])
    bias = np.array([function.bias for function in functions], np.float32)

    def margins(chunk: Chunk) -> NDArray[np.float32]:
        if len(chunk) < GATHER_ROWS:
            return product(chunk)
        out = np.empty((len(chunk), len(functions)), np.float32)
        _core.project_subsets(chunk, weights, columns, bias, out)
        return out

    return margins


def _kernel(functions: list[KernelFunction]) -> Callable[[Chunk], NDArray[np.float32]]:
    basis = functions[0].basis
    weights = np.stack([function.weights for function in functions], axis=1)
    bias = np.array([function.bias for function in functions], np.float32)

    def margins(chunk: Chunk) -> NDArray[np.float32]:
        out = basis.of(chunk) @ weights
        out += bias
        return np.asarray(out)

    return margins
