"""docs/architecture.md is true: rooms in their order, files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest
from tests.test_rooms import ROOMS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\| .* \| `(src/[^`]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)


def names_in(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return set(re.findall(r"\b(\w+)\(", text))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}


def test_the_table_of_rooms_is_that_of_the_code():
    table = PAGE.partition("| room |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert [room for cell in cells for room in re.findall(r"`([^`]+)`", cell)] == ROOMS


def test_there_are_steps():
    assert len(STEPS) > 20


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_every_step_names_what_is_there(file, name):
    assert name in names_in(ROOT / file)
