"""Starts that follow the data: on which side of a hyperplane each point begins, before the z-step.

Directions come from second moments of a bounded, seeded sample: those of all points, and those of half the differences
of similar ones (what varies within classes). One number shrinks the latter towards a sphere, from directions that tell
classes apart to principal directions; which of a short list is taken, held-out points or pairs decide. The leading
directions are rotated, one seeded rotation per group of bits: a bit depends on the seed, its number and the data.
"""

from ilhash.starts._choice import Projection, few_judged, learn_projection
from ilhash.starts._judging import Judge, judge_of_labels, judge_of_neighbors, judge_of_pairs
from ilhash.starts._moments import Moments, Shape, directions
from ilhash.starts._start import PULL, GivenStart, ProjectedStart, RandomStart, Start

__all__ = ["PULL", "GivenStart", "Moments", "ProjectedStart", "Projection", "RandomStart", "Shape", "Start"]
__all__ += ["Judge", "directions", "few_judged", "judge_of_labels", "judge_of_neighbors", "judge_of_pairs"]
__all__ += ["learn_projection"]
