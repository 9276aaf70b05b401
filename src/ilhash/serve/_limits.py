"""How much a service does for whom: limits, tokens, a bucket of vectors."""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

READ, WRITE = "read", "write"
VARIABLES = {READ: "ILHASH_READ_TOKEN", WRITE: "ILHASH_WRITE_TOKEN"}
SHORTEST = 16  # characters of a token
LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a service refuses to exceed.

    Attributes
    ----------
    k : int, answers of a search
    batch : int, vectors, codes or ids of a search, an encoding, or a look at items
    items : int, items of a change, judgements of a call
    body : int, bytes of a request
    bodies : int, bytes of all requests that are being read or worked on
    waiting : int, requests that are worked on or wait
    streams : int, who listens to the progress of learning
    connections : int
    vectors_per_second : float, over all requests, 0 for no limit; ten seconds' worth may come at once
    header_seconds, body_seconds : float, for which a sender may take its time
    request_seconds : float, for which a request may take the server's, and a reader its own
    """

    k: int = 1000
    batch: int = 1000
    items: int = 10_000
    body: int = 8 << 20
    bodies: int = 64 << 20
    waiting: int = 256
    streams: int = 16
    connections: int = 1000
    vectors_per_second: float = 20_000.0
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    request_seconds: float = 120.0


class TooManyError(Exception):
    """More than a service does in a second; ``retry_after`` seconds later it does more."""

    def __init__(self, sentence: str, retry_after: float) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class Bucket:
    """So many vectors per second, and ten seconds' worth at once."""

    def __init__(self, per_second: float) -> None:
        self._rate, self._most = per_second, 10 * per_second
        self._left, self._last = self._most, time.monotonic()
        self._mutex = threading.Lock()

    def take(self, n: int) -> None:
        """Take n vectors out, or say when they will be there."""
        if not self._rate:
            return
        with self._mutex:
            now = time.monotonic()
            self._left = min(self._most, self._left + (now - self._last) * self._rate)
            self._last = now
            wanted = min(n, self._most)  # more than it can ever hold is let through when it is full
            if wanted > self._left:
                got = f"{n} when {int(self._left)} were left"
                rule = f"vectors must be at most {self._rate:g} per second over all requests, got {got}"
                raise TooManyError(rule, (wanted - self._left) / self._rate)
            self._left -= wanted


@dataclass(frozen=True)
class Tokens:
    """Who may read and who may write, by the digests of what they show; whoever may write may read."""

    read: tuple[bytes, ...] = ()
    write: tuple[bytes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    def may(self, authorization: str) -> str | None:
        """Return what a header ``Bearer TOKEN`` allows, in a time that does not depend on which token it is."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer":
            return None
        shown = _digest(token.strip())
        found = {name: [hmac.compare_digest(shown, one) for one in getattr(self, name)] for name in (READ, WRITE)}
        return WRITE if any(found[WRITE]) else READ if any(found[READ]) else None

    @classmethod
    def found(cls, path: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> Tokens:
        """Return the tokens of a file, whose lines are ``read TOKEN`` or ``write TOKEN``, and of the environment."""
        given: dict[str, list[str]] = {READ: [], WRITE: []}
        for name, variable in VARIABLES.items():
            given[name] += environment.get(variable, "").split()
        if path is not None:
            for name, token in _lines(Path(path)):
                given[name].append(token)
        return cls(_digests(given[READ]), _digests(given[WRITE]))


def _lines(path: Path) -> Iterable[tuple[str, str]]:
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"{path} must have at most {LARGEST_FILE} bytes, got {path.stat().st_size}")
    if os.name == "posix" and path.stat().st_mode & 0o007:
        raise ValueError(f"{path} must be a file that others cannot read (chmod o= {path}), got one that they can")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in (READ, WRITE):
            raise ValueError(f"{path}, line {number}, must be 'read TOKEN' or 'write TOKEN', got something else")
        yield words[0], words[1]


def _digests(tokens: list[str]) -> tuple[bytes, ...]:
    short = sum(len(token) < SHORTEST for token in tokens)
    if short:
        raise ValueError(f"tokens must have at least {SHORTEST} characters, got {short} of {len(tokens)} shorter ones")
    return tuple(map(_digest, tokens))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
