"""Hash functions x -> margin, and the learners that fit them to the bits of the z-step."""

from ilhash.functions._anchors import AnchorFunction, Anchors
from ilhash.functions._arrays import functions_from_arrays, functions_to_arrays
from ilhash.functions._base import Fitted, HashFunction, Learner, standardisation
from ilhash.functions._boosting import TreeBooster
from ilhash.functions._classifier import ClassifierFunction, ClassifierLearner
from ilhash.functions._codewords import CodewordFunction
from ilhash.functions._cosine import CosineFunction
from ilhash.functions._encoder import Encoder
from ilhash.functions._kernel import (
    KernelExpansions,
    KernelFunction,
    KernelLearner,
    RadialBasis,
    in_one_kernel,
    share_common_basis,
)
from ilhash.functions._linear import LinearFunction, LinearLearner, padded_weights
from ilhash.functions._make import make_learner
from ilhash.functions._trees import TreeFunction

__all__ = [
    "AnchorFunction",
    "Anchors",
    "ClassifierFunction",
    "ClassifierLearner",
    "CodewordFunction",
    "CosineFunction",
    "Encoder",
    "Fitted",
    "HashFunction",
    "KernelExpansions",
    "KernelFunction",
    "KernelLearner",
    "Learner",
    "LinearFunction",
    "LinearLearner",
    "RadialBasis",
    "TreeBooster",
    "TreeFunction",
    "functions_from_arrays",
    "functions_to_arrays",
    "in_one_kernel",
    "make_learner",
    "padded_weights",
    "share_common_basis",
    "standardisation",
]
