"""Slow, obvious twins of what the library computes fast: brute force, SciPy's maximum flow, plain Python.

Nothing here imports the library.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

_MASK64 = (1 << 64) - 1

# -------------------------------------------------------------------------------- energies


def direct_energy(W, z, field=None):
    """Return E(z) = -z'Wz - 2 field'z, by its definition."""
    W = W.toarray() if scipy.sparse.issparse(W) else np.asarray(W, dtype=np.float64)
    z = np.asarray(z, dtype=np.float64)
    unary = 0.0 if field is None else 2.0 * float(np.asarray(field, dtype=np.float64) @ z)
    return float(-(z @ (W @ z))) - unary


def all_assignments(n):
    """Return all 2^n vectors of -1 and +1, one per row."""
    bits = (np.arange(1 << n)[:, None] >> np.arange(n)[None, :]) & 1
    return (2 * bits - 1).astype(np.int8)


def lowest_energy_by_enumeration(W, field=None):
    """Return the minimum of E over all z."""
    W = W.toarray() if scipy.sparse.issparse(W) else np.asarray(W, dtype=np.float64)
    Z = all_assignments(len(W)).astype(np.float64)
    energies = -np.einsum("kn,kn->k", Z @ W, Z)
    if field is not None:
        energies -= 2.0 * Z @ np.asarray(field, dtype=np.float64)
    return float(energies.min())


def pull_from_outside(W, z, inside, field=None):
    """Return what pulls at the points of a block, from the field and from the points outside it."""
    W, z = scipy.sparse.csr_array(W), np.asarray(z, dtype=np.float64)
    outside = np.where(inside, 0.0, z)
    pull = W @ outside + (0.0 if field is None else np.asarray(field, dtype=np.float64))
    return np.asarray(pull)[inside]


# -------------------------------------------------------------------------------- min-cut


def lowest_energy_by_flow(W, field, scale=1):
    """Return the minimum of E for couplings >= 0, by SciPy's maximum flow.

    W and field times ``scale`` must be whole numbers. -sum d z - sum_{n<m} w z z is smallest where the cut between
    the points pulled to +1 and those pulled to -1 is, and it is twice the cut above -sum |d| - sum w.
    """
    W = scipy.sparse.coo_array(W)
    n = W.shape[0]
    w = _whole(W.data * scale)
    d = _whole(np.asarray(field, dtype=np.float64) * scale)
    assert (w >= 0).all()
    source, sink = n, n + 1
    plus, minus = np.flatnonzero(d > 0), np.flatnonzero(d < 0)
    rows = np.concatenate([W.coords[0], np.full(len(plus), source), minus])
    columns = np.concatenate([W.coords[1], plus, np.full(len(minus), sink)])
    capacity = np.concatenate([w, d[plus], -d[minus]])
    network = scipy.sparse.csr_array((capacity.astype(np.int32), (rows, columns)), shape=(n + 2, n + 2))
    flow = scipy.sparse.csgraph.maximum_flow(scipy.sparse.csr_matrix(network), source, sink).flow_value
    half = -int(np.abs(d).sum()) - int(w.sum()) // 2 + 2 * int(flow)
    return 2.0 * half / scale


def _whole(values):
    rounded = np.rint(values)
    assert np.array_equal(rounded, values), "the oracle needs whole numbers"
    assert np.abs(rounded).sum() < 2**30
    return rounded.astype(np.int64)


# -------------------------------------------------------------------------------- quadratic functions


def quadratic_residual(values, n):
    """Return how far a function of n bits (its values by all_assignments) is from every quadratic one."""
    Z = all_assignments(n).astype(np.float64)
    pairs = [Z[:, i] * Z[:, j] for i, j in itertools.combinations(range(n), 2)]
    design = np.column_stack([np.ones(len(Z)), Z, *pairs])
    solution = np.linalg.lstsq(design, values, rcond=None)[0]
    return float(np.abs(design @ solution - values).max())


def function_of_hamming_distances(n, value_of):
    """Return the values, by all_assignments, of a function of all pairwise Hamming distances."""
    values = []
    for z in all_assignments(n):
        distances = tuple(int(z[i] != z[j]) for i, j in itertools.combinations(range(n), 2))
        values.append(value_of(distances))
    return np.array(values, dtype=np.float64)


def consistent_distances(n):
    """Return the tuples of pairwise Hamming distances that n bits can have: 2^(n-1) of them."""
    return sorted(
        {tuple(int(z[i] != z[j]) for i, j in itertools.combinations(range(n), 2)) for z in all_assignments(n)}
    )


# -------------------------------------------------------------------------------- randomness


def mix64(x):
    """SplitMix64's finaliser."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK64
    return x ^ (x >> 31)


def permuted(n, seed, start, count):
    """Entries start .. start + count of the Feistel permutation of 0 .. n-1."""
    half = 1
    while half < 32 and (1 << (2 * half)) < n:
        half += 1
    mask = (1 << half) - 1
    counter, keys = mix64((seed ^ 0x5851F42D4C957F2D) & _MASK64), []
    for _ in range(8):
        counter = (counter + 0x9E3779B97F4A7C15) & _MASK64
        keys.append(mix64(counter))

    def once(x):
        left, right = x >> half, x & mask
        for key in keys:
            left, right = right, left ^ (mix64(right ^ key) & mask)
        return (left << half) | right

    out = []
    for position in range(start, start + count):
        x = once(position)
        while x >= n:
            x = once(x)
        out.append(x)
    return out


# -------------------------------------------------------------------------------- neighbours


def sharing_a_label(indicator):
    """Return the matrix of who shares at least one label with whom, by sets."""
    sets = [set(np.flatnonzero(row)) for row in np.asarray(indicator)]
    return np.array([[bool(a & b) for b in sets] for a in sets])


def squared_distances(values):
    """Return all squared Euclidean distances in double precision, with infinity on the diagonal."""
    values = np.asarray(values, dtype=np.float64)
    distances = ((values[:, None, :] - values[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return distances
