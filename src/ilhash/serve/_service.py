"""A service without its door: what it holds, how that changes, and that nothing acknowledged is lost.

A change is written to the log of items first and then to the index or engine, which decides: what a kill leaves of it
in the log alone counts for nothing, and an update that only the log has is brought to its end when the service opens.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._fingerprints import bits_of
from ilhash._ids import as_ids, refuse_repeated
from ilhash.engines import EngineError
from ilhash.feedback import Feedback
from ilhash.models import load
from ilhash.serve._codes import EngineCodes, FolderCodes, Holder
from ilhash.serve._item_log import Label, Records
from ilhash.serve._items import Items
from ilhash.serve._layout import FEEDBACK, ITEMS, MODELS, Layout, model_names, next_model_name
from ilhash.serve._pictures import Shown
from ilhash.serve._searching import Answer, Asked, NotThereError, answer
from ilhash.serve._state import Other, State
from ilhash.storage import StoreLockedError

T = TypeVar("T")


class TakenError(ValueError):
    """An id that is to be new is there."""


class ReadOnlyError(Exception):
    """A server that only reads its folder is asked to write."""


@dataclass(frozen=True)
class Change:
    """Items that are to be added, changed or removed together.

    Attributes
    ----------
    kind : {"add", "update", "remove"}
    ids : list or None, where an index is to number them
    vectors : float32 array (n, D) or None
    codes : list of str or None, hexadecimal
    labels, texts : list or None
    """

    kind: str
    ids: list[Any] | None = None
    vectors: NDArray[np.float32] | None = None
    codes: list[str] | None = None
    labels: list[Label] | None = None
    texts: list[str | None] | None = None

    def __len__(self) -> int:
        given = next(part for part in (self.vectors, self.codes, self.ids) if part is not None)
        return len(given)

    @property
    def likeness(self) -> tuple[Any, ...]:
        """What changes must have in common to be made in one step: an update leaves what it does not name."""
        named = (self.labels is None, self.texts is None) if self.kind == "update" else ()
        return self.kind, self.ids is None, self.vectors is None, *named


class Service:
    """A folder that ``make`` made, opened.

    Parameters
    ----------
    path : path-like, the folder
    others : mapping, optional, further models by name, beside the current one
    writable : bool, optional, by default as it can be: a second process reads and follows
    n_threads : int, default 1, of a scan
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        others: Mapping[str, Any] | None = None,
        writable: bool | None = None,
        n_threads: int = 1,
    ) -> None:
        self.folder = Path(path).absolute()
        self.layout = Layout.read(self.folder)
        self._mutex = threading.RLock()  # of those who change the state
        self._judging = threading.RLock()
        self.feedback, self.writable = _opened_feedback(self.folder, writable)
        self._n_threads = n_threads
        try:
            self._codes = self._opened_codes()
            try:
                self._begin(others or {})
            except BaseException:
                self._codes.close()
                raise
        except BaseException:
            self.feedback.close()
            raise

    def _opened_codes(self) -> Holder:
        if self.layout.engine is None:
            return FolderCodes(self.folder, self.layout, writable=self.writable, n_threads=self._n_threads)
        return EngineCodes(self.layout, writable=self.writable)

    def _begin(self, others: Mapping[str, Any]) -> None:
        self.items = Items(self.folder / ITEMS, self.layout.vectors)
        if self.writable:
            self.items.settle()
        name, model = self._current_model()
        with self._codes.held():
            self.state = State(
                1, 1, name, model, self._codes.view(), self.items, self.layout.ids, self._before(name, model)
            )
        if self.writable:
            self._finish_update()
        self.pictures = self._opened_pictures()
        self.others = {name: self._other(name, model) for name, model in others.items()}

    def _opened_pictures(self) -> Shown | None:
        if self.layout.pictures is None:
            return None
        return Shown(self.folder / ITEMS, self.layout.pictures, self.vector)

    def _other(self, name: str, model: Any) -> Other:
        if not self.layout.vectors:
            raise ValueError(
                f"other models must be beside a service that keeps vectors, got {name!r} beside codes alone"
            )
        if model.n_features_in_ != self.layout.vectors or name == "current" or name.isdigit():
            raise ValueError(
                f"other models must take vectors of {self.layout.vectors} numbers and have names of their own, got "
                f"{name!r} of {model.n_features_in_}"
            )
        return Other(name, model)

    def vector(self, name: Any) -> NDArray[np.float32] | None:
        """Return the vector of an item, None where there is none."""
        items = self.state.items
        rows = items.rows([name])
        return items.vectors(rows)[0] if items.with_vectors(rows)[0] else None

    def close(self) -> None:
        """Let go of the folder."""
        with self._mutex:
            self._codes.close()
            self.feedback.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -------------------------------------------------------------------------------------------- models

    def _current_model(self) -> tuple[str, Any]:
        """Return the newest model whose codes there are: one that was saved last may not have been followed."""
        wanted, names = self._codes.model, model_names(self.folder)
        for name in reversed(names):
            model = load(self.folder / MODELS / name)
            if wanted is None or model.fingerprint() == wanted:
                return name, model
        raise ValueError(f"{self.folder / MODELS} must hold the model of the codes ({str(wanted)[:16]}...), got others")

    def _before(self, name: str, model: Any) -> dict[str, int]:
        """Return earlier models whose bits are the first of this one's."""
        own, found = bits_of(model) or (), {}
        for earlier in model_names(self.folder):
            if int(earlier) < int(name):
                bits = bits_of(load(self.folder / MODELS / earlier)) or ()
                if 0 < len(bits) < len(own) and bits == own[: len(bits)]:
                    found[earlier] = len(bits)
        return found

    def adopt(self, model: Any, n_new: int) -> None:
        """Give all items the bits of a model that has more than the current one, and search by it from then on."""
        with self._mutex:
            self.refuse_unless_writable()
            name = next_model_name(self.folder)
            model.save(self.folder / MODELS / name)
            state = self.state
            ids, vectors = state.base
            if len(ids) != len(state.view):
                got = f"{len(state.view) - len(ids)} of {len(state.view)} without"
                raise ValueError(f"all items must have vectors to get new bits, got {got}")
            with self._codes.held():
                if len(ids):
                    self._codes.follow(model, n_new, vectors, ids)
                else:
                    raise ValueError("a service must have items to learn, got none")
                before = self._before(name, model)
                self._swap(name=name, model=model, before=before, generation=state.generation + 1)

    def _swap(self, **new: Any) -> None:
        """Let requests see what there is now."""
        state = self.state
        view = self._codes.view()
        self.state = dataclasses.replace(state, number=state.number + 1, view=view, items=self.items, **new)

    # -------------------------------------------------------------------------------------------- reading

    @contextmanager
    def reading(self) -> Iterator[State]:
        """Give the state that a request goes on with; an engine is asked by one at a time."""
        with self._codes.held():
            yield self.state

    def search(self, asked: Sequence[Asked]) -> list[Answer | Exception]:
        """Answer searches."""
        with self.reading() as state:
            found = answer(state, self.others, asked)
        if any(isinstance(one, EngineError) for one in found) and self.refresh():
            with self.reading() as state:  # another client gave the engine other bits
                found = answer(state, self.others, asked)
        return found

    def patiently(self, work: Callable[..., T], *given: Any) -> T:
        """Do something; once more where another client has changed an engine that this server follows."""
        try:
            return work(*given)
        except EngineError:
            if not self.refresh():
                raise
            return work(*given)

    def refresh(self) -> bool:
        """Follow another process that writes to the folder; return whether there may be something new."""
        if self.writable:
            return False
        with self._mutex, self._judging:
            self.feedback.refresh()
            with self._codes.held():
                if not self._codes.refresh():
                    return False
                self.items = self.items.refreshed()
                if self._codes.model in (None, self.state.model.fingerprint()):
                    self._swap()
                else:
                    name, model = self._current_model()
                    before = self._before(name, model)
                    self._swap(name=name, model=model, before=before, generation=self.state.generation + 1)
        return True

    # -------------------------------------------------------------------------------------------- judgements

    def judge(
        self, query: list[Any], item: list[Any], similar: list[bool], weight: list[float], who: list[Any]
    ) -> None:
        """Keep judgements, durably."""
        self.refuse_unless_writable()
        with self.reading() as state:
            missing = [
                one for one, there in zip(query + item, state.view.contains(query + item), strict=True) if not there
            ]
        if missing:
            got = f"{len(missing)} others, first {missing[0]!r}"
            raise NotThereError(f"query and item must be in the index, got {got}")
        with self._judging:
            self.feedback.add(query, item, np.array(similar, np.bool_), np.array(weight), who)

    def judged(self) -> dict[str, int]:
        """Return what judgements came to."""
        with self._judging:
            found = self.feedback.summary()
        return {
            "judgements": found.n_judgements,
            "similar": found.n_similar,
            "dissimilar": found.n_dissimilar,
            "people": found.n_people,
            "pairs": found.n_pairs,
        }

    def pairs(self, ids: NDArray[Any]) -> NDArray[np.float64]:
        """Return judged pairs of items as rows."""
        with self._judging:
            return self.feedback.pairs(ids)

    # -------------------------------------------------------------------------------------------- changes

    def refuse_unless_writable(self) -> None:
        """Refuse changes where another process makes them."""
        if not self.writable:
            raise ReadOnlyError

    def change(self, changes: Sequence[Change]) -> list[list[Any] | Exception]:
        """Make changes in their order, those that are alike in one step; they are durable when this returns.

        Returns
        -------
        list, for each change the ids of its items, or what was wrong with it
        """
        out: list[list[Any] | Exception] = []
        with self._mutex:
            for _, some in itertools.groupby(changes, lambda one: one.likeness):
                out += self._alike(list(some))
            self._compact()
        return out

    def _alike(self, changes: list[Change]) -> Sequence[list[Any] | Exception]:
        try:
            self.refuse_unless_writable()
            with self._codes.held():
                ids = self._made(changes)
                self._swap()
        except Exception as error:
            if len(changes) == 1:
                return [error]
            return [self._alike([one])[0] for one in changes]
        ends = list(itertools.accumulate(map(len, changes)))
        return [ids[end - len(one) : end] for one, end in zip(changes, ends, strict=True)]

    def _made(self, changes: list[Change]) -> list[Any]:
        kind, ids = changes[0].kind, self._ids(changes)
        there = self.state.view.contains(ids)
        if kind == "add" and any(there):
            raise TakenError(f"ids must be new, got {sum(there)} of {len(ids)} that are in the index; see update")
        if kind != "add" and not all(there):
            first = ids[there.index(False)]
            raise NotThereError(
                f"ids must be in the index, got {there.count(False)} of {len(ids)} others, first {first!r}"
            )
        names = as_ids(ids, len(ids), self.layout.ids)
        if kind == "remove":
            self._codes.remove(names)
            return ids
        vectors, codes, margins = self._coded(changes)
        records = Records(ids, vectors, _joined(changes, "labels"), _joined(changes, "texts"), kind == "update")
        kept = vectors is not None or records.labels is not None or records.texts is not None
        # What the log has of an item that is there no more must not come back with a new one of its id.
        kept = kept or (kind == "add" and bool((self.items.rows(ids) >= 0).any()))
        before = self._records_of(ids) if kept and kind == "update" else None
        if kept:
            self.items.append(records)
        try:
            (self._codes.add if kind == "add" else self._codes.update)(codes, names, margins)
        except BaseException:
            if before is not None:  # else the log would have vectors whose codes the index does not have
                with contextlib.suppress(OSError):
                    self.items.append(before)
            raise
        return ids

    def _ids(self, changes: list[Change]) -> list[Any]:
        if changes[0].ids is None:
            if self.layout.ids == "str":
                raise ValueError("ids must be given to a service whose ids are texts, got none")
            numbered: list[Any] = self._codes.next_ids(sum(map(len, changes))).tolist()
            return numbered
        ids = [name for change in changes for name in change.ids or ()]
        refuse_repeated(as_ids(ids, len(ids), self.layout.ids))
        return ids

    def _coded(
        self, changes: list[Change]
    ) -> tuple[NDArray[np.float32] | None, NDArray[np.uint8], NDArray[np.float32] | None]:
        """Return vectors to keep, codes, and margins where the index keeps some."""
        state = self.state
        if changes[0].vectors is None:
            if self.layout.vectors or self.layout.margins:
                raise ValueError(
                    "items must come with vectors to this service, which learns from them, got codes alone"
                )
            texts = [code for change in changes for code in change.codes or ()]
            return None, packed.from_hex(texts, state.n_bits), None
        given = [change.vectors for change in changes if change.vectors is not None]
        vectors = np.concatenate(given) if len(given) > 1 else given[0]
        margins = state.model.decision_function(vectors)
        kept = vectors if self.layout.vectors else None
        return kept, packed.pack(margins > 0), margins if self.layout.margins else None

    def _records_of(self, ids: list[Any]) -> Records:
        items = self.items
        rows = items.rows(ids)
        vectors = items.vectors(rows) if items.with_vectors(rows).all() else None
        labels, texts = [items.label(row) for row in rows.tolist()], [items.text(row) for row in rows.tolist()]
        return Records(ids, vectors, labels, texts, True)

    def _finish_update(self) -> None:
        """Let the index have what the last block says of items that it holds: a kill may have come in between."""
        last = self.items.last
        if last is None or not last.update or not self.layout.vectors:
            return
        with self._codes.held():
            ids = [name for name, there in zip(last.ids, self.state.view.contains(last.ids), strict=True) if there]
            if not ids:
                return
            margins = self.state.model.decision_function(self.state.vectors_of(ids))
            codes = packed.pack(margins > 0)
            if not np.array_equal(codes, self.state.view.codes(ids)):
                names = as_ids(ids, len(ids), self.layout.ids)
                self._codes.update(codes, names, margins if self.layout.margins else None)
                self._swap()

    def _compact(self) -> None:
        if self.writable and self.items.wasteful(len(self.state.view)):
            self.items = self.items.compacted(self.state.view.ids.tolist())
            with self._codes.held():
                self._swap()


def _joined(changes: list[Change], name: str) -> list[Any] | None:
    """Return the labels or texts of all changes, None where none has any."""
    if all(getattr(change, name) is None for change in changes):
        return None
    out: list[Any] = []
    for change in changes:
        out += getattr(change, name) or [None] * len(change)
    return out


def _opened_feedback(folder: Path, writable: bool | None) -> tuple[Feedback, bool]:
    """Open the log of judgements, whose lock says who writes to the folder."""
    if writable is not False:
        try:
            return Feedback.open(folder / FEEDBACK), True
        except (StoreLockedError, PermissionError):
            if writable:
                raise
    return Feedback.open(folder / FEEDBACK, writable=False), False
