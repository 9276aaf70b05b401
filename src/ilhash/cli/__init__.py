"""The command line: ``ilhash fit | encode | info | data | demo``."""

from ilhash.cli._app import main

__all__ = ["main"]
