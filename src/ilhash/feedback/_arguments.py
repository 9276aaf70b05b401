"""Judgements as they are given: one or many, each value looked at before anything is written."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash._checks import as_array, is_number
from ilhash._ids import as_ids
from ilhash.feedback._lines import HEAVIEST, LATEST, LONGEST_TEXT, Judgement, is_text


def judgements(
    query: Any, item: Any, similar: Any, weight: Any, who: Any, time: Any, kind: str | None
) -> list[Judgement]:
    """Return judgements, one or many, once everything has been looked at."""
    sizes = [len(value) for value in (query, item, similar, weight, who, time) if _is_many(value)]
    n = max(sizes, default=1)
    if any(size != n for size in sizes):
        raise ValueError(f"query_id, item_id and the others must have the same length, got {sizes}")
    queries, items = _ids("query_id", query, n, kind), _ids("item_id", item, n, kind)
    if n and type(queries[0]) is not type(items[0]):
        raise TypeError("item_id must be of the kind of query_id, whole numbers or texts, got the other kind")
    same = sum(one == other for one, other in zip(queries, items, strict=True))
    if same:
        raise ValueError(f"item_id must be another than query_id, got {same} of {n} judgements of an item with itself")
    present = clock.time()
    times = seconds("time", present if time is None else time, n)
    columns = (queries, items, _flags(similar, n), _weights(weight, n), _people(who, n), times)
    return [Judgement(*one) for one in zip(*columns, strict=True)]


def _is_many(value: Any) -> bool:
    return not isinstance(value, str | bytes) and hasattr(value, "__len__") and bool(np.ndim(as_array("ids", value)))


def _spread(values: list[Any], n: int) -> list[Any]:
    return values * n if len(values) == 1 != n else values


def _ids(name: str, value: Any, n: int, kind: str | None) -> list[int | str]:
    many = value if _is_many(value) else [value]
    try:
        ids = as_ids(many, len(many), None).tolist()
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("ids", name, 1)) from None
    found = "int" if ids and isinstance(ids[0], int) else "str"
    if ids and kind not in (None, found):
        raise TypeError(f"{name} must be of the kind of this log ({kind}), got {found}: a log has ids of one kind")
    _refuse_long(name, ids)
    return _spread(ids, n)


def _refuse_long(name: str, texts: list[Any]) -> None:
    long = sum(isinstance(text, str) and len(text) > LONGEST_TEXT for text in texts)
    if long:
        raise ValueError(f"{name} must have at most {LONGEST_TEXT} characters, got {long} of {len(texts)} with more")


def _flags(value: Any, n: int) -> list[bool]:
    array = np.atleast_1d(as_array("similar", value))
    if array.dtype.kind != "b" or array.ndim != 1:
        raise TypeError(f"similar must be True or False, or one of them per judgement, got {array.dtype}")
    return _spread(array.tolist(), n)


def _numbers(name: str, value: Any, n: int, rule: str) -> NDArray[np.float64]:
    array = np.atleast_1d(as_array(name, value))
    if array.dtype.kind not in "iuf" or array.ndim != 1 or (array.ndim == 1 and len(array) not in (1, n)):
        raise TypeError(f"{name} must be {rule}, or one per judgement, got {array.dtype} of shape {array.shape}")
    return np.asarray(array, np.float64)


def _weights(value: Any, n: int) -> list[float]:
    rule = f"a number above 0 and up to {HEAVIEST:g}"
    array = _numbers("weight", value, n, rule)
    wrong = np.count_nonzero(~((array > 0) & (array <= HEAVIEST)))
    if wrong:
        raise ValueError(f"weight must be {rule}, got {wrong} of {len(array)} others")
    return _spread(array.tolist(), n)


def seconds(name: str, value: Any, n: int) -> list[float]:
    rule = "seconds since 1970"
    if not is_number(value) and not _is_many(value):
        raise TypeError(f"{name} must be {rule}, got {value!r}")
    array = _numbers(name, value, n, rule)
    wrong = np.count_nonzero(~(np.abs(array) <= LATEST))
    if wrong:
        raise ValueError(f"{name} must be {rule}, from {-LATEST:g} to {LATEST:g}, got {wrong} of {len(array)} others")
    return _spread(array.tolist(), n)


def _people(value: Any, n: int) -> list[str | None]:
    many = _is_many(value)  # a list as it is: NumPy cuts NULs off the ends of texts
    names = [value] if not many else list(value) if isinstance(value, list | tuple) else np.asarray(value).tolist()
    wrong = sum(not (name is None or (isinstance(name, str) and is_text(name))) for name in names)
    if wrong:
        raise TypeError(f"who must be a text or None, or one per judgement, got {wrong} of {len(names)} others")
    _refuse_long("who", names)
    return _spread(names, n)
