"""Run a benchmark and keep what it prints, with its command and where it ran, as a result file that pages refer to.

    python benchmarks/record.py order -- python benchmarks/order.py

writes docs/results/order.json. Numbers of the pages are compared with these files (`python tools/results.py`).
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("ilhash", "numpy", "scipy", "scikit-learn", "faiss-cpu")


def cpu() -> str:
    """Name the processor, where the system tells."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


def commit() -> str:
    """Name the version of the code that ran."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def run(command: list[str]) -> list[str]:
    """Run a command, show what it prints as it comes, and return the lines."""
    lines = []
    this_python = [sys.executable if part == "python" else part for part in command]
    with subprocess.Popen(this_python, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    if process.returncode:
        sys.exit(process.returncode)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the result file")
    parser.add_argument("command", nargs="+", help="what runs, after --")
    asked = parser.parse_args()
    began = datetime.datetime.now(datetime.timezone.utc)
    version = commit()
    output = run(asked.command)
    took = datetime.datetime.now(datetime.timezone.utc) - began
    told = {
        "command": shlex.join(asked.command),
        "date": began.strftime("%Y-%m-%d"),
        "seconds": round(took.total_seconds()),
        "commit": version,
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "machine": cpu(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "output": output,
    }
    place = ROOT / "docs" / "results" / f"{asked.name}.json"
    place.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
