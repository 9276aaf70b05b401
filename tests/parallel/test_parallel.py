"""The same bytes from threads, processes and dask; one error, not a hundred; workers that die."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ilhash import ILH, parallel
from ilhash.vectors import MappedFile, opened, portable

distributed = pytest.importorskip("distributed")

SMALL = {"n_bits": 8, "n_train": 300, "n_similar": 10}


def contents(model):
    arrays = model._to_contents().arrays
    return {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()}


@contextmanager
def two_workers():
    """Give a client of two worker processes, each with a nanny that starts it again when it dies."""
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as connected:
        yield connected


@pytest.fixture(scope="module")
def client():
    with two_workers() as connected:
        yield connected


@pytest.fixture
def mapped(digits, tmp_path):
    np.save(tmp_path / "X.npy", digits[0])
    return np.load(tmp_path / "X.npy", mmap_mode="r")


# ---------------------------------------------------------------------------------------------- same bytes


@pytest.mark.parametrize("letters", ["t", "itf"])
def test_every_backend_gives_the_same_bytes(digits, mapped, client, letters):
    X, y = digits
    wanted = contents(ILH(diversity=letters, **SMALL).fit(X, y))
    model = ILH(diversity=letters, n_jobs=2, **SMALL)
    for matrix in (X, mapped):
        for backend in ("threading", "loky"):
            with joblib.parallel_config(backend=backend):
                assert contents(model.fit(matrix, y)) == wanted
        assert contents(model.fit(matrix, y, client=client)) == wanted


def test_other_functions_travel_too(digits, client):
    X, y = digits
    functions = ["kernel", DecisionTreeClassifier(max_depth=3), "trees"]
    model = ILH(hash_function=functions, centers="pool", n_centers=20, n_trees=9, **SMALL)
    assert contents(model.fit(X, y, client=client)) == contents(model.fit(X, y))


def test_more_bits_over_dask_and_progress(digits, client, tmp_path):
    X, y = digits
    wanted = contents(ILH(**{**SMALL, "n_bits": 12}).fit(X, y))
    steps = []
    model = ILH(**SMALL).fit(X, y, client=client, checkpoint=tmp_path / "c", progress=lambda *at: steps.append(at))
    assert steps == [(i, 8) for i in range(1, 9)]
    assert contents(model.add_bits(4, X, y, client=client)) == wanted
    assert len(list((tmp_path / "c").glob("bit-*"))) == 8


def test_a_map_travels_by_name_only_where_workers_find_the_same_file(digits, client, tmp_path, mapped):
    y = digits[1]
    wanted = contents(ILH(**SMALL).fit(mapped, y))
    sent = []
    honest = client.scatter

    def scatter(task, **options):
        sent.append(len(pickle.dumps(task, protocol=5)))
        return honest(task, **options)

    client.scatter = scatter
    try:
        assert contents(ILH(**SMALL).fit(mapped, y, client=client)) == wanted
        (tmp_path / "X.npy").unlink()  # the map in this process outlives the name
        assert contents(ILH(**SMALL).fit(mapped, y, client=client)) == wanted
        np.save(tmp_path / "X.npy", digits[0] + 1.0)  # the same name and size, another file (the map is of the old)
        assert contents(ILH(**SMALL).fit(mapped, y, client=client)) == wanted
    finally:
        del client.scatter
    by_name, *by_value = sent
    assert by_name < mapped.nbytes / 10
    assert all(size > mapped.nbytes for size in by_value)


# ---------------------------------------------------------------------------------------------- names of maps


@pytest.mark.parametrize(
    "view",
    [lambda X: X, lambda X: X[3:500:2], lambda X: X[5:, 2:9], lambda X: np.asarray(X)[7:], lambda X: X.T],
    ids=["whole", "strided", "columns", "base class", "transposed"],
)
def test_views_of_maps_travel_by_name(mapped, view):
    part = view(mapped)
    name = pickle.loads(pickle.dumps(portable(part)))  # noqa: S301 (our own)
    assert isinstance(name, MappedFile)
    assert np.array_equal(opened(name), part)
    assert opened(name) is opened(name)


def test_maps_whose_file_may_differ_do_not_travel_by_name(tmp_path, digits, mapped):
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[0] = 7.0
    assert portable(private) is private
    assert portable(digits[0]) is digits[0]
    backwards = mapped[::-1]
    assert portable(backwards) is backwards


def test_a_changed_file_is_refused_by_whoever_opens_it(mapped, tmp_path, digits):
    name = portable(mapped)
    np.save(tmp_path / "new.npy", digits[0] + 1.0)
    os.replace(tmp_path / "new.npy", tmp_path / "X.npy")
    with pytest.raises(ValueError, match=r"X\.npy must be the same file on a worker, got other content"):
        name.open()
    np.save(tmp_path / "X.npy", digits[0][:9])
    with pytest.raises(ValueError, match=r"must be the same file on a worker, got .* bytes instead of"):
        name.open()
    (tmp_path / "X.npy").unlink()
    with pytest.raises(FileNotFoundError, match="must be there for a worker to open"):
        name.open()


# ---------------------------------------------------------------------------------------------- one error


class StrangeError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Failing:
    def __init__(self, error):
        self.error = error

    def __call__(self, item):
        if item >= 3:
            if self.error is StrangeError:
                raise StrangeError(1, 2)
            if self.error is UnicodeDecodeError:
                b"\xff".decode()
            raise self.error("no luck")
        return item


def sequential(task, n, _):
    parallel.run(task, range(n))


def threads(task, n, _):
    parallel.run(task, range(n), n_jobs=2)


def processes(task, n, _):
    with joblib.parallel_config(backend="loky"):
        parallel.run(task, range(n), n_jobs=2)


def on_dask(task, n, client):
    parallel.run(task, range(n), client=client)


@pytest.mark.parametrize(
    ("error", "seen", "text", "backend"),
    [
        (ValueError, ValueError, "no luck", sequential),
        (UnicodeDecodeError, RuntimeError, ".*can't decode byte 0xff.*", sequential),
        (MemoryError, MemoryError, "no luck", threads),
        (StrangeError, RuntimeError, r".*StrangeError: 1 and 2", processes),
        (StrangeError, RuntimeError, r".*StrangeError: 1 and 2", on_dask),
        (ValueError, ValueError, "no luck", on_dask),
    ],
)
def test_a_worker_that_raises_is_told_once(request, capfd, backend, error, seen, text):
    client = request.getfixturevalue("client") if backend is on_dask else None
    capfd.readouterr()
    with pytest.raises(seen, match=rf"^bit \d+: {text}$") as caught:
        backend(Failing(error), 100, client)
    assert type(caught.value) is seen
    assert "in __call__" in str(caught.value.__cause__)  # where it happened on the worker
    assert capfd.readouterr().err.count("Traceback") == 0


def test_an_error_that_names_its_bit_does_not_name_it_twice():
    def task(item):
        raise ValueError(f"bit {item} must be luckier")

    with pytest.raises(ValueError, match=r"^bit 0 must be luckier$"):
        parallel.run(task, range(3))


# ---------------------------------------------------------------------------------------------- workers that die


def fitted_while_killing(client, digits, rng, victims, n_bits=60):
    """Fit over dask, and kill these processes at a random moment of it."""
    at = int(rng.integers(1, n_bits // 2))

    def progress(done, _):
        if done == at:
            for victim in victims:
                os.kill(victim, signal.SIGKILL)

    X, y = digits
    return contents(ILH(**{**SMALL, "n_bits": n_bits}).fit(X, y, client=client, progress=progress))


def worker_processes(client):
    found = client.run(os.getpid, on_error="return").values()  # one that was just killed does not answer
    return [process for process in found if isinstance(process, int)]


def killed_under_nannies(digits, times):
    X, y = digits
    wanted = contents(ILH(**{**SMALL, "n_bits": 60}).fit(X, y))
    rng = np.random.default_rng(0)
    for turn in range(times):
        # A cluster for each: dask's local one does not always start a killed worker again.
        with two_workers() as client:
            victims = worker_processes(client)[: 1 + turn % 2]  # one, then all: what was scattered is lost with them
            assert fitted_while_killing(client, digits, rng, victims) == wanted


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_dask_worker_loses_nothing(digits):
    killed_under_nannies(digits, 2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_dask_workers_killed_twenty_times_lose_nothing(digits):
    killed_under_nannies(digits, 20)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_dask_workers_without_nanny_killed_twenty_times_lose_nothing(digits):
    X, y = digits
    wanted = contents(ILH(**{**SMALL, "n_bits": 60}).fit(X, y))
    rng = np.random.default_rng(1)
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    cluster = distributed.LocalCluster(n_workers=0, dashboard_address=":0")
    workers = []

    def start():
        workers.append(subprocess.Popen([*command, cluster.scheduler_address], stderr=subprocess.DEVNULL))

    with cluster, distributed.Client(cluster) as connected:
        try:
            start()
            for _ in range(20):
                start()
                connected.wait_for_workers(2, timeout=120)
                victim = workers.pop(0)
                assert fitted_while_killing(connected, digits, rng, [victim.pid]) == wanted
                victim.wait()
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


# ---------------------------------------------------------------------------------------------- refused


def test_an_unreachable_scheduler_is_one_sentence(capfd):
    with socket.socket() as taken:  # bound, and nobody listens: no scheduler can be there
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(ConnectionError, match=r"must answer within 1 seconds, got none at 'tcp://") as refused:
            parallel.connect(address, timeout=1.0)
    assert "\n" not in str(refused.value)
    assert time.monotonic() - begin < 30
    assert capfd.readouterr().err == ""


def test_the_command_line_reaches_a_scheduler_or_says_so(client, digits, tmp_path):
    np.save(tmp_path / "X.npy", digits[0])
    np.save(tmp_path / "y.npy", digits[1])
    fit = [sys.executable, "-m", "ilhash", "fit", "X.npy", "--labels", "y.npy", "--bits", "8", "--n-train", "300"]
    fit += ["--n-similar", "10", "--checkpoint", "c", "-o", "model", "--dask"]
    done = subprocess.run([*fit, client.scheduler.address], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    from ilhash import load

    assert contents(load(tmp_path / "model")) == contents(ILH(**SMALL).fit(*digits))
    assert len(list((tmp_path / "c").glob("bit-*"))) == 8
    before = {path: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    done = subprocess.run([*fit, "tcp://127.0.0.1:9", "--force"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "the dask scheduler must answer" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before


def test_what_is_no_client_is_refused(digits):
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client, got 'tcp"):
        ILH(**SMALL).fit(*digits, client="tcp://127.0.0.1:8786")


def test_a_closed_client_is_refused(digits):
    cluster = distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    closed = distributed.Client(cluster)
    closed.close()
    cluster.close()
    with pytest.raises(ConnectionError, match="client must be connected to a dask scheduler, got one that is closed"):
        ILH(**SMALL).fit(*digits, client=closed)


def test_more_than_a_workers_memory_does_not_travel(digits, client, mapped, tmp_path, monkeypatch):
    np.save(tmp_path / "new.npy", digits[0] + 1.0)
    os.replace(tmp_path / "new.npy", tmp_path / "X.npy")
    monkeypatch.setattr(MappedFile, "nbytes", 1 << 50)
    with pytest.raises(ValueError, match="X must be a file that every worker can open, or at most half of a worker's"):
        ILH(**SMALL).fit(mapped, digits[1], client=client)


def test_no_more_workers_than_items():
    threads = set()

    def task(item):
        threads.add(threading.get_ident())
        return threading.active_count()

    before = threading.active_count()
    assert max(parallel.run(task, range(3), n_jobs=10**9)) < before + 20
    assert len(threads) <= 3


def test_a_failed_run_leaves_no_task_under_way():
    """joblib goes on with what was handed out when one task fails; nobody is to find it at work after the error."""
    under_way, began = [], threading.Event()

    def task(item):
        if item == 0:
            assert began.wait(10)
            raise ValueError("no")
        under_way.append(item)
        began.set()
        time.sleep(0.5)
        under_way.remove(item)

    with pytest.raises(ValueError, match="bit 0: no"):
        parallel.run(task, range(8), n_jobs=2)
    assert under_way == []
