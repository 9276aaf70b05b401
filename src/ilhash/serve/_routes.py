"""Addresses for searches, encoding, items and judgements."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Path, Query, Request, Response

from ilhash import codes as packed
from ilhash.serve import _schemas as schema
from ilhash.serve._context import Context
from ilhash.serve._looking import ids_after, item_documents, random_ids
from ilhash.serve._searching import Asked, NotThereError
from ilhash.serve._service import Change
from ilhash.serve._state import State

MOST_LISTED = 200  # items of a page


def said(document: Any, status: int = 200) -> Response:
    """Return JSON."""
    return Response(json.dumps(document, separators=(",", ":")), status, media_type="application/json")


def as_id(state: State, text: str) -> Any:
    """Return the id that a part of an address means."""
    found = state.as_id(unquote(text))
    if found is None:
        raise NotThereError(f"an item's id must be a whole number here, got {unquote(text)[:100]!r}")
    return found


def answers(status: int = 200, what: Any = None, text: str = "What was asked for.", *problems: int) -> dict[str, Any]:
    """Return what a route says of its answers in the OpenAPI document."""
    refused: dict[int | str, Any] = {
        one: {"model": schema.Problem, "content": {"application/problem+json": {}}} for one in problems
    }
    return {"status_code": status, "response_model": what, "response_description": text, "responses": refused}


def routes(context: Context) -> APIRouter:
    """Return the routes of a service."""
    router = APIRouter(prefix="/v1")
    service, limits = context.service, context.limits

    def check_batch(name: str, n: int, most: int) -> None:
        if n > most:
            raise ValueError(f"{name} must be at most {most} at a time, got {n}")

    def check_vectors(vectors: Any) -> None:
        """Refuse vectors that do not fit the model, and more than are done in a second."""
        wanted = service.state.dimension
        if vectors is not None and vectors.shape[1] != wanted:
            raise ValueError(f"vectors must have {wanted} numbers each, got {vectors.shape[1]}")

    @router.post("/search", **answers(200, schema.Found, "The nearest items of each query.", 404, 422))
    async def search(body: schema.Search, request: Request) -> Response:
        """Find the nearest items of vectors, codes or items."""
        asked = Asked(**{name: getattr(body, name) for name in schema.Search.model_fields})
        check_batch("queries", len(asked), limits.batch)
        check_batch("k", body.k, limits.k)
        check_vectors(body.vectors)
        context.bucket.take(len(asked))
        found = await context.search(asked, request)
        hits = [{"ids": i, "distances": d} for i, d in zip(found.ids, found.distances, strict=True)]
        about = {"exact": found.exact, "order": found.order, "n_bits": found.n_bits, "model": found.model}
        return said({"hits": hits, **about})

    @router.post("/encode", **answers(200, schema.Encoded, "Codes, hexadecimal.", 422))
    async def encode(body: schema.Encode) -> Response:
        """Turn vectors into codes."""
        check_batch("vectors", len(body.vectors), limits.batch)
        check_vectors(body.vectors)
        context.bucket.take(len(body.vectors))

        def work() -> dict[str, Any]:
            state = service.state
            margins = state.model.decision_function(body.vectors)
            codes = packed.to_hex(packed.pack(margins > 0), margins.shape[1])
            more = {"margins": margins.tolist()} if body.margins else {}
            return {"codes": codes, "n_bits": margins.shape[1], **more}

        return said(await context.look(work))

    _items(router, context, check_batch, check_vectors)
    _judgements(router, context, check_batch)
    return router


def _items(router: APIRouter, context: Context, check_batch: Any, check_vectors: Any) -> None:
    service, limits = context.service, context.limits

    def documents(ids: list[Any], *, margins: bool) -> list[dict[str, Any]]:
        with service.reading() as state:
            return item_documents(state, service.pictures, ids, margins=margins)

    @router.get("/items", **answers(200, schema.Items, "Some items.", 422))
    async def items(
        random: Annotated[int | None, Query(ge=1, le=MOST_LISTED, description="how many, drawn by the seed")] = None,
        seed: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
        after: Annotated[str | None, Query(max_length=1000, description="the id behind which the list begins")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    ) -> Response:
        """List items in the order of their ids, or draw some."""

        def work() -> dict[str, Any]:
            with service.reading() as state:
                if random is not None:
                    ids, more = random_ids(state, random, seed), False
                else:
                    ids, more = ids_after(state, None if after is None else _listed(state, after), limit)
                return {"items": item_documents(state, service.pictures, ids), "more": more}

        return said(await context.look(work))

    @router.get("/items/{item}", **answers(200, schema.Item, "What is known of an item.", 404, 422))
    async def item(item: Annotated[str, Path(max_length=4000)]) -> Response:
        """Look at an item, with its margins."""

        def work() -> dict[str, Any]:
            with service.reading() as state:
                name = as_id(state, item)
                return item_documents(state, service.pictures, [name], margins=True)[0]

        return said(await context.look(work))

    @router.post("/items/look", **answers(200, schema.Items, "What is known of items.", 404, 422))
    async def look(body: schema.Look) -> Response:
        """Look at many items, in the order of the ids."""
        check_batch("ids", len(body.ids), limits.batch)

        def work() -> dict[str, Any]:
            return {"items": documents(body.ids, margins=body.margins), "more": False}

        return said(await context.look(work))

    @router.post("/items", **answers(201, schema.Made, "The ids of the items, which are on disk.", 403, 409, 422))
    async def add(body: schema.NewItems) -> Response:
        """Add items; the answer comes when they are on disk."""
        return said({"ids": await context.change(changed("add", body))}, 201)

    @router.put("/items", **answers(200, schema.Made, "The ids of the items.", 403, 404, 422))
    async def update(body: schema.ChangedItems) -> Response:
        """Give items other vectors or codes; the answer comes when they are on disk."""
        return said({"ids": await context.change(changed("update", body))})

    def changed(kind: str, body: schema.NewItems) -> Change:
        change = Change(kind, body.ids, body.vectors, body.codes, body.labels, body.texts)
        check_batch("items", len(change), limits.items)
        check_vectors(body.vectors)
        context.bucket.take(len(change))
        return change

    @router.post("/items/remove", **answers(200, schema.Removed, "How many items were removed.", 403, 404, 422))
    async def remove(body: schema.Remove) -> Response:
        """Remove items."""
        check_batch("ids", len(body.ids), limits.items)
        return said({"removed": len(await context.change(Change("remove", body.ids)))})


def _listed(state: State, after: str) -> Any:
    """Return an id of a query string, where nothing is quoted twice."""
    found = state.as_id(after)
    if found is None:
        raise ValueError(f"after must be a whole number here, got {after[:100]!r}")
    return found


def _judgements(router: APIRouter, context: Context, check_batch: Any) -> None:
    service, limits = context.service, context.limits

    @router.get("/judgements", **answers(200, schema.Summary, "What judgements came to."))
    async def summary() -> Response:
        """Count judgements."""
        return said(await context.look(service.judged))

    @router.post("/judgements", **answers(201, schema.Summary, "What all judgements come to.", 403, 404, 422))
    async def judge(body: schema.Judgements) -> Response:
        """Say which items are similar and which are not; the answer comes when that is on disk."""
        given = body.judgements
        check_batch("judgements", len(given), limits.items)

        def work() -> dict[str, int]:
            columns = [
                [getattr(one, name) for one in given] for name in ("query", "item", "similar", "weight", "person")
            ]
            service.judge(*columns)
            return service.judged()

        return said(await context.look(work), 201)
