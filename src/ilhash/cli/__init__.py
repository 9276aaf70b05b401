"""The command line: ``ilhash fit | encode | index | search | evaluate | ...``; ``ilhash --help`` lists all.

One file per command holds its options and its work. What several commands share: ``_app`` (how a command ends),
``_options``, ``_models`` (from options to a model), ``_files`` and ``_screen``. Heavy rooms are imported when a command
needs them: ``ilhash --version`` must not wait for scikit-learn.
"""

from importlib import import_module

from ilhash.cli._app import app, main
from ilhash.cli.data import data
from ilhash.cli.engines import engines

__all__ = ["main"]

# In the order of ``ilhash --help``; a command is the function of its file's name.
for _name in (
    *("fit", "encode", "info", "index", "search", "push", "pull", "evaluate", "verify"),
    *("methods", "compare", "demo", "tune", "grow", "prune", "learn", "serve", "reproduce"),
):
    app.command()(getattr(import_module(f"ilhash.cli.{_name}"), _name))
app.add_typer(engines, name="engines")
app.add_typer(data, name="data")
