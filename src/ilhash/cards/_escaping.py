"""Texts that others chose, shown in Markdown and HTML: never markup, never an address, never out of order."""

from __future__ import annotations

import html
import re
import unicodedata

LONGEST = 300  # characters of one value
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # controls, what turns the direction of a line, halves of characters


def plain(value: object) -> str:
    """Return a value as one line of visible characters, not too long."""
    text = str(value)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return "".join(" " if unicodedata.category(letter) in _HIDDEN else letter for letter in text)


def code(value: object) -> str:
    """Return a value as code of Markdown, in which nothing is markup; also within a table."""
    text = plain(value).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if not text.strip() or text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{space}{text or ' '}{space}{fence}"


def escaped(value: object) -> str:
    """Return a value as text of HTML, also within an attribute."""
    return html.escape(plain(value), quote=True)
