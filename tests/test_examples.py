"""Examples and README run as they stand."""

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


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.DOTALL)
    assert blocks
    subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks)], check=True, cwd=tmp_path)


def test_importing_is_light():
    script = "import sys, ilhash; print([m for m in ('sklearn', 'scipy', 'typer', 'matplotlib') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert out.strip() == "[]"
