"""Requests over a connection that is kept, one for each thread, and made again where the service is busy."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ilhash.client._answers import ServiceError

BUSY = (429, 503)
LONGEST = 60.0  # seconds between two attempts
FIRST = 0.1
LARGEST = 1 << 30  # bytes of an answer
_UNSENT = (ConnectionRefusedError, http.client.CannotSendRequest)


class Connection:
    """A service, by its address.

    Parameters
    ----------
    url : str, such as "http://127.0.0.1:8000"
    token : str or None
    timeout : float, seconds that an answer may take
    retries : int, how often a busy service is asked again
    """

    def __init__(self, url: str, token: str | None, timeout: float, retries: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"url must be such as 'http://127.0.0.1:8000', got {url!r}")
        if parts.username is not None or parts.password is not None:
            raise ValueError("url must be without a user and a password: give token=, got one with them")
        self._parts, self._prefix = parts, parts.path.rstrip("/")
        self._timeout, self._retries = timeout, retries
        self._headers = {"Accept": "application/json"}
        if token is not None:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise ValueError("token must be printable ASCII without spaces, got something else")
            self._headers["Authorization"] = f"Bearer {token}"
        self._local = threading.local()
        self._all: set[http.client.HTTPConnection] = set()
        self._mutex = threading.Lock()

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._mutex:
            for one in self._all:
                one.close()
            self._all = set()

    def ask(self, method: str, path: str, document: Any = None, *, again: bool = True) -> Any:
        """Make a request and return the document of the answer.

        A service that is busy (429 or 503 with a time to come again) did nothing, and is asked again after that time
        and a random part of it, so that many clients do not come back at once. A connection that breaks is tried again
        where the request changes nothing, or did not reach the service.
        """
        return json.loads(self.ask_bytes(method, path, document, again=again))

    def ask_bytes(self, method: str, path: str, document: Any = None, *, again: bool = True) -> bytes:
        """Make a request as :meth:`ask` does, and return the bytes of the answer."""
        body = None if document is None else json.dumps(document, allow_nan=False).encode()
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                status, headers, data = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if last or not (again or isinstance(error, _UNSENT)):
                    where = f"{self._parts.scheme}://{self._parts.netloc}"
                    raise ServiceError(0, f"{where} must answer, got {type(error).__name__}: {error}") from error
                self._pause(attempt, None)
                continue
            if status < 300:
                return data
            wait = _seconds(headers.get("retry-after"))
            if status not in BUSY or last or (wait is None and not again):
                raise ServiceError(status, _detail(data), wait)
            self._pause(attempt, wait)
        raise AssertionError("unreachable")

    def events(self, path: str) -> Iterator[Any]:
        """Give the documents of a stream of server-sent events as they come; on a connection of its own."""
        connection = self._new()
        try:
            connection.request("GET", self._prefix + path, headers={**self._headers, "Accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status != 200:
                raise ServiceError(response.status, _detail(response.read(1 << 20)))
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[len(b"data: ") :])
        except ServiceError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(0, f"the stream must go on, got {type(error).__name__}: {error}") from error
        finally:
            connection.close()
            with self._mutex:
                self._all.discard(connection)

    def _new(self) -> http.client.HTTPConnection:
        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        with self._mutex:
            self._all.add(connection)
        return connection

    def _drop(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            with self._mutex:
                self._all.discard(connection)
            self._local.connection = None

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, dict[str, str], bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._new()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        connection.request(method, self._prefix + path, body, headers)
        response = connection.getresponse()
        data = response.read(LARGEST)
        if response.will_close:
            self._drop()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, data

    def _pause(self, attempt: int, wait: float | None) -> None:
        base = min(LONGEST, FIRST * 2**attempt) if wait is None else min(LONGEST, wait)
        time.sleep(base * (random.uniform(0.5, 1.0) if wait is None else random.uniform(1.0, 1.5)))


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:  # a date: the service sends seconds
        return None


def _detail(data: bytes) -> str:
    try:
        return str(json.loads(data)["detail"])
    except (ValueError, KeyError, TypeError):
        return data[:200].decode("utf-8", "replace") or "the service gave no reason"
