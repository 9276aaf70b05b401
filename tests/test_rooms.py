"""The rule of the rooms: a room imports only rooms before it, lazily too, and no private name of another room."""

import ast
import re
from pathlib import Path

import pytest

import ilhash

ROOT = Path(ilhash.__file__).parent

# In the order in which they may know each other; docs/architecture.md says what lives in each.
ROOMS = [
    *("_version", "_core", "_extras", "_checks", "_ids", "_fingerprints", "_labels", "_parameters"),
    *("storage", "vectors", "vectors.io", "codes"),
    *("rotations", "graph", "objective", "affinity", "zstep", "functions", "diversity", "starts", "parallel"),
    *("encoding", "cards", "hasher", "evaluation", "ensemble", "methods", "models", "tuning"),
    *("search", "engines", "feedback", "client", "ties", "datasets", "serve", "plots", "experiments", "cli"),
    "__main__",
]
DOOR = ROOT / "__init__.py"  # names the rooms to users, and knows all of them
LAST_BEHIND_THE_DOOR = "datasets"  # so that ``import ilhash`` itself is for what comes after


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """Return the innermost room that a module is in: ``vectors.io._open`` is in vectors.io."""
    return next((room for room in reversed(ROOMS) if f"{module}.".startswith(f"{room}.")), None)


def imported(tree, module, is_package):
    """Yield every module of ours that is imported, and the names that are taken from it."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = [alias.name for alias in node.names if f"{alias.name}.".startswith("ilhash.")]
            yield from ((name.partition(".")[2], "") for name in ours)
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            yield from ((".".join([*base, *filter(None, [node.module])]), alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("ilhash."):
            yield from ((node.module.partition(".")[2], alias.name) for alias in node.names)


def faults(source, module, is_package=False):
    """Return what is wrong with the imports of a module, given its source."""
    own = room_of(module)
    found = []
    for target, name in imported(ast.parse(source), module, is_package):
        if not target:  # ``from ilhash import ILH`` goes through the door, which says where a name lives
            target, name = ilhash._HOMES.get(name, f"ilhash.{name}").partition(".")[2], ""
        room = room_of(target) or (room_of(LAST_BEHIND_THE_DOOR) if hasattr(ilhash, target or "__name__") else None)
        if room is None:
            found.append(f"{module} imports {target}, which is in no room")
        elif ROOMS.index(room) > ROOMS.index(own):
            found.append(f"{module} imports {target or 'ilhash'}, but {room} comes after {own}")
        elif room != own and re.search(r"\._(?!_)", f"{target}.{name}"[len(room) :]):
            found.append(f"{module} imports {target}.{name}, a private name of {room}")
    return found


@pytest.mark.parametrize("path", sorted(set(ROOT.rglob("*.py")) - {DOOR}), ids=module_of)
def test_a_room_knows_only_the_rooms_before_it(path):
    assert faults(path.read_text(encoding="utf-8"), module_of(path), path.name == "__init__.py") == []


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("zstep", "from ilhash.vectors import gather", None),
        ("zstep", "def f():\n    import ilhash.functions", "functions comes after zstep"),
        ("functions._linear", "from ilhash import ILH", "ensemble comes after functions"),
        ("vectors._matrix", "from ilhash.vectors.io import open_vectors", "vectors.io comes after vectors"),
        ("vectors.io._open", "from ..._checks import check_count", None),
        ("methods._itq", "from ilhash.functions._base import Fitted", "a private name of functions"),
        ("methods._itq", "from ilhash.methods._base import Method", None),
        ("methods._itq", "from ilhash.functions import _svm", "a private name of functions"),
        ("search._index", "from ilhash import _core, codes", None),
        ("search._index", "if TYPE_CHECKING:\n    from ilhash import cli", "cli comes after search"),
        ("search._index", "import ilhash", "datasets comes after search"),
        ("cli.fit", "import ilhash", None),
        ("search._index", "import ilhash.nowhere", "in no room"),
    ],
)
def test_forbidden_imports_are_found(module, source, fault):
    found = faults(source, module)
    assert found == [] if fault is None else fault in found[0]


def test_every_file_has_a_room():
    assert [path for path in ROOT.rglob("*.py") if path != DOOR and room_of(module_of(path)) is None] == []
