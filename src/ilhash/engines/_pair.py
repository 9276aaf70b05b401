"""The two files of a library that keeps an index of codes and nothing of items, and how they change together.

::

    <file>                          the library's own index, over distinct codes, numbered from 0
    <file>.items/<SHA-256>          ids, ascending, and the number of each one's code, sealed
    <file>.items/lock               of the one writer

The name of the items is the SHA-256 of the index that they belong to. A change writes them first, then puts the new
index in the place of the old one by one rename, and then drops the old items: a process that is killed leaves the old
pair or the new one. An index that was altered has no items of its name, which is how it is noticed: the libraries
themselves load flipped bits without a word.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash.engines._settings import MOST_BITS, EngineError, Ids, Settings
from ilhash.engines._shelf import Shelf
from ilhash.storage import (
    TEMPORARY,
    DamagedFileError,
    Record,
    SealedArrays,
    checked_array,
    parse_json,
    read_file,
    reading,
    sha256_of,
    stage,
    sync_folder,
    temporary_in,
)

FORMAT = 1
ITEMS = SealedArrays("about")
NAMES = re.compile("[0-9a-f]{64}")
MOST_READS = 20  # of a pair that another process keeps changing


def _to_arrays(shelf: Shelf) -> dict[str, NDArray[Any]]:
    if shelf.ids.dtype != object:
        return {"ids": shelf.ids, "numbers": shelf.numbers}
    texts = [text.encode() for text in shelf.ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {"id_text": np.frombuffer(b"".join(texts), np.uint8), "id_ends": ends, "numbers": shelf.numbers}


def _ids_in(arrays: dict[str, NDArray[Any]], kind: str, where: str) -> Ids:
    """Return the ids of a file of items, which must ascend."""
    if kind == "int":
        ids = checked_array(arrays.get("ids"), f"ids of {where}", np.int64, (None,))
    else:
        text = checked_array(arrays.get("id_text"), f"id_text of {where}", np.uint8, (None,)).tobytes()
        ends = checked_array(arrays.get("id_ends"), f"id_ends of {where}", np.int64, (None,), least=0).tolist()
        ids = np.empty(max(len(ends) - 1, 0), object)
        with reading(f"{where} must hold ids that are texts"):
            ids[:] = [text[begin:end].decode() for begin, end in pairwise(ends)]
    if not (ids[:-1] < ids[1:]).all():
        raise DamagedFileError(f"ids of {where} must ascend, got some that do not")
    return ids


class Pair:
    """The two files, and how they change together."""

    def __init__(self, path: Path, engine: str) -> None:
        self.path, self.engine = path, engine
        self.folder = path.with_name(f"{path.name}.items")

    def read(self) -> tuple[bytes, Settings, str, Ids, NDArray[np.int32]]:
        """Return the bytes of the index, settings, mode, ids and numbers, all of the same moment."""
        seen = ""
        for _ in range(MOST_READS):
            data = read_file(self.path, most=2**62)
            name = sha256_of([data])
            with contextlib.suppress(FileNotFoundError):  # a writer was quicker: its new pair is there
                return data, *self._items(name)
            if name == seen:
                break
            seen = name
        raise DamagedFileError(self.without_items())

    def without_items(self) -> str:
        """Return the refusal of an index that has no items of its name."""
        rule = f"{self.path} must be an index that ilhash wrote, with its items in {self.folder.name}"
        if any(NAMES.fullmatch(name) for name in self.names()):
            return f"{rule}, got a file that they do not belong to: it was altered, truncated or replaced"
        return f"{rule}, got a file without items"

    def names(self) -> list[str]:
        """Return the names of the files beside the index."""
        return os.listdir(self.folder) if self.folder.is_dir() else []

    def _items(self, name: str) -> tuple[Settings, str, Ids, NDArray[np.int32]]:
        file = self.folder / name
        arrays, text = ITEMS.read(file, place=name)
        about = Record(parse_json(text.encode(), file, "a file of items"), str(file))
        about.whole("format", FORMAT, FORMAT)
        about.one_of("engine", (self.engine,))
        model = None if about.document.get("model") is None else about.text("model")
        settings = Settings(about.whole("n_bits", 1, MOST_BITS), about.one_of("ids", ("int", "str")), model)
        ids = _ids_in(arrays, settings.ids, str(file))
        numbers = checked_array(arrays.get("numbers"), f"numbers of {file}", np.int32, (len(ids),), least=0)
        return settings, about.text("mode"), ids, numbers

    def write(self, index: Any, shelf: Shelf, settings: Settings, mode: str) -> None:
        """Put a new pair in the place of the old one; it is durable when this returns."""
        name = sha256_of([index])
        about = {"format": FORMAT, "engine": self.engine, "mode": mode, **asdict(settings)}
        ITEMS.write(self.folder / name, _to_arrays(shelf), json.dumps(about), place=name)
        temporary = temporary_in(self.folder)
        try:
            stage(temporary, [index])
            os.replace(temporary, self.path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(self.path.parent)
        self.sweep(name)

    def sweep(self, name: str) -> None:
        """Drop items of other indexes, and what a killed process left; only for the one writer."""
        for other in self.names():
            if other != name and (NAMES.fullmatch(other) or other.startswith(TEMPORARY)):
                with contextlib.suppress(OSError):  # a reader may hold it on Windows: the next writer drops it
                    (self.folder / other).unlink()

    def refuse_remains(self) -> None:
        """Refuse to begin anew where items are left of an index that is gone."""
        for name in filter(NAMES.fullmatch, self.names()):
            _, _, ids, _ = self._items(name)
            if len(ids):
                raise EngineError(f"{self.path} must be there for the {len(ids)} items in {self.folder}, got no file")
