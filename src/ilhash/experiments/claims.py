"""The paper's statements, each with a rule that was written before its numbers were known.

A claim is judged by stored cells alone: *holds*, *partly*, *does not hold here*, or *not tested*.
"""

from ilhash.experiments._claims_bits import CLAIMS as _OF_BITS
from ilhash.experiments._claims_comparison import CLAIMS as _OF_COMPARISON
from ilhash.experiments._claims_mechanisms import CLAIMS as _OF_MECHANISMS

__all__ = ["CLAIMS"]

CLAIMS = (*_OF_MECHANISMS, *_OF_BITS, *_OF_COMPARISON)
