"""``ilhash encode``: packed codes of vectors, as one file or as shards."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import ilhash
from ilhash.cli._app import kept
from ilhash.cli._files import check_new_file, no_features, read_names, read_vectors
from ilhash.cli._options import IdsColumn, Model, Vectors
from ilhash.cli._screen import Timer, progress, tell


def encode(
    model: Model,
    vectors: Vectors,
    output: Annotated[Path, Option("--output", "-o", help="File for the codes, .npy; or a directory of shards.")],
    ids_column: IdsColumn = None,
    rows_per_shard: Annotated[int, Option(help="Codes in a shard of a directory.")] = 1_000_000,
    force: Annotated[bool, Option("--force", help="Replace a file that is already there.")] = False,
    known: Annotated[
        Path | None,
        Option(help="Codes of these vectors by a model before it was extended: only new bits are computed."),
    ] = None,
) -> None:
    """Write packed codes of vectors: uint8, most significant bit first.

    A .npy file gets a .json with the number of bits beside it. A directory gets shards and a manifest; the same command
    goes on where a killed one ended. Columns that were no features when the model was trained are none here; with
    --ids-column, ids are written beside the codes, where `index` and `push` find them.
    """
    one_file = output.suffix == ".npy"
    if one_file:
        check_new_file("--output", output, (".npy",), force=force)
    elif output.suffix:
        raise ValueError(f"--output must be a .npy file, or a directory without a suffix, got {output}")
    elif force:
        raise ValueError("--force must be given with a .npy file: a directory of shards is never replaced")
    loaded = ilhash.load(model)
    ids = read_names(vectors, None, ids_column)
    X, _ = read_vectors(vectors, no_features(loaded, ids_column))
    shards = nullcontext() if one_file else kept(output, "finished shards")
    with Timer() as took, shards, progress("encoding", "vectors") as move:
        before = None if known is None else ilhash.open_codes(known)
        how: dict[str, Any] = {"ids": ids, "rows_per_shard": rows_per_shard, "replace": force}
        written = ilhash.write_codes(loaded, X, output, **how, known=before, progress=move)
    what = "codes" if one_file else f"{len(written.names)} shards"
    size = f"{written.n_bits} bits ({written.shape[1]} bytes)"
    tell(f"encoded {len(X):,} vectors as {size} each in {took}; {what} in {output}")
