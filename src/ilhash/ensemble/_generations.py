"""Bits that join a trained ensemble later, from other data: a generation for each time.

A generation is an ensemble of its own, with its own seed, origin and training sets; the ensemble that was extended
holds them side by side. Bit i of generation g depends on (random_state, g, i) and the data of that generation alone.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ilhash import _core
from ilhash._checks import as_array, check_callable, check_count
from ilhash._parameters import MOST_BITS
from ilhash.affinity import Labels, supervision_from_labels, without
from ilhash.diversity import seed_for
from ilhash.ensemble._side_by_side import SideBySide
from ilhash.hasher import Given, Hasher, Progress, Provenance
from ilhash.storage import Contents, DamagedFileError, Record
from ilhash.vectors import named_columns

Own = TypeVar("Own", bound="Generational")
_LONGEST_NAME = 200
# Beside a class of 150 or 300 points, 500 others teach more than as many others do: on CIFAR-10 and MNIST precision@10
# of that class is .02 to .09 higher. Beside 60 it is .01 to .04 lower.
FEWEST_OTHERS = 500


@dataclass(frozen=True)
class Generation:
    """Which generation an ensemble is of: its number, what the random_state of the first came to, and its name."""

    number: int
    root_seed: int
    name: str | None = None
    n_points: int | None = None
    date: str | None = None

    @property
    def seed(self) -> int:
        """The seed of its bits."""
        return self.root_seed if self.number == 0 else seed_for(self.root_seed, "generation", self.number)

    @classmethod
    def from_record(cls, record: Record) -> Generation:
        """Return what a file says."""
        given = record.document
        return cls(
            record.whole("number", 0, 2**31),
            record.whole("root_seed", most=2**128),
            None if given.get("name") is None else record.text("name", most=_LONGEST_NAME),
            record.whole_or_none("n_points"),
            None if given.get("date") is None else record.text("date", most=40),
        )


def today() -> str:
    """Return the time of a generation."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def check_name(name: Any) -> str | None:
    """Return the name of a generation."""
    if name is None or (isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()):
        return name
    raise ValueError(f"name must be a text of one line of at most {_LONGEST_NAME} characters, got {name!r}")


def focused(y: Any, classes: Any, unlabeled: Any = -1, seed: int = 0) -> Labels:
    """Return labels of some classes, and of as many other points, but 500 or more, drawn from the seed.

    Parameters
    ----------
    y : array (n,), labels
    classes : sequence of labels, the classes that matter
    unlabeled : label or None, default -1, the label that means unknown
    seed : int, default 0, of the draw; ``extend`` takes what random_state came to

    Returns
    -------
    Labels, which ``extend`` and ``add_bits`` take in place of y
    """
    if y is None:
        raise ValueError("focus must be given with labels y, got none")
    labels = y if isinstance(y, Labels) else supervision_from_labels(y, len(y), unlabeled)
    if not isinstance(labels, Labels):
        raise ValueError("focus must be given with one label per point, got several")
    known = {name: number for number, name in enumerate(labels.names.tolist())}
    wanted = np.atleast_1d(as_array("focus", classes)).ravel().tolist()
    if not all(isinstance(label, Hashable) for label in wanted):
        raise TypeError(f"focus must be a sequence of labels, got {type(classes).__name__}")
    unknown = [label for label in wanted if label not in known]
    if unknown or not wanted:
        raise ValueError(f"focus must be labels of y, got {len(unknown)} others such as {(unknown or wanted)[:1]}")
    own = np.isin(labels.codes, [known[label] for label in wanted])
    others = np.flatnonzero(~own & (labels.codes >= 0))
    order = others[_core.permuted(len(others), seed_for(seed, "generation", 0, 1), 0, len(others))]
    n_others = max(int(own.sum()), FEWEST_OTHERS)
    return replace(cast(Labels, without(labels, np.sort(order[n_others:]))), focused=True)


class Generational(Hasher):
    """An ensemble of one or more generations."""

    _side: SideBySide | None = None  # of the generations, where there is more than one
    generation_: Generation  # of the first, where there is more than one

    @property
    def generations(self: Own) -> list[Own]:
        """The generations, each as an ensemble of its own bits."""
        check_is_fitted(self)
        return [self] if self._side is None else list(self._side.models)

    def extend(
        self: Own,
        n: int,
        X: Any,
        y: Any = None,
        *,
        affinity: Any = None,
        pairs: Any = None,
        focus: Any = None,
        name: str | None = None,
        progress: Progress | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        check: bool = True,
    ) -> Own:
        """Train n more bits on other data, or by other supervision, than before; the others stay as they are.

        The new bits are a generation: they stand behind the others, under the parameters that the model has now, and
        depend on (random_state, the number of the generation, their number in it) and these data alone. More bits of
        any generation come from ``add_bits`` with its data.

        Parameters
        ----------
        n : int, how many
        X, y, affinity, pairs : as in fit, any vectors of the same features
        focus : sequence of labels, optional
            Classes that the new bits are for, such as those that are new: half of the points that bits are trained on
            are of them, less where they have fewer than 500, and ``n_train="auto"`` is at most 4,000. The new bits
            alone must tell them from all others, since older bits cannot. More bits of this generation come from
            ``add_bits`` with ``ilhash.ensemble.focused(y, focus)`` in place of y.
        name : str, optional, what to call the generation; ``ilhash info`` shows it
        progress, client, checkpoint, check : as in fit, optional; each generation has a checkpoint folder of its own

        Returns
        -------
        self

        Examples
        --------
        >>> from ilhash import ILH, datasets
        >>> digits = datasets.load("digits")
        >>> old = digits.y < 7
        >>> model = ILH(n_bits=16, n_similar=30).fit(digits.X[old], digits.y[old])
        >>> model.extend(8, digits.X, digits.y, name="all ten digits").n_bits
        24
        >>> model.provenance()[-1].name, model.provenance()[-1].n_points
        ('all ten digits', 1797)
        """
        check_is_fitted(self)
        check_callable("progress", progress)
        X, y, _ = named_columns(X, y, None)
        self._read(X, reset=False)
        if focus is not None:
            y = focused(y, focus, getattr(self, "unlabeled", -1), self.generation_.root_seed)
        number = 1 + max(part.generation_.number for part in self.generations)
        size = check_count("n", n, 1, MOST_BITS - len(self.functions_))
        part = type(self)(**{**self.get_params(deep=False), "n_bits": size})
        graph, means = {"affinity": affinity, "pairs": pairs}, {"client": client, "checkpoint": checkpoint}
        generation = Generation(number, self.generation_.root_seed, check_name(name))
        part.leave_out(self.left_out_)
        part._fit(X, y, graph, means, progress, generation)
        if check:
            part._check_quality(X, y, graph)
        parts = [one[:] for one in self.generations]
        owner = np.repeat(0, len(self.functions_)) if self._side is None else self._side.owner
        self._hold(SideBySide([*parts, part], np.append(owner, np.repeat(len(parts), size))))
        return self

    @abstractmethod
    def _fit(
        self,
        X: Any,
        y: Any,
        graph: Given,
        means: Given,
        progress: Progress | None,
        generation: Generation | None = None,
    ) -> None:
        """Train all bits as those of a generation, by default the first."""

    def provenance(self) -> list[Provenance]:
        """Return where each bit came from.

        Returns
        -------
        list of Provenance, one per bit
        """
        check_is_fitted(self)
        side = self._side or SideBySide.of([self])
        return side.of_each(lambda part: part._own_provenance())

    @abstractmethod
    def _own_provenance(self) -> list[Provenance]:
        """Return where the bits of a single generation came from."""

    def _hold(self, side: SideBySide) -> None:
        """Become an ensemble of these generations."""
        self._side = side
        self.n_bits = len(side.owner)
        self._prepare_encoder()

    def _with_bits(self: Own, chosen: list[int]) -> Own:
        if self._side is None:
            return super()._with_bits(chosen)
        side = self._side.chosen(chosen)
        if len(side.models) == 1:
            only: Own = side.models[0]
            return only
        part = super(Generational, side.models[0])._with_bits([0])  # what it knows of itself is of its first generation
        part._hold(side)
        return part

    # -------------------------------------------------------------------------------------------- encoding

    def _prepare_encoder(self) -> None:
        if self._side is None:
            super()._prepare_encoder()
        else:
            self.functions_ = self._side.functions

    @property
    def _numbers_per_row(self) -> int:
        return super()._numbers_per_row if self._side is None else self._side.numbers_per_row

    def _margins(self, block: NDArray[Any], name: str) -> NDArray[np.float32]:
        return super()._margins(block, name) if self._side is None else self._side.margins(block, name)

    # -------------------------------------------------------------------------------------------- files

    def bit_fingerprints(self) -> list[str]:
        """Identify every bit by itself, as :meth:`Hasher.bit_fingerprints`.

        Returns
        -------
        list of str
        """
        side = self._side
        return super().bit_fingerprints() if side is None else side.of_each(lambda part: part.bit_fingerprints())

    def _to_contents(self) -> Contents:
        if self._side is None:
            return super()._to_contents()
        return self._side.to_contents({"model": type(self).__name__}, "generation", "generations")

    @classmethod
    def _from_contents(
        cls: type[Own], contents: Contents, trusted: list[str] | None, find_class: Callable[[Record], type[Hasher]]
    ) -> Own:
        if "generations" not in contents.document:
            return super()._from_contents(contents, trusted, find_class)

        def of_one(part: Record) -> type[Hasher]:
            if find_class(part) is not cls or "generations" in part:
                raise DamagedFileError(f"{part.where} must be one generation of {cls.__name__}, got something else")
            return cls

        side = SideBySide.from_contents(contents, "generation", "generations", trusted, of_one)
        numbers = [part.generation_.number for part in side.models]
        if len(numbers) < 2 or len(set(numbers)) < len(numbers):
            raise DamagedFileError(f"{contents.where} must have 'generations' of different numbers, got {numbers}")
        model = super(Generational, side.models[0])._with_bits([0])
        model._hold(side)
        return model
