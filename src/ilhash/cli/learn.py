"""``ilhash learn``: bits from what users judged."""

from pathlib import Path
from typing import Annotated

import numpy as np
from typer import Argument, Option

import ilhash
from ilhash.cli import _options as option
from ilhash.cli._files import check_new_directory, no_features, read_names, read_vectors
from ilhash.cli._screen import Timer, progress, tell


def learn(
    model: Annotated[Path, Argument(help="Directory of the model.")],
    feedback: Annotated[Path, Option(help="Folder of the judgements, as ilhash.Feedback writes it.")],
    vectors: Annotated[str, Option(help="Vectors of the items, as for `ilhash fit`.")],
    output: option.ModelOutput,
    ids: Annotated[
        str | None, Option(help="Ids, one per vector: the lines of a .txt file, or what a .npy or .csv file holds.")
    ] = None,
    ids_column: option.IdsColumn = None,
    bits: Annotated[int | None, Option(help="New bits; by default as many as held-out judgements find best.")] = None,
    half_life: Annotated[float | None, Option(help="Days after which a judgement counts half.")] = None,
    name: Annotated[str, Option(help="What to call the new bits.")] = "feedback",
    random_state: Annotated[int, Option("--seed", help="Which judgements are held out together.")] = 0,
    force: option.Force = False,
) -> None:
    """Add bits that follow what users judged, if judgements held out say that this helps; else say why not.

    Without --ids and --ids-column an item's id is the number of its row, from 0 on. Where new bits do not help nothing
    is written, and the exit code is 0 all the same.
    """
    check_new_directory("--output", output, force=force)
    old = ilhash.load(model)
    X, _ = read_vectors(vectors, no_features(old, ids_column))
    names = read_names(vectors, ids, ids_column)
    own = np.arange(len(X)) if names is None else names
    if len(own) != len(X):
        raise ValueError(f"--ids must have one id per vector ({len(X)}), got {len(own)}")
    with ilhash.Feedback.open(feedback, writable=False) as log:
        if names is None and log.id_kind == "str":
            raise ValueError("--ids or --ids-column must be given, since ids of --feedback are texts, got neither")
        pairs, said = log.pairs(own, half_life=half_life), log.summary(own, half_life=half_life)
    tell(str(said))
    if not len(pairs):
        raise ValueError(f"--feedback must have judgements about items of --vectors, got none that count in {feedback}")
    with Timer() as took, progress("learning", "trials") as move:
        found = ilhash.learn(old, X, pairs, n_bits=bits, name=name, random_state=random_state, progress=move)
    if np.isfinite(found.before):
        worth = f"{found.before:.3f} with the model as it is, {found.after:.3f} with new bits ± {found.error:.3f}"
        tell(f"held-out judgements: a similar pair is nearer than a dissimilar one with probability {worth}")
    if not found.better:
        tell(f"nothing was written: {found.reason}; {took}")
        return
    found.model.save(output)
    n = len(found.model.functions_)
    given = [("--vectors", vectors), ("--ids", ids), ("--ids-column", ids_column)]
    rest = " ".join(f"{name} {value}" for name, value in given if value is not None)
    tell(
        f"learnt {found.n_new} new bits: {found.reason}; {took}; model of {n} bits in {output}\n"
        f"the first {n - found.n_new} bits are those of {model}: an index of them follows by\n"
        f"  ilhash index -o INDEX --follow {output} {rest}"
    )
