"""The paper's statements, each with a rule that was written before its numbers were known.

A claim is judged by stored cells alone: *holds*, *partly*, *does not hold here*, or *not tested*. One that is not met
has a correction at the paper's scale: what becomes of it under a stated change of the protocol, or why it cannot hold.
"""

from ilhash.experiments.claims.bits import CLAIMS as _OF_BITS
from ilhash.experiments.claims.corrections import CORRECTIONS
from ilhash.experiments.claims.mechanisms import CLAIMS as _OF_MECHANISMS
from ilhash.experiments.claims.other_methods import CLAIMS as _OF_OTHER_METHODS
from ilhash.experiments.claims.verdicts import Claim, Correction, Judged, judge
from ilhash.experiments.engine.store import Results

__all__ = ["CLAIMS", "CORRECTIONS", "judge_all", "judge_corrections"]

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


def judge_corrections(results: Results) -> dict[str, tuple[Correction, Judged]]:
    """Judge claims that are not met literally under their corrections, which are of the paper's scale alone.

    Parameters
    ----------
    results : Results, stored cells; those that are missing leave corrections untested

    Returns
    -------
    dict, by the name of the claim; empty at other scales
    """
    if results.scale.name != "paper":
        return {}
    with results.using():
        return {one.claim: (one, judge(one, results)) for one in CORRECTIONS}
