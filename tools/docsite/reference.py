"""The API reference: a page for every public name, a page for every room with its names."""

import importlib
import inspect
from pathlib import Path
from typing import Any

from pages import write

# What users import from, in the order in which names are looked for: a name has its page where it is found first.
ROOMS = {
    "ilhash": "What most programs need.",
    "ilhash.methods": "The other hashing methods, under the contract of ILH.",
    "ilhash.ensemble": "ILH, and what trains, prunes, mixes and refreshes bits.",
    "ilhash.hasher": "What every model can do.",
    "ilhash.models": "All kinds of models by name.",
    "ilhash.tuning": "The best model for so many bytes.",
    "ilhash.search": "The index.",
    "ilhash.engines": "Codes in PostgreSQL, SQLite, DuckDB, ClickHouse, LanceDB, faiss or usearch.",
    "ilhash.codes": "The packed layout of codes, and every conversion of it.",
    "ilhash.encoding": "From vectors to codes, block by block, and the files of codes.",
    "ilhash.evaluation": "Tie-aware measures, protocols, orthogonality.",
    "ilhash.feedback": "Judgements of users.",
    "ilhash.cards": "What a model says of itself, for people.",
    "ilhash.objective": "Losses of Hamming distances.",
    "ilhash.affinity": "From supervision to a signed graph.",
    "ilhash.datasets": "Named datasets, endless digits, descriptors of images.",
    "ilhash.vectors.io": "Files of users.",
    "ilhash.experiments": "The paper's figures and claims; comparison on anybody's data.",
    "ilhash.methods.authoring": "What a new method is made of.",
    "ilhash.ties.arrow": "Columns of codes that say how they are packed.",
    "ilhash.ties.haystack": "A document store and a retriever of Haystack.",
    "ilhash.ties.langchain": "A vector store of LangChain.",
    "ilhash.ties.sentence_transformers": "Functions of sentence-transformers, on arrays.",
    "ilhash.engines.postgres": "PostgreSQL with pgvector.",
    "ilhash.engines.clickhouse": "ClickHouse, embedded or as statements for a cluster.",
}


def _more_rooms() -> list[str]:
    """Return rooms that :mod:`ilhash` names and the table above does not."""
    import ilhash

    named = [f"ilhash.{name}" for name in ilhash.__all__ if inspect.ismodule(getattr(ilhash, name))]
    return [room for room in named if room not in ROOMS]


def names() -> dict[str, dict[str, Any]]:
    """Return the public names of every room that have their page there, with what they name."""
    seen: set[int] = set()
    found: dict[str, dict[str, Any]] = {}
    for room in [*ROOMS, *_more_rooms()]:
        module = importlib.import_module(room)
        public = getattr(module, "__all__", [name for name in vars(module) if _own(module, name)])
        found[room] = {}
        for name in public:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or name.startswith("__"):
                continue
            if not isinstance(thing, int | float | str | tuple) and id(thing) in seen:
                continue
            seen.add(id(thing))
            found[room][name] = thing
    return found


def _own(module: Any, name: str) -> bool:
    """Whether a module without ``__all__`` has made a public function or class itself."""
    thing = getattr(module, name)
    made = inspect.isfunction(thing) or inspect.isclass(thing)
    return made and not name.startswith("_") and thing.__module__ == module.__name__


def first_sentence(thing: Any) -> str:
    """Return the first line of a docstring; nothing for numbers and texts, which have that of their type."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return ""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def page_of(full: str, thing: Any) -> str:
    """Return the page of one name.

    Parameters
    ----------
    full : room and name
    thing : what it names

    Returns
    -------
    str, Markdown around a directive of autodoc
    """
    name = full.rpartition(".")[2]
    kind = "class" if inspect.isclass(thing) else "function" if inspect.isroutine(thing) else "data"
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        kind = "exception"
    options = ["   :members:", "   :show-inheritance:"] if kind in ("class", "exception") else []
    if kind == "data":
        options = ["   :no-value:"]
    told = [f"# {name}", "", "```{eval-rst}", f".. auto{kind}:: {full}", *options, "```", ""]
    if kind == "class":
        told += _inherited(thing)
    return "\n".join(told)


def _inherited(kind: type) -> list[str]:
    """List methods that a class of ours has from another one."""
    own = set(vars(kind))
    told: list[str] = []
    for home in kind.__mro__[1:]:
        if not home.__module__.startswith("ilhash"):
            continue
        for name, value in vars(home).items():
            bare = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if name.startswith("_") or name in own or not (inspect.isfunction(bare) or isinstance(bare, property)):
                continue
            own.add(name)
            told.append(f"- `{name}`: {_escaped(first_sentence(getattr(kind, name)) or inspect.getdoc(bare) or '')}")
    if not told:
        return []
    return ["## Inherited", "", f"From {_homes(kind)}:", "", *told, ""]


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("``", "`").replace("*", "\\*").replace("<", "\\<")


def _homes(kind: type) -> str:
    """Name the classes that a class inherits from, linked where they have a page."""
    pages = {id(thing): f"{room}.{name}" for room, things in names().items() for name, thing in things.items()}
    homes = [home for home in kind.__mro__[1:] if home.__module__.startswith("ilhash")]
    return ", ".join(
        f"[`{home.__name__}`]({pages[id(home)]}.md)" if id(home) in pages else f"`{home.__name__}`" for home in homes
    )


def page_of_room(room: str, things: dict[str, Any]) -> str:
    """Return the page of a room: what its module says, and its names.

    Parameters
    ----------
    room : full name of a module
    things : public names that have their page there

    Returns
    -------
    str, Markdown
    """
    told = [f"# {room}", "", "```{eval-rst}", f".. automodule:: {room}", "```", "", "| | |", "|---|---|"]
    for name, thing in things.items():
        told += [f"| [`{name}`]({room}.{name}.md) | {_escaped(first_sentence(thing)).replace('|', chr(92) + '|')} |"]
    listed = "\n".join(f"{name} <{room}.{name}>" for name in things)
    return "\n".join([*told, "", f"```{{toctree}}\n:hidden:\n\n{listed}\n```", ""])


def lay_out(target: Path) -> None:
    """Write the pages of all public names.

    Parameters
    ----------
    target : folder of the site's sources
    """
    rooms = {room: things for room, things in names().items() if things}
    told = ["# Python", "", "Every public name, from its docstring. A name stands where it is imported from first.", ""]
    told += ["| | |", "|---|---|"]
    for room, things in rooms.items():
        told += [f"| [`{room}`]({room}.md) | {ROOMS.get(room, '')} {_named(room, things)} |"]
        write(target / "api" / f"{room}.md", page_of_room(room, things))
        for name, thing in things.items():
            write(target / "api" / f"{room}.{name}.md", page_of(f"{room}.{name}", thing))
    listed = "\n".join(rooms)
    write(target / "api" / "index.md", "\n".join([*told, "", f"```{{toctree}}\n:hidden:\n\n{listed}\n```", ""]))


def _named(room: str, things: dict[str, Any]) -> str:
    return ", ".join(f"[`{name}`]({room}.{name}.md)" for name in things)
