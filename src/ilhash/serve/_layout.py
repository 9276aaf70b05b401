"""The folder of a service: what is where, and the one document that says what it is made of.

service.json       which engine, which parts
models/00001/      models in the order in which they came; the current one is the one whose codes are searched
index/             HammingIndex, unless another engine has the codes
feedback/          judgements
items/             vectors, labels and texts of items, and their pictures where those are arrays
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ilhash.storage import Record, Sealed

INDEX, FEEDBACK, ITEMS, MODELS, OTHERS = "index", "feedback", "items", "models", "others"
PICTURES, PICTURE_IDS = "pictures.npy", "picture-ids.json"
DOCUMENT = Sealed("service.json", "a service of ilhash", 1, kind="service", most=1 << 20)
_NAME = re.compile(r"[0-9]{5,}")


@dataclass(frozen=True)
class Pictures:
    """Where pictures of items are.

    Attributes
    ----------
    kind : {"arrays", "folder", "url"}
    where : str, a folder, or a URL with ``{id}`` in it; empty for arrays, which lie in the folder of the service
    height, width, channels : int, of arrays
    low, high : float, the values of arrays that are black and white
    drawable : bool, whether a vector is a picture, row by row, so that a drawn one is a query
    """

    kind: str
    where: str = ""
    height: int = 0
    width: int = 0
    channels: int = 0
    low: float = 0.0
    high: float = 255.0
    drawable: bool = False


@dataclass(frozen=True)
class Layout:
    """What a service is made of.

    Attributes
    ----------
    ids : {"int", "str"}
    vectors : int, numbers of an item's vector where vectors are kept, else 0
    margins : bool, whether the index keeps margins
    engine : str or None, the URL of the engine that has the codes, and
    table : str, the beginning of its tables' names
    pictures : Pictures or None
    """

    ids: str
    vectors: int
    margins: bool = False
    engine: str | None = None
    table: str = "ilhash"
    pictures: Pictures | None = None

    def write(self, folder: Path) -> None:
        """Write the document."""
        DOCUMENT.write(folder, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Layout:
        """Read the document of a service."""
        found = DOCUMENT.read(folder)
        record = Record(found, str(folder / DOCUMENT.name))
        pictures = None if found.get("pictures") is None else _pictures(record.record("pictures"))
        engine = None if found.get("engine") is None else record.text("engine", most=2000)
        vectors = record.whole("vectors", most=1 << 20)
        return cls(
            record.one_of("ids", ("int", "str")),
            vectors,
            record.truth("margins"),
            engine,
            record.text("table"),
            pictures,
        )


def _pictures(record: Record) -> Pictures:
    sizes: Mapping[str, Any] = {name: record.whole(name, most=1 << 16) for name in ("height", "width", "channels")}
    kind = record.one_of("kind", ("arrays", "folder", "url"))
    low, high = record.number("low"), record.number("high")
    return Pictures(kind, record.text("where"), **sizes, low=low, high=high, drawable=record.truth("drawable"))


def is_service(folder: Path) -> bool:
    """Whether a folder holds a service."""
    return (folder / DOCUMENT.name).is_file()


def model_names(folder: Path) -> list[str]:
    """Return the names of the models, oldest first."""
    there = [path.name for path in (folder / MODELS).iterdir() if _NAME.fullmatch(path.name)]
    return sorted(there, key=int)


def next_model_name(folder: Path) -> str:
    """Return the name of the model that comes next."""
    names = model_names(folder)
    return f"{int(names[-1]) + 1 if names else 1:05d}"
