"""What sentence-transformers has for arrays of embeddings, by the same names, without torch.

``from sentence_transformers.quantization import quantize_embeddings`` becomes ``from ilhash.ties.sentence_transformers
import quantize_embeddings``; so does ``from sentence_transformers.util import semantic_search``. Beside what is there,
``model=`` lets codes be learnt ones, and ``corpus_precision=`` lets codes be searched, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import as_array, as_numbers, check_choice, check_count, check_encoder, check_flag
from ilhash.search import HammingIndex

__all__ = ["cos_sim", "dot_score", "quantize_embeddings", "semantic_search"]

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
LEVELS = 255

Floats = NDArray[np.float64]
Found = list[list[dict[str, Any]]]


def _matrix(name: str, values: Any) -> Floats:
    array = np.atleast_2d(as_numbers(name, values))
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(f"{name} must be embeddings of one length, got shape {array.shape}")
    bad = int(np.count_nonzero(~np.isfinite(array).all(axis=1)))
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} of {len(array)} with NaN or infinity")
    return array


def quantize_embeddings(
    embeddings: Any,
    precision: str,
    ranges: Any = None,
    calibration_embeddings: Any = None,
    *,
    model: Any = None,
) -> NDArray[Any]:
    """Return embeddings in fewer bytes.

    Parameters
    ----------
    embeddings : array_like (n, D)
    precision : {"float32", "int8", "uint8", "binary", "ubinary"}
        "ubinary" are packed codes as everywhere in ilhash, "binary" the same less 128 as int8.
    ranges : array_like (2, D), optional, of "int8" and "uint8": the least and the largest value of each dimension
    calibration_embeddings : array_like (m, D), optional, whose ranges are taken where there are none; by default those
        of the embeddings. Values beyond the ranges become the least or the largest level, and never wrap around.
    model : fitted model of ilhash, optional
        What makes the bits of "binary" and "ubinary"; without, a bit is ``number > 0``.

    Returns
    -------
    array (n, D) of float32, int8 or uint8; or (n, bytes of a code) of int8 or uint8

    Examples
    --------
    >>> quantize_embeddings([[0.3, -0.2, 0.1, 0.5]], "ubinary")
    array([[176]], dtype=uint8)
    """
    check_choice("precision", precision, PRECISIONS)
    matrix = _matrix("embeddings", embeddings)
    if precision == "float32":
        return matrix.astype(np.float32)
    if precision in ("int8", "uint8"):
        if model is not None:
            raise ValueError(f"model must be left out unless precision is 'binary' or 'ubinary', got {precision!r}")
        levels = _levels(matrix, ranges, calibration_embeddings)
        return levels.astype(np.uint8) if precision == "uint8" else (levels - 128).astype(np.int8)
    margins = _margins(matrix, model)
    codes = packed.pack(margins > 0)
    return codes if precision == "ubinary" else packed.to_int8_offset(codes, margins.shape[1])


def _levels(matrix: Floats, ranges: Any, calibration: Any) -> Floats:
    """Return whole numbers from 0 to 255, as floats."""
    if ranges is None:
        sample = matrix if calibration is None else _matrix("calibration_embeddings", calibration)
        if not len(sample):
            raise ValueError("ranges must be given for no embeddings, got none")
        ranges = np.vstack([sample.min(axis=0), sample.max(axis=0)])
    least, most = _bounds(ranges, matrix.shape[1])
    steps = (most - least) / LEVELS
    scaled = np.divide(matrix - least, steps, out=np.zeros_like(matrix), where=steps > 0)
    levels: Floats = np.trunc(np.clip(scaled, 0, LEVELS))
    return levels


def _bounds(ranges: Any, width: int) -> Floats:
    bounds = _matrix("ranges", ranges)
    if bounds.shape != (2, width) or (bounds[0] > bounds[1]).any():
        raise ValueError(f"ranges must be the least and the largest of {width} numbers, got shape {bounds.shape}")
    return bounds


def _margins(matrix: Floats, model: Any) -> NDArray[np.float32]:
    if model is None:
        return matrix.astype(np.float32)
    check_encoder(model)
    margins: NDArray[np.float32] = model.decision_function(matrix)
    return margins


def cos_sim(a: Any, b: Any) -> Floats:
    """Return the cosines between two sets of vectors.

    Parameters
    ----------
    a, b : array_like (n, D) and (m, D)

    Returns
    -------
    array (n, m)

    Examples
    --------
    >>> cos_sim([[3.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]).tolist()
    [[1.0, 0.0]]
    """
    return dot_score(_unit(_matrix("a", a)), _unit(_matrix("b", b)))


def _unit(matrix: Floats) -> Floats:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    scaled: Floats = matrix / np.maximum(lengths, 1e-12)
    return scaled


def dot_score(a: Any, b: Any) -> Floats:
    """Return the dot products between two sets of vectors.

    Parameters
    ----------
    a, b : array_like (n, D) and (m, D)

    Returns
    -------
    array (n, m)

    Examples
    --------
    >>> dot_score([[3.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]).tolist()
    [[6.0, 0.0]]
    """
    first, second = _matrix("a", a), _matrix("b", b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"a and b must have as many columns, got {first.shape[1]} and {second.shape[1]}")
    product: Floats = first @ second.T
    return product


def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500_000,
    top_k: int = 10,
    score_function: Callable[[Any, Any], Any] = cos_sim,
    *,
    corpus_precision: str = "float32",
    model: Any = None,
    rescore: bool = True,
) -> Found:
    """Return what of a corpus is nearest to each query.

    Parameters
    ----------
    query_embeddings : array_like (n, D) or (D,); codes, where the corpus is codes, may be searched with codes, too
    corpus_embeddings : array_like (m, D), or codes (m, bytes) where ``corpus_precision`` says so
    query_chunk_size, corpus_chunk_size : int, how many are compared at once; of codes they are not used
    top_k : int, default 10, how many answers
    score_function : function of two matrices, default cos_sim; larger is nearer. Of codes it is not used
    corpus_precision : {"float32", "int8", "uint8", "binary", "ubinary"}, default "float32"
        With the last two the corpus are codes: "ubinary" those of ilhash, "binary" the same less 128.
    model : fitted model of ilhash, optional, which made the codes and makes those of the queries; without, the sign
    rescore : bool, default True
        Order codes by the dot product of the query's numbers with the bits, as the rescoring of sentence-transformers
        does, but among all of the corpus. False, or queries that are codes: by Hamming distance, which is the score.

    Returns
    -------
    list of list of dict, per query ``{"corpus_id": int, "score": float}``, nearest first, equal ones by corpus_id

    Examples
    --------
    >>> semantic_search([[1.0, 0.1]], [[0.0, 1.0], [1.0, 0.0]], top_k=1)[0][0]["corpus_id"]
    1
    """
    check_choice("corpus_precision", corpus_precision, PRECISIONS)
    k = check_count("top_k", top_k)
    by_numbers = check_flag("rescore", rescore)
    if not callable(score_function) or isinstance(score_function, type):
        raise TypeError(f"score_function must be a function of two matrices, got {type(score_function).__name__}")
    sizes = check_count("query_chunk_size", query_chunk_size), check_count("corpus_chunk_size", corpus_chunk_size)
    if corpus_precision in ("binary", "ubinary"):
        return _among_codes(query_embeddings, corpus_embeddings, k, corpus_precision, model, by_numbers)
    if model is not None:
        raise ValueError(f"model must be left out unless the corpus are codes, got one with {corpus_precision!r}")
    queries, corpus = _matrix("query_embeddings", query_embeddings), _matrix("corpus_embeddings", corpus_embeddings)
    found: Found = []
    for first in range(0, len(queries), sizes[0]):
        found += _nearest(queries[first : first + sizes[0]], corpus, sizes[1], k, score_function)
    return found


def _nearest(queries: Floats, corpus: Floats, size: int, k: int, score: Callable[[Any, Any], Any]) -> Found:
    """Keep the best k while the corpus passes by in parts."""
    scores, places = np.zeros((len(queries), 0)), np.zeros((len(queries), 0), np.int64)
    for first in range(0, len(corpus), size):
        part = np.asarray(score(queries, corpus[first : first + size]), float)
        here = np.broadcast_to(np.arange(first, first + part.shape[1]), part.shape)
        scores, places = np.hstack([scores, part]), np.hstack([places, here])
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        scores, places = np.take_along_axis(scores, best, 1), np.take_along_axis(places, best, 1)
    return _told(places, scores)


def _among_codes(queries: Any, corpus: Any, k: int, precision: str, model: Any, by_numbers: bool) -> Found:
    asked, there = np.atleast_2d(as_array("query_embeddings", queries)), as_array("corpus_embeddings", corpus)
    kind = np.uint8 if precision == "ubinary" else np.int8
    margins = None if asked.dtype == kind else _margins(_matrix("query_embeddings", asked), model)
    n_bits = 8 * (there.shape[-1] if there.ndim else 1) if margins is None else margins.shape[1]
    index = HammingIndex(_codes("corpus_embeddings", there, n_bits, precision), n_bits=n_bits)
    if margins is None:
        hits = index.search(_codes("query_embeddings", asked, n_bits, precision), k)
    elif not by_numbers:
        hits = index.search(packed.pack(margins > 0), k)
    else:
        hits = index.search_asymmetric(margins, k)
        # The sum over bits that are 1, of the weighted distance: both say the same of the order.
        largest = np.maximum(margins, 0).sum(axis=1, dtype=np.float64)
        return _told(hits.ids, largest[:, None] - hits.distances)
    return _told(hits.ids, hits.distances)


def _codes(name: str, codes: Any, n_bits: int, precision: str) -> NDArray[np.uint8]:
    return packed.check(codes, n_bits, name) if precision == "ubinary" else packed.from_int8_offset(codes, n_bits)


def _told(places: NDArray[Any], scores: NDArray[Any]) -> Found:
    return [
        [{"corpus_id": int(place), "score": float(score)} for place, score in zip(row, values, strict=True)]
        for row, values in zip(places, scores, strict=True)
    ]
