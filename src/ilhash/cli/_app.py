"""Commands, their options, and how errors reach a person."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from ilhash.cli import _retrieval, _work
from ilhash.cli._compare import compare_command
from ilhash.cli._screen import errors, say

__all__ = ["Vectors", "app", "label", "main", "number", "setting"]

app = typer.Typer(
    name="ilhash",
    help="Learn compact binary codes from your own notion of similarity, one independent bit at a time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="Datasets that ilhash knows.", no_args_is_help=True)
app.add_typer(data, name="data")

EXPECTED = (ValueError, TypeError, OSError, ImportError)

Vectors = Annotated[
    str,
    typer.Argument(
        help="Vectors: a .npy, .npz, .csv, .parquet, .h5 or .zarr file (file::name picks one inside), a directory of "
        "such files, or a dataset's name."
    ),
]


def main() -> None:
    """Run the command line; what a person can mend is said in one sentence, with exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except EXPECTED as error:
        errors.print(f"[bold red]error:[/] {_one_line(error)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("interrupted; nothing was written")
        sys.exit(130)


def _one_line(error: BaseException) -> str:
    from rich.markup import escape

    return escape(" ".join(str(error).split()) or type(error).__name__)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    errors.print(f"[yellow]warning:[/] {_one_line(message)}", highlight=False, soft_wrap=True)


def _version(wanted: bool) -> None:
    if wanted:
        import ilhash

        say.print(f"ilhash {ilhash.__version__} (core: {ilhash.core_simd()})", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    context: typer.Context,
    vectors: Vectors,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for the model.")],
    method: Annotated[
        str, typer.Option(help="ILH, one of those that `ilhash methods` lists, or a mix such as ilh:64+itq:64.")
    ] = "ILH",
    labels: Annotated[str | None, typer.Option(help="Labels, one per vector, or an indicator matrix.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="Pairs: rows of i, j, weight (> 0 similar, < 0 dissimilar).")
    ] = None,
    affinity: Annotated[Path | None, typer.Option(help="Sparse signed matrix, .npz of scipy.sparse.save_npz.")] = None,
    bits: Annotated[int, typer.Option(help="Number of bits, the paper's b.")] = 64,
    diversity: Annotated[str, typer.Option(help="Letters of i (start), t (training sets), f (features).")] = "t",
    sampling: Annotated[str, typer.Option(help="disjoint, random or bootstrap training sets.")] = "disjoint",
    n_train: Annotated[str, typer.Option(help="Points per bit, the paper's N, or auto.")] = "auto",
    objective: Annotated[str, typer.Option(help="laplacian, ksh or bre.")] = "laplacian",
    hash_function: Annotated[str, typer.Option(help="linear or kernel.")] = "linear",
    centers: Annotated[str, typer.Option(help="common or private centres of kernel functions.")] = "common",
    c: Annotated[str, typer.Option("--C", help="Weight of the SVM's loss, or auto.")] = "auto",
    scaling: Annotated[str, typer.Option(help="columns or whole: how features are standardised.")] = "columns",
    n_similar: Annotated[int, typer.Option(help="Similar neighbours drawn per point.")] = 100,
    n_dissimilar: Annotated[int, typer.Option(help="Dissimilar neighbours drawn per point.")] = 100,
    n_features: Annotated[float, typer.Option(help="Features per bit under f: a fraction, or a number above 1.")] = 0.5,
    mac: Annotated[
        bool, typer.Option("--mac", help="Alternate z-step and classifier (auxiliary coordinates).")
    ] = False,
    unlabeled: Annotated[str, typer.Option(help="The label that means unknown, or none.")] = "-1",
    seed: Annotated[int, typer.Option(help="random_state: the same seed gives the same bytes.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Workers; -1 for all cores.")] = 1,
    dask: Annotated[str | None, typer.Option(help="Train over the dask scheduler at tcp://host:port.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Directory for finished bits: a killed run goes on from there.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any other parameter of the method, as name=value.")
    ] = None,
    hold_out: Annotated[
        int, typer.Option(help="Points that no bit is trained on, for `ilhash prune` to judge by.")
    ] = 0,
    hold_out_classes: Annotated[int, typer.Option(help="Classes that no bit is trained on, drawn at random.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is already there.")] = False,
) -> None:
    """Train a model on vectors and labels, pairs or a graph (without any: Euclidean neighbours)."""
    parameters = {
        "n_bits": bits,
        "diversity": diversity,
        "sampling": sampling,
        "n_train": n_train if n_train == "auto" else number("--n-train", n_train, int),
        "objective": objective,
        "hash_function": hash_function,
        "centers": centers,
        "C": c if c == "auto" else number("--C", c, float),
        "scaling": scaling,
        "n_similar": n_similar,
        "n_dissimilar": n_dissimilar,
        "n_features": int(n_features) if n_features > 1 else n_features,
        "mac": mac,
        "unlabeled": label(unlabeled),
        "random_state": seed,
        "n_jobs": jobs,
    }
    if method.upper() != "ILH":  # the defaults above are ILH's, other methods have their own
        given = {_PARAMETERS.get(name, name) for name in context.params if _was_given(context, name)}
        parameters = {name: value for name, value in parameters.items() if name in given}
    parameters |= dict(setting(text) for text in settings or ())
    model = _work.make_model(method, parameters)
    _work.fit(
        vectors,
        output,
        model=model,
        labels=labels,
        pairs=pairs,
        affinity=affinity,
        force=force,
        held_out=_work.held_out(hold_out, hold_out_classes),
        dask=dask,
        checkpoint=checkpoint,
    )


_PARAMETERS = {"bits": "n_bits", "c": "C", "seed": "random_state", "jobs": "n_jobs"}  # where an option's name differs


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set must be name=value, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def number(option: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{option} must be 'auto' or a number, got {text!r}") from None


def label(text: str) -> Any:
    if text == "none":
        return None
    return int(text) if text.lstrip("-").isdigit() else text


@app.command()
def encode(
    model: Annotated[Path, typer.Argument(help="Directory of the model.")],
    vectors: Vectors,
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the codes, .npy; or a directory of shards.")],
    rows_per_shard: Annotated[int, typer.Option(help="Codes in a shard of a directory.")] = 1_000_000,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
) -> None:
    """Write packed codes of vectors: uint8, most significant bit first.

    A .npy file gets a .json with the number of bits beside it. A directory gets shards and a manifest; the same command
    goes on where a killed one ended.
    """
    if output.suffix == ".npy":
        _work.encode(model, vectors, output, force=force)
    else:
        _work.encode_to_shards(model, vectors, output, rows_per_shard=rows_per_shard, force=force)


@app.command()
def info(model: Annotated[Path, typer.Argument(help="Directory of the model.")]) -> None:
    """Tell what a model is and how its bits were trained."""
    _work.info(model)


@app.command()
def index(
    codes: Annotated[Path, typer.Argument(help="Packed codes, .npy (what `ilhash encode` writes).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the index.")],
    bits: Annotated[int | None, typer.Option(help="Bits per code, where no .json beside the codes says it.")] = None,
    ids: Annotated[
        str | None, typer.Option(help="Ids, one per code: the lines of a .txt file, or what a .npy or .csv file holds.")
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Add to an index that is already there.")] = False,
) -> None:
    """Make a durable index of codes: exact search, checksums, safe against crashes."""
    _retrieval.index(codes, output, n_bits=bits, ids=ids, add=add)


@app.command()
def search(
    index: Annotated[Path, typer.Argument(help="Folder of the index.")],
    queries: Annotated[str, typer.Argument(help="Packed codes, .npy; or with --model vectors, or a dataset's name.")],
    model: Annotated[Path | None, typer.Option(help="Model that turns vectors into codes.")] = None,
    k: Annotated[int, typer.Option("-k", help="How many nearest items.")] = 10,
    radius: Annotated[int | None, typer.Option(help="All items within this distance, instead of k.")] = None,
    threads: Annotated[int, typer.Option(help="Threads; -1 for all cores.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=".npy (ids; distances beside), .npz or .json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
) -> None:
    """Find the nearest items of codes (or of vectors), exactly."""
    _retrieval.search(
        index,
        queries,
        model=model,
        k=k,
        radius=radius,
        threads=threads,
        output=output,
        as_json=as_json,
        force=force,
    )


@app.command()
def evaluate(
    codes: Annotated[Path, typer.Argument(help="Packed codes, .npy.")],
    labels: Annotated[str, typer.Option(help="Labels of the codes, one each, or an indicator matrix.")],
    queries: Annotated[Path | None, typer.Option(help="Codes of queries; without, queries are drawn.")] = None,
    query_labels: Annotated[str | None, typer.Option(help="Labels of the queries.")] = None,
    n_queries: Annotated[int, typer.Option(help="Queries that are drawn from the codes and taken out.")] = 1000,
    bits: Annotated[int | None, typer.Option(help="Bits per code, where no .json beside the codes says it.")] = None,
    k: Annotated[list[int] | None, typer.Option("-k", help="Places looked at; may be given several times.")] = None,
    radius: Annotated[int, typer.Option(help="Hamming radius.")] = 2,
    seed: Annotated[int, typer.Option(help="Of the draw of queries.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads; -1 for all cores.")] = 1,
    json_path: Annotated[Path | None, typer.Option("--json", help="File for all numbers, .json.")] = None,
    plot: Annotated[Path | None, typer.Option(help="File for a picture of the curves (.png, .pdf, .svg).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are already there.")] = False,
) -> None:
    """Measure retrieval: precision, recall and mAP, aware of ties, with bounds and a protocol hash."""
    _retrieval.evaluate(
        codes,
        labels,
        queries=queries,
        query_labels=query_labels,
        n_queries=n_queries,
        n_bits=bits,
        ks=k or [10, 100],
        radius=radius,
        seed=seed,
        threads=threads,
        json_path=json_path,
        plot=plot,
        force=force,
    )


@app.command()
def verify(index: Annotated[Path, typer.Argument(help="Folder of the index.")]) -> None:
    """Read every byte of an index and name all damages; exit code 1 if there are any."""
    if not _retrieval.verify(index):
        raise typer.Exit(1)


@app.command("methods")
def list_methods() -> None:
    """List the methods that --method of fit takes."""
    _work.list_methods()


app.command("compare")(compare_command)


@data.command("list")
def list_datasets() -> None:
    """List the datasets and whether they are here."""
    _work.list_datasets()


@data.command("make")
def make_dataset(
    name: Annotated[str, typer.Argument(help="infinite-digits: endless elastic deformations of real digits.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="New directory for X.npy, y.npy and about.json.")],
    n: Annotated[int, typer.Option("--n", help="Number of images.")],
    start: Annotated[int, typer.Option(help="Number of the first image.")] = 0,
    source: Annotated[str, typer.Option(help="What is deformed: mnist, or the bundled digits.")] = "mnist",
    part: Annotated[str, typer.Option(help="Part of the source: train, test or all.")] = "train",
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = -1,
) -> None:
    """Make a slice of an endless dataset: image i depends on the seed and i alone."""
    if name != "infinite-digits":
        raise ValueError(f"the dataset to make must be infinite-digits, got {name!r}")
    _work.make_digits(output, n, start, source=source, part=part, seed=seed, n_threads=jobs)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory for what it makes.")] = Path("demo-output"),
    bits: Annotated[int, typer.Option(help="Number of bits.")] = 64,
    seed: Annotated[int, typer.Option(help="random_state.")] = 0,
) -> None:
    """Handwritten digits: train, index in a folder, search, measure beside other searches, draw what is found."""
    from ilhash.cli import _demo

    _demo.run(output, bits, seed)
