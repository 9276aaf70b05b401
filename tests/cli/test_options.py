"""The defaults that help shows are those of the estimators and functions that the options are passed to."""

import inspect
from collections import defaultdict

import pytest
from tests.cli.test_app import COMMANDS

import ilhash
from ilhash.datasets import InfiniteDigits
from ilhash.experiments import Settings

# By command: whose parameters its options are, and where an option has another name.
HOMES = {
    ("fit",): ([ilhash.ILH], {"c": "C"}),
    ("grow",): ([ilhash.ILH, ilhash.grow, ilhash.HoldOut], {"c": "C", "hold_out_seed": "seed"}),
    ("prune",): ([ilhash.prune, ilhash.HoldOut], {"hold_out_classes": "classes", "hold_out_seed": "seed"}),
    ("encode",): ([ilhash.write_codes], {}),
    ("search",): ([ilhash.HammingIndex.search], {}),
    ("evaluate",): ([ilhash.evaluation.Protocol, ilhash.evaluation.evaluate], {"bits": "n_bits"}),
    ("compare",): ([Settings], {}),
    ("data", "make"): ([InfiniteDigits, InfiniteDigits.write], {}),
}
OWN = defaultdict(
    set,
    {
        ("data", "make"): {"n_threads"},  # of a command all cores, of a call one
        ("evaluate",): {"k"},  # needed by a protocol, not by an evaluation
        ("compare",): {"bits"},  # may be given several times, so its default stands in the text
    },
)


def shown(parameter):
    return parameter.show_default if isinstance(parameter.show_default, str) else parameter.default


@pytest.mark.parametrize("path", HOMES, ids=" ".join)
def test_shown_defaults_are_the_real_ones(path):
    homes, names = HOMES[path]
    signatures = [inspect.signature(home).parameters for home in reversed(homes)]
    real = {name: p.default for parameters in signatures for name, p in parameters.items() if p.default is not p.empty}
    real |= {"n_jobs": 1} | (
        {"mac": None} if "mac" in real else {}
    )  # None is joblib's word for 1; a flag shows nothing
    options = [p for p in COMMANDS[path].params if p.param_type_name == "option" and not p.required]
    pairs = {p.name: (shown(p), real.get(names.get(p.name, p.name), ...)) for p in options if p.name not in OWN[path]}
    compared = {name: pair for name, pair in pairs.items() if pair[1] is not ...}
    assert compared
    assert {name: str(pair[0]) for name, pair in compared.items()} == {n: str(pair[1]) for n, pair in compared.items()}


def test_every_parameter_of_an_estimator_is_compared():
    """An option of ``fit`` that no longer is a parameter of ILH would not be compared."""
    options = {p.name for p in COMMANDS["fit",].params if isinstance(p.show_default, str)}
    assert len(options) >= 15
    assert {"C" if name == "c" else name for name in options} <= set(inspect.signature(ilhash.ILH).parameters)
