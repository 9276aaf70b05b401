"""The command reference, from the Typer application itself."""

from pathlib import Path
from typing import Any

import typer
from pages import write

from ilhash.cli import app


def commands() -> dict[str, Any]:
    """Return every command by what one types after ``ilhash``, in the order of ``ilhash --help``."""
    found: dict[str, Any] = {}

    def walk(name: str, command: Any) -> None:
        if name:
            found[name] = command
        for part, below in getattr(command, "commands", {}).items():
            walk(f"{name} {part}".strip(), below)

    walk("", typer.main.get_command(app))
    return found


def page_of(name: str, command: Any) -> str:
    """Return the page of one command: what it does, how it is typed, its arguments and options.

    Parameters
    ----------
    name : what one types after ``ilhash``
    command : the command, as Typer made it

    Returns
    -------
    str, Markdown
    """
    context = command.make_context(f"ilhash {name}", [], resilient_parsing=True)
    usage = " ".join(["ilhash", name, *command.collect_usage_pieces(context)])
    told = [f"# ilhash {name}", "", str(command.help or "").strip(), ""]
    told += ["```text", usage, "```", ""]
    for heading, kind in (("Arguments", "argument"), ("Options", "option")):
        records = [one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind]
        records = [record for record in records if record is not None]
        if records:
            told += [f"## {heading}", "", "| | |", "|---|---|"]
            told += [f"| `{_cell(typed)}` | {_cell(_plain(said))} |" for typed, said in records]
            told += [""]
    below = getattr(command, "commands", {})
    if below:
        told += ["## Commands", "", *(f"- {_linked(f'{name} {part}', one)}" for part, one in below.items()), ""]
    return "\n".join(told)


def _place(name: str) -> str:
    """Name the page of a command."""
    return f"ilhash-{name.replace(' ', '-')}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _plain(text: str) -> str:
    """Escape what Markdown would take for markup, outside of `code`."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        for sign in "\\*_[]<>":
            parts[number] = parts[number].replace(sign, f"\\{sign}")
    return "`".join(parts)


def _linked(name: str, command: Any) -> str:
    first = " ".join(str(command.help or "").split("\n\n")[0].split())
    return f"[`ilhash {name}`]({_place(name)}.md): {first}"


def lay_out(target: Path) -> None:
    """Write the pages of all commands.

    Parameters
    ----------
    target : folder of the site's sources
    """
    found = commands()
    told = ["# Commands", "", "What `ilhash --help` and `ilhash COMMAND --help` say; the"]
    told += ["[overview](../overview.md#on-the-command-line) shows how they work together.", ""]
    told += [f"- {_linked(name, command)}" for name, command in found.items()]
    names = "\n".join(_place(name) for name in found)
    told += ["", f"```{{toctree}}\n:hidden:\n\n{names}\n```", ""]
    write(target / "commands" / "index.md", "\n".join(told))
    for name, command in found.items():
        write(target / "commands" / f"{_place(name)}.md", page_of(name, command))
