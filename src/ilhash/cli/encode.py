"""``ilhash encode``: packed codes of vectors, as one file or as shards."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from typer import Option

import ilhash
from ilhash.cli._app import kept
from ilhash.cli._files import check_new_file, read_vectors
from ilhash.cli._options import Model, Vectors
from ilhash.cli._screen import Timer, progress, tell


def encode(
    model: Model,
    vectors: Vectors,
    output: Annotated[Path, Option("--output", "-o", help="File for the codes, .npy; or a directory of shards.")],
    rows_per_shard: Annotated[int, Option(help="Codes in a shard of a directory.")] = 1_000_000,
    force: Annotated[bool, Option("--force", help="Replace a file that is already there.")] = False,
    known: Annotated[
        Path | None,
        Option(help="Codes of these vectors by a model before it was extended: only new bits are computed."),
    ] = None,
) -> None:
    """Write packed codes of vectors: uint8, most significant bit first.

    A .npy file gets a .json with the number of bits beside it. A directory gets shards and a manifest; the same command
    goes on where a killed one ended.
    """
    one_file = output.suffix == ".npy"
    if one_file:
        check_new_file("--output", output, (".npy",), force=force)
    elif output.suffix:
        raise ValueError(f"--output must be a .npy file, or a directory without a suffix, got {output}")
    elif force:
        raise ValueError("--force must be given with a .npy file: a directory of shards is never replaced")
    loaded = ilhash.load(model)
    X, _ = read_vectors(vectors)
    shards = nullcontext() if one_file else kept(output, "finished shards")
    with Timer() as took, shards, progress("encoding", "vectors") as move:
        before = None if known is None else ilhash.open_codes(known)
        written = ilhash.write_codes(
            loaded, X, output, rows_per_shard=rows_per_shard, replace=force, known=before, progress=move
        )
    what = "codes" if one_file else f"{len(written.names)} shards"
    size = f"{written.n_bits} bits ({written.shape[1]} bytes)"
    tell(f"encoded {len(X):,} vectors as {size} each in {took}; {what} in {output}")
