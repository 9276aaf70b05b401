"""Files that are wholly there or not at all, and that say when they are not as they were written.

_damage            SHA-256, and one family of errors for whatever a file is not
_durable           files and folders that survive a crash
_descriptors       descriptors of open files that no interrupt loses
_appending         files that only grow
_lock              the one writer of a folder
_reading           the one door through which files of strangers come in
_schema            what the arrays of a file must be, declared once
_arrays            files of arrays
_npz               archives of arrays, unpacked within bounds
_sealed            one JSON document with format and checksum, which says what a folder holds
_model_directory   a model as a folder of files
"""

from ilhash.storage._appending import append_to_file, cut_file
from ilhash.storage._arrays import SealedArrays, chunks_of_arrays, npy_header, write_npy
from ilhash.storage._damage import (
    DamagedFileError,
    StorageError,
    UnknownFormatError,
    UntrustedFileError,
    check_sha256,
    sha256_of,
    sha256_of_file,
)
from ilhash.storage._durable import (
    TEMPORARY,
    make_folder,
    new_folder,
    stage,
    sync_folder,
    temporary_in,
    write_file,
    write_files,
)
from ilhash.storage._lock import StoreLockedError, WriterLock
from ilhash.storage._model_directory import Contents, read_directory, write_directory
from ilhash.storage._npz import from_npy, from_npz, to_npz
from ilhash.storage._reading import Record, checked_array, open_file, read_file, reading
from ilhash.storage._schema import Values, check_arrays
from ilhash.storage._sealed import Enveloped, Sealed, check_format, parse_json

__all__ = ["DamagedFileError", "StorageError", "UnknownFormatError", "UntrustedFileError", "check_sha256"]
__all__ += ["make_folder", "new_folder", "sha256_of", "sha256_of_file", "stage", "sync_folder"]
__all__ += ["append_to_file", "cut_file"]
__all__ += ["TEMPORARY", "temporary_in", "write_file", "write_files"]
__all__ += ["Record", "StoreLockedError", "WriterLock", "checked_array", "open_file", "read_file", "reading"]
__all__ += ["SealedArrays", "Values", "check_arrays", "chunks_of_arrays", "npy_header", "write_npy"]
__all__ += ["from_npy", "from_npz", "to_npz"]
__all__ += ["Contents", "Enveloped", "Sealed", "check_format", "parse_json", "read_directory", "write_directory"]
