"""Retrieval quality of codes, their orthogonality, and protocols: pure functions of arrays.

Hamming distances are small whole numbers, so many points tie. Which of them comes first is an accident of the sort; the
expected value over all orders of the ties is reported here, with the best and the worst order beside it::

    relevance     equal label | a shared label | the K nearest in Euclidean space
        |
    histograms    of each query: base points at each distance, and how many of them are relevant
        |
    measures      precision@k, recall@k, mAP, radius, whole curves: no sorting, every k at once

:func:`evaluate` does all of it in one call; :func:`distance_histograms` gives values for each query;
:func:`retrieval_scorer` is precision@k for scikit-learn's searches.
"""

from ilhash.evaluation._bit_by_bit import PrecisionBitByBit
from ilhash.evaluation._codes_statistics import CodeStatistics, code_statistics
from ilhash.evaluation._histograms import distance_histograms, hamming_distances
from ilhash.evaluation._measures import Curves, Histograms
from ilhash.evaluation._orthogonality import (
    DotProducts,
    code_dot_products,
    compare_with_random,
    kernel_dot_products,
    orthogonality,
    random_dot_products,
    weight_dot_products,
)
from ilhash.evaluation._protocol import GivenQueries, Protocol, Split, UnseenClasses, UnseenSplit
from ilhash.evaluation._relevance import (
    EqualLabels,
    Relevance,
    RowLists,
    SharedLabels,
    by_label,
    by_neighbors,
    by_shared_labels,
)
from ilhash.evaluation._report import Evaluation, Scores, WithinRadius, evaluate
from ilhash.evaluation._retrieval import (
    mean_average_precision,
    precision_at_k,
    precision_recall_curve,
    recall_at_k,
    within_radius,
)
from ilhash.evaluation._scorer import retrieval_scorer

__all__ = ["EqualLabels", "Relevance", "RowLists", "SharedLabels", "by_label", "by_neighbors", "by_shared_labels"]
__all__ += ["Curves", "Evaluation", "Histograms", "PrecisionBitByBit", "Scores", "WithinRadius"]
__all__ += ["distance_histograms", "evaluate", "hamming_distances", "mean_average_precision", "precision_at_k"]
__all__ += ["precision_recall_curve", "recall_at_k", "within_radius"]
__all__ += ["retrieval_scorer"]
__all__ += ["GivenQueries", "Protocol", "Split", "UnseenClasses", "UnseenSplit"]
__all__ += ["CodeStatistics", "DotProducts", "code_dot_products", "code_statistics", "compare_with_random"]
__all__ += ["kernel_dot_products", "orthogonality", "random_dot_products", "weight_dot_products"]
