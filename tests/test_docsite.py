"""The documentation site: every public name and command is on it, tutorials run, what is broken breaks the build."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ilhash

pytest.importorskip("sphinx", reason='pip install "ilhash[docs]"')
from tests.test_docstrings import INHERITED, ROOMS, SKIPPED_ROOMS, THINGS

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools" / "docsite"
sys.path.insert(0, str(TOOLS))
try:
    import cells
    import commands
    import pages
    import reference
finally:
    sys.path.remove(str(TOOLS))

TUTORIALS = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if path.stem != "index")

# What numpydoc's validation asks for and the house does otherwise: descriptions stand on the line of the type, begin
# small and end without a full stop; parameters of one kind share a line; no section that says nothing; attributes of
# what the library makes are no parameters; docstrings of methods are put together from those of their bases.
OTHERWISE = {"PR07", "SA01", "ES01", "RT03", "EX01", "PR01", "PR03", "PR05", "PR08", "PR09", "RT04", "GL02"}
# Haystack hides the signature of a component, so its parameters are unknown to the validation (PR02).


def quiet(tmp_path):
    """Return an environment in which programs draw no windows and find no data but the bundled ones."""
    here = {name: value for name, value in os.environ.items() if name != "ILHASH_DATA"}
    return {**here, "MPLBACKEND": "Agg", "XDG_RUNTIME_DIR": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}


# -------------------------------------------------------------------------------------------- reference


def test_every_public_name_has_its_page(tmp_path):
    reference.lay_out(tmp_path)
    documented = {path.name.removesuffix(".md") for path in (tmp_path / "api").glob("*.md")}
    assert len(documented) > 150
    there = {id(getattr(sys.modules[room], name)) for room, names in reference.names().items() for name in names}
    rooms = ["ilhash", *(f"ilhash.{room}" for room in ROOMS if room not in SKIPPED_ROOMS)]
    for room in rooms:
        for name in sys.modules[room].__all__:
            thing = getattr(sys.modules[room], name)
            small = isinstance(thing, int | float | str | tuple | dict)
            assert (
                f"{room}.{name}" in documented
                or id(thing) in there
                or small
                or hasattr(thing, "__path__")
                or (f"ilhash.{name}" in documented)
            ), f"{room}.{name}"
    listed = "".join(path.read_text() for path in (tmp_path / "api").glob("*.md"))
    for name in ("autoclass:: ilhash.ILH", "autofunction:: ilhash.tune", "autoclass:: ilhash.methods.ITQ"):
        assert name in listed


def test_every_command_and_option_has_its_line(tmp_path):
    commands.lay_out(tmp_path)
    told = {path.stem: path.read_text() for path in (tmp_path / "commands").glob("*.md")}
    assert {f"ilhash-{name.replace(' ', '-')}" for name in commands.commands()} | {"index"} == told.keys()
    assert {"ilhash-fit", "ilhash-tune", "ilhash-data-list", "ilhash-engines-check"} <= told.keys()
    for name, command in commands.commands().items():
        page = told[f"ilhash-{name.replace(' ', '-')}"]
        for option in command.params:
            assert option.param_type_name == "argument" or option.opts[0] in page, (name, option.opts)
    assert "Bytes of a code, at most. \\[default: 16\\]" in told["ilhash-tune"]


@pytest.mark.parametrize("name", THINGS)
def test_docstrings_keep_to_numpydoc(name):
    from numpydoc.validate import validate

    if name.rpartition(".")[2] not in INHERITED:
        otherwise = OTHERWISE | ({"PR02"} if name.endswith(".IlhashEmbeddingRetriever") else set())
        found = [error for error in validate(name)["errors"] if error[0] not in otherwise]
        assert found == []


def test_no_fewer_names_have_examples():
    """Most of those without are made by the library, not by its users; the number may only fall."""
    things = [thing for found in reference.names().values() for thing in found.values()]
    things = [thing for thing in things if inspect.isclass(thing) or inspect.isroutine(thing)]
    without = [thing for thing in things if ">>>" not in (inspect.getdoc(thing) or "")]
    assert len(things) > 200
    assert len(without) <= 105


# -------------------------------------------------------------------------------------------- pages


def test_links_lead_where_they_led():
    placed = {pages.ROOT / "README.md": "index.md", pages.ROOT / "docs" / "guide.md": "guide.md"}
    text = "[a](docs/guide.md#x) `[b](docs/guide.md)` [c](LICENSE) [d](https://e.f/g)\n```\n[h](docs/guide.md)\n```\n"
    told = pages.relinked(text, pages.ROOT / "README.md", placed)
    assert told.startswith("[a](guide.md#x) `[b](docs/guide.md)` [c](files/LICENSE) [d](https://e.f/g)")
    assert told.endswith("[h](docs/guide.md)\n```\n")
    assert pages.relinked("[a](../README.md)", pages.ROOT / "docs" / "guide.md", placed) == "[a](index.md)"


def test_every_page_is_in_the_navigation():
    placed = pages.pages()
    listed = [place for places in pages.sections(placed).values() for place in places]
    assert len(set(listed)) == len(listed)
    wanted = {place.removesuffix(".md") for place in placed.values() if not place.startswith(("index", "tutorials/"))}
    assert set(listed) == wanted
    index = (ROOT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    for tutorial in TUTORIALS:
        assert f"]({tutorial.name})" in index
        assert f"\n{tutorial.stem}\n" in index


def test_addresses_outside_are_well_formed():
    for page in pages.pages():
        for address in re.findall(r"\b[a-z]+://[^\s)>`\"']+", page.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[a-z]+://[^\s<>]*", address), address


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_step_of_a_tutorial_is_at_most_a_screen(page):
    steps = cells.CELL.findall(page.read_text(encoding="utf-8"))
    assert len(steps) >= 5
    assert max(step.count("\n") for step in steps) <= 30
    assert max(len(line) for step in steps for line in step.splitlines()) <= 100


def test_the_readme_is_two_screens_at_most():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 80
    assert text.count("![") == 1
    (program,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in program.splitlines()) <= 10


# -------------------------------------------------------------------------------------------- building


def test_the_first_tutorial_runs_as_plain_python(tmp_path):
    program = cells.program((ROOT / "docs" / "tutorials" / "first-codes.md").read_text(encoding="utf-8"))
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=quiet(tmp_path), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert float(re.findall(r"precision@10 by \d+ bytes (0\.\d+)", ran.stdout)[0]) > 0.9


def build(sources, tmp_path):
    """Build a project with the settings of the site and nothing written; return what was said and the exit code."""
    strict = ["-W", "--keep-going", "-q", "-b", "dummy", "-c", str(TOOLS), "-d", str(tmp_path / "doctrees")]
    ran = subprocess.run(
        [sys.executable, "-m", "sphinx", *strict, str(sources), str(tmp_path / "out")],
        env=quiet(tmp_path),
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("cell", "link", "wanted"),
    [
        ("1 + 1", "#above", None),
        ("raise ValueError('the cell is broken')", "#above", "the cell is broken"),
        ("1 + 1", "nowhere.md", "nowhere.md"),
        ("1 + 1", "#nowhere", "nowhere"),
    ],
)
def test_a_broken_cell_or_link_breaks_the_build(tmp_path, cell, link, wanted):
    sources = tmp_path / "sources"
    sources.mkdir()
    head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n# A page\n\n## Above\n\n"
    page = f"{head}```{{code-cell}}\n{cell}\n```\n\n[A link]({link}).\n"
    (sources / "index.md").write_text(page, encoding="utf-8")
    code, said = build(sources, tmp_path)
    assert (code == 0) == (wanted is None), said
    assert wanted is None or wanted in said


def test_the_version_is_that_of_the_package():
    assert "release = version = ilhash.__version__" in (TOOLS / "conf.py").read_text(encoding="utf-8")
    assert ilhash.__version__
