"""The server: a socket, an event loop, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ilhash._checks import check_count
from ilhash.serve._app import application
from ilhash.serve._guard import LOCAL
from ilhash.serve._limits import Limits, Tokens
from ilhash.serve._service import Service

GRACE = 30  # seconds that running requests have when the server ends
SWITCH = 0.0005  # seconds after which a thread lets another have the interpreter: scans end, and answers wait for it


def run(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    unsafe: bool = False,
    limits: Limits | None = None,
    tokens: Tokens | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    batching: bool = True,
    wait: float = 0.001,
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until a signal ends it: running requests are answered, then the folder is let go of.

    Parameters
    ----------
    service : Service, which is closed at the end
    host, port : str and int, where; port 0 is any that is free
    unsafe : bool, default False, whether others than this machine may come without tokens
    limits, tokens : Limits and Tokens, optional
    hosts : sequence of str, names beside those of the loopback address by which requests may call it
    origins : sequence of str, whose pages may use it
    batching : bool, default True
    wait : float, default 0.001, seconds that a search waits for others which are on their way
    started : callable, optional, gets the address when it answers
    """
    try:
        limits, tokens = limits or Limits(), tokens or Tokens()
        loopback = is_loopback(host)
        if not loopback and not tokens and not unsafe:
            raise ValueError(f"host must be the loopback address where there are no tokens, got {host}; see --unsafe")
        names = [*LOCAL, *(one.lower() for one in hosts)] if loopback else [*hosts, host.lower()] if hosts else None
        listening = _listening(host, check_count("port", port, 0, 65_535))
        app = application(
            service, limits=limits, tokens=tokens, hosts=names, origins=origins, batching=batching, wait=wait
        )
        sys.setswitchinterval(SWITCH)
        shown, bound = listening.getsockname()[:2]
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}"
        _Server(_config(app, limits), app.context, lambda: started(address)).run(sockets=[listening])
    finally:
        service.close()


def _config(app: Any, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_protocol(limits),
        ws="none",
        lifespan="on",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=32 << 10,
    )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, place = found[0]
        listening = socket.socket(family, kind, protocol)
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(512)
    except (OSError, OverflowError) as error:
        raise OSError(f"host and port must be free to listen on, got {host}:{port}: {error}") from None
    return listening


class _Server(uvicorn.Server):
    """Ends on SIGTERM and Ctrl-C, and returns then."""

    def __init__(self, config: uvicorn.Config, context: Any, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._context, self._say = context, started

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._say()

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._context.closing = True  # who listens to the progress of learning would never go
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take signals while it runs; uvicorn's own would raise them again at the end."""
        taken = (signal.SIGINT, signal.SIGTERM)
        try:
            before = {one: signal.signal(one, self.handle_exit) for one in taken}
        except ValueError:  # not in the main thread, which nobody sends signals to
            yield
            return
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _protocol(limits: Limits) -> type[H11Protocol]:
    """Return the protocol with these limits."""
    return type("_Limited", (_Protocol,), {"limits": limits})


class _Protocol(H11Protocol):
    """HTTP with a limit of connections, and of the time that the head of a request takes."""

    limits: Limits
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            transport.abort()
            return
        self._timed()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._untimed()
        else:
            self._timed()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._untimed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._untimed()
        super().connection_lost(exc)

    def _timed(self) -> None:
        if self._timer is None and not self.transport.is_closing():
            self._timer = self.loop.call_later(self.limits.header_seconds, self._late)

    def _untimed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
