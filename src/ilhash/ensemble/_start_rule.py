"""Which start bits get, and whether the graph may move it: rules on the supervision alone, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import EuclideanNeighbors, Labels, SharedLabels, SparseAffinity, Supervision
from ilhash.storage import Record

FEWEST_POINTS = 200  # below it there is nothing to hold out, and directions would be noise
LARGEST_CLASS = 0.5  # share of the labelled points
MOST_SHARED = 0.4  # share of pairs of points with a common label
EDGES = 10  # similar neighbours of a judged point, on average, from which on the graph of pairs says what to cut
STARTS = ("auto", "random", "projection")


@dataclass(frozen=True)
class Rule:
    """What was decided: the kind of start, whether the z-step may move it, and why."""

    kind: str
    uses_graph: bool
    reason: str


def check_start(name: str, value: Any) -> None:
    """Refuse what is no start."""
    if isinstance(value, str):
        if value not in STARTS:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, STARTS))} or an array, got {value!r}")
    elif np.ndim(value) not in (1, 2) or not np.isin(np.asarray(value), (-1, 1)).all():
        raise ValueError(
            f"{name} must be 'auto', 'random', 'projection' or an array (n,) or (n, n_bits) of -1 and +1, got "
            f"{type(value).__name__}"
        )


def given_start(start: Any, n_points: int, n_bits: int) -> NDArray[np.int8]:
    """Return a start that the user gave as an array; refuse one that does not fit the data."""
    table = np.asarray(start).astype(np.int8)
    if len(table) != n_points or (table.ndim == 2 and table.shape[1] < n_bits):
        raise ValueError(
            f"start must have a row for each of the {n_points} points and, with columns, one for each of {n_bits} "
            f"bits, got {table.shape}"
        )
    return table


def checked_rule(record: Record) -> dict[str, Any]:
    """Return what a file says of the start, every value checked."""
    about: dict[str, Any] = {"kind": record.one_of("kind", ("random", "projection", "given"))}
    about |= {"uses_graph": record.truth("uses_graph"), "reason": record.text("reason", most=500)}
    if about["kind"] != "projection" or "directions" not in record:
        return about
    shrinkage = None if record.document.get("shrinkage") is None else record.number("shrinkage", 0.0, 1.0)
    about |= {"shrinkage": shrinkage, "scale": record.one_of("scale", ("agreement", "excess"))}
    about |= {"width": record.whole("width"), "directions": record.all_of("directions", int)}
    about["judged"] = record.whole("judged")
    return about | {name: record.number(name) for name in ("score", "principal") if name in record}


def similar_only(supervision: Supervision) -> bool:
    """Whether similar pairs are known and no dissimilar ones."""
    return isinstance(supervision, SparseAffinity) and bool((supervision.matrix.data > 0).all())


def rule_for(start: Any, supervision: Supervision, letters: str, mac: bool, n_train: int, similar: int) -> Rule:
    """Decide by the supervision.

    ``n_train`` and ``similar`` are the size of a training set and the similar neighbours that a point is to have.
    """
    if not isinstance(start, str):
        return Rule("given", True, "start is an array")
    if start == "random":
        return Rule("random", True, "start='random'")
    if start == "auto" and not similar_only(supervision):
        reason = _paper_is_best(supervision, letters, mac, n_train, similar)
        if reason:
            return Rule("random", True, reason)
    uses_graph, reason = _graph_helps(supervision)
    return Rule("projection", uses_graph or mac, reason)


def _paper_is_best(supervision: Supervision, letters: str, mac: bool, n_train: int, similar: int) -> str:
    """Return why bits should begin as in the paper, empty where they should not."""
    if not letters:
        return "no diversity is wanted"
    if mac:
        return "z-step and classifier alternate"
    drawable = supervision.drawable
    n_judged = supervision.n_points if drawable is None else len(drawable)
    if n_judged < FEWEST_POINTS:
        return f"fewer than {FEWEST_POINTS} points are judged"
    if isinstance(supervision, Labels) and 2 * n_judged >= supervision.n_points:
        shares = _class_shares(supervision)
        if shares.max() <= LARGEST_CLASS and shares.min() * n_train > similar:
            return f"{len(shares)} classes, each with more than {similar} points in a training set"
    return ""


def _graph_helps(supervision: Supervision) -> tuple[bool, str]:
    """Return whether the z-step may move a projected start, and why."""
    if isinstance(supervision, EuclideanNeighbors):
        return False, "no supervision: principal directions, which neighbours would pull together"
    if isinstance(supervision, SparseAffinity):
        judged = np.count_nonzero(np.diff(supervision.matrix.indptr))
        per_point = np.count_nonzero(supervision.matrix.data > 0) / max(int(judged), 1)
        if similar_only(supervision):
            return False, "similar pairs alone: they say where to look, not what to cut"
        if per_point < EDGES:
            return (
                False,
                f"{per_point:.1f} similar neighbours per judged point: too few to say what to cut",
            )
        return True, f"{per_point:.1f} similar neighbours per judged point"
    if isinstance(supervision, Labels):
        shares = _class_shares(supervision)
        if shares.max() > LARGEST_CLASS:
            return False, f"one class has {shares.max():.0%} of the points: a graph would cut it off from the others"
        return True, f"{len(shares)} classes, some rare or some labels unknown"
    shared = _share_rate(supervision)
    if shared > MOST_SHARED:
        return False, f"{shared:.0%} of all pairs share a label: a graph would cut by the commonest labels alone"
    return True, f"several labels per point, {shared:.0%} of all pairs share one"


def _share_rate(supervision: Supervision) -> float:
    """Return the share of pairs of points, in a sample, that have a label in common."""
    sample = supervision.similarity(0, 1000)
    if not isinstance(sample, SharedLabels):
        return 0.0
    return float((sample.indicator @ sample.indicator.T).nnz / len(sample.rows) ** 2)


def _class_shares(labels: Labels) -> NDArray[np.float64]:
    sizes = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.names))
    return np.asarray(sizes[sizes > 0] / sizes.sum())
