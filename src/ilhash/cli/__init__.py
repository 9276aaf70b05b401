"""The command line: ``ilhash fit | encode | index | search | evaluate | ...``; ``ilhash --help`` lists all."""

from ilhash.cli import _choose, _reproduce  # noqa: F401  they register their commands
from ilhash.cli._app import main

__all__ = ["main"]
