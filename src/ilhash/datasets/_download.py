"""A file from a server to a folder: goes on where it broke off, and is what it must be or not there at all."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ilhash._extras import require
from ilhash.storage import DamagedFileError

from ._sources import Remote

Moved = Callable[[int], None]  # called with the bytes of this file that are here

TRIES = 5  # in a row that bring nothing
PAUSE = 1.0  # seconds before the second of them; twice as long before each further one
PATIENCE = 30.0  # seconds without a byte
CHUNK = 1 << 16
OTHER_RANGE = 416  # the answer to a wish for what is not there


def download(remote: Remote, folder: Path, moved: Moved) -> Path:
    """Have a file in a folder, verified; what of it is there from an earlier try is not asked for again.

    Parameters
    ----------
    remote : Remote, address and checksum
    folder : path, where it goes; unfinished, its name ends with ``.part``
    moved : function, called with the bytes that are here

    Returns
    -------
    path, the file
    """
    pooch = require("pooch", "data", "ilhash data get")
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        return Path(
            pooch.retrieve(
                remote.url, remote.checksum, fname=remote.name, path=folder, downloader=_Resuming(folder, remote, moved)
            )
        )
    except ValueError as error:  # of the checksum; pooch has removed the file
        kind, _, wanted = remote.checksum.rpartition(":")
        rule = f"{remote.url} must have {(kind or 'sha256').upper()} {wanted}"
        raise DamagedFileError(f"{rule}, got another file, of which nothing is kept") from error


class _Resuming:
    """What pooch calls to bring a file: asks for the rest of what is here, as long as it is the same file."""

    def __init__(self, folder: Path, remote: Remote, moved: Moved) -> None:
        self.part, self.tag = folder / f"{remote.name}.part", folder / f"{remote.name}.tag"
        self.moved = moved

    def __call__(self, url: str, output_file: Any, pooch: Any, check_only: bool = False) -> None:
        requests, urllib3 = (require(name, "data", "ilhash data get") for name in ("requests", "urllib3"))
        # What trying again may help; a full disk it does not.
        network = (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, ConnectionError)
        failures, reason = 0, ""
        while failures < TRIES:
            before = self._size()
            try:
                if self._bring(requests, url):
                    os.replace(self.part, output_file)
                    self.tag.unlink(missing_ok=True)
                    return
                reason = "the server ended early"
            except requests.exceptions.HTTPError as error:
                raise OSError(f"{url} must be there to be had, got {error}") from None
            except network as error:
                reason = str(error).partition("\n")[0]
            failures = failures + 1 if self._size() <= before else 1
            time.sleep(PAUSE * 2 ** (failures - 1) if failures < TRIES else 0)
        got = f"{self._size():,} bytes ({reason[:200]})"
        raise OSError(f"{url} must be had whole, got {got}; the same command goes on from there")

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _bring(self, requests: Any, url: str) -> bool:
        """Ask once; say whether the file is whole."""
        have = self._size()
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if self.tag.exists():
                headers["If-Range"] = self.tag.read_text("utf-8")
        with requests.get(url, headers=headers, stream=True, timeout=PATIENCE) as answer:
            if answer.status_code == OTHER_RANGE:
                self.part.unlink()
                return False
            answer.raise_for_status()
            goes_on = answer.status_code == 206 and _first_of(answer.headers) == have
            have = have if goes_on else 0
            total = have + int(answer.headers["Content-Length"]) if "Content-Length" in answer.headers else None
            self._keep_tag(answer.headers)
            with self.part.open("ab" if goes_on else "wb") as file:
                for chunk in answer.raw.stream(CHUNK, decode_content=False):
                    file.write(chunk)
                    have += len(chunk)
                    self.moved(have)
        return total in (None, have)

    def _keep_tag(self, headers: Any) -> None:
        """Note what tells this file from another at the same address."""
        tag = headers.get("ETag", "")
        tag = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
        if tag:
            self.tag.write_text(tag, "utf-8")
        else:
            self.tag.unlink(missing_ok=True)


def _first_of(headers: Any) -> int:
    """Return where the bytes of an answer begin in the file."""
    first = str(headers.get("Content-Range", "")).removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1
