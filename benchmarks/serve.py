"""A service of a million learned codes of 64 bits: queries per second and their times, beside the index without it.

python benchmarks/serve.py [--n 1000000] [--seconds 4] [--rounds 3] [--clients 1 16 64] [--minutes 10]

Codes are those of infinite digits by linear ILH, queries those of digits apart. The server is a process of its own
(``ilhash serve``), the client this one: connections that are kept, each of which asks again when it was answered. What
the client and HTTP themselves cost is measured by the same client against /livez, which does nothing. Each line comes
in turns with the others, batching on and off by two servers on copies of one folder. ``--minutes`` then asks on and
looks at the server's memory.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ilhash
from ilhash.serve import make

N_BITS, K, QUERIES = 64, 10, 2_000


def digits(n: int, source: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a model, codes of infinite digits, made in pieces, and vectors of others."""
    stream = ilhash.datasets.InfiniteDigits(source)
    X, y = stream[:20_000]
    model = ilhash.ILH(n_bits=N_BITS, n_train=5_000, start="random", n_jobs=2).fit(X, y)
    pieces = (slice(first, min(first + 50_000, n)) for first in range(0, n, 50_000))
    base = np.concatenate([model.transform(stream[rows][0]) for rows in pieces])
    return model, base, stream[n : n + QUERIES][0]


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[str, int, int]]:
    """Start a server; give host, port and the number of its process."""
    command = [
        sys.executable,
        "-m",
        "ilhash",
        "serve",
        str(folder),
        "--port",
        "0",
        "--vectors-per-second",
        "0",
        *options,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        found = re.search(r"http://([^:]+):([0-9]+)", process.stdout.readline())
        yield found[1], int(found[2]), process.pid
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def request(path: str, body: Any = None) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: localhost\r\n"
    if body is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return head.encode() + b"\r\n" + data


class Timed(NamedTuple):
    """How many queries were answered in how many seconds, of them on a core, and the seconds of each call."""

    queries: int
    seconds: float
    busy: float
    times: list[float]


class Connection:
    """One connection, on which a request follows the answer to the one before."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data, self.wanted, self.begin = b"", -1, 0.0

    def ask(self, data: bytes) -> None:
        """Send a request."""
        self.data, self.wanted, self.begin = b"", -1, time.perf_counter()
        self.socket.sendall(data)

    def answered(self) -> bool:
        """Take what has come; say whether that is all of it."""
        self.data += self.socket.recv(1 << 18)
        if self.wanted < 0 and (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = self.data[:end].lower()
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(f"the server must answer, got {self.data[:300]!r}")
            self.wanted = end + 4 + int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        return 0 <= self.wanted <= len(self.data)


def load(host: str, port: int, pid: int, requests: list[bytes], clients: int, seconds: float) -> Timed:
    """Ask the server that is process ``pid`` for so many seconds over so many connections."""
    busy = on_core(pid)
    connections = [Connection(host, port) for _ in range(clients)]
    times: list[float] = []
    with selectors.DefaultSelector() as selector:
        for number, one in enumerate(connections):
            selector.register(one.socket, selectors.EVENT_READ, one)
            one.ask(requests[number % len(requests)])
        asked, begin = clients, time.perf_counter()
        end = begin + seconds
        while (now := time.perf_counter()) < end:
            for key, _ in selector.select(end - now):
                one = key.data
                if one.answered():
                    times.append(time.perf_counter() - one.begin)
                    one.ask(requests[asked % len(requests)])
                    asked += 1
        took = time.perf_counter() - begin
    for one in connections:
        one.socket.close()
    return Timed(len(times), took, on_core(pid) - busy, times)


def in_process(index: Any, codes: np.ndarray, together: int, seconds: float) -> Timed:
    """Ask the index in this process, one thread, so many queries in a call."""
    times, begin, busy, place = [], time.perf_counter(), time.process_time(), 0
    while (now := time.perf_counter()) - begin < seconds:
        rows = np.arange(place, place + together) % len(codes)
        index.search(codes[rows], K)
        times.append(time.perf_counter() - now)
        place += together
    return Timed(place, time.perf_counter() - begin, time.process_time() - busy, times)


def on_core(pid: int) -> float:
    """Return the seconds for which a process had a core, which other work of the machine does not change much."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return megabytes of private memory of a process."""
    private = re.findall(r"^Private_\w+:\s+([0-9]+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return sum(map(int, private)) / 1024


def line(name: str, clients: int, rounds: list[Timed]) -> str:
    """Return a line of the table."""
    p50, p99 = np.percentile(np.concatenate([one.times for one in rounds]), [50, 99]) * 1e3
    queries = sum(one.queries for one in rounds)
    qps, busy = queries / sum(one.seconds for one in rounds), 1e3 * sum(one.busy for one in rounds) / queries
    return f"| {name} | {clients} | {qps:,.0f} | {p50:.2f} | {p99:.2f} | {busy:.3f} |"


def measured(lines: dict[tuple[str, int], Callable[[], Timed]], rounds: int) -> None:
    """Measure lines in turns, and print them."""
    found: dict[tuple[str, int], list[Timed]] = {key: [] for key in lines}
    for _ in range(rounds):
        for key, measure in lines.items():
            found[key].append(measure())
    print("| | clients | queries/s | p50, ms | p99, ms | ms of a core each |\n|---|---|---|---|---|---|")
    print("\n".join(line(*key, timed) for key, timed in found.items()), flush=True)


def measure(given: argparse.Namespace, folder: Path) -> None:
    model, base, X = digits(given.n, given.source)
    queries = model.transform(X)
    index = ilhash.HammingIndex(base, n_bits=N_BITS)
    make(folder / "on", model, codes=base, ids=np.arange(len(base)))
    shutil.copytree(folder / "on", folder / "off")
    texts = ilhash.codes.to_hex(queries, N_BITS)
    requests = {
        "codes": [request("/v1/search", {"codes": [text], "k": K}) for text in texts],
        "vectors": [request("/v1/search", {"vectors": [x], "k": K}) for x in X.astype(float).tolist()],
    }
    print(f"{given.n:,} codes of {N_BITS} bits, {index.n_distinct:,} distinct, k = {K}, {os.cpu_count()} cores")
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}\n")
    seconds = given.seconds
    lines: dict[tuple[str, int], Callable[[], Timed]] = {
        ("index in this process", 1): partial(in_process, index, queries, 1, seconds),
        ("index in this process, by 64", 1): partial(in_process, index, queries, 64, seconds),
    }
    with served(folder / "on") as on, served(folder / "off", "--no-batching") as off:
        for clients in given.clients:
            idle = partial(load, *on, [request("/livez")], clients, seconds)
            lines["/livez: client and HTTP alone", clients] = idle
            for kind in given.by:
                for name, server in (("batching", on), ("no batching", off)):
                    lines[f"{kind}, {name}", clients] = partial(load, *server, requests[kind], clients, seconds)
        measured(lines, given.rounds)
    if given.minutes:
        with served(folder / "on") as server:
            flat(given.minutes, requests[given.by[0]], server)


def flat(minutes: float, requests: list[bytes], server: tuple[str, int, int]) -> None:
    """Ask for minutes, and look at the server's memory."""
    load(*server, requests, 16, 20)
    begin, asked, seen = time.monotonic(), 0, [memory(server[2])]
    while time.monotonic() - begin < 60 * minutes:
        asked += load(*server, requests, 16, 10).queries
        seen.append(memory(server[2]))
    print(f"\nmemory over {minutes:g} minutes of 16 clients, {asked:,} queries:\n\n| at first, MB | at last | most |")
    print(f"|---|---|---|\n| {seen[0]:.1f} | {seen[-1]:.1f} | {max(seen):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000, help="codes")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each line in a round")
    parser.add_argument("--rounds", type=int, default=3, help="of all lines in turns")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64], help="connections")
    parser.add_argument("--by", nargs="+", default=["codes", "vectors"], choices=["codes", "vectors"], help="queries")
    parser.add_argument("--source", default="digits", help="digits that are deformed: digits (bundled) or mnist")
    parser.add_argument("--minutes", type=float, default=0.0, help="for which memory is looked at")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(given, Path(folder))


if __name__ == "__main__":
    main()
