"""The command line: ``ilhash fit | grow | prune | encode | info | index | search | evaluate | verify | data ...``."""

from ilhash.cli import _choose  # noqa: F401  registers grow and prune
from ilhash.cli._app import main

__all__ = ["main"]
