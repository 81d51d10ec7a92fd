"""`python -m tools.site.draw` writes the drawings of the documentation, docs/drawings/*.svg."""

from __future__ import annotations

from itertools import chain

from .drawings import idea_drawings
from .order_drawings import order_drawings
from .pages import DOCS

FOLDER = DOCS / "drawings"


def drawings() -> dict[str, str]:
    """Returns the content of each drawing by its name."""
    return dict(chain(idea_drawings(), order_drawings()))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in drawings().items():
        (FOLDER / name).write_text(content, encoding="utf-8")
