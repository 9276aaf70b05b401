"""Tasks over workers: joblib's threads and processes, or a dask.distributed client; the same bytes from each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from ilhash.parallel import _local
from ilhash.parallel._blas import single_threaded_blas
from ilhash.parallel._task import Item, Result, TaskFailed

__all__ = ["connect", "run", "single_threaded_blas"]


def run(
    task: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    name: str = "bit",
    n_jobs: int | None = None,
    prefer: str = "threads",
    client: Any = None,
    done: Callable[[Item, Result], None] | None = None,
) -> list[Result]:
    """Return the results in the order of ``items``, which must differ from each other.

    Parameters
    ----------
    task : what is called with every item; it travels to a worker process once, not once per item
    items : what the task is called with
    name : what an error calls an item: "bit 3: ..."
    n_jobs, prefer : as in joblib; ``prefer`` is a hint, joblib.parallel_config(backend=...) overrules it
    client : a dask.distributed client, instead of joblib
    done : called in this process with every item and its result as it finishes

    The first item that fails ends the run with one exception, of the kind that the task raised where that is one of
    Python's own and RuntimeError otherwise; its text begins with the item, its cause is the worker's traceback.
    """
    items = list(items)
    results: dict[Item, Result] = {}
    if client is None:
        finished = _local.finished(task, items, n_jobs, prefer)
    else:
        from ilhash.parallel import _dask

        finished = _dask.finished(task, items, name, client)
    try:
        with closing(finished):  # at once, also when `done` fails: workers must not go on behind our back
            for item, result in finished:
                results[item] = result
                if done is not None:
                    done(item, result)
    except TaskFailed as failure:
        raise failure.as_raised(name) from failure.trace()
    return [results[item] for item in items]


def connect(address: str, timeout: float = 10.0) -> Any:
    """Return a client of the dask scheduler at ``address``; one that does not answer is said in one sentence."""
    from ilhash.parallel import _dask

    return _dask.connect(address, timeout)
