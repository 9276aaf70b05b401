"""How Sphinx makes the site; ``build.py`` lays out its sources and calls it."""

import os
from pathlib import Path

import ilhash

project = "ilhash"
author = "The ilhash developers"
release = version = ilhash.__version__
language = "en"
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc"]
exclude_patterns = ["files/**"]
templates_path: list[str] = []

# -- Markdown, and notebooks in Markdown, which are executed ------------------------------------------------------
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
nb_execution_mode = "force"
nb_execution_show_tb = True  # a broken cell is a warning, with its traceback, and so breaks the build
nb_execution_timeout = 240
nb_execution_in_temp = True  # what a tutorial writes is gone afterwards
nb_merge_streams = True
nb_number_source_lines = False

# -- Docstrings ---------------------------------------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say what is taken, and more than a type could
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
nitpicky = True
# Classes of others, which cannot be looked up without a network, and words that autodoc takes for them.
nitpick_ignore_regex = [("py:.*", r"(?!ilhash\b).*"), ("py:.*", r"ilhash(\.\w+)*\._\w+.*")]
show_warning_types = True

# -- What it looks like -------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "ilhash"
html_static_path = [str(Path(__file__).parent / "static")]
html_favicon = "static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = f"{author}, MIT licence"  # noqa: A001 (Sphinx's name)
# But that of dask where there is no network, which the pages do not need.
os.environ.setdefault("PYTHONWARNINGS", "default,ignore:Couldn't detect a suitable IP address:RuntimeWarning")

# With links to its own pages.
OF_SCIKIT_LEARN = {"set_fit_request", "set_transform_request", "set_score_request"}


def setup(app):  # noqa: ANN001, ANN201 (Sphinx's own types are no business of ours)
    """Leave out what is written by scikit-learn."""
    app.connect("autodoc-skip-member", lambda *about: True if about[2] in OF_SCIKIT_LEARN else None)
