"""Docstrings of methods, completed by what their base classes say of the parameters that they share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable

_FIRST_SECTION = re.compile(r"^(?=\S[^\n]*\n-{3,}$)", re.MULTILINE)


def completed(doc: str, docs_of_bases: Iterable[str | None]) -> str:
    """Add the parameters that base classes describe, and the text itself does not, to those of a docstring."""
    summary, entries, others = _parts(doc)
    for base in docs_of_bases:
        known = {name for entry in entries for name in _names(entry).split(", ")}
        entries += [entry for entry in _parts(base or "")[1] if _names(entry) not in known]
    entries.sort(key=lambda entry: _names(entry) != "n_bits")
    parameters = "\n".join(["Parameters", "----------", *entries])
    return "\n\n".join(part for part in (summary, parameters, others) if part)


def _parts(doc: str) -> tuple[str, list[str], str]:
    """Return what comes before the sections, the entries of the first one, Parameters, and the other ones."""
    before, sections = (part.rstrip() for part in [*_FIRST_SECTION.split(inspect.cleandoc(doc), 1), ""][:2])
    if not sections.startswith("Parameters\n"):
        return before, [], sections
    entries, _, others = sections.split("\n", 2)[2].partition("\n\n")
    return before, re.split(r"\n(?=\S)", entries), others


def _names(entry: str) -> str:
    return entry.partition(" : ")[0]
