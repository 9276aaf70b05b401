"""Texts that engines with tables keep and run: settings as JSON, conditions of users, values by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ilhash._checks import check_count
from ilhash.engines._settings import Settings, is_whole

FORMAT = 1
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
OWN_COLUMNS = ("id", "code", "far")
Values = Mapping[str, Any]
_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|::|:([A-Za-z_]\w*)""")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


def check_condition(condition: str) -> None:
    """Refuse what could end the condition before its end and begin something else, in whatever engine.

    Examples
    --------
    >>> check_condition("(price < :most) AND note <> ';'")
    >>> check_condition("1 = 1) OR (2 = 2")
    Traceback (most recent call last):
    ...
    ValueError: where must be one condition, closed, without ; and comments, got '1 = 1) OR (2 = 2'
    """
    bare = _QUOTED.sub("", condition)
    depth = np.cumsum([(sign == "(") - (sign == ")") for sign in bare] or [0])
    foreign = [sign for sign in (";", "--", "/*", "#", "$", "`", "'", '"') if sign in bare]
    # A $ begins a text of PostgreSQL, or names one of our own values. Engines read a backslash in a text in different
    # ways: with one, nobody knows where the text ends.
    whole = "\0" not in condition and is_whole(condition)
    if foreign or not whole or "\\" in condition or depth.min() < 0 or depth[-1]:
        raise ValueError(f"where must be one condition, closed, without ; and comments, got {condition!r}")


def named_values(condition: str, parameters: Values, prefix: str = "user_") -> tuple[str, dict[str, Any]]:
    """Return a condition whose names have a prefix, so that they meet no name of ours, and the values under it.

    Examples
    --------
    >>> named_values("price < :most AND note <> ':no' AND x::int = 1", {"most": 3})
    ("price < :user_most AND note <> ':no' AND x::int = 1", {'user_most': 3})
    """
    check_condition(condition)
    used = {match[1] for match in _TOKENS.finditer(condition) if match[1]}
    if used != set(parameters):
        wanted = sorted(used) or "none"
        raise ValueError(f"parameters must be those that where names ({wanted}), got {sorted(map(str, parameters))}")
    renamed = _TOKENS.sub(lambda match: f":{prefix}{match[1]}" if match[1] else match[0], condition)
    return renamed, {f"{prefix}{name}": value for name, value in parameters.items()}


def replaced_names(statement: str, form: Any) -> str:
    """Return a statement with ``form(name)`` where it says ``:name``.

    Examples
    --------
    >>> replaced_names("SELECT ':a', :a, x::int", lambda name: f"${name}")
    "SELECT ':a', $a, x::int"
    """
    return _TOKENS.sub(lambda match: form(match[1]) if match[1] else match[0], statement)


def as_json(settings: Settings, n_changes: int = 0) -> str:
    """Return settings as a place keeps them, and how often their bits have changed."""
    return json.dumps({"format": FORMAT, "n_changes": n_changes, **asdict(settings)})


def from_json(text: str) -> tuple[Settings, int]:
    """Return what :func:`as_json` wrote."""
    about = json.loads(text)
    if about.pop("format") != FORMAT:
        raise ValueError("another format")
    n_changes = check_count("n_changes", about.pop("n_changes", 0), 0)
    return Settings(**about), n_changes
