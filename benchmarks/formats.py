"""Encoding from files to shards, against encoding the same vectors in memory: .npy, HDF5, Zarr, Parquet.

Files are in the page cache (they were just written), so what is seen is the cost of the format, not of the disk.

python benchmarks/formats.py [rows]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import zarr

import ilhash
from private_memory import Peak

ROWS, COLUMNS, N_BITS, REPEATS = 400_000, 784, 200, 3


def lists(X: np.ndarray) -> pyarrow.Table:
    kind = pyarrow.list_(pyarrow.float32(), COLUMNS)
    return pyarrow.table({"vector": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), type=kind)})


def write_npy(path: Path, X: np.ndarray) -> None:
    np.save(path, X)


def write_h5(path: Path, X: np.ndarray, **options: object) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, **options)


def write_zarr(path: Path, X: np.ndarray, **options: object) -> None:
    zarr.open(str(path), mode="w", shape=X.shape, chunks=(4096, COLUMNS), dtype=X.dtype, **options)[:] = X


def write_parquet(path: Path, X: np.ndarray, compression: str) -> None:
    # Plain pages: floats of embeddings hardly repeat, and a dictionary only costs.
    pyarrow.parquet.write_table(lists(X), path, row_group_size=50_000, compression=compression, use_dictionary=False)


WRITERS: dict[str, tuple[str, Callable[[Path, np.ndarray], None]]] = {
    ".npy, mapped": ("X.npy", write_npy),
    "HDF5 in one piece (mapped)": ("whole.h5", write_h5),
    "HDF5 in chunks": ("chunks.h5", lambda path, X: write_h5(path, X, chunks=(1024, COLUMNS))),
    "Zarr, as it comes": ("default.zarr", write_zarr),
    "Zarr, not compressed": ("plain.zarr", lambda path, X: write_zarr(path, X, compressor=None, zarr_format=2)),
    "Parquet of lists": ("plain.parquet", lambda path, X: write_parquet(path, X, "none")),
    "Parquet of lists, zstd": ("zstd.parquet", lambda path, X: write_parquet(path, X, "zstd")),
}


def seconds_of(work: Callable[[Path], object], folder: Path) -> float:
    times = []
    for turn in range(REPEATS):
        begin = time.perf_counter()
        work(folder / f"codes-{turn}")
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def flipped(model, source, codes: np.ndarray, wanted: np.ndarray) -> str:
    """Say how many bits differ, and how far from zero their margins are: other batches may round a zero otherwise."""
    rows, bits = np.nonzero(np.unpackbits(codes ^ wanted, axis=1))
    if len(rows) == 0:
        return "same codes"
    margins = np.abs(model.decision_function(source[rows])[np.arange(len(rows)), bits])
    return f"{len(rows)} bits differ, margins up to {margins.max():.0e}"


def prepare(rows: int, folder: Path) -> tuple[ilhash.methods.LSH, np.ndarray, float]:
    """Write all files; return a model, the codes, and the seconds that encoding takes in memory."""
    X = np.random.default_rng(0).standard_normal((rows, COLUMNS), np.float32)
    model = ilhash.methods.LSH(n_bits=N_BITS).fit(X[:5000])
    for file, write in WRITERS.values():
        write(folder / file, X)
    return model, model.transform(X), seconds_of(lambda _: model.transform(X), folder)


def show(title: str, rows: int, seconds: float, reading: float, memory: float, note: str = "") -> None:
    speed = 4 * rows * COLUMNS / seconds / 1e9
    print(
        f"{title:<28} {seconds:>8.2f} {speed:>6.2f} {rows / seconds:>10,.0f} {seconds / memory:>9.2f}x "
        f"{reading / memory:>9.2f}x {note}",
        flush=True,
    )


def read(source) -> None:
    """Read all vectors and do nothing with them, as the format's own library does it."""
    if isinstance(source, np.ndarray):
        for first in range(0, len(source), 10_000):
            np.array(source[first : first + 10_000])
    else:
        for _ in source.blocks(10_000):
            pass


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    print(f"{rows:,} x {COLUMNS} float32 ({4 * rows * COLUMNS / 1e9:.2f} GB), {N_BITS} bits; medians of {REPEATS}")
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        model, wanted, memory = prepare(rows, folder)
        head = f"{'seconds':>8} {'GB/s':>6} {'vectors/s':>10} {'to memory':>10} {'reading':>10} {'private memory':>15}"
        print(f"{'source':<28} {head}")
        show("array in memory", rows, memory, 0.0, memory)
        for title, (file, _) in WRITERS.items():
            with tempfile.TemporaryDirectory(dir=folder) as out, Peak() as peak:
                source = ilhash.open_vectors(folder / file)
                seconds = seconds_of(lambda path, source=source: ilhash.write_codes(model, source, path), Path(out))
                reading = seconds_of(lambda _, source=source: read(source), Path(out))
                flips = flipped(model, source, ilhash.open_codes(Path(out) / "codes-0").read(), wanted)
            note = f"{peak.megabytes:>12.0f} MB   {flips}"
            show(title, rows, seconds, reading, memory, note)
    print("to memory: time against the array in memory (wanted: at most 1.30x where the disk allows)")
    print("reading: time of reading alone, on one core, against the same; what a library decodes takes a core from it")


if __name__ == "__main__":
    main()
