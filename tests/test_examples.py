"""Examples and README run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script):
    out = subprocess.run([sys.executable, "-W", "error", script], check=True, capture_output=True, text=True).stdout
    assert float(re.findall(r"0\.\d+", out)[0]) > 0.8


def test_the_readme_runs(tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    subprocess.run([sys.executable, "-W", "error", "-c", block], check=True, cwd=tmp_path)


PAGES = ["search.md", "engines.md", "evaluation.md", "choosing.md", "scaling.md", "sparse.md", "supervision.md"]
PAGES += ["feedback.md", "learning.md"]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
    assert blocks
    session = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}  # without which a package of PostgreSQL warns
    subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks)], check=True, cwd=tmp_path, env=session)


def test_the_first_answer_out_of_postgresql(tmp_path):
    """The commands and lines of the page, as they stand there, at most ten."""
    page = (ROOT / "docs" / "engines.md").read_text()
    section = page.partition("## The first answer out of PostgreSQL\n")[2].partition("\n## ")[0]
    commands, lines = re.findall(r"```(?:python)?\n(.*?)```", section, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in f"{commands}{lines}".splitlines()) <= 10
    install, python = commands.splitlines()
    assert python == "python"
    here = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    here |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(install, shell=True, check=True, cwd=tmp_path, env=here)
    typed = {"input": lines, "text": True, "capture_output": True}
    told = subprocess.run([python, "-"], check=True, cwd=tmp_path, env=here, **typed).stdout
    digit, *found = map(int, re.findall(r"\d+", told))
    assert len(found) == 10  # five labels, five distances
    assert found[:5].count(digit) >= 3
    assert told.rstrip().endswith("True")


def test_importing_is_light():
    script = "import sys, ilhash; print([m for m in ('sklearn', 'scipy', 'typer', 'matplotlib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "[]"
