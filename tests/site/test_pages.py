"""What the site is made of: pages, drawings, printed tables, the API reference. None of it needs Sphinx."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.site.byte_tables import sections, with_section
from tools.site.docstrings import convert
from tools.site.draw import FOLDER, drawings
from tools.site.grammar_tables import PAGES, text_sections
from tools.site.links import broken_links
from tools.site.pages import DOCS, ELSEWHERE, ROOT, copy_pages, site_name
from wireformat.formats.registry import all_rows, find_format
from wireformat.formats.text_format import TextFormat

PUBLIC = (
    "wireformat",
    "wireformat.arrow",
    "wireformat.lake",
    "wireformat.live",
    "wireformat.plugin",
    "wireformat.testing",
)
"""Modules whose `__all__` is the API; spark_udfs is read as text, since it needs Spark."""
MODULES = {"arrow", "ddl", "lake", "live", "plugin", "testing"}
"""Names of `__all__` that are modules and have pages of their own."""


def documented() -> set[str]:
    """The full names that the API pages list."""
    found = set()
    for page in (DOCS / "api").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```\{eval-rst\}\n(.*?)```", text, re.DOTALL):
            module = re.search(r"currentmodule:: (\S+)", block)
            assert module is not None
            names = re.findall(r"^\.\. auto\w+:: (\S+)", block, re.MULTILINE)
            found |= {name if name.startswith(f"{module[1]}.") else f"{module[1]}.{name}" for name in names}
    return found


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_an_entry(module: str) -> None:
    names = set(import_module(module).__all__) - (MODULES if module == "wireformat" else set())
    assert {f"{module}.{name}" for name in names} <= documented()


def test_every_name_of_spark_udfs_has_an_entry() -> None:
    text = (ROOT / "spark_udfs" / "__init__.py").read_text(encoding="utf-8")
    names = set(re.findall(r'"(\w+)"', text[text.index("__all__") :]))
    assert {f"spark_udfs.{name}" for name in names} == {name for name in documented() if name.startswith("spark_udfs.")}


def test_drawings_are_new() -> None:
    """Written again by `python -m tools.site.draw`."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")} == drawings()


def test_drawings_are_whole() -> None:
    """Each is well-formed, and every text begins inside of it."""
    for name, content in drawings().items():
        root = ElementTree.fromstring(content)
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        texts = root.findall("{http://www.w3.org/2000/svg}text")
        assert texts, name
        for text in texts:
            assert 0 <= float(text.attrib["x"]) < width, (name, text.text)
            assert 0 < float(text.attrib["y"]) < height, (name, text.text)


def test_order_drawings_say_all_records() -> None:
    from wireformat.stream.order import TABLE

    for family in ("parallel", "serial", "text", "pgoutput"):
        text = drawings()[f"order-{family}.svg"]
        kinds = {kind for step in TABLE if family in step.families for kind in step.kinds}
        assert {kind for kind in kinds if not re.search(rf"\b{kind}\b", text)} == set(), family


@pytest.mark.parametrize("page", sections())
def test_byte_tables_are_new(page: str) -> None:
    """Written again by `python -m tools.site.byte_tables`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert with_section(text, sections()[page]) == text


def test_pages_are_copied_with_their_links(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("was a page once")
    copy_pages(tmp_path)
    assert not (tmp_path / "gone.md").exists()
    assert {*ELSEWHERE.values()} <= {path.name for path in tmp_path.iterdir()}
    performance = (tmp_path / "performance.md").read_text(encoding="utf-8")
    assert "](benchmarks.md)" in performance
    assert "](adding_a_format.md)" in (tmp_path / "changes.md").read_text(encoding="utf-8")
    assert "](glossary.md)" in (tmp_path / "contributing.md").read_text(encoding="utf-8")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    copy_pages(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")} == before


def test_names_on_the_site() -> None:
    assert site_name(ROOT / "docs" / "formats" / ".." / "spark.md") == "spark.md"
    assert site_name(DOCS / ".." / "CHANGELOG.md") == "changes.md"
    with pytest.raises(ValueError, match="docs"):
        site_name(ROOT / "LICENSE")


def test_docstrings() -> None:
    lines = """Does *one* thing with `a*b`.

    mode        FAILFAST, or
                PERMISSIVE
    a_name_of11 exactly as wide as the column
    Raises OptionError.

        literal *text*
    """.splitlines()
    lines = [lines[0], *(line[4:] for line in lines[1:])]
    convert(None, "function", "f", None, None, lines)
    assert lines == [
        r"Does \*one\* thing with ``a*b``.",
        "",
        "**mode**",
        "    FAILFAST, or PERMISSIVE",
        "**a_name_of11**",
        "    exactly as wide as the column",
        "",
        "Raises OptionError.",
        "",
        "::",
        "",
        "        literal *text*",
        "",
        "",
    ]


def test_every_page_has_a_way_to_it(tmp_path: Path) -> None:
    """From index.md on, by the lists of pages; a new page goes into the list of its section."""
    copy_pages(tmp_path)
    waiting, seen = ["index"], set[str]()
    while waiting:
        page = waiting.pop()
        seen.add(page)
        path = tmp_path / f"{page}.md"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for block in re.findall(r"```\{toctree\}\n(?::\w+:\n)*(.*?)```", text, re.DOTALL):
            waiting += [(Path(page).parent / entry).as_posix() for entry in block.split()]
    pages = [path for path in tmp_path.rglob("*") if path.suffix in (".md", ".ipynb")]
    assert {path.relative_to(tmp_path).with_suffix("").as_posix() for path in pages} == seen


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="#here"><a href="b.html#no"><a href="c.html"><a href="x:y">')
    (tmp_path / "b.html").write_text('<img src="no.png"><a href="a.html#here"><a href="./"><a href="%61.html">')
    (tmp_path / "index.html").write_text("")
    assert broken_links(tmp_path) == ["a.html: b.html#no", "a.html: c.html", "b.html: no.png"]


def test_every_text_format_has_tables_of_its_grammar() -> None:
    texts = {row.name for row in all_rows().values() if isinstance(find_format(row.name), TextFormat)}
    assert texts == set(PAGES)
    shown = dict(text_sections())
    assert "| `preparing streamed transaction TXN` StreamPrepare | `␣` | `gid` |" in shown["test-decoding"]
    assert "| | `␣first_lsn:␣` or `␣commit_lsn:␣` | `first_lsn` | an LSN, as 0/CFE5C80 |" in shown["gaussdb-text"]
