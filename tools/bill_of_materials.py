"""What ilhash brings along: the packages that it and its extras need at run time, with versions and licences.

``python tools/bill_of_materials.py --output ilhash.cdx.json`` writes them as a bill of materials in the JSON of
CycloneDX 1.6, of the environment that it runs in: the release makes one of the locked versions, which were tested.
"""

from __future__ import annotations

import argparse
import json
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_AT_RUN_TIME = {"dev", "docs"}  # extras for those who work on ilhash itself

# Licences that ask for nothing but to be named. Whatever is not here is looked at by a person before it is.
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "HPND", "ISC", "MIT", "MIT-0", "MIT-CMU"}
PERMISSIVE |= {"PSF-2.0", "Python-2.0", "Unlicense", "Zlib"}
# How packages without an SPDX expression say it, in a classifier or, failing that, in the field "License".
SPELLED = {
    "Apache Software License": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD-3-Clause": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT": "MIT",
    "MIT License": "MIT",
    "MIT License, Apache License, Version 2.0": "MIT OR Apache-2.0",
    "any-OSI": "Zlib",  # apsw: its file LICENSE leaves the choice among all that are approved
    "Python Software Foundation License": "PSF-2.0",
}
# Not permissive in every file, and taken all the same: used as they come, by engines, Haystack, LangChain and pooch.
WEAK = {
    "tqdm": "MPL-2.0 AND MIT",
    "certifi": "Mozilla Public License 2.0 (MPL 2.0)",
    "orjson": "MPL-2.0 AND (Apache-2.0 OR MIT)",
}
READ = {"skops": "MIT"}  # packages whose metadata say nothing, by what their file LICENSE says


def runtime_extras(name: str = "ilhash") -> set[str]:
    """Return the extras of a package that somebody may install to use it."""
    return set(distribution(name).metadata.get_all("Provides-Extra") or ()) - NOT_AT_RUN_TIME


def needs(name: str, extras: Iterable[str] = ()) -> dict[str, set[str]]:
    """Return what a package needs here, itself first: every package by name, with what it asks for directly."""
    found: dict[str, set[str]] = {}
    todo = [(name, extra) for extra in ("", *sorted(extras))]
    seen = set(todo)
    while todo:
        package, extra = todo.pop(0)
        direct = found.setdefault(package, set())
        for wanted in map(Requirement, distribution(package).requires or ()):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                asked = canonicalize_name(wanted.name)
                direct.add(asked)
                new = [(asked, one) for one in ("", *wanted.extras) if (asked, one) not in seen]
                todo += new
                seen.update(new)
    return found


def license_of(name: str) -> str:
    """Return the licence of a package as an SPDX expression, or as the package says it where that is not known."""
    metadata = distribution(name).metadata
    if metadata.get("License-Expression"):
        return str(metadata["License-Expression"])
    said = [one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or () if one.startswith("License :: ")]
    said = [one for one in said if one != "OSI Approved"] or [metadata.get("License") or READ.get(name, "none stated")]
    return " AND ".join(SPELLED.get(one.strip(), one.strip().partition("\n")[0]) for one in said)


def is_permissive(expression: str) -> bool:
    """Say whether an SPDX expression can be met by permissive licences alone; one with brackets is not understood."""
    choices = expression.split(" OR ")
    return any(all(one in PERMISSIVE for one in choice.split(" AND ")) for choice in choices)


def _component(name: str) -> dict[str, Any]:
    version, said = distribution(name).version, license_of(name)
    reference = f"pkg:pypi/{name}@{version}"
    licenses = [{"expression": said}] if is_permissive(said) else [{"license": {"name": said}}]
    about = {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    return {**about, "licenses": licenses}


def bill(name: str = "ilhash") -> dict[str, Any]:
    """Return the bill of materials of a package with all extras that are for its users."""
    asks = needs(name, runtime_extras(name))
    parts = {part: _component(part) for part in sorted(asks)}
    graph = [
        {"ref": parts[part]["bom-ref"], "dependsOn": [parts[one]["bom-ref"] for one in sorted(direct)]}
        for part, direct in sorted(asks.items())
    ]
    own = parts.pop(name)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"), "component": own},
        "components": list(parts.values()),
        "dependencies": graph,
    }


def main() -> None:
    """Write the bill of materials to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    path = parser.parse_args().output
    made = bill()
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(made['components'])} packages")


if __name__ == "__main__":
    main()
