"""Vectors to codes in files, and back: ``write_codes`` and ``open_codes``, for a .npy file or a directory of shards.

A .npy file has a .json beside it that says how many bits the codes have, sealed; there are both or neither.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ilhash import codes
from ilhash._checks import check_count, check_encoder
from ilhash._fingerprints import bits_of
from ilhash._ids import as_ids
from ilhash.encoding._known import Continued
from ilhash.encoding._names import StoredIds, ids_as_bytes
from ilhash.encoding._shards import IDS, Witness, open_shards, write_shards
from ilhash.encoding._stored import LAYOUT, MOST_BITS, SHA256, Codes, Shard, StoredCodes, damaged, read_bits
from ilhash.storage import Record, Sealed, npy_header, parse_json, read_file, sha256_of, write_file, write_files
from ilhash.vectors import as_matrix, column, fingerprint, without_columns
from ilhash.vectors.io import open_vectors

ROWS_PER_SHARD = 1_000_000
DESCRIPTION = Sealed("codes.npy.json", "codes", 1, kind="codes")


def write_codes(
    model: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    ids: Any = None,
    rows_per_shard: int = ROWS_PER_SHARD,
    replace: bool = False,
    known: StoredCodes | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StoredCodes:
    """Encode vectors to a file or a directory of shards, in bounded memory.

    A .npy file appears, with a .json that states the number of bits beside it, when all is written. Shards are written
    one after the other; the same call goes on where a run that was killed ended. Files of vectors that are written
    while they are encoded are refused; of files that were written since a run that was killed, the finished shards are
    encoded again and compared.

    Parameters
    ----------
    model : a fitted model
    X : array (n, D), also a memory map, a sparse matrix or what ilhash.open_vectors gives
    path : a new .npy file; or a new directory, or one that holds shards of the same model and vectors
    ids : ids of the rows, or the column of a frame that holds them; kept beside the codes, as ``open_codes(path).ids``
    rows_per_shard : codes in every shard but the last
    replace : whether a .npy file that is there is replaced
    known : codes of these vectors by a model that has some of the bits (``open_codes``): only the others are computed
    progress : called with (rows done, rows in all)

    Returns
    -------
    StoredCodes, the codes, opened

    Examples
    --------
    >>> import ilhash, numpy as np, tempfile
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = ilhash.methods.LSH(n_bits=12).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     codes = write_codes(model, X, f"{folder}/codes", rows_per_shard=40)
    ...     len(codes), codes.n_bits, len(codes.names)
    (100, 12, 3)
    """
    check_encoder(model)
    names = column(X, ids, "ids") if isinstance(ids, str) else ids
    X = X if not isinstance(ids, str) else without_columns(X, [ids])
    model.encode_blocks(X, 0, 0)  # refuses what it could not encode before anything is written
    features = without_columns(X, getattr(model, "left_out_", ()))
    target, vectors, n_bits = Path(path), as_matrix(features, sparse=True), len(model.functions_)
    check_count("rows_per_shard", rows_per_shard)
    model = model if known is None else Continued(model, known, X)
    bits = list(bits_of(model) or ())
    named = None if names is None else ids_as_bytes(as_ids(names, len(vectors), None))

    def encode(first: int, last: int) -> Generator[Codes]:
        with closing(model.encode_blocks(X, first, last)) as encoded:
            for rows, block in encoded:
                if progress is not None:
                    progress(rows.stop, len(vectors))
                yield block

    if target.suffix == ".npy":
        if target.exists() and not (replace and target.is_file()):
            raise ValueError(f"path must be a new file, got {target}, which exists")
        witness = Witness(vectors)
        with closing(encode(0, len(vectors))) as blocks:
            store_codes(target, witness.over(blocks), len(vectors), n_bits, model.fingerprint(), bits, named)
    else:
        about = {"n_bits": n_bits, "n_rows": len(vectors), "model": model.fingerprint(), "bits": bits}
        about |= {} if named is None else {"ids": sha256_of([named])}
        write_shards(target, {**about, "vectors": fingerprint(vectors)}, encode, rows_per_shard, Witness(vectors))
        if named is not None:
            write_file(target / IDS, [named])
        if progress is not None:
            progress(len(vectors), len(vectors))
    return open_codes(target)


def open_codes(path: str | os.PathLike[str], n_bits: int | None = None) -> StoredCodes:
    """Open the codes that ``write_codes`` or ``ilhash encode`` wrote.

    Parameters
    ----------
    path : the .npy file, or the directory of shards
    n_bits : bits per code; needed only for a .npy file without a .json beside it, and compared elsewhere

    Returns
    -------
    StoredCodes, to iterate over shard after shard, or to ``read()`` all of them

    Examples
    --------
    >>> codes = open_codes("codes")  # doctest: +SKIP
    >>> index = ilhash.HammingIndex(codes.read(), n_bits=codes.n_bits)  # doctest: +SKIP
    """
    target = Path(path)
    return open_shards(target, n_bits) if target.is_dir() else _open_file(target, n_bits)


def store_codes(
    path: Path,
    blocks: Iterable[Codes],
    n_rows: int,
    n_bits: int,
    model: str | None,
    bits: Sequence[str] = (),
    ids: bytes | None = None,
) -> None:
    """Write codes and their description to a .npy file; what was there before is replaced when all is written.

    The description holds the SHA-256 of the codes, so that neither is ever taken for another's.

    Parameters
    ----------
    path : Path, the .npy file
    blocks : iterable of uint8 arrays (n, ceil(n_bits / 8)), the codes
    n_rows, n_bits : int, how many codes there are in all, and bits of each
    model : str, optional, fingerprint of the model that made them
    bits : sequence of str, optional, fingerprints of its bits
    ids : bytes, optional, what is written of ids, beside the codes
    """
    digest = hashlib.sha256()

    def content() -> Iterator[Any]:
        header = npy_header(np.uint8, (n_rows, codes.bytes_per_code(n_bits)))
        for chunk in chain[Any]([header], (block.reshape(-1).data for block in blocks)):
            digest.update(chunk)
            yield chunk

    def description() -> Iterator[bytes]:
        about = {"n_bits": n_bits, "layout": LAYOUT, "rows": n_rows, "model": model, "sha256": digest.hexdigest()}
        about |= {"bits": list(bits)} if bits else {}
        about |= {} if ids is None else {"ids": sha256_of([ids])}
        yield DESCRIPTION.to_bytes(about) + b"\n"

    named: dict[Path, Iterable[Any]] = {} if ids is None else {_ids_beside(path): [ids]}
    write_files({path: content(), **named, _beside(path): description()})
    if ids is None:
        _ids_beside(path).unlink(missing_ok=True)  # of codes that were replaced


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _ids_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.ids.npz")


def _open_file(path: Path, n_bits: int | None) -> StoredCodes:
    """Open a .npy file of codes; the number of bits is stated beside it, or given."""
    with damaged(path):
        found = open_vectors(path)
        codes.check(np.asarray(found[:0]), None, str(path))
    about = _description(_beside(path))
    stated = None if about is None else about.whole("n_bits", 1, MOST_BITS)
    if n_bits is not None and stated is not None and n_bits != stated:
        raise ValueError(f"{path} must have {n_bits} bits, got {stated} (stated in {path.name}.json)")
    bits = stated if n_bits is None else n_bits
    if bits is None:
        raise ValueError(
            f"{path} must have its number of bits stated in {path.name}.json beside it (`ilhash encode` writes it) or "
            f"given (n_bits, --bits), got neither; its rows have {found.shape[-1]} bytes"
        )
    codes.check(np.asarray(found[:0]), bits, str(path))  # the width; what is padding is looked at when it is read
    if about is not None and "rows" in about:
        about.whole("rows", len(found), len(found))
    sha256 = about.text("sha256", SHA256) if about is not None and "sha256" in about else None
    shard = Shard(path, (int(found.shape[0]), int(found.shape[1])), sha256, linked=True)
    made_by = (None, None) if about is None else (_fingerprint_of_model(about), read_bits(about, bits))
    named = about is not None and "ids" in about
    ids = StoredIds(_ids_beside(path), about.text("ids", SHA256)) if named and about is not None else None
    return StoredCodes(path, bits, [shard], *made_by, ids)


def _fingerprint_of_model(about: Record) -> str | None:
    """Return the fingerprint of the model; the first versions wrote its path."""
    model = about.document.get("model")
    return about.text("model", SHA256) if isinstance(model, str) and len(model) == 64 else None


def _description(path: Path) -> Record | None:
    """Read what is beside a file of codes, verified; the first versions did not seal it."""
    if not path.exists():
        return None
    data = read_file(Path(os.path.realpath(path)))
    about = parse_json(data, path, "the description, with n_bits, of the codes beside it")
    if {"format", "kind", DESCRIPTION.seal} & set(about):
        about = DESCRIPTION.from_bytes(data, path)
    return Record(about, str(path))
