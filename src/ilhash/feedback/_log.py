"""Judgements of users in a folder: durable when ``add`` returns, one writer, many readers."""

from __future__ import annotations

import os
import secrets
import threading
import time as clock
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ilhash._checks import as_array, check_flag, check_positive
from ilhash._ids import as_ids, refuse_repeated
from ilhash.feedback._arguments import judgements, seconds
from ilhash.feedback._file import FILE, LOCK, Known, Report, as_path, patiently, read_log, read_more, verify
from ilhash.feedback._lines import Judgement, header, to_document
from ilhash.feedback._resolving import Pairs, Summary, resolve, rows_of
from ilhash.storage import (
    TEMPORARY,
    StorageError,
    StoreLockedError,
    WriterLock,
    append_to_file,
    cut_file,
    make_folder,
    sync_folder,
    write_file,
)


class Feedback:
    """A durable, append-only log of judgements: who found which item similar to which, or not.

    Made by ``open``, used in a ``with`` statement or ended by ``close``. What ``add`` acknowledged survives kill -9 and
    a loss of power; what it did not is there wholly or not at all. A line that was altered is refused by its number,
    never skipped.

    Parameters
    ----------
    path : Path, the folder
    lock, known : what ``open`` takes and reads

    Examples
    --------
    >>> import tempfile
    >>> log = Feedback.open(tempfile.mkdtemp())
    >>> log.add("red shoe", "crimson shoe", who="ann")
    >>> log.add("red shoe", ["brick", "boot"], similar=[False, True], who="bob")
    >>> log.pairs(["boot", "brick", "crimson shoe", "red shoe"]).tolist()
    [[0.0, 3.0, 1.0], [1.0, 3.0, -1.0], [2.0, 3.0, 1.0]]
    >>> print(log.summary())
    3 judgements by 2 named people: 2 similar and 1 dissimilar pair
    >>> log.close()
    """

    def __init__(self, path: Path, lock: WriterLock | None, known: Known) -> None:
        self.path = path
        self._lock = lock
        self._known: Known | None = known
        self._unsettled = False  # whether an add was cut off, and the file may be longer than what is known of it
        self._stale = False  # whether what is known may be less than the file has
        self._mutex = threading.RLock()

    def __reduce__(self) -> Any:
        raise TypeError(f"a log must be opened again by its path, got an attempt to pickle it ({self.path})")

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, writable: bool = True) -> Feedback:
        """Open a log, or make one in a new or empty folder.

        Parameters
        ----------
        path : str or path, the folder
        writable : bool, default True
            There is one writer at a time. Readers take no lock, and see what had been added when they opened the log,
            or last called ``refresh``.

        Returns
        -------
        Feedback
        """
        folder = as_path(path).absolute()  # the process may change its directory
        if not check_flag("writable", writable):
            return cls(folder, None, patiently(lambda: read_log(folder)))
        _refuse_other_folders(folder)
        try:
            make_folder(folder)
            lock = WriterLock(folder / LOCK)
        except (StoreLockedError, StorageError):
            raise
        except OSError as error:
            raise OSError(error.errno, f"feedback {folder} could not be opened: {error.strerror or error}") from error
        try:
            return cls(folder, lock, _opened_for_writing(folder))
        except BaseException:
            lock.release()
            raise

    # -------------------------------------------------------------------------------------------- reading

    def __len__(self) -> int:
        return len(self._read.columns)

    def __iter__(self) -> Iterator[Judgement]:
        """Give the judgements in the order in which they were added."""
        return iter(self._read.columns)

    def __repr__(self) -> str:
        state = "closed" if self._known is None else f"{len(self):,} judgements"
        return f"Feedback({str(self.path)!r}: {state})"

    @property
    def id_kind(self) -> str | None:
        """What ids are, "int" or "str"; None as long as there are none."""
        return self._read.columns.kind

    @property
    def writable(self) -> bool:
        """Whether this is the writer."""
        return self._lock is not None

    @property
    def closed(self) -> bool:
        """Whether the log was let go of."""
        return self._known is None

    def refresh(self) -> bool:
        """Read what the writer has added since.

        Returns
        -------
        bool, whether there was anything
        """
        with self._mutex:
            known = self._read
            if self._lock is not None:
                return False  # nobody else adds anything
            before = len(known.columns)
            self._stale = True
            if not patiently(lambda: read_more(self.path, known)):
                self._known = patiently(lambda: read_log(self.path))
            self._stale = False
            return self._known is not known or len(known.columns) != before

    def pairs(self, ids: Any, *, half_life: float | None = None, now: float | None = None) -> Pairs:
        """Return what ``fit``, ``extend`` and ``learn`` take as pairs.

        Of each pair of items the latest judgement of every named person counts, and every one without a name, by its
        weight; their signed sum is the weight of the pair, and a pair whose judgements cancel is dropped.

        Parameters
        ----------
        ids : array (n,), the id of each row of X; judgements about others are left out, and ``summary`` counts them
        half_life : float, optional, days after which a judgement counts half; by default none ages
        now : float, optional, seconds since 1970, from which ages are taken; by default the present

        Returns
        -------
        float64 array (m, 3), rows (i, j, weight) with i < j; a weight above 0 is that of similar rows
        """
        return self._resolved(ids, half_life, now)[0]

    def summary(self, ids: Any = None, *, half_life: float | None = None, now: float | None = None) -> Summary:
        """Return how many judgements there are, how many contradict each other, and what they come to.

        Parameters
        ----------
        ids : array (n,), optional, as in pairs; by default all ids of the log
        half_life, now : float, optional, as in pairs

        Returns
        -------
        Summary
        """
        return self._resolved(ids, half_life, now)[1]

    def verify(self) -> Report:
        """Read every byte from disk and report what is damaged.

        Returns
        -------
        Report, ``ok`` where all is well
        """
        return verify(self.path)

    def _resolved(self, ids: Any, half_life: float | None, now: float | None) -> tuple[Pairs, Summary]:
        columns = self._read.columns
        rows = None
        if ids is not None:
            n = len(ids) if hasattr(ids, "__len__") and as_array("ids", ids).ndim else 0
            own = as_ids(ids, n, columns.kind, "log")
            refuse_repeated(own)
            rows = rows_of(columns, own)
        if half_life is not None:
            check_positive("half_life", half_life)
        present = clock.time() if now is None else seconds("now", now, 1)[0]
        return resolve(columns, rows, half_life, float(present))

    @property
    def _read(self) -> Known:
        """What is known, read again where an interrupt left it in doubt."""
        if self._known is None:
            raise ValueError(f"feedback {self.path} must be open, got a log that was closed")
        if self._stale:
            with self._mutex:
                self._known = patiently(lambda: read_log(self.path))
                self._stale = False
        return self._known

    # -------------------------------------------------------------------------------------------- writing

    def add(
        self, query_id: Any, item_id: Any, similar: Any = True, weight: Any = 1.0, who: Any = None, time: Any = None
    ) -> None:
        """Add one judgement, or many in one step; they are on disk when this returns, all of them or none.

        Parameters
        ----------
        query_id, item_id : int or str, or arrays of them
            The two that were compared. One query with many items, and the other way round, will do. All ids of a log
            are whole numbers, or all are texts.
        similar : bool or array of bool, default True
        weight : float or array of float, default 1, how much a judgement counts, above 0
        who : str or array of str or None, optional, the person who judged: a later judgement replaces an earlier one
        time : float or array of float, optional, seconds since 1970; by default the present

        Notes
        -----
        A disk that is full or fails is an OSError. The log is as it was before, and the same call can be made again.
        """
        with self._mutex:
            self._refuse_unless_writable()
            new = judgements(query_id, item_id, similar, weight, who, time, self._read.columns.kind)
            if new:
                self._append(new)

    def _append(self, new: list[Judgement]) -> None:
        known = self._settled()
        first, last = known.n_lines, len(new) - 1
        made: list[bytes] = [b""]

        def lines() -> Iterator[bytes]:
            for begin in range(0, len(new), 4096):
                some = range(begin, min(begin + 4096, len(new)))
                each = [known.sealer.line(first + place, to_document(new[place], last - place)) for place in some]
                made[0] = each[-1]
                yield b"".join(each)

        self._unsettled = self._stale = True
        try:
            size = append_to_file(self.path / FILE, known.size, lines())
        except OSError as error:
            self._stale = False  # what is known is what was there before
            raise self._failure(error, known.size) from error
        for one in new:
            known.columns.append(one)
        known.size, known.last = size, made[0]
        self._unsettled = self._stale = False

    def _settled(self) -> Known:
        """Cut off what an interrupted add may have left behind the end, unless it was complete."""
        known = self._read
        if self._unsettled:
            cut_file(self.path / FILE, known.size)
            self._unsettled = False
        return known

    def _failure(self, error: OSError, size: int) -> OSError:
        """Bring the file back to what it was, and say whether that could be done."""
        outcome = "is as it was before"
        try:
            cut_file(self.path / FILE, size)
            self._unsettled = False
        except (OSError, StorageError):
            outcome = "may have some of the new judgements, which the next call removes"
        return OSError(error.errno, f"feedback {self.path} {outcome}: it could not be written: {error.strerror}")

    def _refuse_unless_writable(self) -> None:
        _ = self._read
        if self._lock is None:
            raise ValueError(f"feedback {self.path} must be opened with writable=True to add to it, got writable=False")
        if not self._lock.held:
            raise ValueError(f"feedback {self.path} must be written by the process that opened it, got a fork of that")

    def close(self) -> None:
        """Let go of the log; a second time does nothing."""
        with self._mutex:
            self._known = None
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Feedback:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _refuse_other_folders(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"path must be a folder for feedback, got the file {folder}")
    if folder.is_dir() and not os.path.lexists(folder / FILE):
        others = [file for file in os.listdir(folder) if file != LOCK and not file.startswith(TEMPORARY)]
        if others:
            raise ValueError(f"path must be a new folder or one of feedback, got {folder} with other files in it")


def _opened_for_writing(folder: Path) -> Known:
    """Read a log, or make one, and cut off what a writer left that was killed."""
    if not os.path.lexists(folder / FILE):
        write_file(folder / FILE, [header(secrets.token_hex(16))])
    known = read_log(folder)
    # Even where nothing is cut: what a killed writer had written, and readers have seen, is durable after this.
    cut_file(folder / FILE, known.size)
    known.torn = 0
    sync_folder(folder)
    for file in os.listdir(folder):
        if file.startswith(TEMPORARY):
            (folder / file).unlink(missing_ok=True)
    return known
