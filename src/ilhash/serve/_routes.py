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
ItemId = Annotated[str, Path(max_length=4000, description="an item's id, percent-encoded")]
PROBLEM = {"model": schema.Problem, "content": {"application/problem+json": {}}}
ALWAYS = (400, 401, 403, 408, 413, 415, 421, 429, 503, 504)  # what the guard, or a limit, may say of any request


def said(document: Any, status: int = 200) -> Response:
    """Return JSON."""
    return Response(json.dumps(document, separators=(",", ":")), status, media_type="application/json")


def answers(status: int = 200, what: Any = None, text: str = "What was asked for.", *problems: int) -> dict[str, Any]:
    """Return what a route says of its answers in the OpenAPI document."""
    refused = dict.fromkeys((*ALWAYS, *problems), PROBLEM)
    return {"status_code": status, "response_model": what, "response_description": text, "responses": refused}


def as_id(state: State, text: str) -> Any:
    """Return the id that a part of an address means."""
    found = state.as_id(unquote(text))
    if found is None:
        raise NotThereError(f"an item's id must be a whole number here, got {unquote(text)[:100]!r}")
    return found


def check_most(name: str, n: int, most: int) -> None:
    """Refuse more than a limit."""
    if n > most:
        raise ValueError(f"{name} must be at most {most} at a time, got {n}")


def routes(context: Context) -> APIRouter:
    """Return the routes of a service."""
    router = APIRouter(prefix="/v1")
    for part in (Searches(context), Items(context), Judgements(context)):
        part.add_to(router)
    return router


class Part:
    """Some routes, and what they share."""

    def __init__(self, context: Context) -> None:
        self.context, self.service, self.limits = context, context.service, context.limits

    def check_vectors(self, vectors: Any) -> None:
        """Refuse vectors that do not fit the model."""
        wanted = self.service.state.dimension
        if vectors is not None and vectors.shape[1] != wanted:
            raise ValueError(f"vectors must have {wanted} numbers each, got {vectors.shape[1]}")


class Searches(Part):
    """Searching and encoding."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        found = answers(200, schema.Found, "The nearest items of each query.", 404, 422)
        router.post("/search", **found)(self.search)
        router.post("/encode", **answers(200, schema.Encoded, "Codes, hexadecimal.", 422))(self.encode)

    async def search(self, body: schema.Search, request: Request) -> Response:
        """Find the nearest items of vectors, codes or items."""
        asked = Asked(**{name: getattr(body, name) for name in schema.Search.model_fields})
        check_most("queries", len(asked), self.limits.batch)
        check_most("k", body.k, self.limits.k)
        self.check_vectors(body.vectors)
        self.context.bucket.take(len(asked))
        found = await self.context.search(asked, request)
        hits = [{"ids": i, "distances": d} for i, d in zip(found.ids, found.distances, strict=True)]
        about = {"exact": found.exact, "order": found.order, "n_bits": found.n_bits, "model": found.model}
        return said({"hits": hits, **about})

    async def encode(self, body: schema.Encode) -> Response:
        """Turn vectors into codes."""
        check_most("vectors", len(body.vectors), self.limits.batch)
        self.check_vectors(body.vectors)
        self.context.bucket.take(len(body.vectors))
        return said(await self.context.look(self._encoded, body))

    def _encoded(self, body: schema.Encode) -> dict[str, Any]:
        margins = self.service.state.model.decision_function(body.vectors)
        codes = packed.to_hex(packed.pack(margins > 0), margins.shape[1])
        more = {"margins": margins.tolist()} if body.margins else {}
        return {"codes": codes, "n_bits": margins.shape[1], **more}


class Items(Part):
    """Items: looking at them, and changing them."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        made, some = "The ids of the items, which are on disk.", "What is known of items."
        router.get("/items", **answers(200, schema.Items, "Some items.", 422))(self.listed)
        router.post("/items", **answers(201, schema.Made, made, 409, 422))(self.add)
        router.put("/items", **answers(200, schema.Made, made, 404, 422))(self.update)
        router.post("/items/look", **answers(200, schema.Items, some, 404, 422))(self.look)
        router.post("/items/remove", **answers(200, schema.Removed, "How many items.", 404, 422))(self.remove)
        router.get("/items/{item}", **answers(200, schema.Item, some, 404, 422))(self.one)

    async def listed(
        self,
        random: Annotated[int | None, Query(ge=1, le=MOST_LISTED, description="how many, drawn by the seed")] = None,
        seed: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
        after: Annotated[str | None, Query(max_length=1000, description="the id behind which the list begins")] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
    ) -> Response:
        """List items in the order of their ids, or draw some."""
        return said(await self.context.look(self._listed, random, seed, after, limit))

    def _listed(self, random: int | None, seed: int, after: str | None, limit: int) -> dict[str, Any]:
        with self.service.reading() as state:
            behind = None if after is None else state.as_id(after)
            if after is not None and behind is None:
                raise ValueError(f"after must be a whole number here, got {after[:100]!r}")
            ids, more = ids_after(state, behind, limit)
            if random is not None:
                ids, more = random_ids(state, random, seed), False
            return {"items": item_documents(state, self.service.pictures, ids), "more": more}

    def _documents(self, ids: list[Any], margins: bool) -> list[dict[str, Any]]:
        with self.service.reading() as state:
            return item_documents(state, self.service.pictures, ids, margins=margins)

    async def one(self, item: ItemId) -> Response:
        """Look at an item, with its margins."""

        def work() -> dict[str, Any]:
            return self._documents([as_id(self.service.state, item)], True)[0]

        return said(await self.context.look(work))

    async def look(self, body: schema.Look) -> Response:
        """Look at many items, in the order of the ids."""
        check_most("ids", len(body.ids), self.limits.batch)
        return said({"items": await self.context.look(self._documents, body.ids, body.margins), "more": False})

    def _changed(self, kind: str, body: schema.NewItems) -> Change:
        change = Change(kind, body.ids, body.vectors, body.codes, body.labels, body.texts)
        check_most("items", len(change), self.limits.items)
        self.check_vectors(body.vectors)
        self.context.bucket.take(len(change))
        return change

    async def add(self, body: schema.NewItems) -> Response:
        """Add items; the answer comes when they are on disk."""
        return said({"ids": await self.context.change(self._changed("add", body))}, 201)

    async def update(self, body: schema.ChangedItems) -> Response:
        """Give items other vectors or codes; the answer comes when they are on disk."""
        return said({"ids": await self.context.change(self._changed("update", body))})

    async def remove(self, body: schema.Remove) -> Response:
        """Remove items; the answer comes when that is on disk."""
        check_most("ids", len(body.ids), self.limits.items)
        return said({"removed": len(await self.context.change(Change("remove", body.ids)))})


class Judgements(Part):
    """What users find similar."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        router.get("/judgements", **answers(200, schema.Summary, "What judgements came to."))(self.summary)
        router.post("/judgements", **answers(201, schema.Summary, "What all come to.", 404, 422))(self.judge)

    async def summary(self) -> Response:
        """Count judgements."""
        return said(await self.context.look(self.service.judged))

    async def judge(self, body: schema.Judgements) -> Response:
        """Say which items are similar and which are not; the answer comes when that is on disk."""
        check_most("judgements", len(body.judgements), self.limits.items)
        return said(await self.context.look(self._judged, body.judgements), 201)

    def _judged(self, given: list[schema.Judgement]) -> dict[str, int]:
        columns = [[getattr(one, name) for one in given] for name in ("query", "item", "similar", "weight", "person")]
        self.service.judge(*columns)
        return self.service.judged()
