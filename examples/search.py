"""Search from beginning to end: filters, changes, a folder that survives crashes, better order than Hamming alone."""

import tempfile
from pathlib import Path

import numpy as np

import ilhash
from ilhash.search import rescore

data = ilhash.datasets.load("digits")
order = np.random.default_rng(0).permutation(len(data.X))
queries, base = order[:400], np.sort(order[400:])

model = ilhash.ILH(n_bits=32, n_similar=30).fit(data.X[base], data.y[base])
codes, margins = model.transform(data.X), model.decision_function(data.X)


def share_of_right_digits(hits):
    """Precision: ids are row numbers here, so labels are looked up by them."""
    return np.mean(data.y[hits.ids] == data.y[queries][:, None])


# An index in memory. Ids are whole numbers or texts; here, rows of X. Answers are exact, in the order (distance, id).
index = ilhash.HammingIndex(codes[base], n_bits=32, ids=base, margins=margins[base])
hits = index.search(codes[queries], k=10, n_threads=2)
print(f"Hamming: {share_of_right_digits(hits):.3f} of the 10 nearest are the same digit")
print(f"{len(index):,} items on {index.n_distinct:,} distinct codes; bytes per item: {index.bytes_per_item}")

# Everything within a radius: hits.ids[hits.offsets[q] : hits.offsets[q + 1]], or simply one query after the other.
near = index.within(codes[queries], radius=2)
print(f"within radius 2: {np.diff(near.offsets).min()} to {np.diff(near.offsets).max()} items")

# A filter: only these may be answers, and as many of them as are wanted are found.
even = base[data.y[base] % 2 == 0]
hits = index.search(codes[queries], k=10, allowed=even)
print(f"even digits only: {hits.ids.shape[1]} answers each, all even: {(data.y[hits.ids] % 2 == 0).all()}")

# The query keeps its margins, the base stays binary: a bit counts as much as the query is sure of it.
hits = index.search_asymmetric(margins[queries], k=10)
print(f"asymmetric: {share_of_right_digits(hits):.3f}")

# The 100 nearest in Hamming space, ordered by margins that the index keeps in 8 bits each.
hits = index.search_margins(margins[queries], k=10, shortlist=100)
print(f"ordered by margins: {share_of_right_digits(hits):.3f}")

with tempfile.TemporaryDirectory() as folder:
    # The same 100, ordered by the vectors themselves; only their rows are read from the file.
    np.save(Path(folder) / "X.npy", data.X)
    vectors = np.load(Path(folder) / "X.npy", mmap_mode="r")
    hits = rescore(index.search(codes[queries], k=100), data.X[queries], vectors, k=10)
    print(f"ordered by vectors: {share_of_right_digits(hits):.3f}")

    # A folder: what add, remove and update have done is on disk when they return.
    with ilhash.HammingIndex.open(Path(folder) / "index", n_bits=32, ids="str") as kept:
        kept.add(codes[:1000], ids=[f"digit {row}" for row in range(1000)])
        kept.remove(["digit 3", "digit 14"])
        kept.update(codes[15:16], ids=["digit 9"])  # another code for an item that is there
    with ilhash.HammingIndex.open(Path(folder) / "index", writable=False) as kept:  # readers take no lock
        nearest = kept.search(codes[15:16], k=2)
        print(f"{len(kept)} items; {nearest.ids[0].tolist()} at distances {nearest.distances[0].tolist()}")
        print(kept.verify().ok)  # every byte was read and compared with its checksum
