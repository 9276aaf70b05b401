"""The paper's statements, each with a rule that was written before its numbers were known.

A claim is judged by stored cells alone: *holds*, *partly*, *does not hold here*, or *not tested*.
"""

from ilhash.experiments.claims.bits import CLAIMS as _OF_BITS
from ilhash.experiments.claims.mechanisms import CLAIMS as _OF_MECHANISMS
from ilhash.experiments.claims.other_methods import CLAIMS as _OF_OTHER_METHODS
from ilhash.experiments.claims.verdicts import Claim, Judged, judge
from ilhash.experiments.engine.store import Results

__all__ = ["CLAIMS", "judge_all"]

CLAIMS = (*_OF_MECHANISMS, *_OF_BITS, *_OF_OTHER_METHODS)


def judge_all(results: Results) -> list[tuple[Claim, Judged]]:
    """Judge every claim by what is stored.

    Parameters
    ----------
    results : Results, stored cells; those that are missing leave claims untested

    Returns
    -------
    list of (Claim, Judged), in the order of the page
    """
    with results.using():
        return [(claim, judge(claim, results)) for claim in CLAIMS]
