"""Documents with codes: one SQLite file, or memory; one transaction a change; codes are searched by a HammingIndex.

The file is the truth. The index is made of its codes when it is first asked, follows the changes that are made here,
and is made anew when somebody else has changed the file.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilhash import codes as packed
from ilhash._checks import as_numbers, check_choice
from ilhash._fingerprints import fingerprint_of
from ilhash._ids import as_ids, refuse_repeated
from ilhash.hasher import Hasher
from ilhash.models import load
from ilhash.search import HammingIndex
from ilhash.storage import DamagedFileError

ORDERS = ("hamming", "asymmetric", "vectors")
SHORTLIST = 10  # times k: items that the vectors are asked to order
AT_ONCE = 500  # names in one statement

_SCHEMA = (
    "CREATE TABLE documents (id TEXT PRIMARY KEY, body TEXT NOT NULL, code BLOB, vector BLOB)",
    "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
_FORMAT = "1"


@dataclass(frozen=True)
class Stored:
    """A document as it is kept: what the caller wrote of it, and its vector, where vectors are kept."""

    id: str
    body: str
    vector: NDArray[np.float64] | None


class Coder:
    """Vectors to codes: by a model, or, without one, by the sign of every number."""

    def __init__(self, model: Any) -> None:
        self.path = str(model) if isinstance(model, str | os.PathLike) else None
        self.model = load(self.path) if self.path is not None else model
        if self.model is not None and not isinstance(self.model, Hasher):
            raise TypeError(f"model must be a model of ilhash, its folder or None, got {type(model).__name__}")
        self.fingerprint = fingerprint_of(self.model)

    def n_bits(self, vectors: NDArray[Any]) -> int:
        """Return how many bits the codes of such vectors have."""
        return vectors.shape[1] if self.model is None else len(self.model.functions_)

    def margins(self, vectors: NDArray[Any]) -> NDArray[np.float32]:
        """Return numbers of which the bits are the signs."""
        return vectors.astype(np.float32) if self.model is None else self.model.decision_function(vectors)


def as_vectors(name: str, values: Any) -> NDArray[np.float64]:
    """Return vectors of one length, of finite numbers."""
    vectors = np.atleast_2d(as_numbers(name, values))
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError(f"{name} must be vectors of one length, got shape {vectors.shape}")
    bad = int(np.count_nonzero(~np.isfinite(vectors).all(axis=1)))
    if bad:
        raise ValueError(f"{name} must be finite, got {bad} of {len(vectors)} with NaN or infinity")
    return vectors


class Documents:
    """Documents by id, in the order in which they came.

    Parameters
    ----------
    path : path-like, optional, the file; in memory without
    model : fitted model, its folder, or None for the sign of every number
    order : {"hamming", "asymmetric", "vectors"}, how answers are ordered, and what their scores are
    keep_vectors : bool, whether vectors are kept beside codes
    """

    def __init__(self, path: str | os.PathLike[str] | None, model: Any, order: str, keep_vectors: bool) -> None:
        check_choice("order", order, ORDERS)
        if order == "vectors" and not keep_vectors:
            raise ValueError("order must be 'hamming' or 'asymmetric' where vectors are not kept, got 'vectors'")
        self.path, self.coder, self.order, self.keep_vectors = path, Coder(model), order, keep_vectors
        self._mutex = threading.RLock()
        self._index: HammingIndex | None = None
        self._version = -1  # of the file, when the index was made of it
        where = ":memory:" if path is None else os.fspath(Path(path))
        try:
            self._connection = sqlite3.connect(where, check_same_thread=False, isolation_level=None)
        except sqlite3.Error as error:
            raise OSError(f"path must be a file that can be opened or made, got {path} ({error})") from None
        try:
            self._prepare()
        except sqlite3.OperationalError as error:
            self.close()
            raise OSError(f"path must be a file that can be read and written, got {path} ({error})") from None
        except sqlite3.DatabaseError as error:
            self.close()
            raise DamagedFileError(f"{path} must be a file of documents of ilhash, got another ({error})") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file; twice is as good as once."""
        self._connection.close()

    # -------------------------------------------------------------------------------------------- the file

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self._connection.execute("PRAGMA synchronous = EXTRA")
        with self._transaction():
            found = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            if not found:
                for statement in _SCHEMA:
                    self._connection.execute(statement)
                self._set("format", _FORMAT)
            elif sorted(sql for (sql,) in found) != sorted(_SCHEMA):  # no view, no trigger of a stranger
                raise DamagedFileError(f"{self.path} must be a file of documents of ilhash, got one of other tables")
            settings = self._settings()
        if settings.get("format") != _FORMAT:
            raise DamagedFileError(
                f"{self.path} must be documents of format {_FORMAT}, got {settings.get('format')!r:.40}"
            )
        self._check_model(settings)

    def _check_model(self, settings: dict[str, str]) -> None:
        """Refuse codes of another model, also those of no model where there is one."""
        known = settings.get("model")
        if known is not None and known != (self.coder.fingerprint or "none"):
            got = (self.coder.fingerprint or "none")[:16]
            raise ValueError(f"model must be the one that made the codes in {self.path} ({known[:16]}), got {got}")

    def _settings(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT name, value FROM settings").fetchall())

    def _set(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing, and on the disk when it is over."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise OSError(f"{self.path} must be free to be written, got one that is not ({error})") from None
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._index = None
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _rows(self, columns: str, ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        for first in range(0, len(ids), AT_ONCE):
            some = ids[first : first + AT_ONCE]
            marks = ", ".join("?" * len(some))
            yield from self._connection.execute(f"SELECT {columns} FROM documents WHERE id IN ({marks})", some)

    # -------------------------------------------------------------------------------------------- documents

    def __len__(self) -> int:
        with self._mutex:
            return int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])

    def present(self, ids: Sequence[str]) -> set[str]:
        """Return which of some ids are there."""
        with self._mutex:
            return {name for (name,) in self._rows("id", list(ids))}

    def get(self, ids: Sequence[str]) -> list[Stored]:
        """Return documents in the order of the ids; those that are not there are left out."""
        with self._mutex:
            found = {row[0]: _stored(row) for row in self._rows("id, body, vector", list(dict.fromkeys(ids)))}
        return [found[name] for name in ids if name in found]

    def all(self) -> list[Stored]:
        """Return all documents in the order in which they came."""
        with self._mutex:
            rows = self._connection.execute("SELECT id, body, vector FROM documents ORDER BY rowid")
            return [_stored(row) for row in rows]

    def put(self, ids: Sequence[str], bodies: Sequence[str], vectors: Sequence[Any]) -> None:
        """Write documents, each in the place of the one of its id; None for the vector of one that has none."""
        refuse_repeated(as_ids(list(ids), len(bodies), "str"))
        if not len(ids):
            return
        given = [i for i, vector in enumerate(vectors) if vector is not None]
        numbers = as_vectors("embeddings", [vectors[i] for i in given]) if given else np.zeros((0, 1))
        codes = packed.pack(self.coder.margins(numbers) > 0) if given else np.zeros((0, 1), np.uint8)
        blobs: list[tuple[bytes | None, bytes | None]] = [(None, None)] * len(ids)
        for place, code, vector in zip(given, codes, numbers, strict=True):
            kept = vector.astype("<f8").tobytes() if self.keep_vectors else None
            blobs[place] = code.tobytes(), kept
        with self._mutex:
            index = self._searched()
            with self._transaction():
                self._fix_width(numbers if given else None)
                self._connection.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                    "body = excluded.body, code = excluded.code, vector = excluded.vector",
                    [(name, body, *blob) for name, body, blob in zip(ids, bodies, blobs, strict=True)],
                )
            with self._followed():
                if index is not None:
                    index.remove([name for name in ids if name in index])
                    if given:
                        index.add(codes, [ids[i] for i in given])

    def rewrite(self, ids: Sequence[str], bodies: Sequence[str]) -> None:
        """Write what stands in documents that are there; their codes and vectors stay."""
        with self._mutex, self._transaction():
            pairs = list(zip(bodies, ids, strict=True))
            self._connection.executemany("UPDATE documents SET body = ? WHERE id = ?", pairs)

    def remove(self, ids: Sequence[str]) -> int:
        """Remove documents; return how many were there."""
        with self._mutex:
            there = sorted(self.present(ids))
            index = self._searched() if there else None
            if there:
                with self._transaction():
                    self._connection.executemany("DELETE FROM documents WHERE id = ?", [(name,) for name in there])
                with self._followed():
                    if index is not None:
                        index.remove([name for name in there if name in index])
        return len(there)

    def _fix_width(self, vectors: NDArray[Any] | None) -> None:
        """Let the first vectors decide how many bits codes have, and refuse others."""
        if vectors is None:
            return
        settings, own = self._settings(), str(self.coder.n_bits(vectors))
        if settings.setdefault("n_bits", own) != own:
            rule = f"embeddings must have codes of {settings['n_bits']} bits as those that are there"
            raise ValueError(f"{rule}, got {own} bits of {vectors.shape[1]} numbers")
        self._set("n_bits", own)
        self._set("model", self.coder.fingerprint or "none")

    @contextmanager
    def _followed(self) -> Iterator[None]:
        """Change the index as the file was changed; if that fails, it is made anew when it is next needed."""
        try:
            yield
        except BaseException:
            self._index = None
            raise

    # -------------------------------------------------------------------------------------------- search

    def search(self, vector: Any, k: int, allowed: Sequence[str] | None = None) -> list[tuple[str, float]]:
        """Return ids and scores of the nearest documents, best first; 1 is as near as can be, 0 as far."""
        query = as_vectors("query", vector)
        with self._mutex:
            index = self._searched()
        if index is None or not len(index) or k < 1 or (allowed is not None and not len(allowed)):
            return []
        if self.coder.n_bits(query) != index.n_bits:
            raise ValueError(f"query must have a code of {index.n_bits} bits, got {query.shape[1]} numbers")
        margins = self.coder.margins(query)
        if self.order == "hamming":
            hits = index.search(packed.pack(margins > 0), k, allowed=allowed)
            return _scored(hits, index.n_bits)
        asked = k if self.order == "asymmetric" else SHORTLIST * k
        found = _scored(index.search_asymmetric(margins, asked, allowed=allowed), float(np.abs(margins).sum()))
        return found if self.order == "asymmetric" else self._by_vectors(query[0], [name for name, _ in found])[:k]

    def codes(self, ids: Sequence[str]) -> NDArray[np.uint8]:
        """Return the codes of documents that have one."""
        with self._mutex:
            index = self._searched()
        return np.zeros((0, 1), np.uint8) if index is None else index.codes(list(ids))

    @property
    def n_bits(self) -> int | None:
        """Bits of a code; None as long as there is none."""
        with self._mutex:
            index = self._searched()
        return None if index is None else index.n_bits

    def _by_vectors(self, query: NDArray[np.float64], ids: list[str]) -> list[tuple[str, float]]:
        """Order by the angle between vectors; equal ones stay as they are."""
        kept = [one.vector for one in self.get(ids)]
        without = sum(vector is None for vector in kept)
        if without:
            rule = "order must be 'hamming' or 'asymmetric' where vectors were not kept"
            raise ValueError(f"{rule}, got 'vectors' and {without} of {len(kept)} without")
        vectors = np.array(kept)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
        cosines = np.divide(vectors @ query, lengths, out=np.zeros(len(ids)), where=lengths > 0)
        order = np.argsort(-cosines, kind="stable")
        return [(ids[i], float(np.clip((1 + cosines[i]) / 2, 0, 1))) for i in order]

    def _searched(self) -> HammingIndex | None:
        """Return the index of the codes as they are in the file now; None where there is no code yet."""
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if self._index is None or version != self._version:
            settings = self._settings()
            self._check_model(settings)
            self._index, self._version = self._built(settings.get("n_bits")), version
        return self._index

    def _built(self, n_bits: str | None) -> HammingIndex | None:
        if n_bits is None:
            return None
        rule = f"{self.path or 'documents'} must hold codes of one length"
        if not (n_bits.isascii() and n_bits.isdigit() and 0 < int(n_bits) < 1 << 16):
            raise DamagedFileError(f"{rule}, got {n_bits!r:.40} bits")
        width, index = packed.bytes_per_code(int(n_bits)), HammingIndex(n_bits=int(n_bits))
        rows = self._connection.execute("SELECT id, code FROM documents WHERE code IS NOT NULL").fetchall()
        if not all(isinstance(name, str) and isinstance(code, bytes) and len(code) == width for name, code in rows):
            raise DamagedFileError(f"{rule} ({width} bytes) under texts, got others")
        if rows:
            joined = np.frombuffer(b"".join(code for _, code in rows), np.uint8).reshape(-1, width)
            try:
                index.add(joined, [name for name, _ in rows])
            except ValueError as error:
                raise DamagedFileError(f"{rule}, got others: {error}") from None
        return index


def _stored(row: tuple[Any, ...]) -> Stored:
    name, body, vector = row
    if not (isinstance(name, str) and isinstance(body, str)) or not (
        vector is None or (isinstance(vector, bytes) and len(vector) % 8 == 0)
    ):
        raise DamagedFileError(f"document {name!r:.80} must be a text with a vector of 8-byte numbers, got others")
    return Stored(name, body, None if vector is None else np.frombuffer(vector, "<f8"))


def _scored(hits: Any, most: float) -> list[tuple[str, float]]:
    """Return (id, score) of one query, where ``most`` is the largest distance that there can be."""
    scores = 1.0 - hits.distances[0] / most if most > 0 else np.ones(len(hits.ids[0]))
    return [(name, float(min(max(score, 0.0), 1.0))) for name, score in zip(hits.ids[0], scores, strict=True)]
