"""``ilhash grow``: as many bits as help."""

from pathlib import Path
from typing import Annotated, Any

from rich.live import Live
from typer import Option

import ilhash
from ilhash import plots
from ilhash.cli import _options as option
from ilhash.cli._files import NumbersAndPicture, check_new_directory, read_labelled
from ilhash.cli._models import make_model
from ilhash.cli._screen import Timer, errors, plain, tell, terminal_curve


def grow(
    vectors: option.Vectors,
    output: option.ModelOutput,
    labels: option.Labels = None,
    max_bits: Annotated[int, Option(help="Stop here at the latest.")] = 256,
    k: option.PrecisionAt = 100,
    patience: Annotated[int, Option(help="Bits without a gain after which to stop.")] = 32,
    tolerance: Annotated[float, Option(help="What counts as a gain of precision.")] = 0.002,
    n_queries: option.NQueries = None,
    n_base: option.NBase = 20_000,
    n_report: option.NReport = None,
    hold_out_seed: option.HoldOutSeed = 0,
    step: Annotated[int | None, Option(help="Bits trained at a time; default as many as workers.")] = None,
    model: Annotated[Path | None, Option(help="Grow this model further; it was grown with the same data.")] = None,
    diversity: option.Diversity = None,
    n_train: option.NTrain = None,
    hash_function: option.HashFunction = None,
    C: option.C = None,
    unlabeled: option.Unlabeled = None,
    random_state: option.RandomState = None,
    settings: option.Settings = None,
    n_jobs: option.NJobs = None,
    plot: option.BitsCurve = None,
    json_path: option.BitsNumbers = None,
    pool: Annotated[Path | None, Option(help="Directory for all trained bits, to `ilhash prune` from.")] = None,
    force: option.Force = False,
) -> None:
    """Train bits until precision on held-out points stops rising, and keep as many as helped.

    The options from --diversity to --set are for training from scratch; with --model they stand in the model.
    """
    check_new_directory("--output", output, force=force)
    check_new_directory("--pool", pool, force=force)
    written = NumbersAndPicture(json_path, plot, force=force)
    parameters = option.given({**locals(), "n_jobs": None})
    ensemble = make_model("ILH", parameters) if model is None else _load(model, parameters)
    if n_jobs is not None:  # no word on what is trained, so that a model that grows further may have another
        ensemble.set_params(n_jobs=n_jobs)
    X, y = read_labelled(vectors, labels)
    live = Live(console=errors, refresh_per_second=4, transient=True, auto_refresh=errors.is_terminal)
    with Timer() as took, live:
        growth = ilhash.grow(
            ensemble,
            X,
            y,
            max_bits=max_bits,
            k=k,
            patience=patience,
            tolerance=tolerance,
            held_out=ilhash.HoldOut(n_queries, n_base, seed=hold_out_seed, n_report=n_report),
            step=step,
            progress=lambda curve: live.update(terminal_curve(curve, max_bits)),
        )
    growth.model.save(output)
    if pool is not None:
        growth.pool.save(pool)
    note = f"precision@{k} of held-out points"
    title = f"{note}: {growth.n_bits} bits"
    rule = {name: getattr(growth, name) for name in ("n_bits", "stopped", "k", "patience", "tolerance")}
    curves = {"points that chose": growth.curve}
    if growth.report is not None:
        curves["points that chose nothing"] = growth.report
    numbers = {"curve": growth.curve.tolist(), "report": None if growth.report is None else growth.report.tolist()}
    written.write(rule | numbers, lambda: plots.bits_curve(curves, growth.n_bits, title))
    plain.print(terminal_curve(growth.curve, len(growth.curve)))
    why = "more bits stopped helping" if growth.stopped else f"the limit of {max_bits} was reached"
    worth = "" if growth.report is None else f"{growth.report[growth.n_bits - 1]:.4f} of points that chose nothing, "
    tell(
        f"precision@{k} with {growth.n_bits} bits: {worth}{growth.curve[growth.n_bits - 1]:.4f} of those that chose, "
        f"{growth.curve.max():.4f} at most in {len(growth.curve)} ({why}), {took}; model in {output}"
    )


def _load(path: Path, parameters: dict[str, Any]) -> Any:
    if parameters:
        names = ", ".join(parameters)
        raise ValueError(f"parameters of ILH must not be given with --model, whose own are fixed, got {names}")
    model = ilhash.load(path)
    if not isinstance(model, ilhash.ILH):
        raise ValueError(f"--model must be an ILH, whose bits are trained one by one, got {type(model).__name__}")
    return model
