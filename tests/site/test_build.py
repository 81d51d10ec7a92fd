"""The site is built, warnings are errors; its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.site.links import broken_links, outer_targets
from tools.site.pages import ROOT

pytest.importorskip("pydata_sphinx_theme", reason="the extra docs is not installed; Python 3.10 has none")
pytest.importorskip("myst_nb")

pytestmark = pytest.mark.slow

MOST_SECONDS = 60


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("site")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", "--work", work], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - started < MOST_SECONDS
    return work / "html"


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
