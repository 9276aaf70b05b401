"""``ilhash fit``: train a model and save it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from typer import Option

import ilhash
from ilhash.cli import _options as option
from ilhash.cli._app import kept
from ilhash.cli._files import (
    check_new_directory,
    read_own_columns,
    read_supervised,
    read_supervision,
    refuse_labels_among_features,
)
from ilhash.cli._models import make_model
from ilhash.cli._options import parameter
from ilhash.cli._screen import Timer, progress, tell


def fit(
    vectors: option.Vectors,
    output: option.ModelOutput,
    method: Annotated[
        str, Option(help="ILH, one of those that `ilhash methods` lists, or a mix such as ilh:64+itq:64.")
    ] = "ILH",
    labels: option.Labels = None,
    labels_column: option.LabelsColumn = None,
    ids_column: option.IdsColumn = None,
    pairs: option.Pairs = None,
    affinity: option.Affinity = None,
    n_bits: Annotated[int | None, parameter("Number of bits, the paper's b.", "64", "--bits")] = None,
    diversity: option.Diversity = None,
    sampling: Annotated[str | None, parameter("disjoint, random or bootstrap training sets.", "disjoint")] = None,
    n_train: option.NTrain = None,
    objective: Annotated[str | None, parameter("laplacian, ksh or bre.", "laplacian")] = None,
    hash_function: option.HashFunction = None,
    centers: Annotated[str | None, parameter("common or private centres of kernel functions.", "common")] = None,
    C: option.C = None,
    scaling: Annotated[str | None, parameter("auto, columns or whole: how features are standardised.", "auto")] = None,
    n_similar: Annotated[int | None, parameter("Similar neighbours drawn per point.", "100")] = None,
    n_dissimilar: Annotated[int | None, parameter("Dissimilar neighbours drawn per point.", "100")] = None,
    start: Annotated[str | None, parameter("auto, random (the paper's) or projection.", "auto")] = None,
    n_features: Annotated[
        float | None, parameter("Features per bit under f: a fraction, or a number above 1.", "0.5")
    ] = None,
    mac: Annotated[
        bool | None, Option("--mac", help="Alternate z-step and classifier (auxiliary coordinates).")
    ] = None,
    unlabeled: option.Unlabeled = None,
    random_state: option.RandomState = None,
    n_jobs: option.NJobs = None,
    dask: Annotated[str | None, Option(help="Train over the dask scheduler at tcp://host:port.")] = None,
    checkpoint: Annotated[
        Path | None, Option(help="Directory for finished bits: a killed run goes on from there.")
    ] = None,
    settings: option.Settings = None,
    hold_out: Annotated[int, Option(help="Points that no bit is trained on, for `ilhash prune` to judge by.")] = 0,
    hold_out_classes: Annotated[int, Option(help="Classes that no bit is trained on, drawn at random.")] = 0,
    n_report: option.NReport = None,
    force: option.Force = False,
) -> None:
    """Train a model on vectors and labels, pairs or a graph (without any: Euclidean neighbours)."""
    from ilhash.parallel import connect

    model = make_model(method, option.given(locals()))
    held_out = None
    if hold_out or hold_out_classes:
        held_out = ilhash.HoldOut(hold_out or None, classes=hold_out_classes, n_report=n_report)
    check_new_directory("--output", output, force=force)
    refuse_labels_among_features(vectors, labels)
    by_name, left_out = read_own_columns(vectors, labels, labels_column, ids_column)
    supervision = read_supervision(labels, pairs, affinity) | by_name
    X, own = read_supervised(vectors, left_out)
    supervision = supervision or own
    if held_out is not None:
        if supervision.get("y") is None:
            raise ValueError("--hold-out must be given with --labels, got none: labels tell how well points are found")
        supervision["y"] = held_out.labels(supervision["y"], getattr(model, "unlabeled", -1))
    with Timer() as took, kept(checkpoint, "finished bits"):
        with nullcontext() if dask is None else connect(dask) as client, progress("training", "bits") as move:
            model.fit(X, **supervision, progress=move, client=client, checkpoint=checkpoint)
        model.leave_out(left_out)
        model.save(output)
    trained_on = f"{len(X):,} vectors of {X.shape[1]} dimensions"
    tell(f"trained {len(model.functions_)} bits on {trained_on} in {took}; model in {output}")
