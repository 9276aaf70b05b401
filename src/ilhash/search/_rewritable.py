"""An index whose items can get other bits, each time in one step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_count, chosen_bits
from ilhash._fingerprints import bits_of
from ilhash._ids import as_ids
from ilhash.search._bits import NewBits, refuse_codes_of_another, refuse_other_vectors, rewritten, settings_after
from ilhash.search._ids import Rows
from ilhash.search._schema import MOST_BITS, Settings
from ilhash.search._searching import Searchable
from ilhash.search._segment import Segment


class Rewritable(Searchable):
    """What ``HammingIndex`` does with the bits of all its items."""

    _mutex: RLock

    @abstractmethod
    def _settle(self) -> None:
        """Bring to its end what an interrupted change of the folder left open."""

    @abstractmethod
    def _next_after(self, ids: NDArray[Any] | None) -> int:
        """Return the next automatic id, when these are added."""

    @abstractmethod
    def _notes(self, next_id: int) -> dict[str, Any]:
        """Return what the manifest is to say beside the segments."""

    @abstractmethod
    def _put(
        self,
        new: Iterable[Segment],
        now: Sequence[Segment],
        gone: Sequence[int],
        dead: Mapping[str, Rows],
        notes: Mapping[str, Any],
        settings: Settings | None = None,
    ) -> None:
        """Append segments to those that are there now, without those whose numbers are gone."""

    def append_bits(
        self, codes: Any, n_bits: int | None = None, *, ids: Any = None, margins: Any = None, model: Any = None
    ) -> None:
        """Give every item more bits behind those that it has, in one step.

        Parameters
        ----------
        codes : uint8 array (n, ceil(n_bits / 8)), the new bits of all items, such as ``model[-16:].transform(X)``
        n_bits : int, optional, how many bits are new; by default what codes of ``ilhash.open_codes`` say
        ids : array_like (n,), optional, whose codes they are; by default in the order of ascending ids
        margins : float array (n, n_bits), optional, for an index that keeps margins
        model : fitted model or its fingerprint, optional
            What makes all bits from now on; must be given where the index knows its model.
        """
        size = check_count("n_bits", getattr(codes, "n_bits", None) if n_bits is None else n_bits, 1, MOST_BITS)
        with self._mutex:
            self._settle()
            refuse_codes_of_another(model, self.n_bits, codes)
            new = NewBits.of(codes, size, ids, self.ids, margins, self._kind)
            self._rewrite(range(self.n_bits + size), new, model)

    def select_bits(self, bits: Any, *, model: Any = None) -> None:
        """Keep some bits of every item, in one step.

        Parameters
        ----------
        bits : slice or sequence of int, which ones, in their new order
        model : fitted model or its fingerprint, optional, as in :meth:`append_bits`, such as ``model[[0, 5, 9]]``
        """
        with self._mutex:
            self._settle()
            self._rewrite(chosen_bits(bits, self.n_bits), None, model)

    def follow(self, model: Any, X: Any, *, ids: Any = None) -> int:
        """Give every item the bits of a model that was extended or refreshed, in one step; only new bits are encoded.

        Parameters
        ----------
        model : fitted model, some of whose bits the index holds: ``extend``, ``refresh`` or ``join`` made it
        X : array (n, D), vectors of all items, also what ilhash.open_vectors gives
        ids : array_like (n,), optional, whose vectors they are; by default in the order of ascending ids

        Returns
        -------
        int, how many bits were encoded
        """
        with self._mutex:
            self._settle()
            known, bits = self.bit_fingerprints, bits_of(model)
            if known is None or bits is None:
                raise ValueError(
                    "follow must be asked of an index that knows the bits of its codes, and be given a model, got an "
                    "index or a model without: append_bits and select_bits do it by hand"
                )
            place = {name: number for number, name in enumerate(known)}
            kept = [number for number, name in enumerate(bits) if name in place]
            missing = [number for number, name in enumerate(bits) if name not in place]
            if not kept:
                raise ValueError("model must have some of the bits that the index holds, got one that has none of them")
            names = self.ids if ids is None else as_ids(ids, len(ids), self._kind)
            if len(X) != len(self) or len(names) != len(self):
                raise ValueError(f"X and ids must be of the {len(self)} items, got {len(X)} and {len(names)}")
            if len(names):
                refuse_other_vectors(self, model, kept, [place[bits[number]] for number in kept], X, names)
            new = self._encoded(model, missing, X, names) if missing else None
            numbers = {bit: self.n_bits + number for number, bit in enumerate(missing)}
            self._rewrite([place.get(name, numbers.get(j, -1)) for j, name in enumerate(bits)], new, model)
        return len(missing)

    def _encoded(self, model: Any, bits: list[int], X: Any, ids: NDArray[Any]) -> NewBits:
        part = model[bits]
        margins = None if self._scale is None else part.decision_function(X)
        codes = part.transform(X) if margins is None else packed.pack(margins > 0)
        return NewBits.of(codes, len(bits), ids, self.ids, margins, self._kind)

    def _rewrite(self, order: Sequence[int], new: NewBits | None, model: Any) -> None:
        before, segments = self._settings, self._segments
        after = settings_after(before, order, new, model)
        changed = rewritten(segments, order, new, before, after)
        self._put(changed, segments, range(len(segments)), {}, self._notes(self._next_after(None)), after)
