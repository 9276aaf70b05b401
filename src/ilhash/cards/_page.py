"""One page of HTML: no script, no address of elsewhere, curves as inline SVG with their numbers beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ilhash.cards._escaping import escaped
from ilhash.cards._facts import Card, Curve, Measured
from ilhash.cards._markdown import number

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, ROW = 640, 260, 56, 40, 12, 18
MOST_DRAWN = 400  # points of a line
DASHES = ("", "7 4", "2 3", "9 3 2 3")  # lines differ in more than color

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --faint: #5a5a5a; --rule: #c4c4c4;
  --line: #0b57a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --paper: #151515; --faint: #b4b4b4; --rule: #4a4a4a; --line: #86bdf5; }
}
body { margin: 2rem auto; max-width: 48rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
caption { text-align: left; color: var(--faint); }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--rule); }
td { overflow-wrap: anywhere; min-width: 5rem; }
th { min-width: 4rem; }
.wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--faint); }
svg .axis { stroke: var(--rule); }
svg .line { fill: none; stroke: var(--line); stroke-width: 2; }
code { overflow-wrap: anywhere; }
"""


def page(card: Card) -> str:
    """Return a card as one page of HTML.

    Parameters
    ----------
    card : Card

    Returns
    -------
    str

    Examples
    --------
    >>> from ilhash.cards import Card
    >>> text = page(Card("digits", {"method": "ILH"}, [], [], n_bits=8))
    >>> "method" in text and "ILH" in text
    True
    """
    facts = [
        (f'<th scope="row">{escaped(label)}</th>', f"<td>{escaped(value)}</td>") for label, value in card.facts.items()
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escaped(card.title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{escaped(card.title)}</h1>",
            *_table("What it is", (), facts),
            "<h2>Measured</h2>",
            *_measured(card.measured),
            "<h2>Where the bits came from</h2>",
            "<ul>",
            *[f"<li>{escaped(line)}</li>" for line in card.origin],
            "</ul>",
            *[line for place, curve in enumerate(card.curves) for line in _figure(curve, place)],
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _measured(results: Sequence[Measured]) -> list[str]:
    if not results:
        return ["<p>Nothing was measured, or it was not told.</p>"]
    rows = [
        (
            f'<th scope="row">{escaped(one.name)}</th>',
            *(
                f"<td>{cell}</td>"
                for cell in (
                    escaped(one.measure),
                    number(one.value),
                    number(one.error),
                    escaped(one.protocol or "not stated"),
                )
            ),
        )
        for one in results
    ]
    return _table("What it is worth", ("among", "measure", "value", "standard error", "protocol"), rows)


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    head = [f"<tr>{''.join(f'<th scope=col>{one}</th>' for one in heads)}</tr>"] if heads else []
    body = [f"<tr>{''.join(row)}</tr>" for row in rows]
    name = escaped(caption)
    top = f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table><caption>{name}</caption>'
    return [top, *head, *body, "</table></div>"]


def _figure(curve: Curve, place: int) -> list[str]:
    """Draw a curve, and put its numbers below it for those who do not see it."""
    lines = {name: [float(value) for value in values] for name, values in curve.lines.items() if len(values)}
    if not lines:
        return []
    low, high = min(map(min, lines.values())), max(map(max, lines.values()))
    longest = max(map(len, lines.values()))
    drawn = [
        line
        for number_, (name, values) in enumerate(lines.items())
        for line in _line(name, values, number_, low, high, longest)
    ]
    ids = f"curve{place}"
    said = "; ".join(f"{name}: from {values[0]:.3f} to {values[-1]:.3f}" for name, values in lines.items())
    bottom, deep = HEIGHT - BELOW, HEIGHT + ROW * len(lines)
    return [
        f"<h2>{escaped(curve.title)}</h2>",
        f'<svg viewBox="0 0 {WIDTH} {deep}" role="img" aria-labelledby="{ids}t {ids}d">',
        f'<title id="{ids}t">{escaped(curve.title)}</title><desc id="{ids}d">{escaped(said)}</desc>',
        f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - 8}" y2="{bottom}"/>',
        f'<line class="axis" x1="{LEFT}" y1="{ABOVE}" x2="{LEFT}" y2="{bottom}"/>',
        f'<text x="{LEFT - 6}" y="{ABOVE + 8}" text-anchor="end">{high:.3f}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">{low:.3f}</text>',
        f'<text x="{LEFT}" y="{bottom + 16}">1</text>',
        f'<text x="{WIDTH - 8}" y="{bottom + 16}" text-anchor="end">{longest} {escaped(curve.over)}</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 6}">{escaped(curve.unit)}</text>',
        *drawn,
        "</svg>",
        "<details><summary>The numbers</summary>",
        *_table(curve.title, (escaped(curve.over), *map(escaped, lines)), _numbers(lines, longest)),
        "</details>",
    ]


def _line(name: str, values: list[float], number_: int, low: float, high: float, longest: int) -> list[str]:
    step = max(1, -(-len(values) // MOST_DRAWN))
    places = sorted({*range(0, len(values), step), len(values) - 1})
    right, tall = (WIDTH - 8 - LEFT) / max(1, longest - 1), (HEIGHT - BELOW - ABOVE) / ((high - low) or 1)
    points = [(LEFT + right * place, HEIGHT - BELOW - tall * (values[place] - low)) for place in places]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = DASHES[number_ % len(DASHES)]
    top = HEIGHT + ROW * number_ + ROW / 2
    return [
        f'<polyline class="line" stroke-dasharray="{dash}" points="{path}"/>',
        f'<line class="line" stroke-dasharray="{dash}" x1="{LEFT}" y1="{top}" x2="{LEFT + 30}" y2="{top}"/>',
        f'<text x="{LEFT + 38}" y="{top + 4}">{escaped(name)}</text>',
    ]


def _numbers(lines: dict[str, list[float]], longest: int) -> Iterable[list[str]]:
    step = max(1, -(-longest // 64))
    for place in sorted({*range(0, longest, step), longest - 1}):
        cells = [f"<td>{values[place]:.4f}</td>" if place < len(values) else "<td></td>" for values in lines.values()]
        yield [f'<th scope="row">{place + 1}</th>', *cells]
