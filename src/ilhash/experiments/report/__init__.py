"""How results are shown: figures in one style, and one self-contained page."""
