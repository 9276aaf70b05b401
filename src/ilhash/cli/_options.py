"""Options that several commands share, and those that are parameters of an estimator.

The latter have no default here: what is not given is not passed on, and the estimator has its own. The default that
help shows is a literal, since asking the estimator would import it; a test holds the two together.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import ilhash

Vectors = Annotated[
    str,
    Argument(
        help="Vectors: a .npy, .npz (also of scipy.sparse), .csv, .parquet, .h5 or .zarr file (file::name picks one "
        "inside), a directory of such files, or a dataset's name (name::target where `ilhash data list` shows targets)."
    ),
]
Model = Annotated[Path, Argument(help="Directory of the model.")]
Url = Annotated[
    str,
    Argument(help="Engine and place, such as sqlite:///items.db or postgresql://me@host/base; `ilhash engines`."),
]
Table = Annotated[str, Option(help="The beginning of the tables' names, in engines that have tables.")]
Index = Annotated[Path, Argument(help="Folder of the index.")]
IndexOrUrl = Annotated[str, Argument(help="Folder of the index, or the URL of an engine (`ilhash engines`).")]
Written = Annotated[Path, Argument(help="Directory of a model, an index, shards or feedback; or a file of codes.")]
ModelOutput = Annotated[Path, Option("--output", "-o", help="Directory for the model.")]
Labels = Annotated[
    str | None, Option(help="Labels, one per vector, or an indicator matrix; file.csv::column names a column.")
]
LabelsColumn = Annotated[
    str | None, Option(help="The column of the vectors' own table, .parquet or .csv, that holds labels.")
]
IdsColumn = Annotated[
    str | None, Option(help="The column of the vectors' own table, .parquet or .csv, that holds ids: no feature.")
]
Pairs = Annotated[str | None, Option(help="Pairs: rows of i, j, weight (> 0 similar, < 0 dissimilar).")]
Affinity = Annotated[Path | None, Option(help="Sparse signed matrix, .npz of scipy.sparse.save_npz.")]
CodeBits = Annotated[int | None, Option(help="Bits per code, where no .json beside the codes says it.")]
NThreads = Annotated[int, Option("--n-threads", "-j", help="Threads; -1 for all cores.")]
Numbers = Annotated[Path | None, Option("--json", help="File for all numbers, .json.")]
Force = Annotated[bool, Option("--force", help="Replace what is already there.")]
ForceFiles = Annotated[bool, Option("--force", help="Replace files that are already there.")]

# ------------------------------------------------------------------------------------------------ choosing bits

PrecisionAt = Annotated[int, Option("-k", help="Nearest points that precision looks at.")]
NQueries = Annotated[
    int | None, Option("--queries", help="Points held out to judge by; default 500, or a fifth of few.")
]
NReport = Annotated[
    int | None,
    Option(
        "--report", help="More points held out, which choose nothing, to report on; default 500, or a tenth of few."
    ),
]
NBase = Annotated[int, Option("--base", help="Points that are searched when bits are judged, at most.")]
BitsCurve = Annotated[Path | None, Option(help="File for a picture of the curve (.png, .pdf, .svg).")]
BitsNumbers = Annotated[Path | None, Option("--json", help="File for the curve and the choice, .json.")]
HoldOutSeed = Annotated[int, Option(help="Which points are held out.")]

# ------------------------------------------------------------------------------------------------ of estimators


def parameter(text: str, default: str, *names: str) -> Any:
    """Return the option of a parameter that an estimator has a default for."""
    return Option(*names, help=text, show_default=default)


Diversity = Annotated[str | None, parameter("Letters of i (start), t (training sets), f (features).", "t")]
NTrain = Annotated[str | None, parameter("Points per bit, the paper's N, or auto.", "auto")]
HashFunction = Annotated[str | None, parameter("linear, kernel or trees.", "linear")]
C = Annotated[str | None, parameter("Weight of the SVM's loss, or auto.", "auto", "--C")]
Unlabeled = Annotated[str | None, parameter("The label that means unknown, or none.", "-1")]
RandomState = Annotated[int | None, parameter("random_state: the same seed gives the same bytes.", "0", "--seed")]
NJobs = Annotated[int | None, parameter("Workers; -1 for all cores.", "1", "--n-jobs", "-j")]
Settings = Annotated[list[str] | None, Option("--set", help="Any other parameter of the method, as name=value.")]

_NUMBERS = {"n_train": int, "C": float}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of ILH among a command's options that were given, and the name=value of --set."""
    known = ilhash.ILH().get_params()
    read = {name: _read(name, value) for name, value in options.items() if name in known and value is not None}
    return read | dict(_setting(text) for text in options["settings"] or ())


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set must be name=value, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _read(name: str, value: Any) -> Any:
    """Return what an estimator takes for what was typed."""
    if name in _NUMBERS and value != "auto":
        try:
            return _NUMBERS[name](value)
        except ValueError:
            raise ValueError(f"--{name.replace('_', '-')} must be 'auto' or a number, got {value!r}") from None
    if name == "n_features" and value > 1:
        return int(value)
    if name == "unlabeled" and value == "none":
        return None
    if name == "unlabeled" and value.lstrip("-").isdigit():
        return int(value)
    return value
