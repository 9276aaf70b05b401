"""What a release is made of: one version, files that other programs read, targets that say what they lack."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ilhash

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TESTS = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dist = _tool("dist")


# -------------------------------------------------------------------------------------------- version


def test_the_version_stands_in_one_place():
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    place = PYPROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"]
    assert f'__version__ = "{ilhash.__version__}"' in (ROOT / place).read_text(encoding="utf-8")
    for other in ("pyproject.toml", "CMakeLists.txt", "CITATION.cff", "compose.yaml", "Dockerfile", "Makefile"):
        assert ilhash.__version__ not in (ROOT / other).read_text(encoding="utf-8"), other


def test_the_changelog_begins_with_this_version_and_what_is_new_for_users():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == ilhash.__version__
    newest = text.split("\n## ")[1]
    headings = re.findall(r"^### (.+)$", newest, re.MULTILINE)
    assert headings[:4] == ["Added", "Changed", "Fixed", "In detail"]
    short = newest.split("### In detail")[0]
    assert short.count("\n") <= 60, "a user reads a screen"


# -------------------------------------------------------------------------------------------- what others read


def test_the_citation_names_paper_and_licence():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["license"] == PYPROJECT["project"]["license"]
    assert cited["preferred-citation"]["title"] == "An Ensemble Diversity Approach to Supervised Binary Hashing"


@pytest.mark.parametrize("form", [one for one in FORMS if one.stem != "config"], ids=lambda one: one.stem)
def test_forms_of_issues_are_whole(form):
    known = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    asked = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= asked.keys()
    assert all(part["type"] in known for part in asked["body"])
    names = [part["id"] for part in asked["body"] if part["type"] != "markdown"]
    assert len(set(names)) == len(names)
    assert any(part.get("validations", {}).get("required") for part in asked["body"])


def test_the_community_files_are_there():
    for name in ("CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CITATION.cff"):
        assert (ROOT / name).stat().st_size > 500, name
    assert {one.stem for one in FORMS} == {"bug", "idea", "number", "config"}


# -------------------------------------------------------------------------------------------- workflows


def test_every_system_runs_the_tests_and_not_only_an_import():
    systems = TESTS["jobs"]["systems"]
    named = " ".join(systems["strategy"]["matrix"]["os"])
    assert all(system in named for system in ("macos", "windows", "arm"))
    assert any("pytest" in step.get("run", "") for step in systems["steps"])
    assert any("pytest" in one for one in PYPROJECT["tool"]["cibuildwheel"]["test-command"])
    for one in PYPROJECT["tool"]["cibuildwheel"]["test-command"]:
        for place in re.findall(r"\{project\}/(\S+)", one):
            assert (ROOT / place).exists(), place


def test_workflows_call_targets_that_are_there():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    for job in TESTS["jobs"].values():
        for step in job["steps"]:
            for target in re.findall(r"\bmake ([\w-]+)", step.get("run", "")):
                assert re.search(rf"^{target}:", text, re.MULTILINE), target


def test_a_target_without_its_tools_says_how_to_get_them():
    asked = ["make", "--no-print-directory", "test-arm", "ARM_CXX=", "ARM_RUN="]
    ran = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stdout.strip() == (
        "test-arm: skipped, a cross compiler and an emulator are needed "
        "(Debian: apt-get install g++-aarch64-linux-gnu qemu-user)"
    )


# -------------------------------------------------------------------------------------------- dist


@pytest.mark.parametrize(
    ("version", "tag", "wanted"),
    [("3.11", "cp311-cp311", True), ("3.12", "cp311-cp311", False), ("3.13", "cp312-abi3", True)],
)
def test_a_wheel_fits_its_python(version, tag, wanted):
    assert dist.fits(version, Path(f"ilhash-1.0-{tag}-manylinux_2_27_x86_64.whl")) is wanted


def test_the_pythons_at_hand_are_those_that_run():
    found = dist.interpreters()
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in found
    assert set(found) <= set(dist.WANTED)


def test_what_nobody_needs_is_refused():
    dist.refuse_strangers(Path("a.whl"), ["ilhash/__init__.py", "ilhash/_core.abi3.so"])
    with pytest.raises(SystemExit, match=r"must hold what is needed alone, got 2 others: ilhash/tests/a\.py"):
        dist.refuse_strangers(Path("a.whl"), ["ilhash/tests/a.py", "x/__pycache__/b.pyc"])
