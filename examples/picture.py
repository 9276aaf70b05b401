"""The picture of the first page: what three searches find for the same digits.

python examples/picture.py [docs/what-it-is.png]
"""

import sys

import numpy as np

import ilhash

DATA = ilhash.datasets.load("digits")
ORDER = np.random.default_rng(0).permutation(len(DATA.X))
QUERIES, NEW, TRAIN = ORDER[:300], ORDER[300:900], ORDER[900:]
NEIGHBOURS = 9
# The first query of each digit, whatever comes of it: a picture of chosen queries would prove nothing.
SHOWN = np.unique(DATA.y[QUERIES], return_index=True)[1]
GREEN, RED, GREY = (0.1, 0.55, 0.25), (0.85, 0.2, 0.2), (0.6, 0.6, 0.6)


def by_codes(model):
    """Return the ten nearest new items of every query by the codes of a model."""
    codes = model.transform(DATA.X)
    index = ilhash.HammingIndex(codes[NEW], n_bits=32, ids=NEW)
    return index.search(codes[QUERIES], k=10).ids


def by_pixels():
    """Return the ten nearest new items of every query by the 64 floats themselves."""
    far = ((DATA.X[QUERIES, None] - DATA.X[NEW]) ** 2).sum(axis=2)
    return NEW[np.argsort(far, axis=1, kind="stable")[:, :10]]


def draw(found, where):
    """Draw a query of each digit, and beside it what each search finds: green where it is the same digit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.5), layout="constrained")
    for axes, (title, (ids, precision)) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        rows = [line(query, ids[query, :NEIGHBOURS]) for query in SHOWN]
        axes.imshow(np.concatenate(rows), interpolation="nearest")
        axes.set(xticks=[], yticks=[], frame_on=False)
        axes.set_title(f"{title}\nprecision@10 {precision:.3f}", fontsize=11)
    figure.savefig(where, dpi=100, bbox_inches="tight")


def line(query, nearest):
    """Return the picture of a query and of what was found."""
    wanted = DATA.y[QUERIES[query]]
    tiles = [tile(row, GREEN if DATA.y[row] == wanted else RED) for row in nearest]
    return np.concatenate([tile(QUERIES[query], GREY), np.ones((40, 10, 3)), *tiles], axis=1)


def tile(row, colour):
    """Return a digit as a picture with a frame."""
    picture = np.ones((40, 40, 3))
    picture[1:-1, 1:-1] = colour
    picture[4:-4, 4:-4] = np.kron(1.0 - DATA.X[row].reshape(8, 8, 1) / 16.0, np.ones((4, 4, 1)))
    return picture


def main():
    learnt = ilhash.ILH(n_bits=32, hash_function="kernel", n_similar=30).fit(DATA.X[TRAIN], DATA.y[TRAIN])
    random = ilhash.methods.LSH(n_bits=32).fit(DATA.X[TRAIN])
    searches = {
        "4 bytes, learnt from labels": by_codes(learnt),
        "256 bytes, the pixels as floats": by_pixels(),
        "4 bytes, random projections": by_codes(random),
    }
    precision = {name: (DATA.y[ids] == DATA.y[QUERIES][:, None]).mean() for name, ids in searches.items()}
    for name in searches:
        print(f"{name}: precision@10 {precision[name]:.3f}")
    if len(sys.argv) > 1:
        draw({name: (ids, precision[name]) for name, ids in searches.items()}, sys.argv[1])


if __name__ == "__main__":
    main()
