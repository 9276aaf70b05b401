"""The command line: ``ilhash fit | encode | info | index | search | evaluate | verify | data | demo``."""

from ilhash.cli._app import main

__all__ = ["main"]
