"""Starts that follow the data: on which side of a hyperplane each point begins, before the z-step.

Directions come from second moments of a bounded, seeded sample: those of all points, and those of half the differences
of similar ones (what varies within classes). One number shrinks the latter towards a sphere, from directions that tell
classes apart to principal directions; which of a short list is taken, held-out points or pairs decide. The leading
directions are rotated, one seeded rotation per group of bits: a bit depends on the seed, its number and the data.
"""

from ilhash.starts._choice import Projection, Trial, few_judged, learn_projection
from ilhash.starts._contrast import Contrast, contrast_slope
from ilhash.starts._judging import Judge, beaten_by, judge_of_labels, judge_of_neighbors, judge_of_pairs
from ilhash.starts._moments import Moments, Shape, directions
from ilhash.starts._remembered import remembered, remembering
from ilhash.starts._start import (
    WAYS,
    GivenStart,
    Hyperplane,
    ProjectedStart,
    RandomStart,
    Start,
    sides_of_classes,
    sides_of_points,
)

__all__ = [
    "WAYS",
    "Contrast",
    "GivenStart",
    "Hyperplane",
    "Judge",
    "Moments",
    "ProjectedStart",
    "Projection",
    "RandomStart",
]
__all__ += [
    "Shape",
    "Start",
    "Trial",
    "beaten_by",
    "contrast_slope",
    "directions",
    "few_judged",
    "judge_of_labels",
    "judge_of_neighbors",
]
__all__ += ["judge_of_pairs", "learn_projection", "remembered", "remembering", "sides_of_classes", "sides_of_points"]
