"""From vectors to packed codes: one streaming loop, and what it writes to.

_stream   the loop
_codes    write_codes, open_codes: codes in one .npy file, or
_shards   codes in a directory of shards
_stored   codes in files, read shard by shard
_dask     codes of dask collections
"""

from ilhash.encoding._codes import ROWS_PER_SHARD, open_codes, store_codes, write_codes
from ilhash.encoding._dask import dask_encode
from ilhash.encoding._stored import StoredCodes
from ilhash.encoding._stream import stream

__all__ = ["ROWS_PER_SHARD", "StoredCodes", "dask_encode", "open_codes", "store_codes", "stream", "write_codes"]
