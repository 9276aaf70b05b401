"""Which start bits get, and what may become of it: rules on the supervision alone, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.affinity import EuclideanNeighbors, JudgedAffinity, Labels, SparseAffinity, Supervision
from ilhash.starts import WAYS
from ilhash.storage import Record

FEWEST_POINTS = 200  # below it there is nothing to hold out, and directions would be noise
LARGEST_CLASS = 0.5  # share of the labelled points
FEW_CLASSES = 20  # random splits of so many can be learnt from
MEMBERS = 20  # points of each
SECONDS = ("", " and hyperplane", " and principal")  # what bits take in turn with a way
STARTS = ("auto", "random", "projection")


@dataclass(frozen=True)
class Rule:
    """What was decided: the kind of start, why, and what may become of a projected one, the simplest first."""

    kind: str
    reason: str
    ways: tuple[str, ...] = ("graph",)


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
    ways = record.completed({"ways": ["graph"]}).all_of("ways", str)
    about["ways"] = [Record({"ways": way}, record.where).one_of("ways", WAYS) for way in ways]
    about["reason"] = record.text("reason", most=500)
    if about["kind"] != "projection" or "directions" not in record:
        return about
    shrinkage = None if record.document.get("shrinkage") is None else record.number("shrinkage", 0.0, 1.0)
    about |= {"shrinkage": shrinkage, "scale": record.one_of("scale", ("agreement", "excess"))}
    about |= {"width": record.whole("width"), "directions": record.all_of("directions", int)}
    about["judged"] = record.whole("judged")
    if "steps" in record:
        about["steps"] = record.whole("steps")
    names = ("score", "principal", "refined", "noise", *(f"by {way}{second}" for way in WAYS for second in SECONDS))
    return about | {name: record.number(name) for name in names if name in record}


def similar_only(supervision: Supervision) -> bool:
    """Whether similar pairs are known and no dissimilar ones."""
    return isinstance(supervision, SparseAffinity) and bool((supervision.matrix.data > 0).all())


def rule_for(start: Any, supervision: Supervision, letters: str, mac: bool, n_train: int, similar: int) -> Rule:
    """Decide by the supervision.

    ``n_train`` and ``similar`` are the size of a training set and the similar neighbours that a point is to have.
    """
    if not isinstance(start, str):
        return Rule("given", "start is an array")
    if start == "random":
        return Rule("random", "start='random'")
    if isinstance(supervision, JudgedAffinity) and not mac:
        return Rule("projection", f"{supervision.matrix.nnz // 2} judged pairs say where to look", ("hyperplane",))
    if start == "auto" and not similar_only(supervision):
        reason = _paper_is_best(supervision, letters, mac, n_train, similar)
        if reason:
            return Rule("random", reason)
    if mac:
        return Rule("projection", "z-step and classifier alternate, from a projection")
    return Rule("projection", *_what_is_known(supervision))


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
    if isinstance(supervision, Labels) and 2 * n_judged >= supervision.n_points - supervision.n_withheld:
        shares = _class_shares(supervision)
        if supervision.focused and len(shares) <= FEW_CLASSES:
            return f"a few of {len(shares)} classes are to be told from the others"
        members = min(similar, MEMBERS) if len(shares) <= FEW_CLASSES else similar
        if shares.max() <= LARGEST_CLASS and shares.min() * n_train > members:
            return f"{len(shares)} classes, each with more than {members} points in a training set"
    return ""


def _what_is_known(supervision: Supervision) -> tuple[str, tuple[str, ...]]:
    """Return in words why a start should follow the data, and what may become of it."""
    if isinstance(supervision, EuclideanNeighbors):
        return "no supervision", ("hyperplane",)
    if isinstance(supervision, SparseAffinity):
        judged = max(int(np.count_nonzero(np.diff(supervision.matrix.indptr))), 1)
        per_point = np.count_nonzero(supervision.matrix.data > 0) / judged
        if similar_only(supervision):
            return f"similar pairs alone, {per_point:.1f} of a judged point", ("hyperplane",)
        return f"pairs, {per_point:.1f} similar ones of a judged point", ("hyperplane", "graph")
    if isinstance(supervision, Labels):
        shares = _class_shares(supervision)
        large = f"one of them with {shares.max():.0%} of the points" if shares.max() > LARGEST_CLASS else "some rare"
        unknown = "" if supervision.drawable is None else ", some labels unknown"
        return f"{len(shares)} classes, {large}{unknown}", WAYS
    return "several labels per point", ("hyperplane", "graph")


def _class_shares(labels: Labels) -> NDArray[np.float64]:
    sizes = np.bincount(labels.codes[labels.codes >= 0], minlength=len(labels.names))
    return np.asarray(sizes[sizes > 0] / sizes.sum())
