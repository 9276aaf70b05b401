"""README.md of a model's folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ilhash.cards._escaping import code
from ilhash.cards._facts import Card, Measured

MARK = "<!-- a card that ilhash wrote, and replaces when the model is saved: changes here are lost -->"


def markdown(card: Card) -> str:
    """Return a card as Markdown; whatever others named stands as code, in which nothing is markup.

    Parameters
    ----------
    card : Card

    Returns
    -------
    str

    Examples
    --------
    >>> from ilhash.cards import Card
    >>> text = markdown(Card("digits", {"method": "ILH"}, [], [], n_bits=8))
    >>> "method" in text and "ILH" in text
    True
    """
    return "\n".join(
        [
            MARK,
            "",
            f"# A hashing model of {card.n_bits} bits",
            "",
            *_table(("what", "value"), [(label, code(value)) for label, value in card.facts.items()]),
            "",
            "## Measured",
            "",
            *_measured(card.measured),
            "",
            "## Where the bits came from",
            "",
            *[f"- {code(line)}" for line in card.origin],
            "",
            "## Use",
            "",
            "```python",
            "import ilhash",
            "",
            'model = ilhash.load("this folder")  # nothing in it is run',
            f"codes = model.transform(X)  # uint8, {-(-card.n_bits // 8)} bytes a row, most significant bit first",
            f"index = ilhash.HammingIndex(codes, n_bits={card.n_bits}, model=model)",
            "hits = index.search(model.transform(queries), k=10)",
            "```",
            "",
            "This page is for people: the model is `config.json` and the files that it names, with their checksums.",
            "",
        ]
    )


def _measured(results: Sequence[Measured]) -> list[str]:
    if not results:
        return ["Nothing was measured, or it was not told: `model.remember(result)` before `model.save` puts it here."]
    rows = [
        (code(one.name), code(one.measure), number(one.value), number(one.error), code(one.protocol or "not stated"))
        for one in results
    ]
    return _table(("among", "measure", "value", "standard error", "protocol"), rows)


def number(value: float | None) -> str:
    """Return a number of a result as text."""
    return "" if value is None else f"{value:.4f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]
