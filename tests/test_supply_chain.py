"""What the project is built from, and by whom: nothing unpinned, no right that is not needed, no licence that asks."""

import importlib.util
import re
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted(ROOT.glob("requirements-*.lock"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def _tool():
    spec = importlib.util.spec_from_file_location("bill_of_materials", ROOT / "tools" / "bill_of_materials.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bom = _tool()


# -------------------------------------------------------------------------------------------- locks


def _entries(lock):
    """Requirements of a lock, each with the hashes of its files."""
    text = lock.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        wanted, *hashes = line.split("--hash=")
        yield Requirement(wanted), [one.strip() for one in hashes]


def test_there_are_locks_to_develop_to_build_to_serve_and_to_test():
    assert [lock.name for lock in LOCKS] == [f"requirements-{name}.lock" for name in ("build", "dev", "serve", "test")]


def test_a_container_installs_a_part_of_what_was_tested():
    tested, served = (
        {str(wanted): hashes for wanted, hashes in _entries(ROOT / f"requirements-{name}.lock")}
        for name in ("dev", "serve")
    )
    elsewhere = [wanted for wanted in served if "sys_platform == 'win32'" in wanted.replace('"', "'")]
    assert {wanted: hashes for wanted, hashes in served.items() if wanted not in elsewhere}.items() <= tested.items()
    extras = PYPROJECT["project"]["optional-dependencies"]
    asked = PYPROJECT["project"]["dependencies"] + extras["serve"] + extras["postgres"]
    assert {canonicalize_name(Requirement(one).name) for one in asked} <= {Requirement(one).name for one in served}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_one_version_and_hashes(lock):
    for wanted, hashes in _entries(lock):
        assert re.fullmatch("==[^,*]+", str(wanted.specifier)), wanted
        assert wanted.url is None
        assert hashes, wanted
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes), wanted


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_place_to_download_from(lock):
    assert not re.search(r"://|^-|\bindex\b|\bfind-links\b", lock.read_text(), re.MULTILINE)


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_the_lock_covers_every_python_once(version):
    """Whatever ilhash asks for directly is locked for each Python, in one version that fits."""
    here = {"python_version": version, "python_full_version": f"{version}.9"}
    locked = {}
    for wanted, _ in _entries(ROOT / "requirements-dev.lock"):
        if wanted.marker is None or wanted.marker.evaluate(here):
            assert wanted.name not in locked
            locked[wanted.name] = str(wanted.specifier)[2:]
    asked = _asked_of_pyproject()
    assert len(asked) > 20
    for wanted in asked:
        assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), wanted


def test_builds_need_nothing_that_is_not_locked():
    locked = {wanted.name for wanted, _ in _entries(ROOT / "requirements-build.lock")}
    asked = PYPROJECT["build-system"]["requires"] + PYPROJECT["dependency-groups"]["build"]
    assert {"scikit-build-core", "nanobind"} <= {Requirement(one).name for one in asked} <= locked


def _asked_of_pyproject():
    project = PYPROJECT["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    return [wanted for wanted in map(Requirement, asked) if wanted.name != "ilhash"]


def test_what_make_installs_is_checked_by_hash():
    """But for the wheel in an environment of its own, which is what a user gets."""
    installs = [
        line for line in (ROOT / "Makefile").read_text().splitlines() if re.search(r"pip (install|wheel)", line)
    ]
    assert len(installs) == 4
    for line in installs:
        ours = "--no-deps" in line and "--no-build-isolation" in line
        assert ours or "--require-hashes" in line or "$(CLEAN_VENV)/bin/python" in line, line


# -------------------------------------------------------------------------------------------- workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit_and_version(path):
    used = [line.strip() for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    for line in used:
        assert re.fullmatch(r"- uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line


def test_an_action_is_the_same_commit_everywhere():
    found = {}
    for path in WORKFLOWS:
        for action, commit in re.findall(r"uses: ([^@\s]+)@(\S+ # \S+)", path.read_text()):
            assert found.setdefault(action, commit) == commit


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_may_read_and_only_publishing_may_more(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert rights == ({"publish": {"id-token": "write", "attestations": "write"}} if path.name == "release.yml" else {})
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            # What a stranger can choose (a branch, a title) must not become part of a script.
            assert "${{" not in step.get("run", "")
            assert "secrets." not in str(step)


def test_what_workflows_install_is_checked_by_hash():
    text = "\n".join(path.read_text() for path in WORKFLOWS) + (ROOT / "pyproject.toml").read_text()
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert len(installs) == 6
    for line in installs:
        ours = line.endswith("pip install --no-build-isolation --no-deps .")
        assert ours or "--require-hashes" in line, line


# -------------------------------------------------------------------------------------------- licences


def test_everything_at_run_time_is_permissive():
    asks = bom.needs("ilhash", bom.runtime_extras())
    assert {"numpy", "scipy", "click", "h5py", "faiss-cpu", "distributed", "skops", "jinja2"} <= asks.keys()
    found = {name: bom.license_of(name) for name in asks}
    assert {name: said for name, said in found.items() if not bom.is_permissive(said)} == bom.WEAK


def test_pymaxflow_is_of_the_extra_dev_alone():
    assert "pymaxflow" in bom.needs("ilhash", ["dev"])
    extras = bom.runtime_extras()
    assert {"io", "plots", "skops", "faiss", "dask"} <= extras
    assert not {"dev", "docs"} & extras
    assert "pymaxflow" not in bom.needs("ilhash", extras)


def test_a_licence_that_asks_is_seen():
    assert not bom.is_permissive(bom.license_of("pymaxflow")), "GPL"
    for said in ("GPL-3.0-or-later", "MIT AND GPL-2.0-only", "LGPL-2.1", "(MIT)", "none stated", ""):
        assert not bom.is_permissive(said)
    for said in ("MIT", "GPL-3.0-only OR MIT", "Apache-2.0 OR BSD-2-Clause", "BSD-3-Clause AND 0BSD AND MIT"):
        assert bom.is_permissive(said)


def test_what_was_read_in_a_licence_file_stands_there():
    for name, said in bom.READ.items():
        (file,) = (one for one in distribution(name).files if one.name == "LICENSE")
        assert file.locate().read_text().startswith(f"{said} License")


def test_the_bill_names_all_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bill_of_materials.py", "--output", str(tmp_path / "b.json")])
    bom.main()
    made = yaml.safe_load((tmp_path / "b.json").read_text())
    named = {one["name"]: one for one in made["components"]}
    assert named.keys() == bom.needs("ilhash", bom.runtime_extras()).keys() - {"ilhash"}
    assert f"{len(named)} packages" in capsys.readouterr().out
    for name, one in named.items():
        assert one["purl"] == f"pkg:pypi/{name}@{distribution(name).version}"
    assert made["metadata"]["component"]["name"] == "ilhash"
    references = {one["bom-ref"] for one in [*named.values(), made["metadata"]["component"]]}
    assert {one["ref"] for one in made["dependencies"]} == references
    assert all(set(one["dependsOn"]) <= references for one in made["dependencies"])
    (own,) = (one for one in made["dependencies"] if one["ref"].startswith("pkg:pypi/ilhash@"))
    direct = {canonicalize_name(wanted.name) for wanted in map(Requirement, PYPROJECT["project"]["dependencies"])}
    assert direct <= {one.partition("@")[0].removeprefix("pkg:pypi/") for one in own["dependsOn"]}
