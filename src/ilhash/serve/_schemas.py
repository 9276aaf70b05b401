"""What requests and answers hold: the schemas of the OpenAPI document.

Lists of numbers, ids and codes are checked here and not by pydantic, whose errors are one for each element.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StrictBool,
    StrictInt,
    WithJsonSchema,
    model_validator,
)

from ilhash.serve._making import MOST_TEXT
from ilhash.serve._searching import CURRENT

LARGEST = 1e15  # of a vector's numbers: products of them stay within single precision
LONGEST_ID = 1000
_LEAST_ID, _MOST_ID = -(2**63), 2**63 - 1


def _vectors(value: Any) -> Any:
    rows = isinstance(value, list) and len(value) > 0 and all(isinstance(row, list) for row in value)
    if not rows or len({len(row) for row in value}) != 1 or not value[0]:
        raise ValueError("vectors must be a list of lists of numbers, all of one length, got something else")
    if any(not set(map(type, row)) <= {int, float} for row in value):
        raise ValueError("vectors must hold numbers alone, got something else")
    try:
        array = np.array(value, np.float64)
    except OverflowError:
        array = np.full((1, 1), np.inf)
    if not (np.abs(array) <= LARGEST).all():
        raise ValueError(f"vectors must be finite, up to {LARGEST:g}, got NaN, infinity or larger numbers")
    return array.astype(np.float32)


def _ids(value: Any) -> Any:
    kinds = set(map(type, value)) if isinstance(value, list) else set()
    if kinds not in ({int}, {str}):
        raise ValueError("ids must be a list of whole numbers, or of texts, got something else")
    if kinds == {int} and not all(_LEAST_ID <= one <= _MOST_ID for one in value):
        raise ValueError("ids must fit 64 signed bits, got others")
    if kinds == {str} and not all(len(one) <= LONGEST_ID and _whole(one) for one in value):
        raise ValueError(f"ids must be whole texts of at most {LONGEST_ID} characters, got others")
    return value


def _whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _id(value: Any) -> Any:
    return _ids([value])[0]


def _codes(value: Any) -> Any:
    digits = set("0123456789abcdefABCDEF")
    if not (
        isinstance(value, list) and value and all(type(one) is str and one and set(one) <= digits for one in value)
    ):
        raise ValueError("codes must be a list of texts of hexadecimal digits, got something else")
    return value


def _labels(value: Any) -> Any:
    if not isinstance(value, list) or not all(_is_label(one) for one in value):
        raise ValueError("labels must be a list of whole numbers, texts or null, got something else")
    return value


def _is_label(value: Any) -> bool:
    if type(value) is int:
        return bool(abs(value) < 2**53)
    return value is None or (type(value) is str and len(value) <= MOST_TEXT and _whole(value))


def _texts(value: Any) -> Any:
    fits = isinstance(value, list) and all(one is None or (type(one) is str and _is_label(one)) for one in value)
    if not fits:
        raise ValueError(f"texts must be a list of texts of at most {MOST_TEXT} characters or null, got something else")
    return value


_ID = {
    "anyOf": [
        {"type": "integer", "minimum": _LEAST_ID, "maximum": _MOST_ID},
        {"type": "string", "maxLength": LONGEST_ID},
    ]
}
_OF_ONE_KIND = {"anyOf": [{"type": "array", "items": kind, "minItems": 1} for kind in _ID["anyOf"]]}
_NUMBERS = {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}}
_LABEL = {
    "anyOf": [
        {"type": "integer", "exclusiveMinimum": -(2**53), "exclusiveMaximum": 2**53},
        {"type": "string", "maxLength": MOST_TEXT},
        {"type": "null"},
    ]
}
_TEXT = {"anyOf": [{"type": "string", "maxLength": MOST_TEXT}, {"type": "null"}]}


def _optional(check: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    """Return the type of a field that may be null, which is as if it were not there."""
    or_null = WithJsonSchema({"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]})
    return Annotated[Any, BeforeValidator(lambda value: None if value is None else check(value)), or_null]


def _needed(check: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    """Return the type of a field that must be there."""
    return Annotated[Any, BeforeValidator(check), WithJsonSchema(schema)]


_HEX = {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[0-9a-fA-F]+$"}}
_ROWS = {"type": "array", "minItems": 1, "items": _NUMBERS}
Label = Annotated[Any, WithJsonSchema(_LABEL)]
if TYPE_CHECKING:
    Vectors: TypeAlias = Any
    NeededVectors: TypeAlias = Any
    Ids: TypeAlias = Any
    NeededIds: TypeAlias = Any
    Id: TypeAlias = Any
    Codes: TypeAlias = Any
    Labels: TypeAlias = Any
    Texts: TypeAlias = Any
else:
    Vectors, NeededVectors = _optional(_vectors, _ROWS), _needed(_vectors, _ROWS)
    Ids, NeededIds, Id = _optional(_ids, _OF_ONE_KIND), _needed(_ids, _OF_ONE_KIND), _needed(_id, _ID)
    Codes = _optional(_codes, _HEX)
    Labels = _optional(_labels, {"type": "array", "items": _LABEL})
    Texts = _optional(_texts, {"type": "array", "items": _TEXT})


class Body(BaseModel):
    """An object without unknown fields."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def _only_one(**given: Any) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        raise ValueError(f"one of {', '.join(given)} must be given, got {' and '.join(names) or 'none'}")


class Search(Body):
    """What is searched for: vectors, codes, or items by their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [0], "k": 5}]})

    vectors: Vectors = None
    codes: Codes = None
    ids: Ids = None
    k: Annotated[StrictInt, Field(ge=1, description="how many nearest items")] = 10
    order: Literal["hamming", "asymmetric", "margins", "vectors"] = "hamming"
    n_bits: Annotated[StrictInt | None, Field(ge=1, description="bits at the beginning of the code that count")] = None
    model: Annotated[str, Field(max_length=200, strict=True)] = CURRENT
    without_self: Annotated[StrictBool, Field(description="whether an item asked for by id is no answer")] = True
    radius: Annotated[
        float | None,
        Field(ge=0, le=LARGEST, strict=True, description="the distance up to which items are answers, k at most"),
    ] = None

    @model_validator(mode="after")
    def _one(self) -> Search:
        _only_one(vectors=self.vectors, codes=self.codes, ids=self.ids)
        return self


class Encode(Body):
    """Vectors that are to become codes."""

    vectors: NeededVectors
    margins: StrictBool = False


class Look(Body):
    """Items that are looked at, by their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [0, 1]}]})

    ids: NeededIds
    margins: StrictBool = False


class NewItems(Body):
    """Items that are added."""

    vectors: Vectors = None
    codes: Codes = None
    ids: Ids = None
    labels: Labels = None
    texts: Texts = None

    @model_validator(mode="after")
    def _fits(self) -> NewItems:
        _only_one(vectors=self.vectors, codes=self.codes)
        n = len(self.codes if self.vectors is None else self.vectors)
        for name in ("ids", "labels", "texts"):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise ValueError(f"{name} must be one per item ({n}), got {len(values)}")
        return self


class ChangedItems(NewItems):
    """Items that get other codes; labels and texts stay where none are given."""

    ids: NeededIds


class Remove(Body):
    """Items that are removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [3]}]})

    ids: NeededIds


class Judgement(Body):
    """Whether two items are similar."""

    query: Id
    item: Id
    similar: StrictBool
    weight: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False, strict=True)] = 1.0
    person: Annotated[str | None, Field(max_length=1000, strict=True)] = None


class Judgements(Body):
    """Judgements that are kept together."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"judgements": [{"query": 0, "item": 1, "similar": True}]}]}
    )

    judgements: Annotated[list[Judgement], Field(min_length=1), FailFast()]


class Learn(Body):
    """How many bits are to be learnt; by default as many as held-out judgements find best."""

    n_bits: Annotated[StrictInt | None, Field(ge=1, le=1024)] = None


# ------------------------------------------------------------------------------------------------ answers


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str


class Hits(BaseModel):
    """The nearest items of one query."""

    ids: list[Annotated[Any, WithJsonSchema(_ID)]]
    distances: list[float]


class Found(BaseModel):
    """The answers of all queries, in their order."""

    hits: list[Hits]
    exact: bool
    order: str
    n_bits: int | None
    model: str


class Encoded(BaseModel):
    """Codes of vectors, hexadecimal."""

    codes: list[str]
    n_bits: int
    margins: list[list[float]] | None = None


class Item(BaseModel):
    """What is known of an item."""

    id: Annotated[Any, WithJsonSchema(_ID)]
    label: Label
    text: str | None
    picture: str | None
    code: str
    margins: list[float] | None


class Items(BaseModel):
    """Some items."""

    items: list[Item]
    more: bool = False


class Made(BaseModel):
    """The ids of items that were added or changed."""

    ids: list[Annotated[Any, WithJsonSchema(_ID)]]


class Removed(BaseModel):
    """How many items were removed."""

    removed: int


class Summary(BaseModel):
    """What judgements came to."""

    judgements: int
    similar: int
    dissimilar: int
    people: int
    pairs: int


class Task(BaseModel):
    """A task of learning that began."""

    task: int


class Progress(BaseModel):
    """How far learning is, and what came of it."""

    state: Literal["idle", "running", "done", "unchanged", "failed"]
    task: int
    done: int
    total: int
    before: float | None
    after: float | None
    error: float | None
    n_new: int
    pairs: int
    reason: str | None
    seconds: float | None
