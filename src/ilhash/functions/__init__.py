"""Hash functions x -> margin, and the learners that fit them to the bits of the z-step."""

from ilhash.functions._arrays import functions_from_arrays, functions_to_arrays
from ilhash.functions._base import Fitted, HashFunction, Learner
from ilhash.functions._classifier import ClassifierFunction, ClassifierLearner
from ilhash.functions._encoder import Encoder
from ilhash.functions._kernel import KernelFunction, KernelLearner, RadialBasis, share_common_basis
from ilhash.functions._linear import LinearFunction, LinearLearner
from ilhash.functions._trees import TreeFunction

__all__ = [
    "ClassifierFunction",
    "ClassifierLearner",
    "Encoder",
    "Fitted",
    "HashFunction",
    "KernelFunction",
    "KernelLearner",
    "Learner",
    "LinearFunction",
    "LinearLearner",
    "RadialBasis",
    "TreeFunction",
    "functions_from_arrays",
    "functions_to_arrays",
    "share_common_basis",
]
