"""Tasks over a dask.distributed client that the user gives.

The task travels once: scattered to every worker, with its data named by path where every worker can open the same file.
Items are submitted one by one. dask runs an item again when its worker dies; only what was scattered cannot come back
when all its holders are gone, and then it is scattered again.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any
from urllib.parse import urlsplit

from ilhash._extras import require
from ilhash._version import __version__
from ilhash.parallel._task import Item, Result, TaskFailed, attempt

ROUNDS = 5  # times that everything may be lost without a single item done in between
FIRST_WORKER_SECONDS = 60.0  # an adaptive cluster may have to start one


def connect(address: str, timeout: float) -> Any:
    """Return a client of a scheduler."""
    distributed = _distributed()
    try:
        _knock(address, timeout)  # a client that fails to connect says so more than once
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConnectionError(
            f"the dask scheduler must answer within {timeout:g} seconds, got none at {address!r} ({reason})"
        ) from None


def _knock(address: str, timeout: float) -> None:
    """Wait until somebody listens at tcp://host:port; dask knows more kinds of addresses, and judges them itself."""
    url = urlsplit(address if "://" in address else f"tcp://{address}")
    if url.scheme not in ("tcp", "tls"):
        return
    if not url.hostname or not url.port:
        raise ValueError("an address is tcp://host:port")
    end = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((url.hostname, url.port), timeout).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _distributed() -> Any:
    return require("distributed", "dask", "training over dask")


def finished(
    task: Callable[[Item], Result], items: list[Item], name: str, client: Any
) -> Generator[tuple[Item, Result]]:
    """Give items and results as they finish."""
    _check(client)
    left = dict.fromkeys(items)
    in_vain = 0
    while left:
        before = len(left)
        for item, result in _one_round(task, list(left), name, client):
            del left[item]
            yield item, result
        in_vain = in_vain + 1 if len(left) == before else 0
        if left and in_vain == ROUNDS:
            raise RuntimeError(
                f"the workers of dask must live long enough to finish one {name}, got all data lost {ROUNDS} times; "
                f"{len(left)} of {len(items)} are left"
            )


def _check(client: Any) -> None:
    distributed = _distributed()
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client, got {client!r}")
    if client.asynchronous:
        raise ValueError("client must not be asynchronous, got a client of an event loop")
    if client.status != "running":
        raise ConnectionError(f"client must be connected to a dask scheduler, got one that is {client.status}")


def _one_round(
    task: Callable[[Item], Result], items: list[Item], name: str, client: Any
) -> Iterator[tuple[Item, Result]]:
    """Submit everything once; what is lost on the way is left to the next round."""
    distributed = _distributed()
    shared = _share(task, client)
    if shared is None:
        time.sleep(1.0)  # until the scheduler knows who is gone
        return
    run = secrets.token_hex(4)
    keys = {item: f"ilhash-{name}-{item}-{run}" for item in items}
    futures = {client.submit(attempt, shared, item, key=key, pure=False): item for item, key in keys.items()}
    try:
        for batch in distributed.as_completed(list(futures), loop=client.loop).batches():
            for future, result in zip(batch, _results(batch, futures, name, client), strict=True):
                if isinstance(result, TaskFailed):
                    raise result
                if result is not _LOST:
                    yield futures[future], result
                future.release()
    finally:
        client.cancel([future for future in futures if not future.done()], force=True)


_LOST = object()


def _results(batch: list[Any], items: dict[Any, Any], name: str, client: Any) -> list[Any]:
    try:
        return list(client.gather(batch))  # one journey for all that is ready
    except Exception:  # of one of them: which, and what now, is found out one by one
        return [_result(future, items[future], name, client) for future in batch]


def _result(future: Any, item: Any, name: str, client: Any) -> Any:
    distributed = _distributed()
    if client.status != "running":
        raise ConnectionError(
            f"the dask scheduler must stay until every {name} is done, got the connection lost at {name} {item}; a "
            "run with checkpoint= goes on from there"
        )
    try:
        return future.result()
    except distributed.KilledWorker as error:
        raise RuntimeError(
            f"{name} {item}: workers of dask must survive it, got {error.allowed_failures + 1} that died of it "
            "(most often too little memory)"
        ) from None
    except distributed.CancelledError:  # its task, or the data that were scattered, died with all their holders
        return _LOST


# ------------------------------------------------------------------------------------------------ sharing


def _share(task: Any, client: Any) -> Any:
    """Scatter the task to all workers: its data by path if each of them can open it, else by value; None: in vain."""
    _wait_for_a_worker(client)
    files = task.files() if hasattr(task, "files") else None
    answers = _answers(files, client)
    wrong = {str(reason) for version, reason in answers if not version}
    if wrong:
        raise RuntimeError(f"the workers of dask must run ilhash {__version__}, got {', '.join(sorted(wrong))}")
    cannot = [reason for _, reason in answers if reason is not None]
    if files is not None and cannot:
        _refuse_more_than_memory(files, cannot, len(answers), client)
        task = task.in_memory()
    try:
        return client.scatter(task, broadcast=True, hash=False)
    except OSError:  # a worker died that was to have it
        return None


def _answers(files: Any, client: Any) -> list[tuple[bool, str | None]]:
    """Ask all workers; those that are just dying do not answer, and are left to the scheduler to find out."""
    found = client.run(_examine, files, __version__, on_error="return").values()
    broken = [answer for answer in found if isinstance(answer, Exception) and not isinstance(answer, OSError)]
    if broken:
        raise RuntimeError(
            f"the workers of dask must be able to import ilhash {__version__}, got {len(broken)} of {len(found)} "
            f"that cannot: {type(broken[0]).__name__}: {broken[0]}"
        )
    return [answer for answer in found if not isinstance(answer, Exception)]


def _wait_for_a_worker(client: Any) -> None:
    try:
        client.submit(int, pure=False).result(timeout=FIRST_WORKER_SECONDS)
    except TimeoutError:
        raise ConnectionError(
            f"client must have a worker within {FIRST_WORKER_SECONDS:g} seconds, got a scheduler without any"
        ) from None


def _examine(files: Any, version: str) -> tuple[bool, str | None]:
    """On a worker: whether the library is the same, and why the files cannot be opened here, or None."""
    if __version__ != version:
        return False, __version__
    try:
        if files is not None:
            files.open()
    except Exception as error:
        return True, str(error)
    return True, None


def _refuse_more_than_memory(files: Any, cannot: list[str], n_workers: int, client: Any) -> None:
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    least = min((limit for limit in limits if limit), default=None)
    if least is not None and files.nbytes > least / 2:
        raise ValueError(
            f"X must be a file that every worker can open, or at most half of a worker's memory "
            f"({least / 2**30:.1f} GiB), got {files.nbytes / 2**30:.1f} GiB that {len(cannot)} of {n_workers} workers "
            f"cannot open: {cannot[0]}"
        )
