"""A service is made: a model, vectors or codes, and what else is known of the items, into one folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash import codes as packed
from ilhash import engines
from ilhash._checks import as_array, check_flag
from ilhash._ids import as_ids, refuse_repeated
from ilhash.feedback import Feedback
from ilhash.hasher import Hasher
from ilhash.search import HammingIndex
from ilhash.serve._item_log import ROWS, Label, Records
from ilhash.serve._items import Items
from ilhash.serve._layout import FEEDBACK, INDEX, ITEMS, MODELS, PICTURE_IDS, PICTURES, Layout, Pictures
from ilhash.storage import new_folder, write_file
from ilhash.vectors import VectorSource, as_matrix

SAMPLE = 10_000  # margins that the 8 bits of an index are to span
MOST_TEXT = 10_000  # characters of a text, and of a label
_BLOCK = 1 << 16


def make(
    path: str | os.PathLike[str],
    model: Any,
    X: Any = None,
    *,
    codes: Any = None,
    ids: Any = None,
    labels: Any = None,
    texts: Any = None,
    pictures: Any = None,
    margins: bool = False,
    engine: str | None = None,
    table: str = "ilhash",
) -> None:
    """Make the folder of a service; wholly or not at all, but for the rows of an engine elsewhere.

    Parameters
    ----------
    path : path-like, a folder that is not there yet
    model : trained model
    X : array (n, D), optional, vectors of the items, also what ilhash.open_vectors gives; they are kept, so that the
        service can learn and order by them
    codes : uint8 array (n, ceil(n_bits / 8)), optional, packed codes, instead of X: nothing can be learnt then
    ids : array_like (n,), optional, by default row numbers
    labels : array_like (n,), optional, whole numbers or texts, None where unknown
    texts : sequence of str, optional, what a page shows of each item
    pictures : array (n, h, w) or (n, h, w, 3), folder, or URL with ``{id}``, optional
        Files of a folder are found by their names without suffix. Where a vector is a picture, row by row, drawn
        pictures can be queries.
    margins : bool, default False, whether the index keeps margins, for the order by margins; needs X
    engine : str, optional, URL of another engine for the codes, as :func:`ilhash.engines.open` takes it
    table : str, default "ilhash", as there
    """
    folder = Path(path).absolute()
    if not isinstance(model, Hasher):
        raise TypeError(f"model must be a trained model of ilhash, got {type(model).__name__}")
    check_is_fitted(model)
    if (X is None) == (codes is None):
        raise ValueError(f"one of X and codes must be given, got {'both' if X is not None else 'none'}")
    if check_flag("margins", margins) and (X is None or engine is not None):
        raise ValueError("margins must be kept by an index of ours made of vectors, got an engine or codes alone")
    _check_engine(engine)
    vectors = None if X is None else as_matrix(X)
    hashed = None if codes is None else packed.check(codes, len(model.functions_))
    n = len(vectors) if vectors is not None else len(codes)
    names = np.arange(n) if ids is None else as_ids(ids, n, None)
    refuse_repeated(names)
    kind = "int" if names.dtype == np.int64 else "str"
    own_labels, own_texts = _labels(labels, n), _texts(texts, n)
    shown, arrays = _pictures(pictures, n, vectors)
    dimension = 0 if vectors is None else vectors.shape[1]
    layout = Layout(kind, dimension, margins, engine, table, shown)
    with new_folder(folder) as new:
        model.save(new / MODELS / "00001")
        parts = _parts(names, vectors, own_labels, own_texts)
        Items.create(new / ITEMS, parts if vectors is not None or own_labels or own_texts else ())
        if arrays is not None:
            np.save(new / ITEMS / PICTURES, arrays, allow_pickle=False)
            write_file(new / ITEMS / PICTURE_IDS, [json.dumps(names.tolist()).encode()])
        Feedback.open(new / FEEDBACK).close()
        with ExitStack() as stack:
            _fill(stack, new, layout, model, vectors, hashed, names)
        layout.write(new)


def _check_engine(engine: str | None) -> None:
    if engine is not None and (urlsplit(str(engine)).password or "password=" in urlsplit(str(engine)).query):
        raise ValueError(
            "engine must be a URL without a password, which a folder would keep for all to read (PostgreSQL takes "
            f"PGPASSWORD), got {engines.without_password(engine)}"
        )


def _fill(
    stack: ExitStack, new: Path, layout: Layout, model: Any, vectors: Any, hashed: Any, names: NDArray[Any]
) -> None:
    """Put the codes of all items where they are to be."""
    n_bits, kind = len(model.functions_), layout.ids
    if layout.engine is not None:
        place = stack.enter_context(
            engines.open(layout.engine, n_bits=n_bits, table=layout.table, ids=kind, model=model)
        )
        if len(place):
            raise ValueError(f"engine must be a new place, got one that holds {len(place)} items")
        for rows, new_codes, _ in _coded(model, vectors, hashed, names, margins=False):
            place.add(new_codes, names[rows])
        return
    sample = None
    if layout.margins:
        some = np.linspace(0, len(names) - 1, min(len(names), SAMPLE)).astype(np.int64)
        sample = model.decision_function(_float32(vectors, np.unique(some)))
    index = stack.enter_context(HammingIndex.open(new / INDEX, n_bits=n_bits, ids=kind, margins=sample, model=model))
    if layout.margins:
        for rows, new_codes, own in _coded(model, vectors, hashed, names, margins=True):
            index.add(new_codes, names[rows], margins=own)
    else:
        index.add_blocks((new_codes for _, new_codes, _ in _coded(model, vectors, hashed, names, margins=False)), names)


def _coded(
    model: Any, vectors: Any, hashed: Any, names: NDArray[Any], *, margins: bool
) -> Iterator[tuple[slice, NDArray[np.uint8], NDArray[np.float32] | None]]:
    """Give rows, codes and margins, of the vectors as they are kept."""
    for first in range(0, len(names), _BLOCK):
        rows = slice(first, min(first + _BLOCK, len(names)))
        if hashed is not None:
            yield rows, np.asarray(hashed[rows]), None
        elif margins:
            own = model.decision_function(_float32(vectors, rows))
            yield rows, packed.pack(own > 0), own
        else:
            yield rows, model.transform(_float32(vectors, rows)), None


def _float32(vectors: Any, rows: Any) -> NDArray[np.float32]:
    some = vectors.take(rows) if isinstance(vectors, VectorSource) and not isinstance(rows, slice) else vectors[rows]
    found = np.asarray(some, np.float32)
    if not np.isfinite(found).all():
        raise ValueError("X must be finite in single precision, got NaN, infinity or numbers beyond it")
    return found


def _parts(
    names: NDArray[Any], vectors: Any, labels: list[Label] | None, texts: list[str | None] | None
) -> Iterator[Records]:
    for first in range(0, len(names), ROWS):
        rows = slice(first, min(first + ROWS, len(names)))
        some = None if vectors is None else _float32(vectors, rows)
        yield Records(names[rows].tolist(), some, labels and labels[rows], texts and texts[rows])


def _labels(labels: Any, n: int) -> list[Label] | None:
    if labels is None:
        return None
    values = _one_each("labels", labels, n)
    values = [int(one) if isinstance(one, float) and one.is_integer() else one for one in values]
    wrong = sum(not (one is None or _is_label(one)) for one in values)
    if wrong:
        raise ValueError(f"labels must be whole numbers, texts or None, got {wrong} of {n} others")
    return values


def _is_label(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < 2**53
    return isinstance(value, str) and len(value) <= MOST_TEXT


def _texts(texts: Any, n: int) -> list[str | None] | None:
    if texts is None:
        return None
    values = _one_each("texts", texts, n)
    wrong = sum(not (one is None or (isinstance(one, str) and len(one) <= MOST_TEXT)) for one in values)
    if wrong:
        raise ValueError(f"texts must be texts of at most {MOST_TEXT} characters or None, got {wrong} of {n} others")
    return values


def _one_each(name: str, values: Any, n: int) -> list[Any]:
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__len__") or np.ndim(as_array(name, values)) != 1:
        raise ValueError(f"{name} must be a sequence of one per item ({n}), got {type(values).__name__}")
    if len(values) != n:
        raise ValueError(f"{name} must be one per item ({n}), got {len(values)}")
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _pictures(pictures: Any, n: int, vectors: Any) -> tuple[Pictures | None, NDArray[Any] | None]:
    """Return what the pictures are, and arrays of them."""
    if pictures is None:
        return None, None
    if isinstance(pictures, str) and pictures.startswith(("http://", "https://")):
        if "{id}" not in pictures or any(letter in pictures for letter in " ;,'\"") or not urlsplit(pictures).netloc:
            raise ValueError(f"pictures must be a URL with {{id}} in it, without spaces and quotes, got {pictures!r}")
        return Pictures("url", pictures), None
    if isinstance(pictures, str | os.PathLike):
        if not Path(pictures).is_dir():
            raise ValueError(f"pictures must be arrays, a folder that exists or a URL with {{id}}, got {pictures}")
        return Pictures("folder", str(Path(pictures).absolute())), None
    arrays = np.asarray(as_array("pictures", pictures))
    fits = arrays.ndim == 3 or (arrays.ndim == 4 and arrays.shape[3] in (1, 3))
    if not fits or len(arrays) != n or arrays.dtype.kind not in "buif" or 0 in arrays.shape:
        raise ValueError(
            f"pictures must be arrays (n, h, w) or (n, h, w, 3) of {n} items, got shape {arrays.shape} {arrays.dtype}"
        )
    if max(arrays.shape[1:3]) > 2048:
        raise ValueError(f"pictures must be of at most 2048 x 2048 pixels, got shape {arrays.shape}")
    arrays = arrays.astype(np.float32) if arrays.dtype.kind == "f" else arrays
    low, high = min(0.0, float(arrays.min())), float(arrays.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError("pictures must be finite, got NaN or infinity")
    high = 255.0 if arrays.dtype == np.uint8 and high > 16 else high
    height, width, channels = *arrays.shape[1:3], arrays.shape[3] if arrays.ndim == 4 else 1
    drawable = vectors is not None and vectors.shape[1] == height * width * channels and _same(arrays, vectors)
    about = Pictures("arrays", "", height, width, channels, low, high if high > low else low + 1.0, drawable)
    return about, arrays


def _same(arrays: NDArray[Any], vectors: Any) -> bool:
    """Whether vectors are the pictures themselves; some of them tell."""
    some = np.unique(np.linspace(0, len(arrays) - 1, 20).astype(np.int64))
    return bool(np.array_equal(arrays[some].reshape(len(some), -1).astype(np.float32), _float32(vectors, some)))
