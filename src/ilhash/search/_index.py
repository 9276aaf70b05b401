"""The index: codes that come and go, in memory or in a durable folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import check_choice, check_count, check_flag
from ilhash._fingerprints import bits_of, fingerprint_of, refuse_another
from ilhash._ids import LARGEST, as_ids, refuse_repeated
from ilhash.search import _merging as merging
from ilhash.search._bits import rewritten
from ilhash.search._ids import IntIds, Rows
from ilhash.search._manifest import MANIFEST
from ilhash.search._margins import MarginScale, as_margins
from ilhash.search._rewritable import Rewritable
from ilhash.search._schema import NEXT_ID, Settings, read_next_id, segment_of, verify
from ilhash.search._searching import Codes
from ilhash.search._segment import Segment
from ilhash.search._snapshot import Snapshot
from ilhash.search._store import Store
from ilhash.search._verify import Report
from ilhash.storage import new_folder

SEGMENT_ROWS = 1 << 22  # codes in memory while blocks are added


class _Contents(NamedTuple):
    """What an index holds; only ever replaced whole, so that no interrupt can tear it."""

    settings: Settings
    segments: tuple[Segment, ...] = ()
    next_id: int = 0  # at least what the next automatic id must be
    snapshot: Snapshot | None = None  # of the folder, of which this is made


class HammingIndex(Rewritable):
    """Exact nearest neighbours in Hamming space, in the order (distance, id).

    Equal codes are kept once, with the list of their items: a million items on 300,000 distinct codes cost 300,000
    distances. Items can be added, replaced and removed at any time. An index lives in memory; ``open`` gives one that
    lives in a folder, where every change is on disk when the call returns. Whatever interrupts a change, Ctrl-C too, it
    has happened wholly or not at all, and the same call again does it or finds that it was done.

    Parameters
    ----------
    codes : uint8 array (n, ceil(n_bits / 8)), optional, packed codes, see :mod:`ilhash.codes`; without, it is empty
    n_bits : int, bits per code
    ids : array_like, optional, n whole numbers or texts, each once; by default the items are numbered from 0 on.
        Texts of a list are kept as they are; NumPy's own arrays of texts lose NULs at the end
    margins : float array (n, n_bits), optional, ``model.decision_function(X)``, kept in 8 bits for ``search_margins``
    model : fitted model or its fingerprint, optional, what made the codes; by default what codes of
        ``ilhash.open_codes`` say. Codes and queries that say that they are of another one are refused

    Examples
    --------
    >>> index = HammingIndex(np.array([[0b0000], [0b0001], [0b0111]], np.uint8), n_bits=8, ids=["a", "b", "c"])
    >>> hits = index.search(np.array([[0b0011]], np.uint8), k=2)
    >>> hits.ids.tolist(), hits.distances.tolist(), hits.exact
    ([['b', 'c']], [[1, 1]], True)
    >>> index.remove(["b"])
    >>> [ids.tolist() for ids, distances in index.within(np.array([[0b0011]], np.uint8), radius=2)]
    [['c', 'a']]
    """

    def __init__(
        self, codes: Any = None, *, n_bits: int, ids: Any = None, margins: Any = None, model: Any = None
    ) -> None:
        packed.bytes_per_code(n_bits)
        made_by = fingerprint_of(getattr(codes, "model", None) if model is None else model)
        self._held = _Contents(Settings(int(n_bits), model=made_by, bits=bits_of(codes if model is None else model)))
        self._store: Store | None = None
        self._part: tuple[_Contents, list[int], HammingIndex] | None = None  # what of_model made last
        self._mutex = threading.RLock()
        if codes is None:
            if ids is not None or margins is not None:
                raise ValueError("ids and margins must come with codes, got them without")
            return
        if margins is not None:
            self._span(as_margins(margins, self.n_bits, len(packed.check(codes, self.n_bits))))
        self.add(codes, ids, margins=margins)

    @property
    def _contents(self) -> _Contents:
        """What the index holds: in a folder, what the folder holds, whoever changed it and however that ended."""
        held = self._held
        if self._store and not self._store.closed:
            snapshot = self._store.snapshot
            if held.snapshot is not snapshot:
                self._held = held = self._contents_of(snapshot, held)
        return held

    @property
    def _segments(self) -> tuple[Segment, ...]:
        return self._contents.segments

    @property
    def _settings(self) -> Settings:
        return self._contents.settings

    def _span(self, margins: NDArray[np.float32]) -> None:
        """Let the 8 bits of margins span these."""
        self._held = self._held._replace(settings=self._held.settings._replace(scale=MarginScale.of(margins)))

    def __repr__(self) -> str:
        where = f" in {self._store.path}" if self._store else ""
        return f"<HammingIndex of {len(self):,} items, {self.n_bits} bits{where}>"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("an index must be written by index.save(path) and read by HammingIndex.open(path), got pickle")

    # -------------------------------------------------------------------------------------------- change

    def add(self, codes: Any, ids: Any = None, *, margins: Any = None) -> NDArray[Any]:
        """Add items and return their ids; without ids, they are numbered on from the largest that ever was there.

        Parameters
        ----------
        codes : uint8 array (n, ceil(n_bits / 8)), packed codes
        ids : array_like, optional, new ones, each once
        margins : float array (n, n_bits), optional, for an index that keeps margins

        Returns
        -------
        array (n,), the ids
        """
        with self._mutex:
            self._settle()
            refuse_another(self.model, getattr(codes, "model", None), "codes")
            new = packed.check(codes, self.n_bits)
            names = self._automatic_ids(len(new)) if ids is None else as_ids(ids, len(new), self._kind)
            segment = self._built(new, names, margins)
            if len(names):
                self._refuse_taken(names)
                self._change(segment, {}, self._next_after(names))
        return names.copy()  # the index keeps the other

    def add_blocks(self, blocks: Iterable[Any], ids: Any = None) -> int:
        """Add codes that come in blocks, all in one step or none, in bounded memory.

        Blocks are brought together to segments of some million codes; if there is one, it is merged as by :meth:`add`.

        Parameters
        ----------
        blocks : iterable of uint8 arrays (n, ceil(n_bits / 8)), such as the shards of ``ilhash.open_codes``
        ids : sequence, optional, of all items in the order of the blocks; by default as in :meth:`add`

        Returns
        -------
        int, how many items were added
        """
        if not isinstance(blocks, Iterable):
            raise TypeError(f"blocks must be a sequence of arrays of codes, got {type(blocks).__name__}")
        refuse_another(self.model, getattr(blocks, "model", None), "codes")
        with self._mutex:
            self._settle()
            before, large = len(self), _large_blocks(packed.check(block, self.n_bits) for block in blocks)
            first = list(islice(large, 2))
            if len(first) == 1:
                self.add(first[0], ids)
            else:
                self._add_segments(chain(first, large), ids)
            n_added = len(self) - before
        return n_added

    def _add_segments(self, blocks: Iterable[Codes], ids: Any) -> None:
        names = None if ids is None else as_ids(ids, len(ids), self._kind)
        if names is not None:
            refuse_repeated(names)
            self._refuse_taken(names)
        notes = self._notes(self._next_after(names))
        self._put(self._built_one_by_one(blocks, names, notes), self._segments, (), {}, notes)

    def _built_one_by_one(
        self, blocks: Iterable[Codes], ids: NDArray[Any] | None, notes: dict[str, Any]
    ) -> Iterator[Segment]:
        """Give a segment for each block; of automatic ids the notes say which is the next."""
        done = 0
        for new in blocks:
            if ids is None:
                own = self._automatic_ids(len(new), notes[NEXT_ID])
                notes[NEXT_ID] += len(new)
            else:
                own = ids[done : done + len(new)]
            done += len(new)
            if ids is not None and done > len(ids):
                break
            yield self._built(new, own, None)
        if ids is not None and done != len(ids):
            at_least = "at least " if done > len(ids) else ""
            raise ValueError(f"ids must be one per code, got {len(ids)} for {at_least}{done} codes")

    def remove(self, ids: Any) -> None:
        """Remove items.

        Parameters
        ----------
        ids : array_like, ids of items that are there
        """
        with self._mutex:
            self._settle()
            self._change(None, self._dead(self._known(ids)), self._next_after(None))

    def update(self, codes: Any, ids: Any, *, margins: Any = None) -> None:
        """Give items that are there other codes, in one step.

        Parameters
        ----------
        codes, margins : as in :meth:`add`
        ids : array_like, ids of items that are there
        """
        with self._mutex:
            self._settle()
            refuse_another(self.model, getattr(codes, "model", None), "codes")
            new = packed.check(codes, self.n_bits)
            names = as_ids(ids, len(new), self._kind)
            self._change(self._built(new, names, margins), self._dead(names), self._next_after(None))

    def compact(self) -> None:
        """Put everything into one segment, without what was removed. Answers do not change; searches get faster."""
        with self._mutex:
            self._settle()
            segments = self._segments
            if len(segments) > 1 or any(len(segment.removed) for segment in segments):
                united = merging.merged(segments)
                notes = self._notes(self._next_after(None))
                self._put([united] if united.n_rows else [], segments, range(len(segments)), {}, notes)

    def of_model(self, model: Any) -> HammingIndex:
        """Return what codes of a model can be searched in: this index or, where the model has some of its bits, these.

        Parameters
        ----------
        model : fitted model, or what ``ilhash.open_codes`` gives; one with other bits is refused

        Returns
        -------
        HammingIndex, this one, or one in memory, which is kept as long as this one does not change
        """
        said = fingerprint_of(model)
        bits, known = bits_of(model), self.bit_fingerprints
        if said == self.model or not bits or not known or set(bits) - set(known):
            self.check_model(model)
            return self
        contents, order = self._contents, [known.index(name) for name in bits]
        if self._part is None or self._part[0] is not contents or self._part[1] != order:
            part, before = HammingIndex(n_bits=len(order)), contents.settings
            scale = None if before.scale is None else MarginScale(before.scale.factor[order])
            after = Settings(len(order), before.kind, scale, said, tuple(bits))
            part._held = _Contents(after, tuple(rewritten(contents.segments, order, None, before, after)))
            self._part = (contents, order, part)
        return self._part[2]

    def snapshot(self) -> HammingIndex:
        """Return what the index holds now as an index in memory, which shares all arrays and stays as it is.

        Returns
        -------
        HammingIndex, whose searches see one state, whatever becomes of this index meanwhile
        """
        contents = self._contents
        held = HammingIndex(n_bits=contents.settings.n_bits)
        held._held = contents
        return held

    def next_ids(self, n: int) -> NDArray[np.int64]:
        """Return the ids that so many items without ids would get from :meth:`add`.

        Parameters
        ----------
        n : int, how many

        Returns
        -------
        int64 array (n,)
        """
        with self._mutex:
            return self._automatic_ids(check_count("n", n, 0))

    def _settle(self) -> None:
        """Bring to its end what an interrupted change of the folder left open."""
        if self._store:
            self._store.settle()

    def _dead(self, ids: NDArray[Any]) -> dict[int, Rows]:
        refuse_repeated(ids)
        found = [rows[rows >= 0] for _, rows in self._rows_of(ids)]
        return {number: rows for number, rows in enumerate(found) if len(rows)}

    def _built(self, codes: Codes, ids: NDArray[Any], margins: Any) -> Segment:
        refuse_repeated(ids)
        if (margins is None) != (self._scale is None):
            rule = "come with every item of this index" if self._scale else "be given to the index at its start"
            raise ValueError(f"margins must {rule}, got {'none' if margins is None else 'some'}")
        kept = None if self._scale is None else self._scale.quantise(as_margins(margins, self.n_bits, len(codes)))
        return Segment.build(codes, self.n_bits, ids, kept)

    def _change(self, new: Segment | None, dead: Mapping[int, Rows], next_id: int) -> None:
        """Add a segment and let rows of the others die; merge what has become small or sparse."""
        if new is None and not dead:
            return
        now = [s.without(dead[number]) if number in dead else s for number, s in enumerate(self._segments)]
        sparse = [number for number, s in enumerate(now) if s.n_alive < s.n_rows / 2]
        size, first = new.n_rows if new else 0, len(now)
        # Each item is so written again a logarithmic number of times, and the number of segments stays logarithmic.
        while new and first and now[first - 1].n_alive <= 2 * size:
            first -= 1
            size += now[first].n_alive
        chosen = sorted({*sparse, *range(first, len(now))})
        parts = [now[number] for number in chosen] + ([new] if new else [])
        united = [merging.merged(parts)] if chosen else parts
        rest = {now[n].body.name: rows for n, rows in dead.items() if n not in chosen}
        self._put([segment for segment in united if segment.n_rows], now, chosen, rest, self._notes(next_id))

    def _put(
        self,
        new: Iterable[Segment],
        now: Sequence[Segment],
        gone: Sequence[int],
        dead: Mapping[str, Rows],
        notes: Mapping[str, Any],
        settings: Settings | None = None,
    ) -> None:
        """Append segments to those that are there now, with more dead rows, without those whose numbers are gone.

        Where there are other settings, all that were there must be gone.
        """
        if self._store:
            dropped = [now[number].body.name for number in gone]
            about = None if settings is None else settings.document()
            arrays = (segment.arrays for segment in new)
            self._store.commit(add=arrays, remove=dead, drop=dropped, notes=notes, settings=about)
            return
        segments = (*(s for number, s in enumerate(now) if number not in gone), *new)
        kind = segments[-1].body.kind if segments else self._kind
        settings = (settings or self._settings)._replace(kind=kind)
        self._held = _Contents(settings, segments, notes.get(NEXT_ID, 0))

    # -------------------------------------------------------------------------------------------- ids

    def _automatic_ids(self, n: int, first: int | None = None) -> NDArray[np.int64]:
        if self._kind == "str":
            raise ValueError("ids must be given to an index whose ids are texts, got none")
        first = self._next_after(None) if first is None else first
        if first + n > LARGEST + 1:
            raise ValueError(f"ids must be given where automatic ones would pass {LARGEST}, got none for {n} items")
        return np.arange(n, dtype=np.int64) + np.int64(first) if n else np.zeros(0, np.int64)

    def _next_after(self, ids: NDArray[Any] | None) -> int:
        """Return the next automatic id, when these are added: no id that ever was there comes back by itself."""
        contents = self._contents
        largest = [int(s.ids.values[-1]) for s in contents.segments if isinstance(s.ids, IntIds) and s.n_rows]
        if ids is not None and ids.dtype == np.int64:
            largest.append(int(ids.max(initial=-1)))
        return max([contents.next_id, *(last + 1 for last in largest)])

    def _notes(self, next_id: int) -> dict[str, Any]:
        """Return what the manifest is to say beside the segments."""
        return {NEXT_ID: next_id}

    def _refuse_taken(self, ids: NDArray[Any]) -> None:
        taken = sum(np.count_nonzero(s.find(ids) >= 0) for s in self._segments)
        if taken:
            raise ValueError(f"ids must be new, got {taken} of {len(ids)} that are in the index; see update")

    # -------------------------------------------------------------------------------------------- folder

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        n_bits: int | None = None,
        ids: str = "int",
        margins: Any = None,
        model: Any = None,
        writable: bool = True,
    ) -> HammingIndex:
        """Open the index in a folder, or make one there where there is none and ``n_bits`` is given.

        One process at a time may have it open with ``writable=True``; any number may read. What ``add``, ``remove`` and
        ``update`` have done is on disk when they return. Use it in a ``with`` statement, or ``close`` it.

        Parameters
        ----------
        path : path-like, the folder
        n_bits : int, optional, of a new index; of an existing one it is checked
        ids : {"int", "str"}, default "int", the kind of ids of a new index
        margins : float array (n, n_bits), optional, of a new index with margins: a sample that the 8 bits are to span
        model : fitted model or its fingerprint, optional, what makes the codes of a new index; of an existing one it is
            checked
        writable : bool, default True, false reads a snapshot, which ``refresh`` renews, and takes no lock

        Returns
        -------
        HammingIndex, the index in the folder
        """
        check_flag("writable", writable)
        if n_bits is None or os.path.lexists(Path(path) / MANIFEST):
            store = Store.open(path, writable=writable)
        elif not writable:
            raise ValueError(f"path must hold an index to be read, got {path}, which holds none")
        else:
            store = Store.create(path, cls._empty(n_bits, ids, margins, model)._settings.document())
        try:
            return cls._on(store, n_bits, model)
        except BaseException:
            store.close()
            raise

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index into a new folder, from which ``open`` makes it again; wholly or not at all.

        Parameters
        ----------
        path : path-like, a folder that is not there yet
        """
        with self._mutex:
            contents, notes = self._contents, self._notes(self._next_after(None))
            segments, about = contents.segments, contents.settings.document()
        with new_folder(Path(path)) as folder, Store.create(folder, about, notes) as store:
            united = merging.merged(segments) if segments else None
            if united and united.n_rows:
                store.commit(add=[united.arrays])

    @classmethod
    def _empty(cls, n_bits: int, ids: str, margins: Any, model: Any) -> HammingIndex:
        index = cls(n_bits=n_bits, model=model)
        check_choice("ids", ids, ("int", "str"))
        index._held = index._held._replace(settings=index._settings._replace(kind=ids))
        if margins is not None:
            index._span(as_margins(margins, index.n_bits, None))
        return index

    @classmethod
    def _on(cls, store: Store, n_bits: int | None, model: Any) -> HammingIndex:
        settings = Settings.read(store.settings, store.path)
        if n_bits is not None and n_bits != settings.n_bits:
            raise ValueError(f"n_bits must be that of the index ({settings.n_bits}), got {n_bits}")
        refuse_another(settings.model, fingerprint_of(model), "model")
        index = cls(n_bits=settings.n_bits)
        index._held, index._store = _Contents(settings), store
        _ = index._contents  # what is wrong with it is said now
        return index

    def _contents_of(self, snapshot: Snapshot, held: _Contents) -> _Contents:
        """Take over what the folder holds; of what was there before the bodies stay, and what is known of them."""
        path = self._folder("this").path
        before = held.snapshot.manifest.settings if held.snapshot else None
        same = snapshot.manifest.settings == before
        settings = held.settings if same else Settings.read(snapshot.manifest.settings, path)
        known = {segment.body.name: segment for segment in held.segments} if same else {}
        segments = tuple(segment_of(stored, known.get(stored.name), settings) for stored in snapshot.segments)
        return _Contents(settings, segments, read_next_id(snapshot.manifest, path), snapshot)

    def refresh(self) -> bool:
        """Move to the newest state of the folder.

        Returns
        -------
        bool, whether it is another one
        """
        with self._mutex:
            changed = self._folder("refresh").refresh()
            _ = self._contents  # what is wrong with it is said now
            return changed

    def verify(self) -> Report:
        """Read every byte of the folder and report all damages.

        Returns
        -------
        Report, what was read, and what is wrong with it
        """
        return verify(self._folder("verify").path)

    def close(self) -> None:
        """Let go of the folder. An index in memory has nothing to let go of."""
        if self._store:
            self._store.close()

    def __enter__(self) -> HammingIndex:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _folder(self, what: str) -> Store:
        if self._store is None:
            raise ValueError(f"{what} must be asked of an index in a folder (HammingIndex.open), got one in memory")
        return self._store


def _large_blocks(blocks: Iterable[Codes]) -> Iterator[Codes]:
    """Give the same codes in fewer blocks, none of them empty."""
    waiting: list[Codes] = []
    for block in blocks:
        if waiting and sum(map(len, waiting)) + len(block) > SEGMENT_ROWS:
            yield np.concatenate(waiting)
            waiting = []
        waiting += [block] if len(block) else []
    if waiting:
        yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
