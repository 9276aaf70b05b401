"""Endless digits: read deformed ones with what was learned from plain ones, and draw some.

python examples/infinite_digits.py [picture.png [mnist]]
"""

import sys

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from ilhash.datasets import InfiniteDigits, load

N_COPIES, ZOOM = 14, 2


def read_deformed() -> float:
    """Learn from half of the plain digits; read deformations of the other half."""
    plain = load("digits")
    known = np.arange(len(plain.X)) % 2 == 0
    classifier = KNeighborsClassifier(3).fit(plain.X[known], plain.y[known])
    endless = InfiniteDigits("digits", seed=0)
    X, y = endless[10**12 : 10**12 + 4_000]  # any slice: no image depends on those before it
    unseen = ~known[endless.source_rows(10**12, 10**12 + 4_000)]
    return classifier.score(X[unseen].astype(np.float32), y[unseen])


def contact_sheet(source: str) -> np.ndarray:
    """One digit of each class on the left, and what the first passes over the source make of it."""
    plain, endless = load(source), InfiniteDigits(source)
    first_pass = endless.source_rows(0, 2_000)
    n_sources = plain.n_train or len(plain.X)
    passes = endless.source_rows(0, N_COPIES * n_sources)
    lines = []
    for label in range(10):
        row = next(row for row in first_pass if plain.y[row] == label)
        copies = [endless[i : i + 1][0][0] for i in np.flatnonzero(passes == row)]
        lines.append([plain.X[row], np.zeros_like(plain.X[row]), *copies])
    side, _ = endless.image_shape
    tiles = np.asarray(lines, dtype=np.float32).reshape(10, -1, side, side)
    tiles = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)))
    grey = tiles.transpose(0, 2, 1, 3).reshape(10 * (side + 2), -1) / tiles.max()
    zoom = ZOOM * 28 // side
    return np.kron(1 - grey, np.ones((zoom, zoom), dtype=np.float32))


print(f"deformed digits read correctly: {read_deformed():.3f}")
if len(sys.argv) > 1:
    from matplotlib.image import imsave

    imsave(sys.argv[1], contact_sheet(sys.argv[2] if len(sys.argv) > 2 else "digits"), cmap="gray", vmin=0, vmax=1)
