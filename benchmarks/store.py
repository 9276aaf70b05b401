"""The durable store: latency of a commit, writing, opening, checking; beside plain files flushed the same way.

python benchmarks/store.py [folder]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

from ilhash.search._store import Store
from ilhash.search._verify import verify_files as verify

N = 10_000_000


def median_ms(action, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return 1e3 * float(np.median(times))


def write_plainly(path: Path, data: bytes | memoryview) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def commits(folder: Path) -> None:
    row = {"codes": np.zeros((1, 16), np.uint8), "rows": np.zeros(1, np.uint32)}
    with Store.create(folder / "small", {}) as store:
        one = median_ms(lambda: store.commit(add=[row]), 60)
        first = store.segments[0].name
        dead = median_ms(lambda: store.commit(remove={first: np.array([0])}), 60)
        print(f"commit of a segment of one row {one:.3g} ms, of one dead row {dead:.3g} ms (60 segments)")
        print(f"opening 61 segments {median_ms(lambda: Store.open(folder / 'small', writable=False), 20):.3g} ms")
    print(f"one small file written and flushed {median_ms(lambda: write_plainly(folder / 'x', b'x'), 60):.3g} ms")


def large(folder: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"codes": rng.integers(0, 256, (N, 16), np.uint8), "rows": np.arange(N, dtype=np.uint32)}
    codes = arrays["codes"]
    names = iter(range(9))
    with Store.create(folder / "codes", {}) as store:
        ours = median_ms(lambda: store.commit(add=[{"codes": codes}]), 3)
    plain = median_ms(lambda: write_plainly(folder / f"plain {next(names)}", codes.data), 3)
    print(f"\n{codes.nbytes / 1e6:.0f} MB: committed in {ours:.0f} ms ({codes.nbytes / ours / 1e6:.2f} GB/s),", end=" ")
    print(f"plainly written and flushed in {plain:.0f} ms ({codes.nbytes / plain / 1e6:.2f} GB/s)")

    Store.create(folder / "large", {}).commit(add=[arrays])
    opening = median_ms(lambda: Store.open(folder / "large", writable=False), 20)
    print(f"{N:,} rows of 16 + 4 bytes: opened in {opening:.2f} ms")
    segments = [Store.open(folder / "large", writable=False).segments[0] for _ in range(5)]
    first = median_ms(lambda: segments.pop()["codes"], 5)
    sums = median_ms(lambda: [zlib.crc32(codes.data[i : i + 16384]) for i in range(0, N, 16384)], 5)
    whole = median_ms(lambda: verify(folder / "large"), 3)
    print(f"first access to its codes, in the page cache, checked at {codes.nbytes / first / 1e6:.2f} GB/s", end=" ")
    print(f"(zlib.crc32 alone {codes.nbytes / sums / 1e6:.2f} GB/s)")
    print(f"verify reads all {20 * N / 1e6:.0f} MB in {whole:.0f} ms ({20 * N / whole / 1e6:.2f} GB/s)")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        commits(Path(folder))
        large(Path(folder))


if __name__ == "__main__":
    main()
