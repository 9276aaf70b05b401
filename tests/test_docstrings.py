"""Every public function, class and method says what it takes and what it gives back, in numpydoc's dialect."""

import dataclasses
import importlib
import inspect
import re

import pytest

import ilhash

# What users import from: the modules that ilhash names, the homes of the classes behind them.
ROOMS = ["codes", "datasets", "encoding", "ensemble", "evaluation", "experiments", "hasher", "methods", "models"]
ROOMS += ["cards"]
ROOMS += ["engines", "objective", "search", "vectors.io"]
ROOMS += ["ties.arrow", "ties.haystack", "ties.langchain", "ties.sentence_transformers"]
SKIPPED_ROOMS = {"cli", "diversity", "functions", "parallel", "storage", "vectors._source"}  # of developers

# What scikit-learn writes, or asks for, in every estimator.
INHERITED = {"set_output", "fit_transform", "get_metadata_routing", "set_fit_request", "set_params", "get_params"}


def skipped(thing):
    home = getattr(thing, "__module__", None) or ""
    return any(home == f"ilhash.{room}" or home.startswith(f"ilhash.{room}.") for room in SKIPPED_ROOMS)


def public_things():
    """Functions and classes by their full names, and the methods that a class of ours defines."""
    modules = [ilhash, *(importlib.import_module(f"ilhash.{room}") for room in ROOMS if room not in SKIPPED_ROOMS)]
    found = {}
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("ilhash")
            if ours and not skipped(thing) and (inspect.isfunction(thing) or inspect.isclass(thing)):
                found.setdefault(f"{thing.__module__}.{thing.__qualname__}", thing)
    for thing in list(found.values()):
        if inspect.isclass(thing):
            for home in thing.__mro__:
                if home.__module__.startswith("ilhash") and not skipped(home):
                    found |= {f"{home.__module__}.{home.__qualname__}.{n}": m for n, m in methods_of(home)}
    return found


def methods_of(kind):
    for name, value in vars(kind).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if inspect.isfunction(function) and not name.startswith("_") and name not in INHERITED:
            yield name, function


def section(text, name):
    """The lines below a heading, up to the next heading."""
    match = re.search(rf"^{name}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return match.group(1) if match else ""


def entries(text, name):
    """Names in a section, each with the lines indented below it."""
    found = {}
    names = []
    for line in section(text, name).splitlines():
        if line and not line.startswith(" "):
            names = [part.strip().lstrip("*") for part in line.split(" : ")[0].split(",")]
            found |= {one: [] for one in names}
        elif line.strip():
            for one in names:
                found[one].append(line)
    return found


def parameters_of(thing):
    if inspect.isclass(thing):
        if getattr(thing, "_is_protocol", False) or issubclass(thing, Exception):
            return []
        if dataclasses.is_dataclass(thing):
            return [field.name for field in dataclasses.fields(thing) if field.init]
        if "__init__" not in {name for home in thing.__mro__[:-1] for name in vars(home)}:
            return []
        signature = inspect.signature(thing.__init__)  # a metaclass, such as of Haystack, may hide it
    else:
        signature = inspect.signature(thing)
    return [name for name in signature.parameters if name not in ("self", "cls")]


THINGS = public_things()


@pytest.mark.parametrize("name", THINGS)
def test_it_lists_its_parameters_and_says_what_it_returns(name):
    thing = THINGS[name]
    text = inspect.getdoc(thing) or ""
    assert text, "no docstring"
    listed = entries(text, "Parameters")
    if dataclasses.is_dataclass(thing):
        listed |= entries(text, "Attributes")  # what is made by the library, not by its users
    assert [one for one in parameters_of(thing) if one not in listed] == []
    if not inspect.isclass(thing):
        assert [one for one in listed if one not in parameters_of(thing)] == []
        returns = inspect.signature(thing).return_annotation
        if returns not in (None, "None", "NoReturn"):
            assert section(text, "Returns").strip() or section(text, "Yields").strip(), "no Returns"


def test_the_walk_finds_what_there_is():
    for name in (
        "ilhash.ensemble._ilh.ILH.add_bits",
        "ilhash.hasher.Hasher.fit",
        "ilhash.codes.pack",
        "ilhash.hasher.Hasher.transform",
    ):
        assert name in THINGS
    assert len(THINGS) > 150
