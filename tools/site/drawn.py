"""Drawings inside of the pages instead of beside them, so that they follow the colours of the page."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes

FOLDER = "drawings"


def inline(app: Any, doctree: nodes.document, name: str) -> None:
    """The handler of Sphinx's event doctree-resolved."""
    for image in [*doctree.findall(nodes.image)]:
        path = Path(image["uri"])
        if path.parent.name == FOLDER and app.builder.format == "html":
            svg = (Path(app.srcdir) / path).read_text(encoding="utf-8")
            figure = f'<div class="drawing" role="img" aria-label="{escape(image.get("alt", ""))}">{svg}</div>'
            image.replace_self(nodes.raw("", figure, format="html"))
