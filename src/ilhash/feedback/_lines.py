"""A judgement as a line of JSON with its seal, and back.

    {"query": "a", "item": "b", "similar": true, "weight": 1.0, "who": "ann", "time": 1.76e9, "left": 0, "seal": "..."}

The seal is the beginning of the SHA-256 of the log's own number, the number of the line and the line up to the seal: a
line that was altered, moved, or brought from another log is noticed. ``left`` is how many lines of the same ``add``
follow: they count when the last of them is there. The first line of a log says what it is and has number 0.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from ilhash._version import __version__
from ilhash.storage import DamagedFileError, UnknownFormatError, check_format, parse_json

FORMAT = 1
KIND = "feedback"
LONGEST = 1 << 16  # bytes of a line
LONGEST_TEXT = 1_000  # characters of an id or of a name: a line has three of them, twelve bytes each at most
HEAVIEST = 1e6
LATEST = 1e12  # seconds before or after 1970
MOST_LINES = 2**62
SEAL = 32  # hexadecimal digits
_BEFORE, _AFTER = b', "seal": "', b'"}'
_SUFFIX = len(_BEFORE) + SEAL + len(_AFTER)


class Judgement(NamedTuple):
    """One judgement.

    Attributes
    ----------
    query, item : int or str, the two that were compared
    similar : bool
    weight : float, how much it counts, above 0
    who : str or None, the person who judged
    time : float, seconds since 1970
    """

    query: int | str
    item: int | str
    similar: bool
    weight: float
    who: str | None
    time: float


class Sealer:
    """Gives the seals of one log."""

    def __init__(self, log: str) -> None:
        self._begin = hashlib.sha256(log.encode())

    def seal(self, number: int, body: bytes) -> bytes:
        """Return the seal of the line of that number."""
        digest = self._begin.copy()
        digest.update(b" %d " % number)
        digest.update(body)
        return digest.hexdigest()[:SEAL].encode()

    def line(self, number: int, document: dict[str, Any]) -> bytes:
        """Return a document as a line."""
        body = json.dumps(document)[:-1].encode()
        return body + _BEFORE + self.seal(number, body) + _AFTER + b"\n"

    def holds(self, number: int, line: bytes) -> bool:
        """Whether a line, without its end, is as it was written."""
        end = len(line) - _SUFFIX
        if end < 0 or not (line.startswith(_BEFORE, end) and line.endswith(_AFTER)):
            return False
        return line[end + len(_BEFORE) : -len(_AFTER)] == self.seal(number, line[:end])


def header(log: str) -> bytes:
    """Return the first line of a log."""
    return Sealer(log).line(0, {"format": FORMAT, "kind": KIND, "ilhash": __version__, "log": log})


def read_header(line: bytes, path: Path) -> Sealer:
    """Return what seals the lines of a log, given its first one."""
    document = parse_json(line, path, "a log of judgements, whose first line says so")
    if document.get("kind") != KIND or type(document.get("format")) is not int:
        raise UnknownFormatError(f"{path} must be a log of judgements, got another file of JSON")
    check_format(document, FORMAT, path)
    log = document.get("log")
    if not isinstance(log, str) or len(log) > 64 or not log.isalnum() or not Sealer(log).holds(0, line.rstrip(b"\n")):
        raise DamagedFileError(f"{path}, line 1, must be as it was written, got content that does not match its seal")
    return Sealer(log)


def to_document(one: Judgement, left: int) -> dict[str, Any]:
    """Return what a line holds of a judgement that so many others of the same ``add`` follow."""
    return {**one._asdict(), "left": left}


def from_line(line: bytes, where: str) -> tuple[Judgement, int]:
    """Return the judgement of a line whose seal holds, and how many follow.

    Whoever made the file may have made the seals too: every value is checked.
    """
    try:
        document = json.loads(line)
        one = Judgement(*(document[name] for name in Judgement._fields))
        left = document["left"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedFileError(f"{where} must be a judgement, got something else ({type(error).__name__})") from None
    wrong = _what_is_wrong(one)
    if wrong is None and (type(left) is not int or not 0 <= left < MOST_LINES):
        wrong = "left"
    if wrong is not None:
        raise DamagedFileError(f"{where} must be a judgement, got {wrong!r} that none has")
    return one._replace(weight=float(one.weight), time=float(one.time)), left


def _what_is_wrong(one: Any) -> str | None:
    """Return the name of a value that no judgement has."""
    if type(one.query) is not type(one.item) or not _is_id(one.query):
        return "query"
    if not _is_id(one.item) or one.query == one.item:
        return "item"
    if type(one.similar) is not bool:
        return "similar"
    if not (type(one.weight) in (int, float) and 0 < one.weight <= HEAVIEST):
        return "weight"
    if one.who is not None and not (type(one.who) is str and _is_id(one.who)):
        return "who"
    if not (type(one.time) in (int, float) and abs(one.time) <= LATEST):
        return "time"
    return None


def _is_id(value: Any) -> bool:
    if type(value) is int:
        return bool(-(2**63) <= value < 2**63)
    return type(value) is str and len(value) <= LONGEST_TEXT and is_text(value)


def is_text(value: str) -> bool:
    """Whether a text has whole characters alone, which files can hold."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
