"""The command line: ``ilhash fit | encode | index | search | evaluate | ...``; ``ilhash --help`` lists all."""

from ilhash.cli import _choose  # noqa: F401  registers grow and prune
from ilhash.cli._app import main

__all__ = ["main"]
