"""``ilhash prune``: the bits of a pool that retrieve best."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import ilhash
from ilhash import plots
from ilhash.cli import _options as option
from ilhash.cli._files import NumbersAndPicture, check_new_directory, read_labelled
from ilhash.cli._screen import Timer, plain, progress, tell, terminal_curve


def prune(
    model: Annotated[Path, Argument(help="Directory of the pool: a trained model of many bits.")],
    vectors: option.Vectors,
    output: option.ModelOutput,
    bits: Annotated[int, Option(help="How many bits to keep.")],
    labels: option.Labels = None,
    k: option.PrecisionAt = 100,
    n_queries: option.NQueries = None,
    n_base: option.NBase = 20_000,
    n_report: option.NReport = None,
    hold_out_classes: Annotated[
        int, Option(help="Classes that the pool was trained without (`ilhash fit --hold-out-classes`).")
    ] = 0,
    unseen_weight: Annotated[float, Option(help="Weight of the classes held out in the score, 0 to 1.")] = 0.5,
    hold_out_seed: option.HoldOutSeed = 0,
    n_threads: option.NThreads = 1,
    plot: option.BitsCurve = None,
    json_path: option.BitsNumbers = None,
    force: option.Force = False,
) -> None:
    """Keep the bits of a pool that retrieve best together on held-out points.

    The pool must have been trained without these points: by `ilhash grow --pool`, by `ilhash fit --hold-out`, or on
    other vectors.
    """
    check_new_directory("--output", output, force=force)
    written = NumbersAndPicture(json_path, plot, force=force)
    pool = ilhash.load(model)
    X, y = read_labelled(vectors, labels)
    held_out = ilhash.HoldOut(n_queries, n_base, hold_out_classes, hold_out_seed, n_report)
    with Timer() as took, progress("choosing", "bits") as move:
        pruning = ilhash.prune(
            pool, X, y, bits, k=k, held_out=held_out, unseen_weight=unseen_weight, n_threads=n_threads, progress=move
        )
    pruning.model.save(output)
    chosen = {"seen classes": pruning.seen, "unseen classes": pruning.unseen}
    reports = {"seen classes": pruning.report_seen, "unseen classes": pruning.report_unseen}
    curves = {f"{name}, choosing points": curve for name, curve in chosen.items() if curve is not None}
    curves |= {f"{name}, other points": curve for name, curve in reports.items() if curve is not None}
    note = f"precision@{k} of held-out points"
    numbers = {"chosen": pruning.chosen, "k": k} | {name: curve.tolist() for name, curve in curves.items()}
    written.write(numbers, lambda: plots.bits_curve(curves, bits, f"{note}, bits as they were chosen"))
    plain.print(terminal_curve(pruning.curve, len(pruning.curve)))
    reached = "; ".join(
        f"{how} {', '.join(f'{curve[-1]:.4f} on {name}' for name, curve in of.items() if curve is not None)}"
        for how, of in (("of points that chose nothing", reports), ("of those that chose", chosen))
        if of["seen classes"] is not None
    )
    families = getattr(pruning.model, "families_", ())
    kinds = ", ".join(f"{len(family.functions_)} of {type(family).__name__}" for family in families)
    kept = f"{bits} of {len(pool.functions_)} bits" + (f" ({kinds})" if kinds else "")
    tell(f"kept {kept}: precision@{k} {reached}; {took}; model in {output}")
