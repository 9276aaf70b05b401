"""A durable, append-only collection of immutable segments, each a set of named arrays, and of their dead rows.

A commit writes new files, flushes them, and then replaces the manifest, which names the files of the state. Until that
one rename the old state is whole, and after it the new one is. No file ever changes, and no name is used twice: a
reader keeps the state that it opened while a writer goes on.

There is one truth, the manifest on disk. A commit may be interrupted between any two calls, by Ctrl-C too: what this
process knows of the store is replaced in single assignments, and where it was cut off the manifest is asked.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ilhash.search._array_file import ArrayFile, Arrays, storable, write_arrays
from ilhash.search._manifest import LOCK, MANIFEST, Manifest, leftovers, looks_empty, read_manifest, storable_settings
from ilhash.search._snapshot import Rows, Snapshot, StoredSegment, dead_rows, newest, snapshot_of
from ilhash.search._verify import Report, verify_files
from ilhash.storage import (
    StorageError,
    StoreLockedError,
    WriterLock,
    make_folder,
    stage,
    sync_folder,
    temporary_in,
    write_file,
)


class _Known(NamedTuple):
    """What is known of the store; only ever replaced whole."""

    snapshot: Snapshot
    pending: Snapshot | None = None  # what a commit is making of it: there if the manifest on disk is its manifest
    durable: bool = True  # whether the manifest was flushed


class Store:
    """A folder of segments; made by ``create`` or ``open``, used in a ``with`` statement or ended by ``close``.

    One writer at a time, any number of readers. A reader takes no lock and stays on the snapshot that it opened until
    ``refresh``.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Store.create(folder, {"n_bits": 8}) as store:
    ...     (name,) = store.commit(add=[{"codes": np.zeros((3, 1), np.uint8)}])
    ...     _ = store.commit(remove={name: np.array([1])})
    >>> with Store.open(folder, writable=False) as store:
    ...     segment = store.segments[0]
    ...     segment["codes"].shape, segment.removed.tolist(), store.verify().ok
    ((3, 1), [1], True)
    """

    def __init__(self, path: Path, lock: WriterLock | None, snapshot: Snapshot) -> None:
        self.path = path
        self._lock = lock
        self._known: _Known | None = _Known(snapshot)
        self._mutex = threading.RLock()

    def __reduce__(self) -> Any:
        raise TypeError(f"a store must be opened again by its path, got an attempt to pickle it ({self.path})")

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], settings: Mapping[str, Any], notes: Mapping[str, Any] | None = None
    ) -> Store:
        """Make a store without segments in a new or empty folder, and open it for writing."""
        folder = Path(path).absolute()  # the process may change its directory
        manifest = Manifest(0, storable_settings(settings), notes=storable_settings(notes or {}))
        if folder.exists() and not (folder.is_dir() and looks_empty(folder)):
            raise ValueError(f"path must be a new or empty folder for the store, got {folder}, which is not empty")
        with _explained(f"store {folder} could not be created:"):
            make_folder(folder)
        with _writer_lock(folder) as lock:
            if os.path.lexists(folder / MANIFEST):
                raise ValueError(f"path must be a new or empty folder for the store, got a store in {folder}")
            with _explained(f"store {folder} could not be created:"):
                write_file(folder / MANIFEST, [manifest.to_bytes()])
            return cls(folder, lock, newest(folder, {}))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool) -> Store:
        """Open a store: headers and manifest are read and checked, arrays only when they are asked for."""
        folder = Path(path).absolute()
        snapshot = newest(folder, {})
        if not writable:
            return cls(folder, None, snapshot)
        with _writer_lock(folder) as lock:
            snapshot = newest(folder, snapshot.files)
            # A writer may have been killed before it flushed its manifest; what that one dropped is deleted only after.
            sync_folder(folder)
            _delete(leftovers(folder, snapshot.manifest))
            return cls(folder, lock, snapshot)

    @property
    def snapshot(self) -> Snapshot:
        """What the store holds: the state that was opened, or the last that was committed here."""
        known = self._opened
        if known.pending and read_manifest(self.path).is_same(known.pending.manifest):
            return known.pending
        return known.snapshot

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the store was created with."""
        return MappingProxyType(dict(self.snapshot.manifest.settings))

    @property
    def generation(self) -> int:
        """Number of commits up to this snapshot."""
        return self.snapshot.manifest.generation

    @property
    def segments(self) -> tuple[StoredSegment, ...]:
        """Segments of this snapshot, oldest first."""
        return self.snapshot.segments

    @property
    def closed(self) -> bool:
        """Whether the store was let go of."""
        return self._known is None

    def refresh(self) -> bool:
        """Move to the newest state; return whether it is another one. Arrays that were handed out stay valid."""
        with self._mutex:
            old = self.snapshot
            if self._lock or read_manifest(self.path).is_same(old.manifest):
                return False  # nobody but the writer changes its store
            self._known = _Known(newest(self.path, old.files))
            return True

    def verify(self) -> Report:
        """Read every byte of the newest state from disk and report all damages."""
        return verify_files(self.path)

    def close(self) -> None:
        """Let go of the files and of the lock. Arrays that were handed out stay valid; a second time does nothing."""
        with self._mutex:
            self._known = None
            if self._lock:
                self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _opened(self) -> _Known:
        known = self._known
        if known is None:
            raise ValueError(f"store {self.path} must be open, got one that was closed")
        return known

    def commit(
        self,
        *,
        add: Iterable[Arrays] = (),
        remove: Mapping[str, Rows] | None = None,
        drop: Sequence[str] = (),
        notes: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> tuple[str, ...]:
        """Change the store in one step that is durable when this returns, and that happens wholly or not at all.

        Add new segments, taken one by one as they are written: the length of the first array of each is the number of
        its rows, the others may have any shape. Remove rows, by the names of live segments, and drop whole segments.
        ``notes`` take the place of those that there are, and are looked at after the last segment was taken; so do
        ``settings``. Return the names of the new segments.

        A disk that is full or fails is an OSError. The old state is intact then; only if the very last flush failed is
        the new state there, perhaps not durably, which the error says and the next ``settle`` mends. Whatever
        interrupts, the store can still be read and written, and shows what the manifest on disk says.
        """
        with self._mutex:
            self.settle()
            new = (_checked_segment(arrays, f"add[{number}]") for number, arrays in enumerate(add))
            first = list(itertools.islice(new, 1))
            live = self._checked_live(drop)
            dead = {name: rows for name, rows in self._checked_rows(remove or {}, live).items() if rows.size}
            if not first and not dead and not drop and settings is None:
                return ()
            names = self._write(itertools.chain(first, new), dead, live, notes, settings)
        return names

    def settle(self) -> None:
        """Bring to its end what an interrupted commit left open: whatever it made visible is durable after this."""
        with self._mutex:
            self._refuse_unless_writable()
            self._resolve()
            known = self._opened
            if not known.durable:
                # Written again: a flush that failed may have forgotten what it could not write.
                write_file(self.path / MANIFEST, [known.snapshot.manifest.to_bytes()])
                self._known = _Known(known.snapshot)
                _delete(leftovers(self.path, known.snapshot.manifest))

    def _resolve(self) -> None:
        """Ask the manifest whether the commit that was cut off has happened."""
        known = self._opened
        if known.pending:
            there = read_manifest(self.path).is_same(known.pending.manifest)
            self._known = _Known(known.pending, durable=False) if there else _Known(known.snapshot)

    def _refuse_unless_writable(self) -> None:
        _ = self._opened
        if not self._lock:
            raise ValueError(f"store {self.path} must be opened with writable=True for a commit, got writable=False")
        if not self._lock.held:
            raise ValueError(f"store {self.path} must be written by the process that opened it, got a fork of that")

    def _checked_live(self, drop: Sequence[str]) -> dict[str, StoredSegment]:
        live = {segment.name: segment for segment in self.segments}
        unknown = [name for name in drop if name not in live]
        if isinstance(drop, str) or unknown:
            raise ValueError(f"drop must name live segments, got {len(unknown)} other names, first {unknown[:1]}")
        return {name: segment for name, segment in live.items() if name not in set(drop)}

    def _checked_rows(self, remove: Mapping[str, Rows], live: dict[str, StoredSegment]) -> dict[str, Rows]:
        checked = {}
        for name, given in remove.items():
            if name not in live:
                raise ValueError(f"remove must name live segments that are not dropped, got {name!r}")
            rows = np.asarray(given)
            if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
                raise TypeError(f"remove[{name!r}] must be row numbers, got {rows.dtype} of shape {rows.shape}")
            n_rows = live[name].n_rows
            outside = np.count_nonzero((rows < 0) | (rows >= n_rows))
            if outside:
                raise ValueError(f"remove[{name!r}] must be from 0 to {n_rows - 1}, got {outside} rows outside")
            checked[name] = np.unique(rows).astype(np.int64)
        return checked

    def _write(
        self,
        new: Iterable[Arrays],
        dead: dict[str, Rows],
        live: dict[str, StoredSegment],
        notes: Mapping[str, Any] | None,
        settings: Mapping[str, Any] | None,
    ) -> tuple[str, ...]:
        old = self.snapshot
        generation = old.manifest.generation + 1
        dead, kept = _merged_removals(dead, [old.files[entry.file] for entry in old.manifest.removals], live)
        files = dict(old.files)

        def write(kind: str, rows: int, arrays: Arrays) -> ArrayFile:
            file = f"{kind}-{generation:08d}-{secrets.token_hex(4)}.bin"
            files[file] = ArrayFile(self.path, write_arrays(self.path, file, rows, arrays))
            return files[file]

        try:
            segments = [segment.arrays.entry for segment in live.values()]
            segments += [write("segment", len(_first(arrays)), arrays).entry for arrays in new]
            if dead:
                kept.append(write("removed", sum(map(len, dead.values())), dead))
            sync_folder(self.path)  # the manifest may name only what is sure to be there
            removals = tuple(removal.entry for removal in kept)
            noted = storable_settings(old.manifest.notes if notes is None else notes)
            about = storable_settings(old.manifest.settings if settings is None else settings)
            manifest = Manifest(generation, about, tuple(segments), removals, noted)
            staged = temporary_in(self.path)
            stage(staged, [manifest.to_bytes()])
            self._publish(staged, snapshot_of(manifest, files))
        except BaseException as error:
            self._undo()
            if isinstance(error, OSError):
                raise self._failure(error) from error
            raise
        _delete(self.path / entry.file for entry in set(old.manifest.files) - set(manifest.files))
        return tuple(entry.file.removesuffix(".bin") for entry in segments[len(live) :])

    def _publish(self, staged: Path, snapshot: Snapshot) -> None:
        """Replace the manifest. From here on the manifest on disk alone says whether the commit has happened."""
        self._known = _Known(self.snapshot, pending=snapshot)
        os.replace(staged, self.path / MANIFEST)
        sync_folder(self.path)
        self._known = _Known(snapshot)

    def _undo(self) -> None:
        """Delete what a failed commit wrote, unless the manifest names it: then the commit has happened all right."""
        try:
            self._resolve()
            if self._opened.durable:  # else a loss of power could bring the old state back
                _delete(leftovers(self.path, self.snapshot.manifest))
        except (OSError, StorageError):
            pass  # it cannot be told now: what is left over the next writer deletes

    def _failure(self, error: OSError) -> OSError:
        known = self._opened
        outcome = "is as it was before"
        if not known.durable:
            outcome = "has the commit, which the next one makes durable"
        elif known.pending:
            outcome = "may or may not have the commit"
        what = f"store {self.path} {outcome}: it could not be written"
        return OSError(error.errno, f"{what}: {error.strerror or error}")


def _checked_segment(arrays: Arrays, what: str) -> Arrays:
    if not isinstance(arrays, Mapping) or not arrays or not all(isinstance(name, str) for name in arrays):
        raise TypeError(f"{what} must be a mapping of names to at least one array, got {type(arrays).__name__}")
    checked = {name: storable(array, f"{what}[{name!r}]") for name, array in arrays.items()}
    if _first(checked).ndim == 0:
        raise ValueError(f"{what} must begin with an array whose length is the number of rows, got a single number")
    return checked


def _first(arrays: Arrays) -> NDArray[Any]:
    return next(iter(arrays.values()))


def _merged_removals(
    dead: dict[str, Rows], files: list[ArrayFile], live: Mapping[str, StoredSegment]
) -> tuple[dict[str, Rows], list[ArrayFile]]:
    """Return the dead rows to write and the older files of dead rows to keep.

    Files that are not much larger than what is written are merged into it: a row is so written again a logarithmic
    number of times, and the number of files stays logarithmic too.
    """
    kept = [file for file in files if any(name in live for name in file)]
    if dead:
        dead = dict(dead)
        while kept and kept[-1].rows <= 2 * sum(map(len, dead.values())):
            older = kept.pop()
            for name in older:
                if name in live:
                    rows = dead_rows(older, name, live[name].n_rows)
                    dead[name] = np.union1d(dead.get(name, rows[:0]), rows)
    return dead, kept


def _delete(paths: Iterable[Path]) -> None:
    # What cannot be deleted now (Windows keeps mapped files) is a leftover that the next writer deletes.
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


@contextlib.contextmanager
def _writer_lock(folder: Path) -> Iterator[WriterLock]:
    """Take the lock, which is kept if all goes well."""
    lock = None
    try:
        with _explained(f"store {folder} must be in a folder that can be written, got"):
            lock = WriterLock(folder / LOCK)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        yield lock
    except BaseException:
        if lock:
            lock.release()
        raise


@contextlib.contextmanager
def _explained(sentence: str) -> Iterator[None]:
    """Say in one sentence what an error of the operating system means here."""
    try:
        yield
    except StoreLockedError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"{sentence} {error.strerror or error}") from error
