"""Pictures: of a retrieval, of a choice of bits, of methods side by side; matplotlib is imported when one is drawn."""

from ilhash.plots._comparison import comparison, method_title
from ilhash.plots._curves import bits_curve, curves
from ilhash.plots._style import FAINT, INK, PICTURES, band, colour, figure_class, label_ends, new_figure, picture, svg
from ilhash.plots._tuning import tuning

__all__ = ["PICTURES", "bits_curve", "comparison", "curves", "figure_class", "method_title", "picture", "tuning"]
__all__ += ["FAINT", "INK", "band", "colour", "label_ends", "new_figure", "svg"]
