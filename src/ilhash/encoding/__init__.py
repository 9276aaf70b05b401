"""From vectors to packed codes: one streaming loop, and what it writes to.

_stream   the loop
_codes    write_codes, open_codes: codes in one .npy file, or
_shards   codes in a directory of shards
_stored   codes in files, read shard by shard
_known    codes of which some bits were encoded before
_dask     codes of dask collections
"""

from ilhash.encoding._codes import ROWS_PER_SHARD, open_codes, store_codes, write_codes
from ilhash.encoding._dask import dask_encode
from ilhash.encoding._known import MOST_FLIPPED, flipped_bits, some_rows
from ilhash.encoding._stored import StoredCodes, read_bits
from ilhash.encoding._stream import stream

__all__ = ["ROWS_PER_SHARD", "StoredCodes", "dask_encode", "open_codes", "read_bits", "store_codes", "stream"]
__all__ += ["MOST_FLIPPED", "flipped_bits", "some_rows", "write_codes"]
