"""``ilhash push``: codes into the engine where the items are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Argument, Option

import ilhash
from ilhash.cli._files import read_ids
from ilhash.cli._options import CodeBits, Table, Url
from ilhash.cli._screen import Timer, progress, tell


def push(
    codes: Annotated[Path, Argument(help="Packed codes, a .npy file or shards (what `ilhash encode` writes).")],
    url: Url,
    bits: CodeBits = None,
    ids: Annotated[
        str | None,
        Option(
            help="Ids, one per code: lines of a .txt file, or a .npy or .csv file; default those beside the codes, or "
            "row numbers."
        ),
    ] = None,
    table: Table = "ilhash",
    update: Annotated[bool, Option("--update", help="Give items that are there these codes.")] = False,
) -> None:
    """Add codes to an engine, in blocks; the same command again goes on where a killed one ended.

    Items that are there with the same code are passed over. A place is made where there is none.
    """
    new = ilhash.open_codes(codes, bits)
    names = new.ids if ids is None else read_ids(ids)
    if names is not None and len(names) != len(new):
        raise ValueError(f"--ids must be one per code, got {len(names)} for {len(new)} codes")
    kind = "int" if names is None or names.dtype.kind in "iu" else "str"
    done = there = changed = 0
    opened = ilhash.engines.open(url, n_bits=new.n_bits, ids=kind, model=new.model, table=table)
    with Timer() as took, opened as engine, progress("pushing", "codes") as move:
        for block, own in _blocks(new, names, engine.rows_at_once):
            known, other = _push(engine, block, own, update=update)
            done, there, changed = done + len(block), there + known, changed + other
            move(done, len(new))
        holds = engine.count()
    notes = [f"{there:,} were there" if there else "", f"{changed:,} changed" if changed else ""]
    note = f" ({', '.join(filter(None, notes))})" if any(notes) else ""
    shown = ilhash.engines.without_password(url)
    tell(f"pushed {done:,} codes of {new.n_bits} bits{note} in {took}; {shown} holds {holds:,} items")


def _blocks(
    new: ilhash.encoding.StoredCodes, names: NDArray[Any] | None, size: int
) -> Iterator[tuple[NDArray[np.uint8], NDArray[Any]]]:
    """Give codes and their ids, so many at a time."""
    done = 0
    for block in new.blocks(size):
        rows = np.arange(done, done + len(block))
        yield block, rows if names is None else names[rows]
        done += len(block)


def _push(engine: ilhash.engines.Engine, codes: Any, ids: Any, *, update: bool) -> tuple[int, int]:
    """Add what is not there; return how many were there with these codes, and how many were changed."""
    known = engine.contains(ids)
    same = np.zeros(len(ids), np.bool_)
    if known.any():
        same[known] = (engine.codes(ids[known]) == codes[known]).all(axis=1)
    other = known & ~same
    if other.any() and not update:
        first = ids[other][0]
        raise ValueError(
            f"--ids must be of new items or of items with the same codes, got {other.sum()} with others, first "
            f"{first!r}; --update replaces them"
        )
    if other.any():
        engine.update(codes[other], ids[other])
    if not known.all():
        engine.add(codes[~known], ids[~known])
    return int(same.sum()), int(other.sum())
