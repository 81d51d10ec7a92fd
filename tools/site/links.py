"""The links of the pages that were built: each leads to a file of the site, and to an anchor that is in it."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LEADING = {"a": "href", "link": "href", "img": "src", "script": "src", "object": "data", "source": "src"}
"""Elements that lead to a file, and the attribute that names it."""


class _Page(HTMLParser):
    """The targets and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        if target := given.get(LEADING.get(tag, "")):
            self.targets.append(target)


def broken_links(html: Path) -> list[str]:
    """Returns the links of all pages in a folder that lead nowhere, as `page: target`."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in _paths(html)}
    return [
        f"{path.relative_to(html)}: {target}" for path, page in pages.items() for target in _broken(path, page, pages)
    ]


def outer_targets(html: Path) -> set[str]:
    """Returns everything that the pages load or link to outside of the site."""
    pages = (_Page(path.read_text(encoding="utf-8")) for path in _paths(html))
    return {target for page in pages for target in page.targets if urlsplit(target).netloc}


def _paths(html: Path) -> list[Path]:
    """All pages, without the theme's templates."""
    return [path for path in sorted(html.rglob("*.html")) if "_static" not in path.relative_to(html).parts]


def _broken(path: Path, page: _Page, pages: dict[Path, _Page]) -> Iterator[str]:
    for target in page.targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        there = there / "index.html" if there.is_dir() else there
        known = pages.get(there)
        if not there.exists() or (known is not None and unquote(parts.fragment) not in known.anchors):
            yield target
