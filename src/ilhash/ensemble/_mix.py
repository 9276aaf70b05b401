"""Bits of several families in one model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ilhash._checks import check_count
from ilhash.ensemble._ilh import ILH
from ilhash.ensemble._side_by_side import SideBySide
from ilhash.hasher import Given, Hasher, Progress, Provenance
from ilhash.storage import Contents, DamagedFileError, Record


class Mix(Hasher):
    """A model that holds bits of several families side by side, such as ILH for seen classes and ITQ for others.

    Parameters
    ----------
    models : list of ILH and other methods
        What is trained, each on the same data; their bits stand in this order. ``n_bits`` and ``random_state`` are
        theirs: ``Mix([ILH(n_bits=64), ITQ(n_bits=64)])`` has 128 bits. Their parameters can be set as ``ilh__n_bits``;
        of equal names the second is ``ilh2``.

    Attributes
    ----------
    families_ : list of trained models, each has an origin of its own, which its functions are relative to
    family_ : int array (n_bits,), the family that each bit is of
    functions_ : list of hash functions
        In the order of the bits; that of bit i is relative to ``families_[family_[i]].origin_``.
    n_features_in_, feature_names_in_ : int and array of str, as in scikit-learn

    Examples
    --------
    >>> from ilhash import datasets, methods
    >>> digits = datasets.load("digits")
    >>> mix = Mix([ILH(n_bits=12, n_similar=30), methods.ITQ(n_bits=8)]).fit(digits.X, digits.y)
    >>> mix.n_bits, mix.transform(digits.X).shape
    (20, (1797, 3))
    >>> mix.prefix(4, 6).family_
    array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """

    def __init__(self, models: Any) -> None:
        self.models = models

    @classmethod
    def of(cls, families: Sequence[Any]) -> Mix:
        """Put trained models side by side.

        Parameters
        ----------
        families : sequence of trained ILH and other methods, of the same vectors' features; they stay what they are

        Returns
        -------
        Mix, trained, their bits in this order
        """
        cls(families)._check_models()
        for family in families:
            check_is_fitted(family)
        return cls._holding(SideBySide.of(list(families)))

    @classmethod
    def _holding(cls, side: SideBySide) -> Mix:
        """Return a mix of trained families."""
        if len({family.n_features_in_ for family in side.models}) > 1:
            got = ", ".join(str(family.n_features_in_) for family in side.models)
            raise ValueError(f"models must be trained on vectors of the same features, got {got}")
        mix = cls([clone(family) for family in side.models])
        mix._assemble(side.models, side.owner)
        return mix

    takes_sparse = True  # families that do not will say so

    # -------------------------------------------------------------------------------------------- parameters

    @property
    def n_bits(self) -> int:
        """Bits of all families together."""
        if hasattr(self, "family_"):
            return len(self.family_)
        return sum(int(model.n_bits) for model in self.models)

    @property
    def unlabeled(self) -> Any:
        """The label that means unknown to the first family that knows labels."""
        return next((model.unlabeled for model in self.models if hasattr(model, "unlabeled")), -1)

    @property
    def nested(self) -> bool:  # type: ignore[override]
        """Whether the first bits of each family are what a shorter one would be."""
        return all(model.nested for model in self.models)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the models and, if deep, their parameters as ``ilh__n_bits``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, model in self._named().items():
                own = model.get_params(deep=True) if hasattr(model, "get_params") else {}
                params |= {f"{name}__{parameter}": value for parameter, value in own.items()}
        return params

    def set_params(self, **params: Any) -> Mix:
        """Set the models, or parameters of theirs by ``ilh__n_bits``."""
        if "models" in params:
            self.models = params.pop("models")
        named = self._named()
        for key, value in params.items():
            name, _, parameter = key.partition("__")
            if name not in named or not parameter:
                raise ValueError(f"parameters of Mix must be models or begin with {', '.join(named)}, got {key!r}")
            named[name].set_params(**{parameter: value})
        return self

    def _named(self) -> dict[str, Any]:
        before: Counter[str] = Counter()
        named = {}
        for model in self.models if isinstance(self.models, list | tuple) else ():
            kind = type(model).__name__.lower()
            before[kind] += 1
            named[kind if before[kind] == 1 else f"{kind}{before[kind]}"] = model
        return named

    def _check_models(self) -> None:
        if not isinstance(self.models, list | tuple) or not self.models:
            raise ValueError(f"models must be a list of at least one model, got {self.models!r}")
        other = [model for model in self.models if not isinstance(model, Hasher) or isinstance(model, Mix)]
        if other:
            raise TypeError(
                f"models must be ILH or other methods of ilhash, got {len(other)} others such as {other[0]!r}"
            )

    # -------------------------------------------------------------------------------------------- training

    def _fit(self, X: Any, y: Any, graph: Given, means: Given, progress: Progress | None) -> None:
        self._check_models()
        self._refuse_what_none_can_use({**graph, **means})
        self._refuse_families_without_supervision(graph)
        self._read(X, reset=True)
        families: list[Any] = []
        total = sum(check_count("n_bits", model.n_bits) for model in self.models)
        for number, model in enumerate(self.models):
            own: dict[str, Any] = {"progress": _moved(progress, sum(family.n_bits for family in families), total)}
            if isinstance(model, ILH):
                folder = None if means["checkpoint"] is None else Path(means["checkpoint"]) / f"{number}-ilh"
                own |= {**graph, **means, "checkpoint": folder}
            families.append(clone(model).fit(X, y, **own, check=False))
        self._assemble(families, np.repeat(np.arange(len(families)), [family.n_bits for family in families]))

    def _check_quality(self, X: Any, y: Any, graph: Given) -> None:
        for family in self.families_:
            family._check_quality(X, y, graph if isinstance(family, ILH) else {})

    def _refuse_what_none_can_use(self, given: Given) -> None:
        """Refuse what ILH alone can use, unless a family is ILH."""
        usable = any(isinstance(model, ILH) for model in self.models)
        for name, value in given.items():
            if value is not None and not usable:
                kinds = ", ".join(type(model).__name__ for model in self.models)
                raise ValueError(f"{name} must be None for a mix unless one of its families is ILH, got {kinds}")

    def _refuse_families_without_supervision(self, graph: Given) -> None:
        """Refuse families that must have labels where pairs or a graph are given; those that need nothing are fine."""
        starved = [type(model).__name__ for model in self.models if getattr(model, "supervised", False)]
        for name, value in graph.items():
            if value is not None and starved:
                raise ValueError(
                    f"{name} must be None for a mix with {', '.join(starved)}, got {type(value).__name__}: "
                    f"{starved[0]} learns from labels alone; ILH takes {name}, and methods that need no supervision, "
                    "such as ITQ, can stand beside it"
                )

    def extend(
        self,
        n: int,
        X: Any,
        y: Any = None,
        *,
        affinity: Any = None,
        pairs: Any = None,
        family: int | None = None,
        focus: Any = None,
        name: str | None = None,
        progress: Progress | None = None,
        client: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Mix:
        """Train n more bits of a family that is ILH on other data; all bits that there are stay as they are.

        Parameters
        ----------
        n, X, y, affinity, pairs, focus, name, progress, client, checkpoint : as in :meth:`ILH.extend`
        family : int, optional, which family; by default the first that is ILH

        Returns
        -------
        self, the new bits stand behind all others
        """
        check_is_fitted(self)
        number = self._extended_family(family)
        own = {"affinity": affinity, "pairs": pairs, "name": name, "client": client, "checkpoint": checkpoint}
        grown = self.families_[number][:].extend(n, X, y, **own, focus=focus, progress=progress)
        families = [grown if one == number else kept for one, kept in enumerate(self.families_)]
        self.models = [clone(one) for one in families]  # they say how many bits there are
        self._assemble(families, np.append(self.family_, np.full(n, number)))
        return self

    def _extended_family(self, family: int | None) -> int:
        ours = [number for number, one in enumerate(self.families_) if isinstance(one, ILH)]
        if not ours:
            kinds = ", ".join(type(one).__name__ for one in self.families_)
            raise ValueError(f"a mix must have a family that is ILH to be extended, got {kinds}; see ilhash.join")
        if family is None:
            return ours[0]
        if check_count("family", family, 0) not in ours:
            raise ValueError(f"family must be one that is ILH ({', '.join(map(str, ours))}), got {family}")
        return family

    def _card_facts(self) -> dict[str, object]:
        sizes = [f"{type(family).__name__}: {len(family.functions_)} bits" for family in self.families_]
        return {"families": ", ".join(sizes)}

    def provenance(self) -> list[Provenance]:
        """Return where each bit came from.

        Returns
        -------
        list of Provenance, one per bit
        """
        check_is_fitted(self)
        return self._side.of_each(lambda family: family.provenance())

    def _rows_of_bit(self, bit: int, X: Any, y: Any, graph: Given) -> NDArray[np.int64]:
        family = self.families_[self.family_[bit]]
        own = int(self._side.inside[bit])
        rows: NDArray[np.int64] = family.training_rows(own, X, y, **(graph if isinstance(family, ILH) else {}))
        return rows

    def _assemble(self, families: list[Any], family: NDArray[np.int64]) -> None:
        """Put bits together: the i-th bit of a family is the i-th that ``family`` names."""
        self.families_, self.family_ = families, family
        for name in ("n_features_in_", "feature_names_in_", "left_out_"):
            if hasattr(families[0], name):
                setattr(self, name, getattr(families[0], name))
        self._prepare_encoder()

    def leave_out(self, names: Sequence[str]) -> None:
        """Remember columns of frames and tables that are no features, in all families.

        Parameters
        ----------
        names : sequence of str, their names
        """
        super().leave_out(names)
        for family in getattr(self, "families_", ()):
            family.leave_out(names)

    def _prepare_encoder(self) -> None:
        self._side = SideBySide(self.families_, self.family_)
        self.functions_ = self._side.functions

    @property
    def _numbers_per_row(self) -> int:
        return self._side.numbers_per_row

    def _margins(self, block: NDArray[Any], name: str) -> NDArray[np.float32]:
        return self._side.margins(block, name)

    # -------------------------------------------------------------------------------------------- parts

    def prefix(self, *counts: int | Mapping[int, int]) -> Mix:
        """Return a model of the first bits of each family: ``mix.prefix(32, 96)``, or ``mix.prefix({0: 32, 1: 96})``.

        Families that a mapping does not name keep no bit.

        Parameters
        ----------
        *counts : int, or one mapping of int to int, how many bits of each family

        Returns
        -------
        Mix, a model of these bits
        """
        check_is_fitted(self)
        n = len(self.families_)
        wanted: Any = counts[0] if len(counts) == 1 and isinstance(counts[0], Mapping) else dict(enumerate(counts))
        if set(wanted) - set(range(n)):
            raise ValueError(f"counts must be for families 0 to {n - 1}, got {sorted(map(str, wanted))}")
        for family, count in wanted.items():
            most = len(self._side.places[family])
            if check_count("counts", count, 0) > most:
                raise ValueError(f"counts must be at most the {most} bits of family {family}, got {count}")
        kept = [self._side.places[family][:count] for family, count in sorted(wanted.items())]
        return self[np.sort(np.concatenate(kept)) if kept else []]

    def _with_bits(self, chosen: list[int]) -> Mix:
        """Bits of a family that is learnt jointly are then of the longer model, not what a shorter one would be."""
        return self._holding(self._side.chosen(chosen))

    # -------------------------------------------------------------------------------------------- files

    def _check_parameters(self, lost: bool = False) -> None:
        for family in self.families_:
            family._check_parameters(lost)

    def bit_fingerprints(self) -> list[str]:
        """Identify every bit by itself, as :meth:`Hasher.bit_fingerprints`.

        Returns
        -------
        list of str
        """
        check_is_fitted(self)
        return self._side.of_each(lambda family: family.bit_fingerprints())

    def _to_contents(self) -> Contents:
        return self._side.to_contents({"model": "Mix"}, "family", "families")

    @classmethod
    def _from_contents(
        cls, contents: Contents, trusted: list[str] | None, find_class: Callable[[Record], type[Hasher]]
    ) -> Mix:
        def of_one_family(family: Record) -> type[Hasher]:
            kind = find_class(family)
            if issubclass(kind, Mix):
                raise DamagedFileError(f"{family.where} must be a model of one family, got a mix within a mix")
            return kind

        side = SideBySide.from_contents(contents, "family", "families", trusted, of_one_family)
        return cls._holding(side)

    # -------------------------------------------------------------------------------------------- scikit-learn

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("functions_", "_side")}  # of the families

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "families_"):
            self._prepare_encoder()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = any(getattr(model, "supervised", False) for model in self._named().values())
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for model in self._named().values())
        return tags


def join(*models: Any) -> Mix:
    """Put trained models side by side: their bits in this order, each as it was, whatever it was trained on.

    Parameters
    ----------
    *models : trained models of the same vectors' features, mixes too; they stay what they are

    Returns
    -------
    Mix, trained; its ``provenance()`` says where each bit came from

    Examples
    --------
    >>> from ilhash import datasets, methods
    >>> digits = datasets.load("digits")
    >>> ours = ILH(n_bits=12, n_similar=30).fit(digits.X, digits.y)
    >>> both = join(ours, methods.ITQ(n_bits=8).fit(digits.X))
    >>> both.n_bits, [one.method for one in both.provenance()[11:13]]
    (20, ['ILH', 'ITQ'])
    """
    other = [model for model in models if not isinstance(model, Hasher)]
    if not models or other:
        got = type(other[0]).__name__ if other else "none"
        raise TypeError(f"models must be trained models of ilhash, at least one, got {got}")
    families: list[Any] = []
    owners: list[NDArray[np.int64]] = []
    for model in models:
        check_is_fitted(model)
        own = model._side if isinstance(model, Mix) else SideBySide.of([model])
        owners.append(own.owner + len(families))
        families += own.models
    return Mix._holding(SideBySide(families, np.concatenate(owners)))


def _moved(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Let a family's own progress count after the bits of those before it."""
    return progress and (lambda own, _: progress(done + own, total))
