"""The commands that choose bits, ``grow`` and ``prune``: their options, and what is shown while they work."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.live import Live
from rich.text import Text

from ilhash import datasets
from ilhash.cli import _curves, _work
from ilhash.cli._app import Vectors, app, label, number, setting
from ilhash.cli._files import check_new_file, write_files
from ilhash.cli._screen import errors, plain, progress, tell

__all__ = ["grow", "prune"]

Labels = Annotated[str | None, typer.Option(help="Labels, one per vector, or an indicator matrix.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Directory for the model.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is already there.")]
K = Annotated[int, typer.Option("-k", help="Nearest points that precision looks at.")]
Queries = Annotated[int | None, typer.Option(help="Points held out to judge by; default 500, or a fifth of few.")]
Base = Annotated[int, typer.Option(help="Points that are searched when bits are judged, at most.")]
HoldOutSeed = Annotated[int, typer.Option(help="Which points are held out.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Workers; -1 for all cores.")]
Plot = Annotated[Path | None, typer.Option(help="File for a picture of the curve (.png, .pdf, .svg).")]
Numbers = Annotated[Path | None, typer.Option("--json", help="File for the curve and the choice, .json.")]
Unlabeled = Annotated[str, typer.Option(help="The label that means unknown, or none.")]


@app.command()
def grow(
    vectors: Vectors,
    output: Output,
    labels: Labels = None,
    max_bits: Annotated[int, typer.Option(help="Stop here at the latest.")] = 256,
    k: K = 100,
    patience: Annotated[int, typer.Option(help="Bits without a gain after which to stop.")] = 32,
    tolerance: Annotated[float, typer.Option(help="What counts as a gain of precision.")] = 0.002,
    queries: Queries = None,
    base: Base = 20_000,
    hold_out_seed: HoldOutSeed = 0,
    step: Annotated[int | None, typer.Option(help="Bits trained at a time; default as many as workers.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Grow this model further; it was grown with the same data.")
    ] = None,
    diversity: Annotated[str, typer.Option(help="Letters of i (start), t (training sets), f (features).")] = "t",
    n_train: Annotated[str, typer.Option(help="Points per bit, the paper's N, or auto.")] = "auto",
    hash_function: Annotated[str, typer.Option(help="linear or kernel.")] = "linear",
    c: Annotated[str, typer.Option("--C", help="Weight of the SVM's loss, or auto.")] = "auto",
    unlabeled: Unlabeled = "-1",
    seed: Annotated[int, typer.Option(help="random_state: the same seed gives the same bytes.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Any other parameter of ILH, name=value.")] = None,
    jobs: Jobs = 1,
    plot: Plot = None,
    json_path: Numbers = None,
    pool: Annotated[Path | None, typer.Option(help="Directory for all trained bits, to `ilhash prune` from.")] = None,
    force: Force = False,
) -> None:
    """Train bits until precision on held-out points stops rising, and keep as many as helped.

    The options from --diversity to --set are for training from scratch; with --model they stand in the model.
    """
    import ilhash

    directories = [("--output", output), *([("--pool", pool)] if pool else [])]
    _check_outputs(directories, plot, json_path, force)
    ensemble = _ensemble(
        model,
        settings,
        jobs,
        {
            "diversity": diversity,
            "n_train": n_train if n_train == "auto" else number("--n-train", n_train, int),
            "hash_function": hash_function,
            "C": c if c == "auto" else number("--C", c, float),
            "unlabeled": label(unlabeled),
            "random_state": seed,
        },
    )
    X, y = _labelled(vectors, labels)
    held_out = ilhash.HoldOut(queries, base, seed=hold_out_seed)
    begin = time.perf_counter()
    with Live(console=errors, refresh_per_second=4, transient=True, auto_refresh=errors.is_terminal) as live:
        growth = ilhash.grow(
            ensemble,
            X,
            y,
            max_bits=max_bits,
            k=k,
            patience=patience,
            tolerance=tolerance,
            held_out=held_out,
            step=step,
            progress=lambda curve: live.update(terminal_curve(curve, max_bits)),
        )
    seconds = time.perf_counter() - begin
    growth.model.save(output)
    if pool is not None:
        growth.pool.save(pool)
    note = f"precision@{k} of held-out points"
    _write(
        plot,
        lambda: _curves.bits_curve({note: growth.curve}, growth.n_bits, f"{note}: {growth.n_bits} bits"),
        json_path,
        {
            "n_bits": growth.n_bits,
            "stopped": growth.stopped,
            "k": k,
            "patience": patience,
            "tolerance": tolerance,
            "curve": growth.curve.tolist(),
        },
    )
    plain.print(terminal_curve(growth.curve, len(growth.curve)))
    why = "more bits stopped helping" if growth.stopped else f"the limit of {max_bits} was reached"
    tell(
        f"{note}: {growth.curve[growth.n_bits - 1]:.4f} with {growth.n_bits} bits, {growth.curve.max():.4f} at most in "
        f"{len(growth.curve)} ({why}), {seconds:.1f} s; model in {output}"
    )


@app.command()
def prune(
    model: Annotated[Path, typer.Argument(help="Directory of the pool: a trained model of many bits.")],
    vectors: Vectors,
    output: Output,
    bits: Annotated[int, typer.Option(help="How many bits to keep.")],
    labels: Labels = None,
    k: K = 100,
    queries: Queries = None,
    base: Base = 20_000,
    hold_out_classes: Annotated[
        int, typer.Option(help="Classes that the pool was trained without (`ilhash fit --hold-out-classes`).")
    ] = 0,
    unseen_weight: Annotated[float, typer.Option(help="Weight of the classes held out in the score, 0 to 1.")] = 0.5,
    hold_out_seed: HoldOutSeed = 0,
    jobs: Jobs = 1,
    plot: Plot = None,
    json_path: Numbers = None,
    force: Force = False,
) -> None:
    """Keep the bits of a pool that retrieve best together on held-out points.

    The pool must have been trained without these points: by `ilhash grow --pool`, by `ilhash fit --hold-out`, or on
    other vectors.
    """
    import ilhash

    _check_outputs([("--output", output)], plot, json_path, force)
    trained = ilhash.load(model)
    X, y = _labelled(vectors, labels)
    held_out = ilhash.HoldOut(queries, base, hold_out_classes, hold_out_seed)
    begin = time.perf_counter()
    threads = os.cpu_count() or 1 if jobs == -1 else jobs
    with progress("choosing", "bits") as move:
        pruning = ilhash.prune(
            trained, X, y, bits, k=k, held_out=held_out, unseen_weight=unseen_weight, n_threads=threads, progress=move
        )
    seconds = time.perf_counter() - begin
    pruning.model.save(output)
    parts = {"seen classes": pruning.seen} | ({} if pruning.unseen is None else {"unseen classes": pruning.unseen})
    _write(
        plot,
        lambda: _curves.bits_curve(parts, bits, f"precision@{k} of held-out points, bits as they were chosen"),
        json_path,
        {"chosen": pruning.chosen, "k": k} | {name: curve.tolist() for name, curve in parts.items()},
    )
    plain.print(terminal_curve(pruning.curve, len(pruning.curve)))
    told = ", ".join(f"{curve[-1]:.4f} on {name}" for name, curve in parts.items())
    tell(
        f"kept {bits} of {len(trained.functions_)} bits{_by_family(pruning.model)}: precision@{k} of held-out points "
        f"{told}; {seconds:.1f} s; model in {output}"
    )


# ------------------------------------------------------------------------------------------------ what they share


def terminal_curve(curve: Sequence[float] | np.ndarray[Any, Any], n_bits: int, height: int = 8) -> Text:
    """Draw a curve over 1 .. n_bits with characters, a column for each bit or for some of them."""
    values = np.asarray(curve)
    width = min(max(n_bits, 1), 64)
    at = [values[(c + 1) * n_bits // width - 1] for c in range(width) if (c + 1) * n_bits // width <= len(values)]
    low, high = float(values.min()), float(values.max())
    eighths = [round(8 * height * (0.05 + 0.95 * (v - low) / (high - low or 1.0))) for v in at]
    lines = []
    for row in reversed(range(height)):
        bar = "".join(" ▁▂▃▄▅▆▇█"[min(max(e - 8 * row, 0), 8)] for e in eighths)
        edge = f"{high:.3f}" if row == height - 1 else f"{low:.3f}" if row == 0 else ""
        lines.append(f"{edge:>6} {bar}")
    lines.append(f"{'':6} 1{f'{n_bits} bits':>{max(width - 1, 1)}}")
    return Text("\n".join(lines), no_wrap=True, overflow="crop")


def _ensemble(path: Path | None, settings: list[str] | None, jobs: int, parameters: dict[str, Any]) -> Any:
    """Return what is grown: a new ILH, or one that was saved."""
    import ilhash

    if path is None:
        return _work.make_model("ILH", {**parameters, "n_jobs": jobs, **dict(map(setting, settings or ()))})
    if settings:
        raise ValueError(f"--set must not be given with --model, whose parameters are fixed, got {settings[0]!r}")
    model = ilhash.load(path)
    if not isinstance(model, ilhash.ILH):
        raise ValueError(f"--model must be an ILH, whose bits are trained one by one, got {type(model).__name__}")
    return model.set_params(n_jobs=jobs)


def _labelled(vectors: str, labels: str | None) -> tuple[Any, Any]:
    X, y = _work.read_vectors(vectors)
    y = y if labels is None else datasets.read_vector(labels)
    if y is None:
        raise ValueError(
            f"--labels must be given: they tell which held-out points are retrieved well, got none for {vectors}"
        )
    return X, y


def _check_outputs(directories: list[tuple[str, Path]], plot: Path | None, json_path: Path | None, force: bool) -> None:
    """Refuse, before any work, what could not or should not be written after it."""
    for option, path in directories:
        if path.exists() and not force:
            raise ValueError(f"{option} must be a new directory, got {path}, which exists; --force replaces a model")
    if plot is not None:
        check_new_file("--plot", plot, _curves.PICTURES, force=force)
        _curves.figure_class()
    if json_path is not None:
        check_new_file("--json", json_path, (".json",), force=force)


def _write(plot: Path | None, figure: Any, json_path: Path | None, numbers: dict[str, Any]) -> None:
    files = {}
    if plot is not None:
        files[plot] = _curves.picture(figure(), plot.suffix)
    if json_path is not None:
        files[json_path] = json.dumps(numbers, indent=1).encode() + b"\n"
    write_files(files)
    if files:
        tell(f"written: {', '.join(map(str, files))}")


def _by_family(model: Any) -> str:
    if not hasattr(model, "families_"):
        return ""
    kinds = [f"{len(family.functions_)} of {type(family).__name__}" for family in model.families_]
    return f" ({', '.join(kinds)})"
