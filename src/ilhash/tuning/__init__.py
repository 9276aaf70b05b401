"""The best model for so many bytes by one call: :func:`tune` tries what the library has and says why it chose.

The way it takes::

    parts         what is trained on | what chooses | what reports, and has chosen nothing
      |
    course        candidates with few bits -> the better half with more -> the best with all
      |
    mixes         shares of the best families, the best bits of all of them
      |
    report        what the choice is worth among new and seen items, for half and for twice the bytes
"""

from ilhash.tuning._course import Now
from ilhash.tuning._tune import Estimate, Tried, Tuning, tune

__all__ = ["Estimate", "Now", "Tried", "Tuning", "tune"]
