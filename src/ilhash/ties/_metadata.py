"""What the metadata of documents hold, for a store that is asked for an overview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Meta = Mapping[str, Any]
_KINDS = {bool: "boolean", int: "int", float: "float"}


def bare(field: str) -> str:
    """Return the name of a field of the metadata, also of one that is called ``meta.name``."""
    return field.removeprefix("meta.")


def values_of(metas: Iterable[Meta], field: str) -> list[Any]:
    """Return the values of a field, where there is one."""
    return [meta[bare(field)] for meta in metas if meta.get(bare(field)) is not None]


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return values that differ in type or content, in a stable order: 1, 1.0, "1" and True are four."""
    return [value for _, value in sorted({(type(value).__name__, repr(value)): value for value in values}.items())]


def ordered(values: Iterable[Any]) -> list[Any]:
    """Return distinct values, ascending where they can be compared."""
    found = distinct(values)
    try:
        return sorted(found)
    except TypeError:
        return found


def fields_of(metas: Sequence[Meta]) -> dict[str, dict[str, str]]:
    """Return the type of every field: boolean, int, float or keyword."""
    names = dict.fromkeys(name for meta in metas for name in meta)
    kinds = {name: {_KINDS.get(type(value), "keyword") for value in values_of(metas, name)} for name in names}
    numbers = {"int", "float"}
    return {
        name: {"type": found.pop() if len(found) == 1 else "float" if found == numbers else "keyword"}
        for name, found in kinds.items()
    }
