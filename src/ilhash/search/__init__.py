"""Search of packed codes in Hamming space: exact, in memory or in a durable folder.

::

    codes + ids  ->  HammingIndex  ->  Segment (distinct codes in tiles, posting lists, ids)  ->  scan in the C++ core
                          |
                        Store (a folder of segments that survives whatever happens to the process)
"""

from ilhash.search._damage import DamagedStoreError
from ilhash.search._faiss_like import FaissLike, as_faiss
from ilhash.search._hits import Hits, RangeHits
from ilhash.search._index import HammingIndex
from ilhash.search._rescoring import rescore
from ilhash.search._schema import verify
from ilhash.search._verify import Report
from ilhash.storage import StoreLockedError

__all__ = ["DamagedStoreError", "FaissLike", "HammingIndex", "Hits", "RangeHits", "Report", "StoreLockedError"]
__all__ += ["as_faiss", "rescore", "verify"]
