"""The lock of the one writer. It belongs to the process: when that ends, however it ends, the lock is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

from ilhash.storage._damage import DamagedFileError
from ilhash.storage._descriptors import close_all, open_into

if sys.platform == "win32":
    import msvcrt

    _BYTE = 1 << 30  # a locked byte cannot be read: not one of the process number

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class StoreLockedError(OSError):
    """Another process, or another object in this one, has the store open for writing."""


_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class WriterLock:
    """An exclusive lock on a file, held from construction to ``release`` or the end of the process.

    The file stays where it is: deleting it would let two writers hold locks on two files of the same name. It contains
    the number of the last process that held the lock, for the message alone.
    """

    _held: Sequence[int] = ()  # the descriptor; Ctrl-C may come before a lock has a list of its own

    def __init__(self, path: Path) -> None:
        held: list[int] = []
        self._held = held
        if path.is_symlink():  # whoever made the folder could have us write to a file elsewhere
            raise DamagedFileError(f"{path} must be a file of its own, got a symbolic link")
        self._path = path
        try:
            self._take(path, held)
        except BaseException:
            self.release()
            raise

    def _take(self, path: Path, held: list[int]) -> None:
        open_into(held, path, _FLAGS)
        (descriptor,) = held
        _locks.add(self)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DamagedFileError(f"{path} must be a regular file, got a special one")
        try:
            _lock(descriptor)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            got = f"a second: {_holder(descriptor)} has it open"
            raise StoreLockedError(f"store {path.parent} must have one writer, got {got}") from None
        with contextlib.suppress(OSError):  # a full disk must not keep anybody from making room
            if _is_ours(descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, b"%d\n" % os.getpid())

    @property
    def held(self) -> bool:
        """Whether this process has the lock."""
        return bool(self._held)

    def release(self) -> None:
        """Give the lock up; a second time does nothing."""
        if self._held:
            with contextlib.suppress(OSError):  # closing gives it up too, but not while a child has the file open
                _unlock(self._held[0])
            self.close()

    def in_place(self) -> bool:
        """Whether the file that is locked still has its name."""
        try:
            return bool(self._held) and os.path.samestat(os.fstat(self._held[0]), os.stat(self._path))
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        """Give the lock up and delete its file; only where all who take the lock ask whether it is in place."""
        if not self._held:
            return
        try:
            if sys.platform != "win32":  # Windows deletes no file that is open, here or elsewhere
                self._unlink()
        finally:
            self.release()
            if sys.platform == "win32":
                self._unlink()

    def _unlink(self) -> None:
        with contextlib.suppress(OSError):  # a file of the lock that stays is no harm
            os.unlink(self._path)

    def close(self) -> None:
        """Close the file, and leave the lock to whom it belongs."""
        if isinstance(self._held, list):
            close_all(self._held)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.release()


def _is_ours(descriptor: int) -> bool:
    """Whether a file holds nothing but a number: what else it holds may be another's, under a second name."""
    content = os.read(descriptor, 32)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return len(content) < 32 and (not content or content.strip().isdigit())


def _holder(descriptor: int) -> str:
    content = os.read(descriptor, 32).strip()
    if not content.isdigit():
        return "another process"
    return "this process itself" if int(content) == os.getpid() else f"process {int(content)}"


_locks: weakref.WeakSet[WriterLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked child shares the lock: it must neither write nor keep the store locked when its parent is gone.
    for lock in list(_locks):
        lock.close()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go_in_child)
