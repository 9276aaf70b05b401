"""One loop from vectors to what is computed of them, block by block: under ``transform``, files, shards and dask.

Blocks are read one after the other. Where there are several, each is worked on in a thread of its own while the next
ones are read; what comes out keeps their order, and only a few of them are in memory at any time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import joblib
from numpy.typing import NDArray

from ilhash._checks import check_count, check_threads
from ilhash.parallel import single_threaded_blas
from ilhash.vectors import SparseRows, as_matrix, blocks

BLOCK_BYTES = 8 << 20  # of float32 that a thread works on at once
WORK_BYTES = 256 << 20  # of float32 that a thread makes of a block: thousands of centres, or of bits, take fewer rows
AHEAD_BYTES = 256 << 20  # of all blocks that threads are given at a time

Result = TypeVar("Result")


def stream(
    work: Callable[[slice, NDArray[Any]], Result],
    X: Any,
    first: int = 0,
    last: int | None = None,
    n_threads: int | None = None,
    *,
    numbers_per_row: int = 1,
) -> Generator[tuple[slice, Result]]:
    """Give the rows of every block and what ``work`` makes of it, in order.

    Parameters
    ----------
    work : callable, gets the rows as a slice, and the block
    X : array (n, D), VectorSource or sparse matrix, what is read
    first, last : int, optional, the stretch of rows; by default all of them
    n_threads : int, optional, threads; by default, and for -1, one per core
    numbers_per_row : int, what ``work`` makes of each row on its way

    Yields
    ------
    (slice, result)
    """
    X = as_matrix(X, sparse=True)
    first = check_count("first", first, 0)
    end = len(X) if last is None else min(check_count("last", last, 0), len(X))
    row_bytes = 4 * X.shape[1] if not isinstance(X, SparseRows) else max(64, X.nbytes // len(X))
    threads = joblib.cpu_count if n_threads is None else partial(check_threads, n_threads)
    n_workers = 1 if (end - first) * row_bytes <= BLOCK_BYTES else threads()
    step = max(1, min(BLOCK_BYTES, AHEAD_BYTES // n_workers) // row_bytes)
    step = min(step, max(1, WORK_BYTES // (4 * numbers_per_row)))
    parts = _numbered(blocks(X, step, first, end), first)
    if n_workers == 1:
        for rows, block in parts:
            yield rows, work(rows, block)
        return
    # One thread for each product: decoding, the passes around a product and the product itself fill all cores.
    with single_threaded_blas(), ThreadPoolExecutor(n_workers, "ilhash-encode") as pool:
        pending: deque[tuple[slice, Future[Result]]] = deque()
        for rows, block in parts:
            pending.append((rows, pool.submit(work, rows, block)))
            if len(pending) > n_workers:
                done, future = pending.popleft()
                yield done, future.result()
        for done, future in pending:
            yield done, future.result()


def _numbered(parts: Iterator[NDArray[Any]], first: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    for part in parts:
        yield slice(first, first + len(part)), part
        first += len(part)
