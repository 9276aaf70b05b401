"""The application: routes, errors and the guard around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

import ilhash
from ilhash.serve import _routes, _routes_of_the_page
from ilhash.serve._context import Context
from ilhash.serve._guard import Guard
from ilhash.serve._limits import Limits, Tokens
from ilhash.serve._openapi import describe
from ilhash.serve._problems import install
from ilhash.serve._service import Service

METHODS = ("GET", "POST", "PUT")


def application(
    service: Service,
    *,
    limits: Limits | None = None,
    tokens: Tokens | None = None,
    hosts: Sequence[str] | None = None,
    origins: Sequence[str] = (),
    batching: bool = True,
    wait: float = 0.001,
) -> Any:
    """Return the ASGI application of a service; ``app.state.context`` of it ends with its lifespan."""
    limits = limits or Limits()
    context = Context(service, limits, batching=batching, wait=wait)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        context.begin()
        try:
            yield
        finally:
            await context.look(context.end)

    app = FastAPI(
        title="ilhash",
        version=ilhash.__version__,
        summary="Search by learnt binary codes, and codes that learn from judgements.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.include_router(_routes.routes(context))
    app.include_router(_routes_of_the_page.routes(context))
    _routes_of_the_page.add_page(app, context)
    install(app, service)
    describe(app, context, tokens=bool(tokens))
    app.state.context = context

    def seen(method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
        context.metrics.requests.labels(known, route, status).inc()
        context.metrics.seconds.labels(route).observe(seconds)
        context.metrics.active.set(guard.active)

    guard = Guard(
        app,
        limits=limits,
        tokens=tokens or Tokens(),
        hosts=hosts,
        origins=origins,
        headers=_headers(service),
        coming=context.coming,
        seen=seen,
    )
    outer: Any = guard
    if origins:
        outer = CORSMiddleware(
            guard,
            allow_origins=list(origins),
            allow_methods=list(METHODS),
            allow_headers=["Authorization", "Content-Type"],
            expose_headers=["Retry-After"],
        )
    return Served(outer, context)


class Served:
    """The application with what it is made of."""

    def __init__(self, app: Any, context: Context) -> None:
        self._app, self.context = app, context

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer."""
        await self._app(scope, receive, send)


def _headers(service: Service) -> dict[str, str]:
    """Return the headers of all answers."""
    origin = service.pictures.origin if service.pictures is not None else None
    policy = [
        "default-src 'self'",
        f"img-src 'self' blob: data:{f' {origin}' if origin else ''}",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
