"""``ilhash index``: codes into a durable index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

import ilhash
from ilhash.cli._files import read_ids
from ilhash.cli._options import CodeBits
from ilhash.cli._screen import Timer, errors, tell
from ilhash.storage import new_folder


def index(
    codes: Annotated[Path, Argument(help="Packed codes, a .npy file or shards (what `ilhash encode` writes).")],
    output: Annotated[Path, Option("--output", "-o", help="Folder for the index.")],
    bits: CodeBits = None,
    ids: Annotated[
        str | None, Option(help="Ids, one per code: the lines of a .txt file, or what a .npy or .csv file holds.")
    ] = None,
    add: Annotated[bool, Option("--add", help="Add to an index that is already there.")] = False,
) -> None:
    """Make a durable index of codes: exact search, checksums, safe against crashes."""
    if output.exists() and not add:
        raise ValueError(f"--output must be a new folder, got {output}, which exists; --add adds to an index")
    names = None if ids is None else read_ids(ids)
    kind = "int" if names is None or names.dtype.kind in "iu" else "str"
    with Timer() as took, errors.status("indexing"), _opened(output, codes, bits, kind, add) as (made, new):
        made.add_blocks(new, names)
        size = f"{len(made):,} items on {made.n_distinct:,} distinct codes"
    tell(f"indexed {len(new):,} codes of {new.n_bits} bits in {took}; {output} holds {size}")


@contextmanager
def _opened(
    output: Path, codes: Path, bits: int | None, ids: str, add: bool
) -> Iterator[tuple[ilhash.HammingIndex, ilhash.encoding.StoredCodes]]:
    """Give the index, which is there or appears when all went well, and the codes."""
    if add:
        with ilhash.HammingIndex.open(output) as made:
            if bits not in (None, made.n_bits):
                raise ValueError(f"--bits must be that of the index ({made.n_bits}), got {bits}")
            yield made, ilhash.open_codes(codes, made.n_bits)
    else:
        new = ilhash.open_codes(codes, bits)
        with new_folder(output) as folder, ilhash.HammingIndex.open(folder, n_bits=new.n_bits, ids=ids) as made:
            yield made, new
