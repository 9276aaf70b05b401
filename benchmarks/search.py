"""Exact search against faiss's IndexBinaryFlat, one thread each, on random, clustered and learned codes.

python benchmarks/search.py [--quick]

Both sides search the same codes for the same batch of queries and must return the same distances. faiss has two modes
(counting and heaps); the ratio is to the faster of the two in each cell. Rounds take turns; times are medians.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import faiss
import numpy as np

import ilhash
from ilhash import HammingIndex

N_QUERIES = 128
ROUNDS = 5
QUICK = "--quick" in sys.argv


def random_codes(rng: np.random.Generator, n: int, n_bits: int) -> np.ndarray:
    return rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8)


def clustered_codes(rng: np.random.Generator, n: int, n_bits: int) -> np.ndarray:
    """Noisy copies of 10 codes, each bit flipped with probability .1."""
    centres = random_codes(np.random.default_rng(99), 10, n_bits)
    noise = np.ones((n, n_bits // 8), np.uint8) * 0
    for bit in range(8):
        noise |= (rng.random(noise.shape) < 0.1).astype(np.uint8) << bit
    return centres[rng.integers(0, 10, n)] ^ noise


def seconds(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def medians(calls: dict, rounds: int = ROUNDS) -> dict:
    """Median seconds of each call, all of them in turns."""
    for call in calls.values():
        call()
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return {name: float(np.median(t)) for name, t in times.items()}


def compare(what: str, base: np.ndarray, queries: np.ndarray, n_bits: int, ks: tuple[int, ...]) -> list[float]:
    """Print one row per k; return the ratios to the faster mode of faiss."""
    index = HammingIndex(base, n_bits=n_bits)
    peers = {}
    for mode, use_heap in (("counting", False), ("heaps", True)):
        peers[mode] = faiss.IndexBinaryFlat(n_bits)
        peers[mode].add(base)
        peers[mode].use_heap = use_heap
    ratios = []
    for k in ks:
        if not np.array_equal(peers["counting"].search(queries, k)[0], index.search(queries, k).distances):
            raise AssertionError("distances differ from faiss")
        calls = {"ours": lambda k=k: index.search(queries, k)}
        calls |= {mode: (lambda peer=peer, k=k: peer.search(queries, k)) for mode, peer in peers.items()}
        times = medians(calls)
        ratios.append(min(times["counting"], times["heaps"]) / times["ours"])
        micro = {name: 1e6 * seconds / N_QUERIES for name, seconds in times.items()}
        gigabytes = base.nbytes * N_QUERIES / times["ours"] / 1e9
        print(
            f"{what:>10} {len(base):>9,} {n_bits:>4} {k:>4} {index.n_distinct / len(base):>8.0%} {micro['ours']:>9.1f} "
            f"{micro['counting']:>9.1f} {micro['heaps']:>9.1f} {ratios[-1]:>6.2f}x {gigabytes:>6.1f}",
            flush=True,
        )
    return ratios


def head() -> None:
    print(
        f"{'codes':>10} {'n':>9} {'bits':>4} {'k':>4} {'distinct':>8} {'ours us':>9} {'count us':>9} {'heaps us':>9} "
        f"{'ratio':>7} {'GB/s':>6}"
    )


def synthetic() -> None:
    print(f"\nmicroseconds per query in batches of {N_QUERIES}; ratio to the faster mode of faiss")
    head()
    ratios: dict = {}
    for n in (58_000, 1_000_000):
        for kind, make in (("random", random_codes), ("clustered", clustered_codes)):
            for n_bits in (32, 64, 128, 256):
                rng = np.random.default_rng(n_bits)
                base, queries = make(rng, n, n_bits), make(rng, N_QUERIES, n_bits)
                ratios.setdefault(n, []).extend(compare(kind, base, queries, n_bits, (10, 100, 500)))
    for n, values in ratios.items():
        print(f"n = {n:,}: least ratio {min(values):.2f}x, median {np.median(values):.2f}x")


def learned() -> None:
    n = 100_000 if QUICK else 1_000_000
    print(f"\ncodes that ILH (diversity t, 5,000 points per bit, seed 0) made of {n:,} infinite digits")
    try:
        digits = ilhash.datasets.InfiniteDigits("mnist", seed=0)
    except (ValueError, OSError) as error:
        print(f"skipped: {error}")
        return
    X, y = digits.images(0, n)
    model = ilhash.ILH(n_bits=128, random_state=0).fit(X, y)
    codes, queries = model.transform(X), model.transform(digits.images(n, n + N_QUERIES)[0])
    head()
    for n_bits in (32, 64, 128):
        width = n_bits // 8
        base, asked = np.ascontiguousarray(codes[:, :width]), np.ascontiguousarray(queries[:, :width])
        compare("learned", base, asked, n_bits, (10, 100))


def single_query() -> None:
    n, n_bits = 1_000_000, 128
    rng = np.random.default_rng(0)
    base, query = random_codes(rng, n, n_bits), random_codes(rng, 1, n_bits)
    index = HammingIndex(base, n_bits=n_bits)
    peer = faiss.IndexBinaryFlat(n_bits)
    peer.add(base)
    large = np.ones(1 << 26)
    calls = {
        "ours": lambda: index.search(query, 10),
        "two threads": lambda: index.search(query, 10, n_threads=2),
        "faiss": lambda: peer.search(query, 10),
        "read": lambda: large.max(),
    }
    times = medians(calls, 15)
    print(f"\na lone query, {n:,} x {n_bits} bits, k = 10")
    print(f"ours {1e3 * times['ours']:.2f} ms = {base.nbytes / times['ours'] / 1e9:.1f} GB/s", end="; ")
    print(f"two threads {1e3 * times['two threads']:.2f} ms; faiss {1e3 * times['faiss']:.2f} ms", end="; ")
    print(f"memory read by one core {large.nbytes / times['read'] / 1e9:.1f} GB/s")
    tiny = HammingIndex(base[:100], n_bits=n_bits)
    around = medians({"query": lambda: tiny.search(query, 10), "empty": ilhash._core.simd}, 3_001)
    print(f"an index of 100 codes {1e6 * around['query']:.1f} us", end="; ")
    print(f"an empty call of the core {1e6 * around['empty']:.2f} us")


def two_threads() -> None:
    n, n_bits, n_queries = 1_000_000, 128, 1_024
    rng = np.random.default_rng(0)
    index, queries = HammingIndex(random_codes(rng, n, n_bits), n_bits=n_bits), random_codes(rng, n_queries, n_bits)
    calls = {"one": lambda: index.search(queries, 10), "two": lambda: index.search(queries, 10, n_threads=2)}
    rounds = [medians(calls, 3) for _ in range(5)]
    ratios = sorted(times["one"] / times["two"] for times in rounds)
    print(f"\ntwo threads, {n_queries:,} queries, {n:,} x {n_bits} bits: median {ratios[2]:.2f}x one", end=" ")
    print(f"(rounds {ratios[0]:.2f}x to {ratios[-1]:.2f}x)")


def building() -> None:
    n, n_bits = 1_000_000, 128
    base = random_codes(np.random.default_rng(0), n, n_bits)
    queries = base[:N_QUERIES]
    index = HammingIndex(base, n_bits=n_bits)
    calls = {"build": lambda: HammingIndex(base, n_bits=n_bits), "scan": lambda: index.search(queries, 10)}
    times = medians(calls)
    print(
        f"\nbuilding {n:,} x {n_bits} bits: {1e3 * times['build']:.0f} ms, as long as "
        f"{times['build'] / times['scan']:.1f} scans for {N_QUERIES} queries ({1e3 * times['scan']:.0f} ms each)"
    )


def opening() -> None:
    n, n_bits = 10_000_000, 128
    base = random_codes(np.random.default_rng(0), n, n_bits)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        written = seconds(lambda: HammingIndex(base, n_bits=n_bits).save(path))
        begin = time.perf_counter()
        with HammingIndex.open(path, writable=False) as index:
            opened = time.perf_counter() - begin
            first, second = (seconds(lambda: index.search(base[:1], 10)) for _ in range(2))
            items = len(index)
    print(
        f"\n{items:,} x {n_bits} bits in a folder: built and written in {written:.1f} s, opened in "
        f"{1e3 * opened:.1f} ms; first query, which checks every byte of the codes, {1e3 * first:.0f} ms, "
        f"the next {1e3 * second:.1f} ms"
    )


def main() -> None:
    faiss.omp_set_num_threads(1)
    print(f"faiss {faiss.__version__}, ilhash core {ilhash.core_simd()}")
    if not QUICK:
        synthetic()
    learned()
    single_query()
    two_threads()
    building()
    opening()


if __name__ == "__main__":
    main()
