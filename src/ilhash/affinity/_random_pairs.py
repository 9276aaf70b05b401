"""Random pairs as dissimilar ones, where only similar pairs are known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import check_count


def with_random_dissimilar(
    similar: Any, n_points: int, *, n_dissimilar: int | None = None, random_state: int = 0
) -> NDArray[np.int64]:
    """Join similar pairs and random other pairs, taken as dissimilar, to what ``fit(pairs=...)`` takes.

    Of many points, two at random are hardly ever similar; pairs that are known to be are not drawn. A cut by similar
    pairs alone would put all points on one side.

    Parameters
    ----------
    similar : array_like (m, 2) of int, rows of X that are similar
    n_points : int, rows of X
    n_dissimilar : int, optional, how many pairs are drawn; by default m
    random_state : int, default 0, of the draw

    Returns
    -------
    int64 array (m + n_dissimilar, 3), rows (i, j, weight): the similar pairs as given with weight 1, then the random
    ones with i < j and weight -1, each once

    Examples
    --------
    >>> with_random_dissimilar([[0, 1], [2, 3]], 4, n_dissimilar=4).tolist()
    [[0, 1, 1], [2, 3, 1], [0, 2, -1], [0, 3, -1], [1, 2, -1], [1, 3, -1]]
    """
    pairs = _checked(similar, n_points)
    known = np.unique(_keys(pairs, n_points))
    wanted = len(pairs) if n_dissimilar is None else check_count("n_dissimilar", n_dissimilar, 0)
    left = n_points * (n_points - 1) // 2 - len(known)
    if wanted > left:
        raise ValueError(f"n_dissimilar must be at most the {left} pairs that are not similar, got {wanted}")
    draw = np.random.default_rng(check_count("random_state", random_state, 0))
    others = _draw_all_but(known, wanted, n_points, draw) if 2 * wanted > left else _draw(known, wanted, n_points, draw)
    weights = np.repeat([1, -1], [len(pairs), wanted])
    return np.column_stack([np.concatenate([pairs, np.column_stack(np.divmod(others, n_points))]), weights])


def _checked(similar: Any, n_points: int) -> NDArray[np.int64]:
    pairs = np.asarray(similar)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"similar must be rows of two whole numbers, got {pairs.dtype} of shape {pairs.shape}")
    bad = (pairs.min(axis=1, initial=0) < 0) | (pairs.max(axis=1, initial=0) >= n_points) | (pairs[:, 0] == pairs[:, 1])
    if bad.any():
        got = f"{np.count_nonzero(bad)} of {len(bad)} others such as {tuple(pairs[bad][0].tolist())}"
        raise ValueError(f"similar must join two different rows between 0 and {n_points - 1}, got {got}")
    return pairs.astype(np.int64)


def _keys(pairs: NDArray[np.int64], n_points: int) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = pairs.min(axis=1) * n_points + pairs.max(axis=1)
    return keys


def _draw(known: NDArray[np.int64], wanted: int, n_points: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Throw away what is known, drawn before, or a point with itself, until there are enough."""
    found = np.empty(0, np.int64)
    while len(found) < wanted:
        pairs = draw.integers(0, n_points, (2 * wanted + 16, 2))
        new = _keys(pairs[pairs[:, 0] != pairs[:, 1]], n_points)
        both = np.concatenate([found, new[~np.isin(new, known)]])
        found = both[np.sort(np.unique(both, return_index=True)[1])]  # in the order in which they were drawn
    return np.sort(found[:wanted])


def _draw_all_but(known: NDArray[np.int64], wanted: int, n_points: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """List all pairs, of which most are wanted."""
    first, second = np.triu_indices(n_points, 1)
    possible = np.setdiff1d(first * n_points + second, known)
    return np.sort(draw.choice(possible, wanted, replace=False))
