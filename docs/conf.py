"""How Sphinx makes the documentation site; `make docs` calls it, and tools/site has what this file uses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import wireformat  # noqa: E402
from tools.site import docstrings, drawn  # noqa: E402

project = "wireformat"
author = "the authors of wireformat"
project_copyright = "the authors of wireformat, Apache License 2.0"
version = release = wireformat.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
root_doc = "index"
templates_path: list[str] = []

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebook keeps its outputs, and a test executes it

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "wireformat"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 8,
    "logo": {"text": "wireformat"},
    "navigation_with_keys": False,
    "search_as_you_type": True,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", docstrings.convert)
    app.connect("doctree-resolved", drawn.inline)
