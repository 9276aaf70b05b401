"""The pages of words: Markdown of the repository, laid out as sources of the site with links that still lead there.

The Markdown stays where it is and reads well there. For the site it is copied: README.md becomes the first page, pages
under docs keep their places, and a link to a file that is no page, a script say, becomes a download of it.
"""

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
TOP |= {"SECURITY.md": "reporting.md", "CODE_OF_CONDUCT.md": "conduct.md"}

# The sections of the navigation and their pages; a page that is named nowhere comes under the last one.
SECTIONS = {
    "Using": ["overview", "guide", "supervision", "choosing", "methods", "search", "evaluation", "serve"],
    "Data": ["sparse", "scaling", "engines", "learning", "feedback", "ties", "gist", "infinite-digits"],
    "Inside": ["method", "architecture", "files", "store", "security"],
    "Measured": ["benchmarks", "results/README", "reproduce", "supervision-results"],
}
LAST = "More"
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*?$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")


def pages() -> dict[Path, str]:
    """Return every page of the repository and its place in the site."""
    found = {ROOT / name: place for name, place in TOP.items() if (ROOT / name).exists()}
    docs = ROOT / "docs"
    return found | {page: page.relative_to(docs).as_posix() for page in sorted(docs.rglob("*.md"))}


def relinked(text: str, page: Path, placed: dict[Path, str]) -> str:
    """Return the text of a page with its links as they are in the site.

    Parameters
    ----------
    text : the page's Markdown
    page : where it is in the repository
    placed : every page and its place in the site

    Returns
    -------
    str, Markdown; what stands in code stays as it is
    """
    here = os.path.dirname(placed[page])

    def moved(match: re.Match[str]) -> str:
        words, link = match.groups()
        name, hash_, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:") or not name:
            return match.group()
        target = (page.parent / name).resolve()
        if target not in placed:
            place = "files" / target.relative_to(ROOT)
            return f"{words}({os.path.relpath(place, here or '.')})"
        return f"{words}({os.path.relpath(placed[target], here or '.')}{hash_}{anchor})"

    kept = list(FENCE.finditer(text))
    edges = [0, *(edge for match in kept for edge in match.span()), len(text)]
    parts = []
    for number, (start, stop) in enumerate(pairwise(edges)):
        part = text[start:stop]
        parts.append(part if number % 2 else _outside_of_code(part, moved))
    return "".join(parts)


def _outside_of_code(text: str, moved: object) -> str:
    """Replace links where they do not begin within `code`."""
    spans = [match.span() for match in CODE.finditer(text)]

    def one(match: re.Match[str]) -> str:
        inside = any(start < match.start() < stop for start, stop in spans)
        return match.group() if inside else moved(match)  # type: ignore[operator]

    return LINK.sub(one, text)


def lay_out(target: Path) -> None:
    """Write the sources of the site's pages of words, and what they show or offer, into a folder.

    Parameters
    ----------
    target : folder, made where it is not there
    """
    placed = pages()
    for page, place in placed.items():
        text = page.read_text(encoding="utf-8")
        new = relinked(text, page, placed)
        if place == "index.md":
            new += lay_out_sections(target, placed)
        write(target / place, new)
        for _, link in LINK.findall(new):
            if "://" not in link and not link.startswith(("#", "mailto:")):
                _bring(target, (target / place).parent / link.partition("#")[0])


def _bring(target: Path, wanted: Path) -> None:
    """Copy a picture, or a file that is offered, to where the site's source says that it is."""
    place = Path(os.path.normpath(wanted)).relative_to(target)
    source = ROOT / place.relative_to("files") if place.parts[0] == "files" else ROOT / "docs" / place
    if place.suffix != ".md" and source.is_file():
        wanted.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, Path(os.path.normpath(wanted)))


def sections(placed: dict[Path, str]) -> dict[str, list[str]]:
    """Return the sections of the navigation, each with its pages; every page but the first and tutorials is in one.

    Parameters
    ----------
    placed : every page and its place in the site

    Returns
    -------
    dict of str to list of str
    """
    left = [place.removesuffix(".md") for place in placed.values() if place != "index.md"]
    left = [place for place in left if not place.startswith("tutorials/")]
    found = {name: [place for place in wanted if place in left] for name, wanted in SECTIONS.items()}
    named = {place for places in found.values() for place in places}
    return found | {LAST: [place for place in left if place not in named]}


def lay_out_sections(target: Path, placed: dict[Path, str]) -> str:
    """Write a page for every section, and return the navigation: a hidden table of contents for the first page."""
    entries = ["tutorials/index"]
    for name, places in sections(placed).items():
        if name == LAST:
            entries += ["api/index", "commands/index"]
        entries.append(f"sections/{name.lower()}")
        lines = "\n".join(f"/{place}" for place in places)
        write(target / "sections" / f"{name.lower()}.md", f"# {name}\n\n```{{toctree}}\n:maxdepth: 2\n\n{lines}\n```\n")
    lines = "\n".join(entries)
    return f"\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def write(path: Path, text: str) -> None:
    """Write a source of the site, unless it stands there: what did not change is not built again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
