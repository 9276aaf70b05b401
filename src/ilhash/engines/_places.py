"""URLs of engines: which engine, which place, which extra must be installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ilhash._checks import check_choice, check_flag
from ilhash._extras import require
from ilhash._fingerprints import fingerprint_of, refuse_another
from ilhash.engines._contract import Engine
from ilhash.engines._settings import Settings

_PASSWORD_ASKED = re.compile(r"([?&;][^=&]*pass[^=&]*=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """An engine as ``ilhash engines`` lists it.

    Attributes
    ----------
    scheme : str, what a URL begins with
    home : str, module and class
    extra : str, optional, the extra of ilhash that brings what it needs
    needs : tuple of str, modules, each with the name of its package where that is another
    example : str, a URL
    """

    scheme: str
    home: str
    extra: str | None
    needs: tuple[tuple[str, str], ...]
    example: str

    def load(self) -> type[Engine]:
        """Return the class, or say which command installs what it needs.

        Returns
        -------
        type, the class of the engine
        """
        for module, _ in self.needs:
            require(module, self.extra or "", f"the engine {self.scheme}")
        module, _, name = self.home.partition(":")
        found: type[Engine] = getattr(importlib.import_module(f"ilhash.engines.{module}"), name)
        return found

    def versions(self) -> dict[str, str] | None:
        """Return the versions of what it needs.

        Returns
        -------
        dict, package to version; None where one is missing
        """
        try:
            return {package: importlib.metadata.version(package) for _, package in self.needs}
        except importlib.metadata.PackageNotFoundError:
            return None


ENTRIES = {
    entry.scheme: entry
    for entry in (
        Entry("folder", "folder:Folder", None, (), "folder:///path/to/index"),
        Entry("postgresql", "postgres:Postgres", "postgres", (("pg8000", "pg8000"),), "postgresql://me@host/database"),
        Entry(
            "sqlite", "sqlite:Sqlite", "sqlite", (("apsw", "apsw"), ("sqlite_vec", "sqlite-vec")), "sqlite:///items.db"
        ),
        Entry("duckdb", "duckdb:DuckDb", "duckdb", (("duckdb", "duckdb"),), "duckdb:///items.duckdb"),
        Entry("clickhouse", "clickhouse:ClickHouse", "clickhouse", (("chdb", "chdb"),), "clickhouse:///folder"),
        Entry("lance", "lance:Lance", "lance", (("lancedb", "lancedb"),), "lance:///folder"),
        Entry("faiss", "faiss:Faiss", "faiss", (("faiss", "faiss-cpu"),), "faiss:///items.faiss"),
        Entry("usearch", "usearch:Usearch", "usearch", (("usearch", "usearch"),), "usearch:///items.usearch"),
    )
}


def entry_of(url: Any) -> Entry:
    """Return the engine that a URL names."""
    if not isinstance(url, str | os.PathLike):
        raise TypeError(f"url must be a text such as 'sqlite:///items.db', got {type(url).__name__}")
    scheme, colon, _ = str(url).partition("://")
    scheme = "postgresql" if scheme == "postgres" else scheme
    if "\0" in unquote(str(url)):
        raise ValueError(f"url must be without NUL, got {without_password(str(url))!r}")
    if not colon or scheme not in ENTRIES:
        known = ", ".join(f"{name}://" for name in ENTRIES)
        raise ValueError(f"url must begin with one of {known}, got {without_password(str(url))!r}")
    return ENTRIES[scheme]


def is_url(text: Any) -> bool:
    """Say whether a text names an engine, and no file.

    Parameters
    ----------
    text : str, what somebody typed

    Returns
    -------
    bool

    Examples
    --------
    >>> is_url("sqlite:///items.db"), is_url("items.npy")
    (True, False)
    """
    return isinstance(text, str) and "://" in text


def path_of(url: str) -> Path:
    """Return the file or folder that a URL names: three slashes are a relative path, four an absolute one.

    A relative path in a folder that is not here is taken for the absolute one where that folder exists:
    ``"lance://" + "/tmp/items"`` means what it says.

    Examples
    --------
    >>> path_of("sqlite:///items.db").as_posix(), path_of("lance:////tmp/items").as_posix()
    ('items.db', '/tmp/items')
    """
    scheme, _, rest = url.partition("://")
    path = Path(unquote(rest[1:] if rest.startswith("/") else rest))
    if path.name in ("", ".."):
        raise ValueError(f"url must name a path, such as {scheme}:///items, got {url!r}")
    absolute = Path("/") / path
    if rest.startswith("/") and not path.parent.is_dir() and absolute.parent.is_dir():
        return absolute
    if not path.parent.is_dir():
        raise FileNotFoundError(f"url must name a path in a folder that exists, got {url!r}: no folder {path.parent}")
    return path


def without_password(url: str) -> str:
    """Return a URL that may be shown.

    Parameters
    ----------
    url : str, which may have a password

    Returns
    -------
    str, with stars in its place

    Examples
    --------
    >>> without_password("postgresql://me:secret@host/items")
    'postgresql://me:***@host/items'
    >>> without_password("postgresql://host/items?user=me&password=secret")
    'postgresql://host/items?user=me&password=***'
    """
    scheme, colon, rest = str(url).partition("://")
    if not colon:
        return str(url)
    rest = _PASSWORD_ASKED.sub(r"\1***", rest)
    before, at, place = rest.rpartition("@")
    user, secret, _ = before.partition(":")
    return f"{scheme}://{user}:***@{place}" if at and secret and "/" not in user else f"{scheme}://{rest}"


def open(  # noqa: A001 (engines.open, as in gzip.open)
    url: str,
    *,
    n_bits: int | None = None,
    table: str = "ilhash",
    ids: str = "int",
    model: Any = None,
    columns: Mapping[str, str] | None = None,
    mode: str = "exact",
    writable: bool = True,
) -> Engine:
    """Open the items of an engine, or make a place for them where there is none and ``n_bits`` is given.

    Parameters
    ----------
    url : str, ``"postgresql://user@host/database"``, ``"sqlite:///file"``, ``"duckdb:///file"``,
        ``"clickhouse:///folder"``, ``"lance:///folder"``, ``"faiss:///file"``, ``"usearch:///file"`` or
        ``"folder:///path"``; three slashes are a relative path, four an absolute one
    n_bits : int, optional, of a new place; of an existing one it is checked
    table : str, default "ilhash", the beginning of the tables' names, in engines that have tables
    ids : {"int", "str"}, default "int", the kind of ids of a new place
    model : fitted model or its fingerprint, optional, what makes the codes of a new place; of an existing one it is
        checked
    columns : mapping, optional, further columns of a new place: name to "int", "float", "text" or "bool"
    mode : str, default "exact", or an approximate mode of the engine by name, such as "hnsw"
    writable : bool, default True, false never changes anything

    Returns
    -------
    Engine, which is to be closed, or used in a ``with`` statement

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open(f"folder:///{folder}/items", n_bits=8) as engine:
    ...     _ = engine.add(np.array([[0], [1], [255]], np.uint8), ids=[7, 8, 9])
    ...     engine.search(np.array([[3]], np.uint8), k=2)
    Hits(distances=array([[1, 2]], dtype=int32), ids=array([[8, 7]]), exact=True)
    """
    entry = entry_of(url)
    check_flag("writable", writable)
    kind = entry.load()
    check_choice("mode", mode, kind.modes)
    if columns is not None and not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a mapping of names, got {type(columns).__name__}")
    if columns and not kind.has_columns:
        raise ValueError(f"columns must be left out with {kind.name}, which has none, got {sorted(columns)}")
    new = None if n_bits is None else Settings(n_bits, ids, fingerprint_of(model), dict(columns or {}))
    engine: Engine = kind.at(str(url), table=table, new=new, mode=mode, writable=writable)
    try:
        if n_bits is not None and n_bits != engine.n_bits:
            raise ValueError(f"n_bits must be that of the codes that are there ({engine.n_bits}), got {n_bits}")
        refuse_another(engine.model, fingerprint_of(model), "model")
    except BaseException:
        engine.close()
        raise
    return engine
