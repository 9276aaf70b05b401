"""Where the codes are: an index in the service's folder, or an engine elsewhere, under one roof for the service."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash import engines
from ilhash.search import HammingIndex, Hits
from ilhash.serve._layout import INDEX, Layout

MOST_IN_MEMORY = 1_000_000  # items of an engine that are copied here where it cannot answer by itself

Codes = NDArray[np.uint8]
Ids = NDArray[Any]
Margins = NDArray[np.float32]


class View(ABC):
    """One state of the codes, which is searched."""

    n_bits: int
    orders: tuple[str, ...] = ("hamming", "asymmetric")
    engine: str

    @cached_property
    def ids(self) -> Ids:
        """All ids, ascending."""
        return self._all_ids()

    @abstractmethod
    def _all_ids(self) -> Ids: ...

    @property
    @abstractmethod
    def index(self) -> HammingIndex:
        """All codes as an index in memory."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def contains(self, ids: list[Any]) -> list[bool]:
        """Say which ids there are."""

    @abstractmethod
    def codes(self, ids: Any) -> Codes:
        """Return codes of items that are there."""

    @abstractmethod
    def nearest(self, codes: Codes, k: int) -> Hits:
        """Search by Hamming distance."""

    @abstractmethod
    def asymmetric(self, margins: Margins, k: int) -> Hits:
        """Search by margins of the query."""

    def by_margins(self, margins: Margins, k: int) -> Hits:
        """Search by margins of query and items, where an index keeps them."""
        return self.index.search_margins(margins, k)

    def weighed(self, margins: Margins, k: int) -> Hits:
        """Search by margins of the query, exactly; bits with margin 0 do not count."""
        return self.index.search_asymmetric(margins, k)


class IndexView(View):
    """A snapshot of an index of ours."""

    engine = "folder"

    def __init__(self, index: HammingIndex, *, margins: bool, n_threads: int) -> None:
        self._index, self.n_bits, self._n_threads = index, index.n_bits, n_threads
        self.orders = ("hamming", "asymmetric", "margins") if margins else ("hamming", "asymmetric")

    @property
    def index(self) -> HammingIndex:
        """All codes as an index in memory."""
        return self._index

    def _all_ids(self) -> Ids:
        return self._index.ids

    def __len__(self) -> int:
        return len(self.index)

    def contains(self, ids: list[Any]) -> list[bool]:
        """Say which ids there are."""
        return [one in self.index for one in ids]

    def codes(self, ids: Any) -> Codes:
        """Return codes of items that are there."""
        return self.index.codes(ids)

    def nearest(self, codes: Codes, k: int) -> Hits:
        """Search by Hamming distance."""
        return self.index.search(codes, k, n_threads=self._n_threads)

    def asymmetric(self, margins: Margins, k: int) -> Hits:
        """Search by margins of the query."""
        return self.index.search_asymmetric(margins, k, n_threads=self._n_threads)


class EngineView(View):
    """What an engine holds now; whoever asks it holds its lock."""

    def __init__(self, engine: engines.Engine) -> None:
        self._engine, self.n_bits, self.engine = engine, engine.n_bits, engine.name

    def _all_ids(self) -> Ids:
        parts = [ids for ids, _ in self._engine.blocks()]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @property
    def index(self) -> HammingIndex:
        """All codes as an index in memory, for what the engine cannot do."""
        return self._copied

    @cached_property
    def _copied(self) -> HammingIndex:
        n = len(self._engine)
        if n > MOST_IN_MEMORY:
            raise ValueError(
                f"n_bits must be left out with the engine {self.engine} where it holds more than {MOST_IN_MEMORY:,} "
                f"items, got one with {n:,}"
            )
        blocks = list(self._engine.blocks())
        if not blocks:
            return HammingIndex(n_bits=self.n_bits)
        ids, codes = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return HammingIndex(codes, n_bits=self.n_bits, ids=ids)

    def __len__(self) -> int:
        return len(self._engine)

    def contains(self, ids: list[Any]) -> list[bool]:
        """Say which ids there are."""
        kind = int if self._engine.settings.ids == "int" else str
        right = [one for one in ids if type(one) is kind]
        there = dict(zip(right, self._engine.contains(right).tolist(), strict=True)) if right else {}
        return [there.get(one, False) for one in ids]

    def codes(self, ids: Any) -> Codes:
        """Return codes of items that are there."""
        return self._engine.codes(ids)

    def nearest(self, codes: Codes, k: int) -> Hits:
        """Search by Hamming distance."""
        return self._engine.search(codes, k)

    def asymmetric(self, margins: Margins, k: int) -> Hits:
        """Search by margins of the query."""
        return self._engine.search_asymmetric(margins, k)


class Holder(ABC):
    """What changes codes, and shows what they are."""

    @property
    @abstractmethod
    def model(self) -> str | None:
        """Fingerprint of the model whose codes these are."""

    @abstractmethod
    def view(self) -> View:
        """Return the state as it is now."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from asking meanwhile, where only one may."""
        yield

    @abstractmethod
    def next_ids(self, n: int) -> Ids:
        """Return the ids that new items get by themselves."""

    @abstractmethod
    def add(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Add items, durably."""

    @abstractmethod
    def update(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Give items other codes, durably."""

    @abstractmethod
    def remove(self, ids: Ids) -> None:
        """Remove items, durably."""

    @abstractmethod
    def follow(self, model: Any, n_new: int, X: Any, ids: Ids) -> None:
        """Give all items the bits of a model that has some more behind those that it had."""

    @abstractmethod
    def refresh(self) -> bool:
        """Look at what another process has written; return whether it may be another state."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


class FolderCodes(Holder):
    """An index of ours in the service's folder."""

    def __init__(self, folder: Path, layout: Layout, *, writable: bool, n_threads: int) -> None:
        self._index = HammingIndex.open(folder / INDEX, writable=writable)
        self._margins, self._n_threads = layout.margins, n_threads

    @property
    def model(self) -> str | None:
        """Fingerprint of the model whose codes these are."""
        return self._index.model

    def view(self) -> View:
        """Return the state as it is now."""
        return IndexView(self._index.snapshot(), margins=self._margins, n_threads=self._n_threads)

    def next_ids(self, n: int) -> Ids:
        """Return the ids that new items get by themselves."""
        return self._index.next_ids(n)

    def add(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Add items, durably."""
        self._index.add(codes, ids, margins=margins)

    def update(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Give items other codes, durably."""
        self._index.update(codes, ids, margins=margins)

    def remove(self, ids: Ids) -> None:
        """Remove items, durably."""
        self._index.remove(ids)

    def follow(self, model: Any, n_new: int, X: Any, ids: Ids) -> None:
        """Give all items the bits of a model that has some more behind those that it had."""
        self._index.follow(model, X, ids=ids)

    def refresh(self) -> bool:
        """Look at what another process has written; return whether it may be another state."""
        return self._index.refresh()

    def close(self) -> None:
        """Let go of it."""
        self._index.close()


class EngineCodes(Holder):
    """An engine, which one thread at a time may ask."""

    def __init__(self, layout: Layout, *, writable: bool) -> None:
        self._url, self._table, self._writable = str(layout.engine), layout.table, writable
        self._lock = threading.RLock()
        self._engine = self._opened()

    def _opened(self) -> engines.Engine:
        return engines.open(self._url, table=self._table, writable=self._writable)

    @property
    def model(self) -> str | None:
        """Fingerprint of the model whose codes these are."""
        return self._engine.model

    def view(self) -> View:
        """Return the state as it is now."""
        return EngineView(self._engine)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others from asking meanwhile."""
        with self._lock:
            yield

    def next_ids(self, n: int) -> Ids:
        """Return the ids that new items get by themselves."""
        return self._engine.next_ids(n)

    def add(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Add items, durably where the engine is."""
        self._engine.add(codes, ids)

    def update(self, codes: Codes, ids: Ids, margins: Margins | None) -> None:
        """Give items other codes."""
        self._engine.update(codes, ids)

    def remove(self, ids: Ids) -> None:
        """Remove items."""
        self._engine.remove(ids)

    def follow(self, model: Any, n_new: int, X: Any, ids: Ids) -> None:
        """Give all items the bits of a model that has some more behind those that it had."""
        self._engine.append_bits(model[-n_new:].transform(X), n_new, ids=ids, model=model)

    def refresh(self) -> bool:
        """Open the engine anew: another client may have given it other bits."""
        with self._lock:
            before, self._engine = self._engine, self._opened()
            before.close()
        return True

    def close(self) -> None:
        """Let go of it."""
        with self._lock:
            self._engine.close()


def signs(codes: Codes, n_bits: int, first: int) -> Margins:
    """Return codes as margins of size 1, and 0 behind the first bits: what is weighed so is a prefix of the codes."""
    out: Margins = np.where(packed.unpack(codes, n_bits), np.float32(1.0), np.float32(-1.0))
    out[:, first:] = 0.0
    return out
