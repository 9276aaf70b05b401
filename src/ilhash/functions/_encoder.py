"""All functions of a model at once: those that can share work are stacked into one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash.functions._anchors import AnchorFunction
from ilhash.functions._base import HashFunction
from ilhash.functions._codewords import CodewordFunction, codeword_margins
from ilhash.functions._cosine import CosineFunction
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
        return ("gathered", len(function.weights)) if _few(function, n_features) else "product"
    if isinstance(function, KernelFunction):
        return ("kernel", id(function.basis))
    if isinstance(function, AnchorFunction):
        return ("anchors", id(function.anchors))
    if isinstance(function, CodewordFunction):
        return ("codeword", id(function.scores))
    return "cosine" if isinstance(function, CosineFunction) else bit


def _few(function: LinearFunction, n_features: int) -> bool:
    return function.features is not None and len(function.features) < GATHER_BELOW * n_features


def _stack(functions: list[Any], n_features: int) -> Callable[[Chunk], NDArray[np.float32]]:
    first = functions[0]
    if isinstance(first, LinearFunction):
        return _gathered(functions, n_features) if _few(first, n_features) else _product(functions, n_features)
    if isinstance(first, KernelFunction):
        return _kernel(functions)
    if isinstance(first, CosineFunction):
        return _cosine(functions)
    if isinstance(first, AnchorFunction):
        return _anchors(functions)
    if isinstance(first, CodewordFunction):
        return _codewords(functions, n_features)
    return lambda chunk: first.margins(chunk)[:, None]


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


def _cosine(functions: list[CosineFunction]) -> Callable[[Chunk], NDArray[np.float32]]:
    weights = np.stack([function.weights for function in functions], axis=1)
    phase = np.array([function.phase for function in functions], np.float32)

    def margins(chunk: Chunk) -> NDArray[np.float32]:
        out = chunk @ weights
        out += phase
        return np.asarray(np.cos(out, out=out))

    return margins


def _anchors(functions: list[AnchorFunction]) -> Callable[[Chunk], NDArray[np.float32]]:
    anchors = functions[0].anchors
    weights = np.stack([function.weights for function in functions], axis=1)

    def margins(chunk: Chunk) -> NDArray[np.float32]:
        which, share = anchors.of(chunk)
        values = np.einsum("ns,nsb->nb", share, weights[which])
        return np.stack([function.folded(values[:, bit]) for bit, function in enumerate(functions)], axis=1)

    return margins


def _codewords(functions: list[CodewordFunction], n_features: int) -> Callable[[Chunk], NDArray[np.float32]]:
    scores = Encoder(functions[0].scores, n_features)
    words = np.stack([function.ones for function in functions])
    return lambda chunk: codeword_margins(scores.margins(chunk), words)
