"""What every request must pass before anything is done for it: host, origin, token, size, time, and how many wait."""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
from fastapi import Response

from ilhash.serve._limits import WRITE, Limits, Tokens
from ilhash.serve._problems import problem, wait

Scope = MutableMapping[str, Any]
Receive = Callable[[], Any]
Send = Callable[[MutableMapping[str, Any]], Any]

LOCAL = ("localhost", "127.0.0.1", "[::1]")
OPEN = ("/", "/livez", "/readyz", "/openapi.json")  # and all that begins with /static/
UNCOUNTED = ("/livez", "/readyz", "/metrics")
READING = ("/v1/search", "/v1/encode", "/v1/items/look")  # what is asked by POST and changes nothing
SEARCH = "/v1/search"
ENDLESS = "/v1/learning/events"


class Coming:
    """Searches that have begun to arrive, and are not among those that wait for a scan yet."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> int:
        return self.number


class Arrival:
    """One of them."""

    def __init__(self, coming: Coming) -> None:
        self._coming: Coming | None = coming
        coming.number += 1

    def arrived(self) -> None:
        """Be on the way no more; a second time does nothing."""
        if self._coming is not None:
            self._coming.number -= 1
            self._coming = None


class Guard:
    """An ASGI application around another.

    Parameters
    ----------
    app : the other
    limits, tokens : Limits and Tokens
    hosts : sequence of str or None, names by which a request may call the server; None for any
    origins : sequence of str, whose pages may use the service besides its own
    headers : mapping, headers of all answers
    coming : Coming
    seen : callable, gets method, route, status and seconds of every request
    """

    def __init__(
        self,
        app: Any,
        *,
        limits: Limits,
        tokens: Tokens,
        hosts: Sequence[str] | None,
        origins: Sequence[str],
        headers: dict[str, str],
        coming: Coming,
        seen: Callable[[str, str, int, float], None],
    ) -> None:
        self._app, self._limits, self._tokens, self._coming, self._seen = app, limits, tokens, coming, seen
        self._hosts, self._origins = hosts, frozenset(origins)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self.active = self._streams = self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = scope["raw_path"].decode(
            "ascii"
        )  # ids are unquoted where they are taken: they may have slashes
        begin, answered = time.perf_counter(), _Answered(send, self._headers)
        try:
            await self._passed(scope, receive, answered)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self._seen(scope["method"], route, answered.status or 499, time.perf_counter() - begin)

    async def _passed(self, scope: Scope, receive: Receive, send: _Answered) -> None:
        headers = _as_mapping(scope["headers"])
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        counted, endless = scope["path"] not in UNCOUNTED, scope["path"] == ENDLESS
        arrival = Arrival(self._coming) if scope["path"] == SEARCH else None
        scope["arrival"] = arrival
        self.active += counted and not endless
        self._streams += endless
        try:
            await self._read_and_done(scope, headers, receive, send, endless=endless)
        finally:
            if arrival is not None:
                arrival.arrived()
            self.active -= counted and not endless
            self._streams -= endless

    # -------------------------------------------------------------------------------------------- headers

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        return (
            self._wrong_host(headers)
            or self._wrong_origin(scope, headers)
            or self._wrong_token(scope, headers)
            or self._too_busy(scope)
            or self._wrong_body(scope, headers)
        )

    def _wrong_host(self, headers: dict[str, str]) -> Response | None:
        """Refuse what another name led here: a page of its owner would be of the same origin (DNS rebinding)."""
        if self._hosts is None or _host(headers.get("host", "")) in self._hosts:
            return None
        return problem(421, f"Host must be one of {', '.join(self._hosts)}, got another; see --allow-host")

    def _wrong_origin(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        """Refuse what pages of others want to change, which browsers send without asking."""
        origin = headers.get("origin")
        if origin is None or scope["method"] in ("GET", "HEAD", "OPTIONS") or origin in self._origins:
            return None
        if urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != "":
            return None
        return problem(
            403, "Origin must be that of this service or one that it allows, got another; see --allow-origin"
        )

    def _wrong_token(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        path = scope["path"]
        if not self._tokens or path in OPEN or path.startswith("/static/"):
            return None
        may = self._tokens.may(headers.get("authorization", ""))
        if may is None:
            said = {"WWW-Authenticate": "Bearer"}
            return problem(401, "Authorization must be 'Bearer TOKEN' with a token of this service, got another", said)
        writes = scope["method"] not in ("GET", "HEAD", "OPTIONS") and path not in READING
        if writes and may != WRITE:
            return problem(403, "the token must be one for writing, got one for reading")
        return None

    def _too_busy(self, scope: Scope) -> Response | None:
        path, limits = scope["path"], self._limits
        if path == ENDLESS:
            if self._streams >= limits.streams:
                return wait(503, f"listeners must be at most {limits.streams} at a time, got more", 5)
        elif path not in UNCOUNTED and self.active >= limits.waiting:
            return wait(503, f"requests must be at most {limits.waiting} at a time, got more", 1)
        return None

    def _wrong_body(self, scope: Scope, headers: dict[str, str]) -> Response | None:
        length = headers.get("content-length", "0")
        has_body = length != "0" or "transfer-encoding" in headers
        if not has_body:
            return None
        if not length.isdigit() or int(length) > self._limits.body:
            return _too_large(self._limits.body)
        if self._bytes + int(length) > self._limits.bodies:
            return wait(503, f"bodies of all requests must have at most {self._limits.bodies} bytes, got more", 1)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
            return problem(415, "Content-Type must be application/json, got another")
        return None

    # -------------------------------------------------------------------------------------------- bodies

    async def _read_and_done(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: _Answered, *, endless: bool
    ) -> None:
        body = b""
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            read = await self._body(receive)
            if isinstance(read, Response):
                await read(scope, receive, send)
                return
            body = read
        try:
            with anyio.move_on_after(None if endless else self._limits.request_seconds) as within:
                await self._app(scope, _replayed(body, receive), send)
            if within.cancelled_caught and send.status is None:
                # No status after which one asks again: what was asked for may happen yet.
                late = problem(504, f"a request must end within {self._limits.request_seconds:g} s, got a longer one")
                await late(scope, receive, send)
        finally:
            self._bytes -= len(body)

    async def _body(self, receive: Receive) -> bytes | Response:
        """Read a body whole, within limits of bytes and time."""
        limits, chunks, size = self._limits, [], 0
        refusal: Response | None = None
        with anyio.move_on_after(limits.body_seconds) as within:
            while refusal is None:
                message = await receive()
                if message["type"] == "http.disconnect":
                    refusal = problem(400, "a body must come whole, got the end of the connection")
                    break
                chunk = message.get("body", b"")
                chunks.append(chunk)
                size += len(chunk)
                self._bytes += len(chunk)
                if size > limits.body:
                    refusal = _too_large(limits.body)
                elif self._bytes > limits.bodies:
                    refusal = wait(503, f"bodies of all requests must have at most {limits.bodies} bytes, got more", 1)
                elif not message.get("more_body", False):
                    return b"".join(chunks)
        self._bytes -= size
        if within.cancelled_caught:
            slow = f"a body must come within {limits.body_seconds:g} s, got {size} bytes of it"
            return problem(408, slow, {"Connection": "close"})
        return refusal or problem(400, "a body must come whole, got a part of it")


class _Answered:
    """Sends what an application sends, with more headers, and remembers the status."""

    def __init__(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self._send, self._headers = send, headers
        self.status: int | None = None

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            own = {name.lower() for name, _ in message.get("headers", ())}
            more = [(name, value) for name, value in self._headers if name not in own]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await self._send(message)


def _too_large(most: int) -> Response:
    return problem(413, f"a body must have at most {most} bytes, got more")


def _as_mapping(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; of one that is there twice, both, which is no value that anything accepts."""
    out: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        out[key] = f"{out[key]}, {value.decode('latin-1')}" if key in out else value.decode("latin-1")
    return out


def _host(header: str) -> str:
    """Return the name in a header, without its port."""
    if header.startswith("["):
        return "".join(header.partition("]")[:2]).lower()
    return header.partition(":")[0].lower()


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what comes after it."""
    given = False

    async def again() -> Any:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return again
