"""Hash functions x -> margin, and the learners that fit them to the bits of the z-step."""

from ._anchors import AnchorFunction, Anchors
from ._base import HashFunction, Stored
from ._boosting import TreeBooster, TreeLearner
from ._classifier import ClassifierFunction, make_learner
from ._codewords import CodewordFunction
from ._cosine import CosineFunction
from ._encoder import Encoder
from ._kernel import (
    KernelExpansions,
    KernelFunction,
    KernelLearner,
    PoolFunction,
    RadialBasis,
    in_one_kernel,
    share_common_basis,
)
from ._kinds import functions_from_arrays, functions_to_arrays, register
from ._learner import Fitted, Learner, LearnerSettings, scaling_for, standardization
from ._linear import LinearFunction, LinearLearner, padded_weights
from ._trees import MOST_LEVELS, TreeFunction

__all__ = ["Encoder", "HashFunction", "Stored", "functions_from_arrays", "functions_to_arrays", "register"]
__all__ += ["AnchorFunction", "Anchors", "ClassifierFunction", "CodewordFunction", "CosineFunction", "KernelFunction"]
__all__ += [
    "KernelExpansions",
    "LinearFunction",
    "PoolFunction",
    "RadialBasis",
    "TreeFunction",
    "in_one_kernel",
    "padded_weights",
]
__all__ += [
    "Fitted",
    "KernelLearner",
    "Learner",
    "LearnerSettings",
    "LinearLearner",
    "TreeBooster",
    "TreeLearner",
    "make_learner",
]
__all__ += ["MOST_LEVELS", "scaling_for", "share_common_basis", "standardization"]
