"""Errors as problem documents (RFC 9457) with the library's own sentences."""

from __future__ import annotations

import json
import math
import re
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ilhash.serve._learning import BusyError
from ilhash.serve._limits import TooManyError
from ilhash.serve._searching import NotThereError
from ilhash.serve._service import ReadOnlyError, Service, TakenError

TYPE = "application/problem+json"
MOST_TOLD = 2_000  # characters of a sentence


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Return a response that says what went wrong."""
    document = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    content = json.dumps({**document, "detail": detail[:MOST_TOLD]})
    return Response(content, status, headers, media_type=TYPE)


def wait(status: int, detail: str, seconds: float) -> Response:
    """Return a response that says when to come again."""
    return problem(status, detail, {"Retry-After": str(max(1, math.ceil(seconds)))})


class _Told:
    """Says errors of an application, without the place of the service's folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _of(self, error: Exception) -> str:
        return str(error).replace(self._folder, "the folder of the service")

    def as_status(self, status: int) -> Any:
        """Return what tells errors with a status."""

        async def handler(_: Request, error: Exception) -> Response:
            return problem(status, self._of(error))

        return handler

    async def wrong(self, _: Request, error: Exception) -> Response:
        """Tell what is wrong with a request."""
        if ", got " not in str(error):  # none of our sentences: a bug
            raise error
        return problem(422, self._of(error))

    async def unwritable(self, _: Request, error: OSError) -> Response:
        """Tell that a disk is full or an engine cannot be reached."""
        return problem(503, self._of(error))  # without a time to come again: what failed may have happened


async def _http(request: Request, error: HTTPException) -> Response:
    sentences = {404: "there is nothing at this address", 405: "this address knows other methods"}
    detail = sentences.get(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == 405:  # the framework names those of one of the routes at this address
        headers["Allow"] = ", ".join(_methods(request.app.openapi()["paths"], request.scope["path"])) or "GET"
    return problem(error.status_code, detail, headers)


def _methods(paths: dict[str, Any], path: str) -> list[str]:
    """Return the methods that an address knows."""
    found = [of for known, of in paths.items() if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(known)), path)]
    return sorted({method.upper() for of in found for method in of})


async def _invalid(_: Request, error: RequestValidationError) -> Response:
    return problem(422, _sentence(error))


async def _too_many(_: Request, error: TooManyError) -> Response:
    return wait(429, str(error), error.retry_after)


async def _read_only(_: Request, error: ReadOnlyError) -> Response:
    return problem(403, "this server must be the one that writes to its folder, got one that only reads it")


async def _busy(_: Request, error: BusyError) -> Response:
    return problem(409, "one task of learning must end before another begins, got one that is running")


async def _bug(_: Request, error: Exception) -> Response:
    return problem(500, "this is a bug in ilhash; the server's log says more")


def install(app: FastAPI, service: Service) -> None:
    """Let all errors of an application be told so."""
    told = _Told(str(service.folder))
    handlers: dict[Any, Any] = {HTTPException: _http, RequestValidationError: _invalid, Exception: _bug}
    handlers |= {NotThereError: told.as_status(404), TakenError: told.as_status(409)}
    handlers |= {ValueError: told.wrong, TypeError: told.wrong, OSError: told.unwritable}
    handlers |= {TooManyError: _too_many, ReadOnlyError: _read_only, BusyError: _busy}
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


def _sentence(error: RequestValidationError) -> str:
    errors = error.errors()
    first = errors[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    message = str(first["msg"]).removeprefix("Value error, ")
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    sentence = message if " must " in message else f"{where} must be right, got what is not: {message}"
    return sentence + more
