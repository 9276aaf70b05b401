"""What tests of several commands look at."""

import ilhash

N_BITS = 13
N_BASE = 1_400


def texts():
    """Ids that a terminal, a shell or a parser of markup could mistake for something else."""
    return [f"{['[red]', ':smile:', 'é', '漢'][row % 4]} {row:04}" for row in range(N_BASE)]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def as_lists(hits):
    pairs = zip(hits.ids, hits.distances, strict=True) if isinstance(hits, ilhash.search.Hits) else hits
    return [
        {"query": q, "ids": ids.tolist(), "distances": distances.tolist()} for q, (ids, distances) in enumerate(pairs)
    ]
