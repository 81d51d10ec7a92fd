"""The site is built, warnings are errors; its pages load nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.site.links import broken_links, outer_targets

pytestmark = pytest.mark.slow


def test_pages_are_there(html: Path) -> None:
    pages = {path.relative_to(html).as_posix() for path in html.rglob("*.html")}
    assert pages >= {"index.html", "quickstart.html", "changes.html", "tour.html", "api/wireformat.html", "search.html"}
    assert broken_links(html) == []


def test_nothing_is_loaded_from_elsewhere(html: Path) -> None:
    for page in html.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+", text) == [], page
    assert outer_targets(html)


def test_drawings_are_in_their_pages(html: Path) -> None:
    text = (html / "how_it_works.html").read_text(encoding="utf-8")
    assert text.count('class="wf-drawing"') == 7
    assert "drawings/" not in text


def test_search_finds_public_names(html: Path) -> None:
    index = (html / "searchindex.js").read_text(encoding="utf-8")
    for name in ("guess_format", "open_transactions", "replay"):
        assert name in index
