"""Build the documentation site: lay out its sources, execute its tutorials, write HTML.

``python tools/docsite/build.py --output build/docs``. A warning, a link that leads nowhere or a cell that fails ends
it with an error. Nothing is fetched: neither while it is built nor by the pages.
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import commands
import pages
import reference
from sphinx.cmd.build import build_main

HERE = Path(__file__).parent


def main() -> int:
    """Build the site and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=lambda given: Path(given).absolute(), default=pages.ROOT / "build" / "docs")
    parser.add_argument("--quick", action="store_true", help="do not execute the tutorials")
    given = parser.parse_args()
    began = time.monotonic()
    sources = given.output.with_name(f"{given.output.name}-sources")
    shutil.rmtree(sources, ignore_errors=True)
    pages.lay_out(sources)
    reference.lay_out(sources)
    commands.lay_out(sources)
    # Tutorials run as a user's programs do: in their own folders, with the data that are bundled.
    os.environ.pop("ILHASH_DATA", None)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(sources))  # without which a package of PostgreSQL warns
    profile = sources / ".ipython" / "profile_default"
    os.environ["IPYTHONDIR"] = str(profile.parent)
    # Kernels listen on the loopback address while their page is built; they would say so on every page.
    pages.write(profile / "ipython_kernel_config.py", "c.IPKernelApp.log_level = 40\n")
    doctrees = given.output.with_name(f"{given.output.name}-doctrees")
    strict = ["-W", "--keep-going", "-q", "-E", "-a", "-c", str(HERE), "-d", str(doctrees)]
    quick = ["-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer"] if given.quick else []
    failed = build_main([*strict, *quick, "-b", "html", str(sources), str(given.output)])
    print(f"{'failed' if failed else 'built'} in {time.monotonic() - began:.0f} s: {given.output / 'index.html'}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
