"""The ILH estimator and what it reports of its bits; growing, pruning and mixing."""

from ilhash.ensemble._bit import BitReport
from ilhash.ensemble._generations import focused
from ilhash.ensemble._grow import Growth, grow
from ilhash.ensemble._holdout import HoldOut
from ilhash.ensemble._ilh import ILH
from ilhash.ensemble._learn import Learning, learn
from ilhash.ensemble._mix import Mix, join
from ilhash.ensemble._prune import Pruning, prune
from ilhash.ensemble._quality import QualityWarning
from ilhash.ensemble._refresh import Refreshed, refresh

__all__ = ["ILH", "BitReport", "Growth", "HoldOut", "Mix", "Pruning", "QualityWarning", "grow", "join", "prune"]
__all__ += ["Learning", "Refreshed", "focused", "learn", "refresh"]
