"""``ilhash index``: codes into a durable index, and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from numpy.typing import NDArray
from typer import Argument, Option

import ilhash
from ilhash.cli._files import no_features, read_ids, read_names, read_vectors
from ilhash.cli._options import CodeBits, IdsColumn
from ilhash.cli._screen import Timer, errors, tell
from ilhash.storage import new_folder

ROWS_AT_ONCE = 1 << 20  # of codes that are read at once


def index(
    output: Annotated[Path, Option("--output", "-o", help="Folder of the index.")],
    codes: Annotated[
        Path | None, Argument(help="Packed codes, a .npy file or shards (what `ilhash encode` writes).")
    ] = None,
    bits: CodeBits = None,
    ids: Annotated[
        str | None,
        Option(
            help="Ids, one per code: the lines of a .txt file, or what a .npy or .csv file holds; default those beside "
            "the codes, or row numbers."
        ),
    ] = None,
    add: Annotated[bool, Option("--add", help="Add to an index that is already there.")] = False,
    update: Annotated[bool, Option("--update", help="Give the items of --ids these codes instead of theirs.")] = False,
    remove: Annotated[str | None, Option(help="Remove the items of these ids, a file as for --ids.")] = None,
    follow: Annotated[
        Path | None, Option(help="Give all items the bits of this model, an extended one; needs --vectors.")
    ] = None,
    vectors: Annotated[
        str | None, Option(help="Vectors of all items, in the order of the ids given, or of ascending ones.")
    ] = None,
    ids_column: IdsColumn = None,
) -> None:
    """Make a durable index of codes: exact search, checksums, safe against crashes. Or change one."""
    if follow is not None or vectors is not None:
        _refuse_beside_follow(codes, follow, vectors, remove, add=add, update=update)
        _follow(output, follow, str(vectors), ids, ids_column)
        return
    if ids_column is not None:
        raise ValueError("--ids-column must be given with --follow and --vectors: `ilhash encode` keeps ids by codes")
    names = _check(codes, output, ids, remove, add=add, update=update)
    if remove is not None:
        _remove(output, read_ids(remove))
    elif codes is not None and update:
        _update(output, codes, bits, names)
    elif codes is not None:
        _add(output, codes, bits, names, add=add)


def _check(
    codes: Path | None, output: Path, ids: str | None, remove: str | None, *, add: bool, update: bool
) -> NDArray[Any] | None:
    """Refuse options that do not go together; return the ids that were given."""
    chosen = [name for name, given in (("--add", add), ("--update", update), ("--remove", remove is not None)) if given]
    if len(chosen) > 1:
        raise ValueError(f"one of --add, --update and --remove must be given at a time, got {' and '.join(chosen)}")
    if remove is not None and (codes is not None or ids is not None):
        raise ValueError("--remove must be given without codes and without --ids, got some")
    if remove is None and codes is None:
        raise ValueError("codes must be given, a .npy file or shards, got none")
    if output.exists() and not chosen:
        raise ValueError(f"--output must be a new folder, got {output}, which exists; --add adds to an index")
    return None if ids is None else read_ids(ids)


def _refuse_beside_follow(
    codes: Path | None, follow: Path | None, vectors: str | None, remove: str | None, *, add: bool, update: bool
) -> None:
    if follow is None or vectors is None:
        raise ValueError(f"--follow and --vectors must be given together, got {'--follow' if follow else '--vectors'}")
    if codes is not None or add or update or remove is not None:
        raise ValueError("--follow must be given without codes, --add, --update and --remove, got some of them")


def _follow(output: Path, model: Any, vectors: str, ids: str | None, ids_column: str | None) -> None:
    loaded = ilhash.load(model)
    X, names = read_vectors(vectors, no_features(loaded, ids_column))[0], read_names(vectors, ids, ids_column)
    with Timer() as took, errors.status("encoding new bits"), ilhash.HammingIndex.open(output) as made:
        n_new = made.follow(loaded, X, ids=names)
        size = f"{made.n_bits} bits of {len(made):,} items"
    tell(f"encoded {n_new} new bits in {took}; {output} holds {size}")


def _add(output: Path, codes: Path, bits: int | None, names: NDArray[Any] | None, *, add: bool) -> None:
    opened = _opened(output, codes, bits) if add else _made(output, codes, bits, names)
    with Timer() as took, errors.status("indexing"), opened as (made, new):
        made.add_blocks(new.blocks(ROWS_AT_ONCE), new.ids if names is None else names)
        size = _size(made)
    tell(f"indexed {len(new):,} codes of {new.n_bits} bits in {took}; {output} holds {size}")


def _update(output: Path, codes: Path, bits: int | None, names: NDArray[Any] | None) -> None:
    with Timer() as took, errors.status("indexing"), _opened(output, codes, bits) as (made, new):
        names = new.ids if names is None else names
        if names is None:
            raise ValueError("--update must be given with --ids, the items that get other codes, got none")
        made.update(new.read(), names)
        size = _size(made)
    tell(f"updated {len(new):,} items in {took}; {output} holds {size}")


def _remove(output: Path, names: NDArray[Any]) -> None:
    with Timer() as took, errors.status("removing"), ilhash.HammingIndex.open(output) as made:
        made.remove(names)
        size = _size(made)
    tell(f"removed {len(names):,} items in {took}; {output} holds {size}")


def _size(made: ilhash.HammingIndex) -> str:
    return f"{len(made):,} items on {made.n_distinct:,} distinct codes"


@contextmanager
def _opened(
    output: Path, codes: Path, bits: int | None
) -> Iterator[tuple[ilhash.HammingIndex, ilhash.encoding.StoredCodes]]:
    """Give an index that is there, and codes of its model."""
    with ilhash.HammingIndex.open(output) as made:
        if bits not in (None, made.n_bits):
            raise ValueError(f"--bits must be that of the index ({made.n_bits}), got {bits}")
        new = ilhash.open_codes(codes, made.n_bits)
        made.check_model(new.model)
        yield made, new


@contextmanager
def _made(
    output: Path, codes: Path, bits: int | None, names: NDArray[Any] | None
) -> Iterator[tuple[ilhash.HammingIndex, ilhash.encoding.StoredCodes]]:
    """Give an index that appears when all went well, and the codes, whose model it keeps."""
    new = ilhash.open_codes(codes, bits)
    names = new.ids if names is None else names
    kind = "int" if names is None or names.dtype.kind in "iu" else "str"
    with (
        new_folder(output) as folder,
        ilhash.HammingIndex.open(folder, n_bits=new.n_bits, ids=kind, model=new) as made,
    ):
        yield made, new
