"""What the author of a method needs: the classes that do the rest for it, what they hand over, and how it refuses.

A method derives from one of the classes and writes the one function that makes it differ: ``_learn`` (Method),
``_directions`` (LinearMethod), ``_weights`` (KernelMethod), or ``_bits`` (TwoStepMethod, which then fits a
classifier to each bit).
"""

from ilhash.methods._base import (
    KernelMethod,
    LinearMethod,
    Method,
    SupervisedMethod,
    TrainingData,
    TrainingSet,
    UndefinedError,
)
from ilhash.methods._two_step import TwoStepMethod, function_for_bit, functions_for_bits

__all__ = ["KernelMethod", "LinearMethod", "Method", "SupervisedMethod", "TrainingData", "TrainingSet", "TwoStepMethod"]
__all__ += ["UndefinedError", "function_for_bit", "functions_for_bits"]
