"""Addresses for looking into a service: what it is, bits, precision, learning, pictures, the page itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Response
from fastapi.responses import StreamingResponse

import ilhash
from ilhash.serve import _metrics
from ilhash.serve import _schemas as schema
from ilhash.serve._context import Context
from ilhash.serve._looking import all_bits, compared, label_names, one_bit, precision
from ilhash.serve._routes import ItemId, Part, answers, as_id, said
from ilhash.serve._searching import CURRENT, NotThereError
from ilhash.serve._state import State

PAGE = FilePath(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
BEAT = 15.0  # seconds after which a stream says that it is still there
LOOK = 0.1  # seconds between looks at how far learning is


def routes(context: Context) -> APIRouter:
    """Return the routes that look into a service."""
    router = APIRouter(prefix="/v1")
    Looks(context).add_to(router)
    Learning(context).add_to(router)
    return router


class Looks(Part):
    """What it is, bits, precision, pictures."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        router.get("/info", **answers(200, None, "Model, index, items, judgements and limits."))(self.info)
        router.get("/bits", **answers(200, None, "What each bit does, over a sample of items."))(self.bits)
        router.get("/bits/{bit}", **answers(200, None, "What one bit does.", 404, 422))(self.bit)
        router.get("/items/{item}/bits", **answers(200, None, "The bits that differ.", 404, 422))(self.two)
        router.get("/precision", **answers(200, None, "Precision of the first bits.", 404, 422))(self.precision)
        shown = answers(200, None, "A picture.", 404, 422)
        shown["responses"] = {**shown["responses"], 200: {"content": {"image/png": {}, "image/*": {}}}}
        router.get("/pictures/{item}", response_class=Response, **shown)(self.picture)

    async def info(self) -> Response:
        """Tell what this service is."""

        def work() -> Any:
            known = self.context.remembered(("info",), lambda state: about(self.context, state))
            return {**known, "feedback": self.service.judged()}

        return said(await self.context.look(work))

    async def bits(self) -> Response:
        """Tell of every bit its balance, how labels split, and which other bits are like it."""
        return said(await self.context.look(self.context.remembered, ("bits",), all_bits))

    async def bit(
        self, bit: Annotated[int, Path(ge=0, le=2**31)], limit: Annotated[int, Query(ge=1, le=100)] = 12
    ) -> Response:
        """Tell of a bit which items it is surest of, on both sides."""

        def work(state: State) -> Any:
            return one_bit(state, self.service.pictures, bit, limit)

        return said(await self.context.look(self.context.remembered, ("bit", bit, limit), work))

    async def two(self, item: ItemId, with_: Annotated[str, Query(alias="with", max_length=1000)]) -> Response:
        """Compare the bits of two items."""

        def work() -> Any:
            with self.service.reading() as state:
                other = state.as_id(with_)
                if other is None:
                    raise NotThereError(f"with must be an id that is there, got {with_[:100]!r}")
                return compared(state, as_id(state, item), other)

        return said(await self.context.look(work))

    async def precision(
        self, k: Annotated[int, Query(ge=1, le=1000)] = 10, model: Annotated[str, Query(max_length=200)] = CURRENT
    ) -> Response:
        """Measure precision by labels, over a sample of items."""

        def work(state: State) -> Any:
            return precision(state, self.service.others, model, k)

        return said(await self.context.look(self.context.remembered, ("precision", k, model), work))

    async def picture(self, item: ItemId) -> Response:
        """Show the picture of an item."""
        found = await self.context.look(self._picture, item)
        if found is None:
            raise NotThereError("an item with a picture must have this id, got none")
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "private, max-age=60"})

    def _picture(self, item: str) -> tuple[bytes, str] | None:
        pictures = self.service.pictures
        with self.service.reading() as state:
            name = as_id(state, item)
            there = pictures is not None and state.view.contains([name])[0]
        return pictures.file(name) if there and pictures is not None else None


def about(context: Context, state: State) -> dict[str, Any]:
    """Return what a service is."""
    service, limits = context.service, context.limits
    provenance = state.model.provenance()
    generations: list[dict[str, Any]] = []
    for bit, one in enumerate(provenance):
        if not generations or generations[-1]["number"] != one.generation:
            generations.append(
                {"number": one.generation, "name": one.name, "first": bit, "n_bits": 0, "method": one.method}
            )
        generations[-1]["n_bits"] += 1
    shown = service.layout.pictures
    pictures = None
    if shown is not None and service.pictures is not None:
        names = ("kind", "height", "width", "channels", "low", "high")
        pictures = {**{name: getattr(shown, name) for name in names}, "ink": service.pictures.ink}
    return {
        "version": ilhash.__version__,
        "writable": service.writable,
        "number": state.number,
        "model": {
            "name": state.name,
            "method": type(state.model).__name__,
            "n_bits": state.n_bits,
            "dimension": state.dimension,
            "fingerprint": state.model.fingerprint(),
            "generation": state.generation,
            "generations": generations,
        },
        "index": {
            "engine": state.view.engine,
            "items": len(state.view),
            "ids": state.kind,
            "exact": True,
            "distinct": state.view.index.n_distinct if state.view.engine == "folder" else None,
        },
        "items": {
            "vectors": state.has_vectors,
            "labels": label_names(state),
            "texts": state.items.has_texts,
            "pictures": pictures,
        },
        "learning": state.has_vectors and service.writable,
        "orders": list(state.orders),
        "models": [CURRENT, *state.before, *service.others],
        "limits": {"k": limits.k, "batch": limits.batch, "items": limits.items, "body": limits.body},
    }


class Learning(Part):
    """New bits from judgements."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        router.post("/learning", **answers(202, schema.Task, "The number of the task.", 409, 422))(self.learn)
        router.get("/learning", **answers(200, schema.Progress, "How far it is, and what came of it."))(self.progress)
        told = answers(200, None, "The same documents at every change.")
        told["responses"] = {**told["responses"], 200: {"content": {"text/event-stream": {}}}}
        router.get("/learning/events", response_class=StreamingResponse, **told)(self.events)

    async def learn(self, body: schema.Learn | None = None) -> Response:
        """Begin to learn from the judgements; new bits are swapped in when held-out judgements find them better."""
        self.service.refuse_unless_writable()
        if not self.service.state.has_vectors:
            raise ValueError("learning must be asked of a service that keeps vectors, got one of codes alone")
        return said({"task": self.context.learning.begin(None if body is None else body.n_bits)}, 202)

    async def progress(self) -> Response:
        """Tell how far learning is."""
        return said(self.context.learning.document())

    async def events(self) -> StreamingResponse:
        """Tell how far learning is at every change, until it ends."""
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(_events(self.context), media_type="text/event-stream", headers=headers)


async def _events(context: Context) -> AsyncIterator[bytes]:
    told, since = None, 0.0
    while not context.closing:
        document = context.learning.document()
        if document is not told:
            yield f"event: state\ndata: {json.dumps(document)}\n\n".encode()
            told, since = document, 0.0
        if document["state"] != "running":
            return
        if since >= BEAT:
            yield b": still there\n\n"
            since = 0.0
        await asyncio.sleep(LOOK)
        since += LOOK


# ------------------------------------------------------------------------------------------------ outside of /v1


def add_page(app: FastAPI, context: Context) -> None:
    """Add what is not of the API: the page, health, metrics."""

    @app.get("/livez", include_in_schema=False)
    async def livez() -> Response:
        return Response("alive\n", media_type="text/plain")

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        return Response(
            "ending\n" if context.closing else "ready\n", 503 if context.closing else 200, media_type="text/plain"
        )

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(await context.look(context.metrics.text), headers={"Content-Type": _metrics.TYPE})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file("index.html")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name)


def _file(name: str) -> Response:
    """Return a file of the page, which is looked up among those that there are."""
    files = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES} if PAGE.is_dir() else {}
    if name not in files:
        raise NotThereError("there is no such file of the page")
    data = files[name].read_bytes()
    return Response(data, media_type=TYPES[files[name].suffix], headers={"Cache-Control": "no-cache"})
