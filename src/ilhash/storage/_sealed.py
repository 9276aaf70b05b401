"""One sealed document: a JSON object with its format number, the version that wrote it and its own checksum.

It is the last file that is written of a folder, and the first that is read: it says what the folder holds.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ilhash._version import __version__
from ilhash.storage._damage import DamagedFileError, UnknownFormatError, sha256_of
from ilhash.storage._durable import TEMPORARY, write_file
from ilhash.storage._reading import LARGEST_DOCUMENT, read_file

Document = dict[str, Any]


@dataclass(frozen=True)
class Sealed:
    """A kind of sealed document."""

    name: str  # of its file
    holder: str  # what a folder with such a file holds, in words
    format: int  # newest that this version knows, and the one that it writes
    kind: str | None = None  # stands in the document, where others have files of the same name
    most: int = LARGEST_DOCUMENT  # bytes
    seal: str = "checksum"  # key of the SHA-256 of the document without it, keys sorted

    def begun(self, folder: Path, argument: str = "path") -> bool:
        """Whether a folder has this document; refuse one that has not, but has other files."""
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{argument} must be a directory for {self.holder}, got the file {folder}")
        if (folder / self.name).exists():
            return True
        if folder.is_dir() and not all(file.name.startswith(TEMPORARY) for file in folder.iterdir()):
            wanted = f"a new directory or one that holds {self.holder}"
            raise ValueError(f"{argument} must be {wanted}, got {folder} with other files in it")
        return False

    def write(self, folder: Path, content: Mapping[str, Any]) -> None:
        """Write the document to its folder; it is durable when this returns."""
        write_file(folder / self.name, [self.to_bytes(content)])

    def read(self, folder: Path) -> Document:
        """Read and verify the document of a folder; whatever is wrong with it is said in one sentence."""
        path = folder / self.name
        if not os.path.lexists(path):
            raise FileNotFoundError(
                f"{folder} must be a directory of {self.holder} with a {self.name}, got none: not {self.holder}"
            )
        return self.from_bytes(read_file(path, self.most), path)

    def sealed(self, content: Mapping[str, Any]) -> Document:
        """Return content as the document that is written."""
        document = {**self._header(), **content}
        return {**document, self.seal: self._checksum(document)}

    def to_bytes(self, content: Mapping[str, Any]) -> bytes:
        """Return content as the bytes of the file."""
        return json.dumps(self.sealed(content), indent=1).encode()

    def from_bytes(self, data: bytes, path: Path) -> Document:
        """Return the document, verified."""
        document = self._recognized(data, path)
        if document.get(self.seal) != self._checksum(document):
            raise DamagedFileError(f"{path} must be as it was written, got content that does not match its checksum")
        return document

    def _header(self) -> Document:
        kind = {} if self.kind is None else {"kind": self.kind}
        return {"format": self.format, **kind, "ilhash": __version__}

    def _checksum(self, document: Document) -> str:
        bare = {key: value for key, value in document.items() if key != self.seal}
        return sha256_of([json.dumps(bare, sort_keys=True).encode()])

    def _recognized(self, data: bytes, path: Path) -> Document:
        what = f"the description of {self.holder}"
        document = parse_json(data, path, what)
        if type(document.get("format")) is not int or document.get("kind") != self.kind:
            raise UnknownFormatError(f"{path} must be {what}, got another JSON document")
        check_format(document, self.format, path)
        return document


class Enveloped(Sealed):
    """A document within ``{"sha256": ..., "manifest": ...}``: the SHA-256 is that of its bytes as they stand there.

    A newer format is so told from a damaged file.
    """

    _ENVELOPE = b'{"sha256": "%s", "manifest": %s}\n'
    _PATTERN = re.compile(rb'\{"sha256": "([0-9a-f]{64})", "manifest": (.*)\}\n', re.DOTALL)

    def to_bytes(self, content: Mapping[str, Any]) -> bytes:
        body = json.dumps({**self._header(), **content}, indent=1).encode()
        return self._ENVELOPE % (sha256_of([body]).encode(), body)

    def from_bytes(self, data: bytes, path: Path) -> Document:
        parts = self._PATTERN.fullmatch(data)
        if not parts or sha256_of([parts[2]]).encode() != parts[1]:
            raise DamagedFileError(f"{path} must be as it was written, got content that does not match its SHA-256")
        return self._recognized(parts[2], path)


def parse_json(data: bytes, path: Path, what: str) -> Document:
    """Return the JSON object that a file must be."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} must be {what}, got something else than a JSON document: {error}") from None
    if not isinstance(document, dict):
        raise UnknownFormatError(f"{path} must be {what}, got another JSON document")
    return document


def check_format(document: Document, newest: int, path: Path) -> None:
    """Refuse what a newer version wrote."""
    if document["format"] > newest:
        raise UnknownFormatError(
            f"{path} must have format {newest}, got format {document['format']} written by ilhash "
            f"{document.get('ilhash')}: upgrade ilhash"
        )
