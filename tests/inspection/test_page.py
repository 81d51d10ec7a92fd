"""The page of `wireformat inspect --html`, in a real Chromium where there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf

from ..browser import CHROMIUM, Browser
from ..cli.commands import run

SAMPLE = Path(__file__).parents[2] / "examples" / "sample_capture.parquet"
EVIL = "</script><img src=x onerror=document.title='taken'>\x1b[31m\u202e<!--data-->"

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def evil_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a record whose names and values are markup, and of a bad one."""
    folder = tmp_path_factory.mktemp("evil")
    row = wf.TupleData(names=("id", EVIL), values=("1", EVIL), types=("integer", "text"))
    event = wf.Insert(lsn=1, table_schema="public", table_name=EVIL, new=row)
    (message,) = wf.encode([event], "gaussdb-binary")
    capture = folder / "evil<b>.parquet"
    pq.write_table(pa.table({"payload": [message, message[:40]]}), capture)
    result = run("inspect", capture, "--html", folder / "page.html")
    assert (result.exit_code, result.stdout) == (0, "")
    return folder / "page.html"


def test_nothing_of_the_wire_is_markup_and_nothing_is_loaded(evil_page: Path) -> None:
    text = evil_page.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert unescape(policy[1]).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    outside = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.DOTALL)
    assert len(outside) < len(text)
    assert not re.search(r"""(src|href)=["']?[a-z]|https?://|@import|url\(""", outside)


@pytest.mark.slow
def test_the_trees_are_chosen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("inspect", SAMPLE, "--html", page, "--records", "0-4,51930")
    assert result.exit_code == 0
    assert "51,934 records, 6 trees" in result.stderr


def test_trees_that_cannot_be(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for wrong, words in (
        ("0-2000", "at most 2,000 records, got more"),
        ("x", "expected numbers and ranges"),
        ("9999999", "51,934 records, from 0 on; got 9999999"),
    ):
        result = run("inspect", SAMPLE, "--html", page, "--records", wrong)
        assert result.exit_code == 2
        assert words in result.stderr
    assert run("inspect", SAMPLE, "--records", "1").exit_code == 2
    assert not page.exists()


@pytest.mark.slow
@needs_chromium
def test_evil_names_are_shown_as_text(chromium: Browser, evil_page: Path) -> None:
    chromium.open(evil_page.as_uri())
    chromium.wait("document.querySelectorAll('#tree [data-row]').length > 10")
    assert chromium.ask("document.title") == "evil<b>.parquet - wireformat inspect"
    assert chromium.ask("document.querySelectorAll('img, main b').length") == 0
    assert "<img src=x" in chromium.ask("document.getElementById('tree').textContent")
    chromium.press("ArrowDown")
    assert "bytes there" in chromium.ask("document.getElementById('tree').textContent")
    assert chromium.faults == []
    blocked = "fetch('https://example.org/').then(() => 'loaded', () => 'blocked')"
    assert chromium.ask(blocked) == "blocked"
    assert any("Content Security Policy" in fault for fault in chromium.faults)


@pytest.mark.slow
@needs_chromium
def test_a_capture_of_20_megabytes_opens_at_once(chromium: Browser, tmp_path: Path) -> None:
    """Of the list only what is seen is drawn; hovering, keys, search and both colour schemes work."""
    page, capture = tmp_path / "page.html", tmp_path / "capture.parquet"
    messages = pq.read_table(SAMPLE)["payload"].to_pylist()
    messages += messages[:11]
    assert sum(map(len, messages)) > 20_000_000
    pq.write_table(pa.table({"payload": messages}), capture)
    assert run("inspect", capture, "--html", page).exit_code == 0
    before = chromium.processor_seconds()
    chromium.open(page.as_uri())
    chromium.wait("document.querySelectorAll('.record').length > 0")
    assert chromium.processor_seconds() - before < 10
    assert chromium.ask("document.getElementById('count').textContent") == "79082 of 79082 records"
    assert chromium.ask("document.querySelectorAll('.record').length") < 200

    for _ in range(3):
        chromium.press("ArrowDown")
    assert "0.3" in chromium.ask("document.querySelector('.picked').textContent")
    chromium.point_at('#tree [title="new.cells[0].value.length"]')
    chromium.wait("document.querySelectorAll('#hex .marked').length === 8")
    chromium.point_at("#hex [data-at='0']")
    chromium.wait("document.querySelector('#tree .marked').title === 'length'")
    chromium.press("ArrowRight")
    chromium.press("ArrowRight")
    assert chromium.ask("document.activeElement.id") == "tree"
    chromium.press("ArrowDown")
    assert chromium.ask("document.querySelector('#tree .marked').title") == "lsn"

    chromium.ask("document.getElementById('list').scrollTop = 1e9")
    chromium.wait("[...document.querySelectorAll('.record')].some(row => row.dataset.index === '79081')")
    chromium.ask("document.querySelector('.record[data-index=\"79081\"]').click()")
    assert "--records 79081" in chromium.ask("document.getElementById('hex').textContent")

    chromium.press("/")
    assert chromium.ask("document.activeElement.id") == "search"
    chromium.call("Input.insertText", text="delete")
    chromium.wait("!document.getElementById('count').textContent.startsWith('79082 ')")
    chromium.wait("document.querySelectorAll('.record').length > 0")
    assert chromium.ask("[...document.querySelectorAll('.record')].every(row => row.textContent.includes('DELETE'))")
    assert chromium.faults == []

    colours = set()
    for scheme in ("light", "dark"):
        chromium.use_scheme(scheme)
        colours.add(chromium.ask("getComputedStyle(document.body).backgroundColor"))
        kept = os.environ.get("WIREFORMAT_PICTURES")
        chromium.photograph((Path(kept) if kept else tmp_path) / f"inspect-{scheme}.png")
    assert len(colours) == 2
    chromium.ask("document.getElementById('scheme').click()")
    assert chromium.ask("getComputedStyle(document.body).backgroundColor") in colours
