"""The registered kinds of hash functions, the learners that have a name, and functions as named arrays and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from ._base import Arrays, HashFunction, Stored, grouped
from ._learner import Learner, LearnerSettings

MakeLearner = Callable[[LearnerSettings], Learner]
Kind = TypeVar("Kind", bound=type[HashFunction])

KINDS: dict[str, type[HashFunction]] = {}
LEARNERS: dict[str, MakeLearner] = {}


def register(function: Kind, learner: MakeLearner | None = None) -> Kind:
    """Make a kind of hash function known, so that models of it are encoded, saved and loaded.

    Parameters
    ----------
    function : subclass of HashFunction, the kind; a decorator of the class does where it has no learner
    learner : callable, optional, returns the Learner that ``hash_function=function.kind`` means under LearnerSettings

    Returns
    -------
    subclass of HashFunction, the kind itself
    """
    if KINDS.setdefault(function.kind, function) is not function:
        raise ValueError(f"a kind of hash functions must have a name of its own, got {function.kind!r} a second time")
    if learner is not None:
        LEARNERS[function.kind] = learner
    return function


def functions_to_arrays(functions: Sequence[HashFunction]) -> tuple[Arrays, dict[str, bytes]]:
    """Return what a file is to hold of hash functions.

    Parameters
    ----------
    functions : sequence of HashFunction, one per bit

    Returns
    -------
    arrays : dict of str to ndarray, named "kind.number of the group.name"
    blobs : dict of str to bytes, files of kinds that are not arrays, named "kind-number of the group"
    """
    arrays: Arrays = {}
    blobs: dict[str, bytes] = {}
    for number, (bits, members) in enumerate(grouped(functions, lambda function: function.storage_group())):
        kind = type(members[0])
        stored = kind.to_stored(members)
        own = {**stored.arrays, "bits": np.array(bits, np.int32)}
        arrays |= {f"{kind.kind}.{number}.{name}": array for name, array in own.items()}
        if stored.blob is not None:
            blobs[f"{kind.kind}-{number}"] = stored.blob
    return arrays, blobs


def functions_from_arrays(arrays: Arrays, blobs: dict[str, bytes], trusted: list[str] | None) -> list[HashFunction]:
    """Do the inverse of :func:`functions_to_arrays`.

    Parameters
    ----------
    arrays, blobs : dict, as above
    trusted : list of str, optional, types that a blob may bring beyond those that are trusted anyway

    Returns
    -------
    list of HashFunction, in the order of their bits
    """
    groups: dict[tuple[str, str], Arrays] = {}
    for name, array in arrays.items():
        kind, number, what = name.split(".", 2)
        groups.setdefault((kind, number), {})[what] = array
    found: dict[int, HashFunction] = {}
    for (kind, number), own in groups.items():
        if kind not in KINDS:
            raise ValueError(
                f"stored hash functions must be of a known kind ({', '.join(sorted(KINDS))}), got {kind!r}"
            )
        members = KINDS[kind].from_stored(Stored(own, blobs.get(f"{kind}-{number}"), trusted or ()))
        found |= {int(bit): function for bit, function in zip(own["bits"], members, strict=True)}
    return [found[bit] for bit in sorted(found)]
