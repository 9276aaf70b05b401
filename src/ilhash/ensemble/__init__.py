"""The ILH estimator and what it reports of its bits."""

from ilhash.ensemble._bit import BitReport
from ilhash.ensemble._ilh import ILH

__all__ = ["ILH", "BitReport"]
