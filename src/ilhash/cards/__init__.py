"""Cards of models: what a model is, what it learnt from, what it is worth, as Markdown beside it and as a page.

_described   what a model says of itself, and the results that it remembers
_facts       a card without form
_markdown    README.md of a model's folder
_page        one self-contained page of HTML, with curves
_escaping    texts of strangers, harmless in both
"""

from ilhash.cards._described import Described, kind_of_supervision
from ilhash.cards._facts import Card, Curve, Measured
from ilhash.cards._markdown import markdown
from ilhash.cards._page import page

__all__ = ["Card", "Curve", "Described", "Measured", "kind_of_supervision", "markdown", "page"]
