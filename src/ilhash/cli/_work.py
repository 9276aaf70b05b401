"""What the commands do."""

from __future__ import annotations

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ilhash import datasets
from ilhash.cli._screen import progress, say

__all__ = [
    "encode",
    "encode_to_shards",
    "fit",
    "held_out",
    "info",
    "list_datasets",
    "list_methods",
    "make_digits",
    "make_model",
    "read_vectors",
]


def make_model(method: str, parameters: dict[str, Any]) -> Any:
    """Return an ILH, another method, or a mix of them, with these parameters."""
    parts = [part.strip().partition(":") for part in method.split("+")]
    if len(parts) == 1 and not parts[0][1]:
        return _one_model(method, parameters)
    from ilhash import Mix

    if "n_bits" in parameters:
        raise ValueError(
            f"--bits must stand in --method for a mix, as in ilh:64+itq:64, got {parameters['n_bits']} too"
        )
    shared = dict.fromkeys(parameters, 0)
    models = []
    for name, colon, bits in parts:
        known = _kind(name)().get_params()
        own = {parameter: value for parameter, value in parameters.items() if parameter in known}
        shared = {parameter: uses + (parameter in own) for parameter, uses in shared.items()}
        models.append(_one_model(name, own | ({"n_bits": _bits(method, bits)} if colon else {})))
    unused = [parameter for parameter, uses in shared.items() if uses == 0]
    if unused:
        raise ValueError(f"parameters of {method} must be known to one of its methods, got {', '.join(unused)}")
    return Mix(models)


def _kind(method: str) -> Any:
    from ilhash import ILH, methods

    return ILH if method.upper() == "ILH" else methods.get(method)


def _bits(method: str, text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"--method must be like ilh:64+itq:64, names and numbers of bits, got {method!r}")
    return int(text)


def _one_model(method: str, parameters: dict[str, Any]) -> Any:
    kind = _kind(method)
    known = kind().get_params()
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValueError(
            f"parameters of {kind.__name__} must be among {', '.join(sorted(known))}, got {', '.join(unknown)}"
        )
    return kind(**parameters)


def held_out(n_points: int, n_classes: int) -> Any:
    """Return what is kept from training, or None for nothing."""
    from ilhash import HoldOut

    if n_points == 0 and n_classes == 0:
        return None
    return HoldOut(n_points or None, classes=n_classes)


def fit(
    vectors: str,
    output: Path,
    *,
    model: Any,
    labels: str | None,
    pairs: str | None,
    affinity: Path | None,
    force: bool,
    held_out: Any = None,
    dask: str | None = None,
    checkpoint: Path | None = None,
) -> None:
    """Train and save a model."""
    from ilhash import ILH, Mix

    name = type(model).__name__
    if not isinstance(model, ILH) and (dask is not None or checkpoint is not None):
        raise ValueError(f"--dask and --checkpoint must be given with ILH, whose bits are trained alone, got {name}")
    if not isinstance(model, ILH) and (pairs is not None or affinity is not None):
        raise ValueError(f"{name} must be given labels, or nothing but vectors, got --pairs or --affinity")
    if output.exists() and not force:
        raise ValueError(f"--output must be a new directory, got {output}, which exists; --force replaces a model")
    X, y = read_vectors(vectors)
    supervision = _supervision(y, labels, pairs, affinity)
    if held_out is not None:
        if supervision.get("y") is None:
            raise ValueError("--hold-out must be given with --labels, got none: labels tell how well points are found")
        supervision["y"] = held_out.labels(supervision["y"], getattr(model, "unlabeled", -1))
    begin = time.perf_counter()
    if isinstance(model, ILH):
        with _client(dask) as client, progress("training", "bits") as move:
            model.fit(X, progress=move, client=client, checkpoint=checkpoint, **supervision)
    elif isinstance(model, Mix):
        with progress("training", "bits") as move:
            model.fit(X, progress=move, **supervision)
    else:
        model.fit(X, **supervision)
    model.save(output)
    seconds = time.perf_counter() - begin
    say.print(
        f"trained {len(model.functions_)} bits on {len(X):,} vectors of {X.shape[1]} dimensions in {seconds:.1f} s; "
        f"model in {output}",
        highlight=False,
        soft_wrap=True,
    )


def _supervision(y: Any, labels: str | None, pairs: str | None, affinity: Path | None) -> dict[str, Any]:
    """Read what was given; more than one kind is left for ``fit`` to refuse."""
    given: dict[str, Any] = {}
    if labels is not None:
        given["y"] = datasets.read_vector(labels)
    if pairs is not None:
        given["pairs"] = datasets.read_matrix(pairs)
    if affinity is not None:
        given["affinity"] = _sparse(affinity)
    return given or {"y": y}


def _client(address: str | None) -> Any:
    from ilhash.parallel import connect

    return nullcontext() if address is None else connect(address)


def read_vectors(source: str) -> tuple[Any, Any]:
    """Open a file or a directory of files, or read a dataset by name together with its labels."""
    known = {entry.name for entry in datasets.available()}
    if source in known and not Path(source).exists():
        with progress("reading", "vectors") as move:
            dataset = datasets.load(source, progress=move)
        return dataset.X, dataset.y
    return datasets.open_vectors(source), None


def _sparse(path: Path) -> Any:
    import scipy.sparse

    try:
        return scipy.sparse.load_npz(path)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"--affinity must be a file of scipy.sparse.save_npz, got {path}: {error}") from None


def encode(model_path: Path, vectors: str, output: Path, *, force: bool) -> None:
    """Write codes in blocks; the file appears under its name when it is complete."""
    import ilhash

    if output.exists() and not force:
        raise ValueError(f"--output must be a new file, got {output}, which exists; --force replaces it")
    model = ilhash.load(model_path)
    X = model._input(read_vectors(vectors)[0])
    n_bits = len(model.functions_)
    shape = (len(X), ilhash.codes.bytes_per_code(n_bits))
    partial = output.with_name(f".{output.name}.writing")
    begin = time.perf_counter()
    try:
        codes = np.lib.format.open_memmap(partial, mode="w+", dtype=np.uint8, shape=shape)
        with progress("encoding", "vectors") as move:
            for rows, margins in model._margins(X):
                codes[rows] = ilhash.codes.pack(margins > 0)
                move(rows.stop, len(X))
        codes.flush()
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)
    description = {
        "n_bits": n_bits,
        "layout": "uint8, most significant bit first, padding zero",
        "model": str(model_path),
    }
    output.with_name(output.name + ".json").write_text(json.dumps(description, indent=1) + "\n")
    seconds = time.perf_counter() - begin
    say.print(
        f"encoded {len(X):,} vectors as {n_bits} bits ({shape[1]} bytes) each in {seconds:.1f} s; codes in {output}",
        highlight=False,
        soft_wrap=True,
    )


def encode_to_shards(model_path: Path, vectors: str, output: Path, *, rows_per_shard: int, force: bool) -> None:
    """Write codes to a directory of shards, or go on with one."""
    import ilhash

    if output.suffix:
        raise ValueError(f"--output must be a .npy file, or a directory without a suffix, got {output}")
    if force:
        raise ValueError("--force must be given with a .npy file: a directory of shards is never replaced")
    model = ilhash.load(model_path)
    X, _ = read_vectors(vectors)
    begin = time.perf_counter()
    with progress("encoding", "vectors") as move:
        written = ilhash.write_codes(model, X, output, rows_per_shard=rows_per_shard, progress=move)
    seconds = time.perf_counter() - begin
    say.print(
        f"encoded {len(X):,} vectors as {written.n_bits} bits ({written.shape[1]} bytes) each in {seconds:.1f} s; "
        f"{len(written.names)} shards in {output}",
        highlight=False,
        soft_wrap=True,
    )


def info(path: Path) -> None:
    """Print what a model is, and a table of its bits."""
    import ilhash

    model = ilhash.load(path)
    kinds = sorted({function.kind for function in model.functions_})
    say.print(
        f"[bold]{type(model).__name__}[/] {len(model.functions_)} bits, {model.n_features_in_} features, "
        f"functions: {', '.join(kinds)}",
        highlight=False,
    )
    for family in model.families_ if isinstance(model, ilhash.Mix) else [model]:
        if family is not model:
            say.print(f"[bold]{type(family).__name__}[/] {len(family.functions_)} of the bits", highlight=False)
        _tell_training(family)


def _tell_training(model: Any) -> None:
    import ilhash

    ensemble = isinstance(model, ilhash.ILH)
    trained_on = f"diversity {model.diversity!r}, {_training_sets(model)}" if ensemble else f"{model.n_train_:,} points"
    say.print(f"{trained_on}; seed {model.seed_}", highlight=False)
    defaults = type(model)().get_params()
    changed = {name: value for name, value in model.get_params().items() if value != defaults[name]}
    say.print(f"parameters other than default: {changed or 'none'}", highlight=False, soft_wrap=True)
    if ensemble:
        _tell_bits(model.bits_)


def _tell_bits(reports: list[Any]) -> None:
    table = Table("", "mean", "least", "most", title="over bits")
    for title, values in _columns(reports).items():
        table.add_row(title, *(f"{f(values):.3g}" for f in (np.mean, np.min, np.max)))
    say.print(table)


def _training_sets(model: Any) -> str:
    text = f"{model.n_train_:,} points per bit"
    if "t" not in model.diversity:
        return f"{text}, the same for all"
    if model.sampling != "disjoint":
        return f"{text}, {model.sampling}"
    if len(model.bits_) > model.n_disjoint_:
        return f"{text}, {model.n_disjoint_} disjoint sets, then a fresh permutation"
    return f"{text}, all disjoint"


def _columns(reports: list[Any]) -> dict[str, list[float]]:
    return {
        "sweeps of the z-step": [report.sweeps for report in reports],
        "blocks": [report.n_blocks for report in reports],
        "share of +1": [report.balance for report in reports],
        "training accuracy": [report.accuracy for report in reports],
        "milliseconds": [1e3 * sum(report.seconds.values()) for report in reports],
    }


def list_datasets() -> None:
    """Print a table of the datasets."""
    table = Table("name", "vectors", "dim.", "labels", "here", "what", "licence")
    table.columns[0].no_wrap = True
    for entry in datasets.available():
        table.add_row(
            entry.name,
            "endless" if entry.n_rows is None else f"{entry.n_rows:,}",
            f"{entry.n_features:,}",
            "yes" if entry.labelled else "no",
            "yes" if entry.present else "no",
            entry.description,
            entry.licence,
        )
    say.print(table)
    say.print(
        f"looked for in {datasets.data_home()} (the environment variable ILHASH_DATA names another folder)",
        soft_wrap=True,
    )


def make_digits(output: Path, n: int, start: int, *, source: str, part: str, seed: int, n_threads: int) -> None:
    """Write a slice of the infinite digits."""
    digits = datasets.InfiniteDigits(source, part=part, seed=seed)
    begin = time.perf_counter()
    with progress("making", "images") as move:
        digits.write(output, n, start, n_threads=n_threads, progress=move)
    seconds = time.perf_counter() - begin
    rows, columns = digits.image_shape
    say.print(
        f"made {n:,} images of {rows} x {columns} pixels in {seconds:.1f} s; vectors in {output / 'X.npy'}, "
        f"labels in {output / 'y.npy'}",
        highlight=False,
        soft_wrap=True,
    )


def list_methods() -> None:
    """Print a table of the methods."""
    from ilhash import methods

    table = Table("name", "labels", "what")
    table.columns[0].no_wrap = True
    table.add_row("ILH", "or not", "Independent Laplacian Hashing: every bit trained alone, different by diversity.")
    for name, line in methods.available().items():
        table.add_row(name, "yes" if methods.get(name).supervised else "no", line)
    say.print(table)
