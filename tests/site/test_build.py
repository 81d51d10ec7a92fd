"""The site is built, warnings are errors. Then a browser opens every page and link, in both colour schemes.

Pictures of pages go to artifacts/site, for people.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.site.links import broken_links, outer_targets
from tools.site.pages import ROOT

from ..browser import CHROMIUM, Browser

pytestmark = pytest.mark.slow

MOST_SECONDS = 60
ARTIFACTS = ROOT / "artifacts" / "site"
SCHEMES = ("light", "dark")
PHOTOGRAPHED = ("index", "quickstart", "how_it_works", "formats/pgoutput", "api/arrow", "performance", "tour")

LINKS = "[...document.querySelectorAll('a[href]')].map(link => link.href)"
MISSES = """[...document.querySelectorAll('img')].filter(image => !image.naturalWidth).map(image => image.src)"""
COLOURS = """(() => {
    const shown = (element, name) => getComputedStyle(element)[name];
    const text = document.querySelector('.wf-drawing text'), box = document.querySelector('.wf-drawing rect');
    return [shown(document.body, 'backgroundColor'), shown(text, 'fill'), shown(box, 'fill')];
})()"""
LIGHTNESS = """(colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number); return (r + g + b) / 3; })"""


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    pytest.importorskip("pydata_sphinx_theme", reason="the extra docs is not installed; Python 3.10 has none")
    work = tmp_path_factory.mktemp("site")
    before = processor_seconds()
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", "--work", work], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert processor_seconds() - before < MOST_SECONDS
    return work / "html"


def processor_seconds() -> float:
    """What ended processes have used: not what other tests take meanwhile."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH; Debian and Ubuntu: apt-get install chromium")
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        browser.resize(1300, 1000)
        yield browser


def test_every_link_can_be_followed(html: Path, browser: Browser) -> None:
    """From the first page on: each page opens without an error, and each anchor is an element of it."""
    waiting, seen, anchors = [(html / "index.html").as_uri()], set[str](), dict[str, set[str]]()
    while waiting:
        url = waiting.pop()
        if url in seen:
            continue
        seen.add(url)
        assert browser.open(url) == [], url
        assert browser.ask(MISSES) == [], url
        for link in browser.ask(LINKS):
            page, _, anchor = link.partition("#")
            if page.startswith("file:") and page.endswith(".html"):
                anchors.setdefault(page, set()).add(anchor)
                waiting.append(page)
            else:
                assert link.startswith(("https:", "file:")), link
        wanted = sorted(anchors.get(url, set()) - {""})
        found = browser.ask(f"{wanted!r}.filter(name => !document.getElementById(decodeURIComponent(name)))")
        assert found == [], url
    pages = {path.as_uri() for path in html.rglob("*.html") if "_static" not in path.parts}
    assert pages - seen <= {(html / name).as_uri() for name in ("search.html", "genindex.html", "py-modindex.html")}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_drawings_follow_the_scheme(html: Path, browser: Browser, scheme: str) -> None:
    browser.use_scheme(scheme)
    browser.open((html / "how_it_works.html").as_uri())
    page, ink, box = (browser.ask(f"{LIGHTNESS}({colour!r})") for colour in browser.ask(COLOURS))
    assert (page > 128) == (scheme == "light")
    assert abs(page - ink) > 120
    assert abs(box - ink) > 120


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PHOTOGRAPHED)
def test_photographs(html: Path, browser: Browser, name: str, scheme: str) -> None:
    """Nothing is wider than the window, and the picture is kept for people."""
    browser.use_scheme(scheme)
    assert browser.open((html / f"{name}.html").as_uri()) == []
    picture = ARTIFACTS / f"{name.replace('/', '-')}-{scheme}.png"
    browser.photograph(picture)
    assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("scheme", SCHEMES)
def test_charts_are_readable(html: Path, browser: Browser, scheme: str) -> None:
    """Their ink is black, so what is behind them must be light."""
    browser.use_scheme(scheme)
    browser.open((html / "performance.html").as_uri())
    browser.ask("document.querySelector('.bd-article img').scrollIntoView()")
    browser.photograph(ARTIFACTS / f"chart-{scheme}.png")
    backgrounds = browser.ask(
        "[...document.querySelectorAll('.bd-article img')].map(image => getComputedStyle(image).backgroundColor)"
    )
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    charts = re.findall(r"^!\[.*\]\(.*\.svg\)$", text, re.MULTILINE)
    assert len(backgrounds) == len(charts) > 5
    for colour in set(backgrounds) if scheme == "dark" else ():
        assert browser.ask(f"{LIGHTNESS}({colour!r})") > 200


def test_faults_are_seen(tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<img src='missing.png'><script>throw Error('of the page')</script><img src='http://127.0.0.1:9/x'>"
    )
    faults = "\n".join(browser.open(page.as_uri()))
    assert "ERR_FILE_NOT_FOUND" in faults
    assert "of the page" in faults
    assert "asked for http://127.0.0.1:9/x" in faults
    assert browser.ask(MISSES) == [(tmp_path / "missing.png").as_uri(), "http://127.0.0.1:9/x"]


def test_search(html: Path, browser: Browser) -> None:
    browser.open((html / "search.html").as_uri() + "?q=guess_format")
    links = "[...document.querySelectorAll('#search-results li a')]"
    browser.wait(f"{links}.some(link => link.href.includes('api/wireformat.html'))")
