"""The z-step: optimal bits of the training points of one bit, before any hash function is fitted.

The objective E(z) = -sum w_nm z_n z_m is NP-complete when some couplings repel (w < 0). It is lowered by exact
min-cuts on blocks of points that hold no repelling pair, one block after the other, in a new random order each sweep,
until a whole sweep changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ilhash import _core
from ilhash._checks import as_array, as_numbers, check_choice, check_count
from ilhash._parameters import MOST

__all__ = ["MAX_SWEEPS", "ZStep", "minimize", "random_start", "stays"]

MAX_SWEEPS = 1000  # graphs of nearest neighbours were seen to need 50; this only stops the hopeless


@dataclass(frozen=True)
class ZStep:
    """Outcome of a z-step."""

    z: NDArray[np.int8]  # of -1 and +1
    energies: NDArray[np.float64]  # E(z) at the start and after each sweep, never increasing
    n_blocks: int  # that were cut in turn
    converged: bool  # whether the last sweep changed nothing

    @property
    def sweeps(self) -> int:
        """Number of sweeps over all blocks, the last and idle one included."""
        return len(self.energies) - 1


def stays(start: NDArray[np.int8]) -> ZStep:
    """Return the outcome of no z-step at all."""
    return ZStep(start, np.zeros(1), 0, True)


def random_start(n: int, seed: int) -> NDArray[np.int8]:
    """Draw a start z in {-1,+1}^n."""
    n, seed = check_count("n", n, 0, MOST), check_count("seed", seed, 0)
    return (np.random.default_rng(seed).integers(0, 2, n, dtype=np.int8) * 2 - 1).astype(np.int8)


def minimize(
    graph: _core.SignedGraph,
    start: NDArray[np.int8],
    *,
    seed: int = 0,
    block_order: str = "random",
    max_sweeps: int = MAX_SWEEPS,
    field: NDArray[np.float64] | None = None,
) -> ZStep:
    """Lower E(z) = -sum_{n,m} w_nm z_n z_m - 2 sum_n field_n z_n from ``start`` by alternating min-cut.

    A block is changed only if that lowers E. The order of blocks is "fixed", or "random": a new one each sweep, drawn
    from the seed, which the paper found better. The field is the pull of the method of auxiliary coordinates.
    """
    if not isinstance(graph, _core.SignedGraph):
        raise TypeError(f"graph must be a SignedGraph, got {type(graph).__name__}")
    check_choice("block_order", block_order, ("random", "fixed"))
    bits = np.asarray(as_array("start", start))
    if bits.ndim != 1 or bits.dtype != np.int8:
        raise ValueError(f"start must be a 1-D array of int8, got shape {bits.shape} {bits.dtype}")
    pull = None if field is None else np.ascontiguousarray(as_numbers("field", field))
    if pull is not None and pull.shape != bits.shape:
        raise ValueError(f"field must have one value per point, got shape {pull.shape} for {len(bits)} points")
    seed, sweeps = check_count("seed", seed, 0, 2**64 - 1), check_count("max_sweeps", max_sweeps, 0, MOST)
    z, energies, n_blocks, converged = _core.minimise(graph, bits, seed, block_order == "random", sweeps, pull)
    return ZStep(z, energies, n_blocks, converged)
