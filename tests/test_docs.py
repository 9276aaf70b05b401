"""Pages of words: their links lead somewhere, and the bounds that they state are those of the code."""

import re
from pathlib import Path

import pytest

from ilhash.storage import _npz, _reading
from ilhash.vectors.io import _directory, _formats, _npy

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])


def _anchors(page):
    """Names of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_security_is_one_step_from_the_front():
    assert "(docs/security.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/security.md)" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_bounds_of_vectors_are_as_stated():
    text = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
    assert f"may declare {_formats.LARGEST_CHUNK >> 30} GiB" in text
    assert f"may declare {_formats.EXPANSION:,} bytes for each that is stored" in text
    assert f"or {_formats.LARGE >> 20} MiB; a header of .npy may have {_npy.LONGEST_HEADER:,} bytes" in text
    assert f"{_directory.MOST_DEEP} folders deep and hold {_directory.MOST_ENTRIES:,} entries" in text
    assert f"left after {_directory.MOST_FOREIGN:,} files of no known kind" in text


def test_bounds_of_memory_are_as_stated():
    text = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
    assert f"more than {_reading.HOLES} bytes claimed for each that is on disk" in text
    assert f"unpack to {_npz.PACKED} times its size, or {_npz.SMALL >> 20} MiB" in text
    assert f"JSON documents may have {_reading.LARGEST_DOCUMENT >> 20} MiB" in text
