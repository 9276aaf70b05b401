"""Supervision: who is similar to whom, and the signed graph that one bit's training set gets from it.

Four kinds share one contract (:class:`Supervision`): labels, sets of labels, a sparse signed matrix (also made from
pairs, of which a few may be judged ones), and, without any supervision, Euclidean neighbours. Graphs are sparse always;
nothing here is N x N.
"""

from ilhash.affinity._base import Supervision, TrainingGraph
from ilhash.affinity._euclidean import EuclideanNeighbors
from ilhash.affinity._joined import joined_classes
from ilhash.affinity._judged import Judged, JudgedAffinity
from ilhash.affinity._labels import Labels, LabelSets, supervision_from_labels, without
from ilhash.affinity._matrix import SparseAffinity, affinity_from_matrix, affinity_from_pairs
from ilhash.affinity._random_pairs import with_random_dissimilar
from ilhash.affinity._similarity import SharedLabels, SimilarPairs

__all__ = ["EuclideanNeighbors", "LabelSets", "Labels", "SparseAffinity", "Supervision", "TrainingGraph"]
__all__ += ["Judged", "JudgedAffinity", "SharedLabels", "SimilarPairs"]
__all__ += [
    "affinity_from_matrix",
    "affinity_from_pairs",
    "joined_classes",
    "supervision_from_labels",
    "with_random_dissimilar",
    "without",
]
