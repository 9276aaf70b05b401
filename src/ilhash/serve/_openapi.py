"""The OpenAPI document, with what only this service knows: its limits, its vectors, and whether it asks for tokens."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from ilhash.serve._context import Context

LONGEST_SHOWN = 1000  # numbers of a vector that is an example


def describe(app: FastAPI, context: Context, *, tokens: bool) -> None:
    """Let an application describe itself so."""
    make = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = make()
            _limit(document["components"]["schemas"], context)
            if tokens:
                document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                document["security"] = [{"token": []}]
        return app.openapi_schema or make()

    app.openapi = described  # type: ignore[method-assign]


def _limit(schemas: dict[str, Any], context: Context) -> None:
    """Write limits, lengths of vectors, and examples into the schemas of requests."""
    dimension, limits = context.service.state.dimension, context.limits
    vector = [0.0] * dimension
    for name, most in (("Search", limits.batch), ("Encode", limits.batch), ("Look", limits.batch)):
        _bound(schemas[name]["properties"], most, dimension)
    for name in ("NewItems", "ChangedItems"):
        _bound(schemas[name]["properties"], None, dimension)  # the limit of a body comes first
    schemas["Search"]["properties"]["k"]["maximum"] = limits.k
    if dimension <= LONGEST_SHOWN:
        schemas["Encode"]["examples"] = [{"vectors": [vector]}]
        if context.service.state.has_vectors:
            named = {"ids": [1_000_000] if context.service.layout.ids == "int" else ["new"]}
            schemas["NewItems"]["examples"] = [{"vectors": [vector], **named}]


def _bound(properties: dict[str, Any], most: int | None, dimension: int) -> None:
    for name, about in properties.items():
        for schema in about.get("anyOf", [about]):
            if schema.get("type") != "array":
                continue
            if most is not None:
                schema["maxItems"] = most
            if name == "vectors":
                schema["items"] = {**schema["items"], "minItems": dimension, "maxItems": dimension}
