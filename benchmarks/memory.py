"""Private memory of a fit on a memory-mapped X of 4 GB: only the drawn rows are read (Linux).

python benchmarks/memory.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from ilhash import ILH

ROWS, COLUMNS = 1_048_576, 1_024  # 4 GiB of float32


def private_megabytes() -> tuple[float, float]:
    """RssAnon and RssFile of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(int(status[key].split()[0]) / 1024 for key in ("RssAnon", "RssFile"))


def write(path: Path) -> np.ndarray:
    """Write X in pieces; return its labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, ROWS)
    means = rng.normal(size=(10, COLUMNS)).astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, COLUMNS))
    noise = rng.normal(size=(65_536, COLUMNS)).astype(np.float32)
    for first in range(0, ROWS, len(noise)):
        X[first : first + len(noise)] = means[labels[first : first + len(noise)]] + noise
    return labels


def main() -> None:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "X.npy"
        labels = write(path)
        X = np.load(path, mmap_mode="r")
        before, _ = private_megabytes()
        begin = time.perf_counter()
        peak = [0.0]
        ILH(n_bits=32).fit(X, labels, progress=lambda *_: peak.append(private_megabytes()[0]))
        print(
            f"X: {path.stat().st_size / 2**30:.1f} GiB on disk; 32 bits, N = 5,000, in "
            f"{time.perf_counter() - begin:.1f} s"
        )
        print(f"private memory: {before:.0f} MB before, {max(peak):.0f} MB at most during the fit (wanted < 1024 MB)")


if __name__ == "__main__":
    main()
