"""The registered kinds of hash functions, the learners that have a name, and functions as named arrays and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from ilhash.storage import DamagedFileError, UnknownFormatError, Values, check_arrays

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
    if not hasattr(function, "schema"):
        raise TypeError(f"a kind of hash functions must declare the schema of its arrays, got {function.__name__}")
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


def functions_from_arrays(
    arrays: Arrays,
    blobs: Mapping[str, bytes],
    n_features: int,
    trusted: Sequence[str] | None = None,
    where: str = "stored hash functions",
) -> list[HashFunction]:
    """Do the inverse of :func:`functions_to_arrays`; whatever is not as a kind's schema says is refused.

    Parameters
    ----------
    arrays, blobs : dict, as above
    n_features : int, number of features D of the vectors
    trusted : sequence of str, optional, types that a blob may bring beyond those that are trusted anyway
    where : str, what is read, for sentences

    Returns
    -------
    list of HashFunction, in the order of their bits
    """
    groups: dict[tuple[str, str], Arrays] = {}
    for name, array in arrays.items():
        parts = _NAME.fullmatch(name)
        if parts is None:
            raise DamagedFileError(f"{where} must be named kind.number.name, got {name[:80]!r}")
        groups.setdefault((parts[1], parts[2]), {})[parts[3]] = array
    unused = sorted(set(blobs) - {f"{kind}-{number}" for kind, number in groups})
    if unused:
        raise DamagedFileError(f"{where} must have files of their own functions alone, got {unused[0][:80]!r}")
    found: dict[int, HashFunction] = {}
    for (kind, number), own in groups.items():
        stored = Stored(own, blobs.get(f"{kind}-{number}"), n_features, trusted or (), f"{where} {kind}.{number}")
        bits, members = _members(kind, stored)
        found |= dict(zip(bits, members, strict=True))
    if not found or len(found) != sum(len(own["bits"]) for own in groups.values()) or max(found) != len(found) - 1:
        raise DamagedFileError(f"{where} must be of bits 0, 1, 2 and so on, each once, got others")
    return [found[bit] for bit in range(len(found))]


_NAME = re.compile(r"([a-z_]+)\.([0-9]{1,9})\.(.+)", re.DOTALL)


def _members(kind: str, stored: Stored) -> tuple[list[int], list[HashFunction]]:
    """Return bits and functions of one group, of which all arrays are as they must be."""
    if kind not in KINDS:
        raise UnknownFormatError(
            f"stored hash functions must be of a known kind ({', '.join(sorted(KINDS))}), got {kind!r}"
        )
    own, features = KINDS[kind], stored.arrays.get("features")
    lengths = {"D": stored.n_features, "d": stored.n_features}
    if features is not None and features.ndim == 2:
        lengths["d"] = features.shape[1]
    plain = {name: a for name, a in stored.arrays.items() if own.inner is None or not name.startswith(own.inner)}
    check_arrays(plain, {"bits": _BITS, **own.schema}, lengths, stored.where)
    members = own.from_stored(stored)
    bits = stored.arrays["bits"].tolist()
    if len(members) != len(bits):
        raise stored.damaged(f"be as many functions as bits, got {len(members)} of {len(bits)}")
    return bits, members


_BITS = Values("int32", ("bits",), least=0)
