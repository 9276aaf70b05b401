"""Vectors and where they come from: in memory, in a file that is read by rows, on their way to a worker.

``ilhash.vectors.io`` opens the files of users.
"""

from ._frames import column, columns_of, has_named_features, named_columns, without_columns
from ._matrix import GatheredRows, as_matrix, gather, origin_of, refuse_non_finite, refuse_non_finite_anywhere, relative
from ._nearest import nearest_other_rows, nearest_rows
from ._scratch import scratch
from ._source import (
    MappedFile,
    SelectedRows,
    VectorSource,
    blocks,
    fingerprint,
    in_memory,
    kept_map,
    on_disk,
    opened,
    portable,
    state_of_files,
    take_rows,
)
from ._sparse import GatheredSparse, SparseRows, as_sparse, principal_of_sparse, projected_on

__all__ = ["GatheredRows", "as_matrix", "gather", "nearest_other_rows", "nearest_rows", "origin_of", "scratch"]
__all__ += ["refuse_non_finite", "refuse_non_finite_anywhere", "relative"]
__all__ += ["MappedFile", "SelectedRows", "VectorSource", "blocks", "fingerprint", "in_memory", "kept_map", "on_disk"]
__all__ += ["opened", "portable", "state_of_files", "take_rows"]
__all__ += ["GatheredSparse", "SparseRows", "as_sparse", "principal_of_sparse", "projected_on"]
__all__ += ["column", "columns_of", "has_named_features", "named_columns", "without_columns"]
