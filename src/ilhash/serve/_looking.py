"""What a person looks at: items, bits, and how good the codes are by labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash.evaluation import PrecisionBitByBit
from ilhash.serve._pictures import Shown
from ilhash.serve._searching import CURRENT, NotThereError, refuse_missing
from ilhash.serve._state import Other, State
from ilhash.vectors import nearest_rows

SAMPLE = 5_000  # items that statistics are taken over
QUERIES = 300
MOST_LABELS = 50  # that shares are told of
NEAREST = 3

Document = dict[str, Any]


def item_documents(state: State, pictures: Shown | None, ids: list[Any], *, margins: bool = False) -> list[Document]:
    """Return what is known of items."""
    refuse_missing(state, ids)
    if not ids:
        return []
    rows = state.items.rows(ids).tolist()
    codes = packed.to_hex(state.view.codes(ids), state.n_bits)
    own: list[Any] = [None] * len(ids)
    if margins and state.has_vectors:
        places = np.flatnonzero(state.items.with_vectors(np.array(rows, np.int64)))
        if len(places):
            found = state.model.decision_function(state.items.vectors(np.array(rows, np.int64)[places])).tolist()
            for place, each in zip(places.tolist(), found, strict=True):
                own[place] = each
    return [
        {
            "id": name,
            "label": state.items.label(row),
            "text": state.items.text(row),
            "picture": None if pictures is None else pictures.address(name),
            "code": code,
            "margins": each,
        }
        for name, row, code, each in zip(ids, rows, codes, own, strict=True)
    ]


def random_ids(state: State, n: int, seed: int) -> list[Any]:
    """Return some ids, which follow from the seed."""
    ids = state.view.ids
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(ids), min(n, len(ids)), replace=False) if len(ids) else np.zeros(0, np.int64)
    return list(ids[chosen].tolist())


def ids_after(state: State, after: Any, limit: int) -> tuple[list[Any], bool]:
    """Return ids that follow one in ascending order, and whether there are more behind them."""
    ids = state.view.ids
    first = 0 if after is None else int(np.searchsorted(ids, after, side="right"))
    return ids[first : first + limit].tolist(), first + limit < len(ids)


# ------------------------------------------------------------------------------------------------ bits


def _sample(state: State, seed: int = 0, n: int = SAMPLE) -> list[Any]:
    ids = state.view.ids
    if len(ids) <= n:
        return list(ids.tolist())
    return list(ids[np.sort(np.random.default_rng(seed).choice(len(ids), n, replace=False))].tolist())


def _bits(state: State, ids: list[Any]) -> NDArray[np.bool_]:
    return packed.unpack(state.view.codes(ids), state.n_bits) if ids else np.zeros((0, state.n_bits), np.bool_)


def all_bits(state: State) -> Document:
    """Return what each bit does, over a sample of items."""
    ids = _sample(state)
    bits = _bits(state, ids)
    labels = _labels(state, ids)
    centred = bits - bits.mean(axis=0) if len(bits) else np.zeros(bits.shape)
    spread = np.sqrt((centred**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num((centred.T @ centred) / np.outer(spread, spread))
    np.fill_diagonal(correlation, 0.0)
    nearest = np.argsort(-np.abs(correlation), axis=1, kind="stable")[:, :NEAREST]
    generations = [one.generation for one in state.model.provenance()]
    documents = [
        {
            "bit": bit,
            "balance": float(bits[:, bit].mean()) if len(bits) else None,
            "generation": int(generations[bit]),
            "split": _split(bits[:, bit], labels),
            "nearest": [
                {"bit": int(other), "correlation": round(float(correlation[bit, other]), 4)}
                for other in nearest[bit]
                if other != bit
            ],
        }
        for bit in range(state.n_bits)
    ]
    return {"bits": documents, "sample": len(ids)}


def _labels(state: State, ids: list[Any]) -> list[Any]:
    return [state.items.label(row) for row in state.items.rows(ids).tolist()]


def label_names(state: State) -> list[Any] | None:
    """Return the labels of a sample of items, the most frequent ones, in their order; None where there are none."""
    if not state.items.has_labels:
        return None
    counts: dict[Any, int] = {}
    for label in _labels(state, _sample(state)):
        if label is not None:
            counts[label] = counts.get(label, 0) + 1
    names = sorted(counts, key=lambda one: -counts[one])[:MOST_LABELS]
    return sorted(names, key=lambda one: (isinstance(one, str), one)) or None


def _split(bit: NDArray[np.bool_], labels: list[Any]) -> dict[str, float] | None:
    """Return, for each label, the share of its items whose bit is 1."""
    members: dict[Any, list[int]] = {}
    for place, label in enumerate(labels):
        if label is not None:
            members.setdefault(label, []).append(place)
    if not members:
        return None
    names = sorted(members, key=lambda one: -len(members[one]))[:MOST_LABELS]
    names.sort(key=lambda one: (isinstance(one, str), one))
    return {str(name): round(float(bit[members[name]].mean()), 4) for name in names}


def one_bit(state: State, pictures: Shown | None, bit: int, limit: int) -> Document:
    """Return what one bit does, and the items that it is surest of on both sides."""
    if not 0 <= bit < state.n_bits:
        raise NotThereError(f"bit must be from 0 to {state.n_bits - 1}, got {bit}")
    ids = _sample(state)
    bits = _bits(state, ids)[:, bit]
    sides: list[list[Any]] = [[], []]
    if state.has_vectors and ids:
        margins = state.model[[bit]].decision_function(state.vectors_of(ids))[:, 0]
        order = np.argsort(margins, kind="stable")
        zeros = [ids[place] for place in order[:limit] if margins[place] <= 0]
        ones = [ids[place] for place in order[::-1][:limit] if margins[place] > 0]
        sides = [zeros, ones]
    return {
        "bit": bit,
        "balance": float(bits.mean()) if len(bits) else None,
        "split": _split(bits, _labels(state, ids)),
        "surest_zero": item_documents(state, pictures, sides[0]),
        "surest_one": item_documents(state, pictures, sides[1]),
    }


def compared(state: State, one: Any, other: Any) -> Document:
    """Return in which bits two items differ, and their margins where there are vectors."""
    refuse_missing(state, [one, other])
    bits = _bits(state, [one, other])
    margins: list[Any] = [None, None]
    if state.has_vectors:
        margins = state.model.decision_function(state.vectors_of([one, other])).tolist()
    return {"margins": margins[0], "other": margins[1], "differ": np.flatnonzero(bits[0] != bits[1]).tolist()}


# ------------------------------------------------------------------------------------------------ precision


def precision(state: State, others: dict[str, Other], model: str, k: int) -> Document:
    """Return precision at k of the first bits of a code, by labels, over samples of items and queries."""
    ids = [name for name, label in zip(*_labelled(state), strict=True) if label is not None]
    labels = _labels(state, ids)
    if len(ids) <= k:
        raise ValueError(f"k must be below the number of items with labels ({len(ids)} in the sample), got {k}")
    numbers: dict[Any, int] = {}
    y = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    queries = np.sort(np.random.default_rng(1).permutation(len(ids))[: min(QUERIES, len(ids) // 2)])
    base = np.setdiff1d(np.arange(len(ids)), queries)
    if len(base) < k or not len(queries):
        raise ValueError(f"k must be at most the {len(base)} labelled items of the base, got {k}")
    bits = _bits_by(state, others, model, ids)
    relevant = y[queries][:, None] == y[base][None, :]
    grown, at, values = PrecisionBitByBit(relevant, k), _marks(bits.shape[1]), []
    for bit in range(bits.shape[1]):
        grown.add(bits[base, bit], bits[queries, bit])
        if bit + 1 in at:
            values.append(round(grown.value, 5))
    best = None
    if state.has_vectors:
        vectors = state.vectors_of(ids)
        near = nearest_rows(vectors[base], vectors[queries], k)
        best = round(float(np.take_along_axis(relevant, near, 1).mean()), 5)
    return {"n_bits": at, "precision": values, "vectors": best, "queries": len(queries), "base": len(base), "k": k}


def _labelled(state: State) -> tuple[list[Any], list[Any]]:
    if not state.items.has_labels:
        raise ValueError("items must have labels for precision, got a service without")
    ids = _sample(state)
    return ids, _labels(state, ids)


def _marks(n_bits: int) -> list[int]:
    """Return the numbers of bits at which a curve has points: all where they are few."""
    if n_bits <= 64:
        return list(range(1, n_bits + 1))
    return sorted({*np.unique(np.rint(np.geomspace(1, n_bits, 64)).astype(int)).tolist(), n_bits})


def _bits_by(state: State, others: dict[str, Other], model: str, ids: list[Any]) -> NDArray[np.bool_]:
    if model in others:
        other = others[model]
        return packed.unpack(other.index(state).codes(ids), len(other.model.functions_))
    if model in (CURRENT, state.name):
        return _bits(state, ids)
    if model not in state.before:
        raise NotThereError(f"model must be one of {', '.join([CURRENT, *state.before, *others])}, got {model!r}")
    return _bits(state, ids)[:, : state.before[model]]
