"""A service of a million learned codes of 64 bits: queries per second and their times, beside the index without it.

python benchmarks/serve.py [--n 1000000] [--seconds 10] [--clients 1 16 64] [--minutes 10] [--json serve.json]

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


def load(host: str, port: int, requests: list[bytes], clients: int, seconds: float) -> dict[str, float]:
    """Ask for so many seconds over so many connections; return queries per second and times in milliseconds."""
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
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"qps": len(times) / took, "p50": float(p50), "p99": float(p99)}


def in_process(index: Any, codes: np.ndarray, together: int, seconds: float) -> dict[str, float]:
    """Ask the index in this process, one thread, so many queries in a call."""
    times, begin, place = [], time.perf_counter(), 0
    while (now := time.perf_counter()) - begin < seconds:
        rows = np.arange(place, place + together) % len(codes)
        index.search(codes[rows], K)
        times.append(time.perf_counter() - now)
        place += together
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"qps": place / (time.perf_counter() - begin), "p50": float(p50), "p99": float(p99)}


def memory(pid: int) -> float:
    """Return megabytes of private memory of a process."""
    private = re.findall(r"^Private_\w+:\s+([0-9]+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return sum(map(int, private)) / 1024


def line(name: str, clients: int, found: dict[str, float]) -> dict[str, Any]:
    print(f"{name:<34} {clients:>8} {found['qps']:>10,.0f} {found['p50']:>9.2f} {found['p99']:>9.2f}", flush=True)
    return {"what": name, "clients": clients, **found}


def measure(given: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
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
    print(f"{'':<34} {'clients':>8} {'queries/s':>10} {'p50 ms':>9} {'p99 ms':>9}")
    table = [line("index in this process", 1, in_process(index, queries, 1, given.seconds))]
    table.append(line("index in this process, by 64", 1, in_process(index, queries, 64, given.seconds)))
    with served(folder / "on") as on, served(folder / "off", "--no-batching") as off:
        ready = {"batching": on, "no batching": off}
        for clients in given.clients:
            found = load(*on[:2], [request("/livez")], clients, given.seconds)
            table.append(line("/livez: client and HTTP alone", clients, found))
            for kind in given.by:
                for name, (host, port, _) in ready.items():
                    found = load(host, port, requests[kind], clients, given.seconds)
                    table.append(line(f"{kind}, {name}", clients, found))
    if given.minutes:
        with served(folder / "on") as (host, port, pid):
            table += flat(given, requests[given.by[0]], host, port, pid)
    return table


def flat(given: argparse.Namespace, requests: list[bytes], host: str, port: int, pid: int) -> list[dict[str, Any]]:
    """Ask for minutes, and look at the server's memory."""
    load(host, port, requests, 16, 20)
    begin, seen = time.monotonic(), [memory(pid)]
    while time.monotonic() - begin < 60 * given.minutes:
        load(host, port, requests, 16, 10)
        seen.append(memory(pid))
    print(
        f"memory over {given.minutes:g} minutes of 16 clients: {seen[0]:.1f} MB at first, {seen[-1]:.1f} MB at last, "
        f"at most {max(seen):.1f} MB",
        flush=True,
    )
    return [{"what": "memory", "minutes": given.minutes, "megabytes": seen}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000, help="codes")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each line")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64], help="connections")
    parser.add_argument("--by", nargs="+", default=["codes", "vectors"], choices=["codes", "vectors"], help="queries")
    parser.add_argument("--source", default="digits", help="digits that are deformed: digits (bundled) or mnist")
    parser.add_argument("--minutes", type=float, default=0.0, help="for which memory is looked at")
    parser.add_argument("--json", type=Path, help="file for all numbers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        table = measure(given, Path(folder))
    if given.json:
        given.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
