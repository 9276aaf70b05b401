"""The single-bit objective: any loss of Hamming distances becomes one quadratic form.

For one bit, a loss of a pair of points can take two values only: f(0) where their bits are equal and f(1) where they
differ. Hence f(z_n, z_m) = a z_n z_m + constant with a = (f(0) - f(1)) / 2 (section 3 and appendix A of the paper), and
the whole objective is E(z) = z'Az with a zero diagonal. A loss is therefore written here as a function of the Hamming
distance (0 or 1) and of the affinity y (> 0 similar, < 0 dissimilar)::

    def loss(distance, y): ...

Two remarks on the paper's text, both covered by tests:

* *BRE as printed is degenerate for one bit.* With codes in {-1,+1} and y half a squared distance scaled to [0, 1/2],
  its coefficient -4 (2 - y) is negative for every pair, so that all points want the same bit. Our ``"bre"`` is the
  supervised form: codes in {0,1} and targets 0 for similar and 1 for dissimilar points.
* *MLH for one bit is not constant* (appendix A says it is): a dissimilar pair costs lambda (rho + 1) at distance 0 and
  lambda rho at distance 1. It is a quadratic form like the others; see :func:`minimal_loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ilhash._checks import as_numbers, check_positive, is_number

Loss = Callable[[int, NDArray[np.float64]], NDArray[np.float64]]

__all__ = ["OBJECTIVES", "Loss", "bre", "bre_as_printed", "coefficients", "couplings", "energy", "ksh", "laplacian"]
__all__ += ["minimal_loss", "resolve"]


def laplacian(distance: int, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Binary Laplacian loss y ||z_n - z_m||^2; codes in {-1,+1} differ by 4 where they differ.

    Parameters
    ----------
    distance : {0, 1}, whether the bits of two points differ
    y : float64 array, affinities: above 0 similar, below 0 dissimilar

    Returns
    -------
    float64 array, the loss of each pair

    Examples
    --------
    >>> laplacian(1, np.array([1.0, -1.0]))
    array([ 4., -4.])
    """
    return np.asarray(4.0 * _bit(distance) * as_numbers("y", y))


def ksh(distance: int, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Supervised hashing with kernels, (z_n z_m - y)^2: for one bit the Laplacian plus a constant.

    Parameters
    ----------
    distance : {0, 1}, whether the bits of two points differ
    y : float64 array, affinities: above 0 similar, below 0 dissimilar

    Returns
    -------
    float64 array, the loss of each pair

    Examples
    --------
    >>> ksh(0, np.array([1.0, -1.0]))
    array([0., 4.])
    """
    return np.asarray(((1.0 - 2.0 * _bit(distance)) - as_numbers("y", y)) ** 2)


def bre(distance: int, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Supervised binary reconstructive embedding, (d - t)^2 with target t = (1 - y) / 2 and codes in {0,1}.

    y = +1 asks for distance 0 and y = -1 for distance 1: a quarter of the Laplacian, up to a constant.

    Parameters
    ----------
    distance : {0, 1}, whether the bits of two points differ
    y : float64 array, affinities: above 0 similar, below 0 dissimilar

    Returns
    -------
    float64 array, the loss of each pair

    Examples
    --------
    >>> bre(1, np.array([1.0, -1.0]))
    array([1., 0.])
    """
    return np.asarray((_bit(distance) - (1.0 - as_numbers("y", y)) / 2.0) ** 2)


def bre_as_printed(distance: int, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 2 of the paper for one bit: (||z_n - z_m||^2 - y)^2, y half a squared distance in [0, 1/2].

    Kept for study. All its coefficients -4 (2 - y) are negative, so training with it is refused.

    Parameters
    ----------
    distance : {0, 1}, whether the bits of two points differ
    y : float64 array, half a squared distance of each pair, scaled to [0, 1/2]

    Returns
    -------
    float64 array, the loss of each pair
    """
    return np.asarray((4.0 * _bit(distance) - as_numbers("y", y)) ** 2)


def _bit(distance: Any) -> float:
    """Return a distance between bits of two points."""
    if not is_number(distance) or distance not in (0, 1):
        raise ValueError(f"distance must be 0 or 1, got {distance!r}")
    return float(distance)


def minimal_loss(rho: float = 1.0, lam: float = 1.0) -> Loss:
    """Minimal loss hashing (Norouzi and Fleet 2011): hinge losses around a distance of rho bits.

    Parameters
    ----------
    rho : float, default 1.0, distance around which the loss turns
    lam : float, default 1.0, weight lambda of pairs that are not similar

    Returns
    -------
    callable, a loss(distance, y)

    Examples
    --------
    >>> loss = minimal_loss(rho=1, lam=1)
    >>> coefficients(loss, np.array([1.0, -1.0]))
    array([-0.5,  0.5])
    """
    check_positive("rho", rho)
    check_positive("lam", lam)

    def loss(distance: int, y: NDArray[np.float64]) -> NDArray[np.float64]:
        similar = max(distance - rho + 1.0, 0.0)
        dissimilar = lam * max(rho - distance + 1.0, 0.0)
        return np.where(y > 0, similar, dissimilar)

    return loss


OBJECTIVES: dict[str, Loss] = {"laplacian": laplacian, "ksh": ksh, "bre": bre}


def resolve(objective: str | Loss) -> Loss:
    """Return the loss that a name or a callable stands for.

    Parameters
    ----------
    objective : str or callable, a name in ``OBJECTIVES``, or a loss(distance, y)

    Returns
    -------
    callable, the loss

    Examples
    --------
    >>> resolve("ksh") is ksh
    True
    """
    if callable(objective):
        return objective
    if isinstance(objective, str) and objective in OBJECTIVES:
        return OBJECTIVES[objective]
    names = ", ".join(repr(name) for name in OBJECTIVES)
    raise ValueError(f"objective must be one of {names} or a callable loss(distance, y), got {objective!r}")


def coefficients(objective: str | Loss, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a_nm for affinities y_nm: the loss is a_nm z_n z_m up to a constant.

    Parameters
    ----------
    objective : str or callable, a name in ``OBJECTIVES``, or a loss(distance, y)
    y : float64 array, affinities

    Returns
    -------
    float64 array, one coefficient per affinity

    Examples
    --------
    >>> coefficients("laplacian", np.array([1.0, -1.0]))
    array([-2.,  2.])
    """
    loss = resolve(objective)
    y = as_numbers("y", y)
    equal, different = np.asarray(loss(0, y), dtype=np.float64), np.asarray(loss(1, y), dtype=np.float64)
    a = np.broadcast_to((equal - different) / 2.0, y.shape)
    if not np.isfinite(a).all():
        bad = int(np.count_nonzero(~np.isfinite(a)))
        raise ValueError(f"objective must give finite losses, got {bad} of {a.size} pairs that are not")
    return a


def couplings(objective: str | Loss, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return w_nm = -a_nm: positive where two points attract each other, negative where they repel.

    Refuses an objective under which no pair repels: the constant code is then the optimum and nothing can be learnt.

    Parameters
    ----------
    objective : str or callable, a name in ``OBJECTIVES``, or a loss(distance, y)
    y : float64 array, affinities

    Returns
    -------
    float64 array, one coupling per affinity
    """
    w = -coefficients(objective, y)
    if w.size and not (w < 0).any():
        raise ValueError(
            "objective must make some pairs repel each other (dissimilar points), got none among "
            f"{w.size} pairs: the constant code is the optimum then, as for BRE as printed in the paper; "
            "give dissimilar pairs too, or use objective='laplacian'"
        )
    return w


def energy(A: Any, z: NDArray[Any]) -> float:
    """Return E(z) = z'Az for a dense or sparse A.

    Parameters
    ----------
    A : array or sparse matrix (N, N), coefficients
    z : array (N,), bits of -1 and +1

    Returns
    -------
    float, the energy
    """
    z = as_numbers("z", z)
    A = A if scipy.sparse.issparse(A) else as_numbers("A", A)
    if z.ndim != 1 or A.shape != (len(z), len(z)):
        raise ValueError(f"A must be square, with one row per value of z, got shapes {A.shape} and {z.shape}")
    return float(z @ (A @ z))
