"""What a service answers, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

Id = int | str


class ServiceError(OSError):
    """A service refused, or could not be reached.

    Attributes
    ----------
    status : int, of HTTP; 0 where there was no answer
    detail : str, the service's own sentence
    retry_after : float or None, seconds after which it may be asked again
    """

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{detail} (status {status})" if status else detail)
        self.status, self.detail, self.retry_after = status, detail, retry_after


@dataclass(frozen=True)
class Hits:
    """The nearest items of each query, in the order (distance, id).

    Attributes
    ----------
    ids : list of list of int or str, one list per query
    distances : list of list of float
    exact : bool, whether no item that is not here can be nearer than one that is
    order : str, by which order
    n_bits : int or None, how many bits counted
    model : str, by which model
    """

    ids: list[list[Id]]
    distances: list[list[float]]
    exact: bool
    order: str
    n_bits: int | None
    model: str

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[list[Id], list[float]]]:
        """Yield (ids, distances) of one query after the other."""
        yield from zip(self.ids, self.distances, strict=True)


@dataclass(frozen=True)
class Progress:
    """How far learning is, and what came of it.

    Attributes
    ----------
    state : str, "idle", "running", "done", "unchanged" or "failed"
    task : int, its number
    done, total : int, steps
    before, after, error : float or None, how often a judged similar pair is nearer than a dissimilar one, without and
        with new bits, and the standard error of the difference
    n_new : int, new bits
    pairs : int, judged pairs
    reason : str or None, in words
    seconds : float or None, that it took
    """

    state: str
    task: int
    done: int
    total: int
    before: float | None
    after: float | None
    error: float | None
    n_new: int
    pairs: int
    reason: str | None
    seconds: float | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Progress:
        """Make one of a document of the service.

        Parameters
        ----------
        document : mapping, what the service says

        Returns
        -------
        Progress
        """
        return cls(**{field.name: document[field.name] for field in fields(cls)})
