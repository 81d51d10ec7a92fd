"""The pages' examples run, and their tables say what the code's tables say. Spark's example is in tests/spark."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import re
import shutil
from pathlib import Path

import pytest

import wireformat as wf
from wireformat import errors, events
from wireformat.arrow.schemas import DETAIL_KEYS
from wireformat.options import TEST_DECODING_OPTIONS, WRITE_OPTIONS, Option
from wireformat.options.gaussdb import REQUIREMENTS

ROOT = Path(__file__).parent.parent
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
PAGES = [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "docs").rglob("*.md"))]
SAMPLE = "examples/sample_capture.parquet"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)

RUN_ELSEWHERE = {
    "console": {
        "docs/command_line.md": "tests/cli/test_documentation.py",
        "docs/commands.md": "tests/cli/test_documentation.py",
        "docs/install.md": "tests/test_wheel.py",
        "docs/quickstart.md": "tests/test_wheel.py",
    },
    "sql": dict.fromkeys(
        ("README.md", "docs/kafka.md", "docs/spark.md", "docs/current_tables.md"), "tests/spark/test_documentation.py"
    ),
    "python": dict.fromkeys(
        (
            "README.md",
            "docs/spark.md",
            "docs/spark_capture.md",
            "docs/pandas_functions.md",
            "docs/current_tables.md",
            "docs/kafka.md",
        ),
        "tests/spark/test_documentation.py",
    ),
}
"""Which pages have blocks that this file does not run, and what runs them."""


def blocks(page: Path) -> list[str]:
    """The page's Python examples, but for Spark's."""
    return [block for block in BLOCK.findall(page.read_text(encoding="utf-8")) if "spark" not in block]


WITH_EXAMPLES = [page for page in PAGES if blocks(page)]


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the page's table whose head begins with `first`, cells without back-quotes."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in found[1].splitlines()]


def test_examples_are_found() -> None:
    assert {page.name for page in WITH_EXAMPLES} >= {"README.md", "events.md", "arrow.md", "gaussdb-binary.md"}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, in an empty folder; a line that begins with # is what the example prints."""
    if any(SAMPLE in block for block in blocks(page)):
        (tmp_path / "examples").mkdir()
        shutil.copy(ROOT / SAMPLE, tmp_path / SAMPLE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, str(page), "exec"), names)
        assert printed.getvalue().splitlines() == [line[2:] for line in block.splitlines() if line.startswith("# ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_are_there(page: Path) -> None:
    folders = "wireformat|spark_udfs|tests|tools|benchmarks|examples"
    named = re.findall(rf"(?<![\w/.-])(?:{folders})/[\w/]+\.py\b", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("language", RUN_ELSEWHERE)
def test_all_blocks_run_somewhere(language: str) -> None:
    """Each block of a page is run here or by the test that is named above, which names the page."""
    here = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
    pages = {
        name: found
        for name, text in here.items()
        for found in [re.findall(rf"^ *```{language}\n(.*?)```", text, re.DOTALL | re.MULTILINE)]
        if found and (language != "python" or any("spark" in block for block in found))
    }
    assert set(pages) == set(RUN_ELSEWHERE[language])
    for name, test in RUN_ELSEWHERE[language].items():
        assert Path(name).name in (ROOT / test).read_text(encoding="utf-8")


def test_columns() -> None:
    listed = [name.strip() for row in table("docs/table.md", "column") for name in row[0].split(",")]
    assert listed == wf.arrow.CHANGES.names


def test_keys_of_detail() -> None:
    listed = [key.strip() for row in table("docs/table.md", "key") for key in row[0].split(",")]
    assert listed == list(DETAIL_KEYS)


@pytest.mark.parametrize(
    ("page", "options"),
    [("docs/events.md", WRITE_OPTIONS), ("docs/formats/test-decoding.md", TEST_DECODING_OPTIONS)],
    ids=["GaussDB", "PostgreSQL"],
)
def test_write_options(page: str, options: tuple[Option, ...]) -> None:
    words = {True: "on", False: "off"}
    listed = [
        [row.name, words[row.default] if "on" in row.allowed else str(row.default), row.sentence] for row in options
    ]
    assert table(page, r"option \| default") == listed


def test_options_of_servers() -> None:
    rows = [list(row) for row in wf.Options.table()]
    assert table("docs/options.md", "option") == [[cell.replace("*", r"\*") for cell in row] for row in rows]
    assert table("docs/options.md", "need") == [[name, need.words] for name, need in REQUIREMENTS.items()]


def test_fields_of_events() -> None:
    for names, listed, *_ in table("docs/events.md", "event"):
        for name in names.split(", "):
            fields = [field.name for field in dataclasses.fields(getattr(events, name)) if field.name != "lsn"]
            words = [word for word in re.split(r"[,;(]\s*", listed) if word.strip() in fields]
            assert [word.strip() for word in words] == fields, name


def test_errors_are_listed() -> None:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.WireformatError):
            assert re.search(rf"^ +{name}\b", text, re.MULTILINE), name


def test_attributes_of_errors() -> None:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    listed = {("DecodeError", name) for row in table("docs/errors.md", "part") for name in row[1].split(", ")}
    for kind, entry in re.findall(r"^ +([A-Z]\w+)\b(.*(?:\n {15,}.*)*)", text, re.MULTILINE):
        names = re.sub(r"\s*\([^)]*\)", "", entry.partition("; attributes: ")[2])
        listed |= {(kind, name) for name in re.split(r",\s*", names) if name}
    assert ("BadCell", "sql_type") in listed
    assert [one for one in listed if one[1] not in vars(getattr(errors, one[0])("", ""))] == []


def test_arguments_of_encode() -> None:
    listed = [name for name, *_ in table("docs/events.md", "argument")]
    assert {*inspect.signature(wf.encode).parameters} == {"events", "format", "options", *listed}


def test_imports_in_the_text_work() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    lines = re.findall(r"`(from wireformat[\w.]* import \w+)`", text)
    assert lines
    for line in lines:
        exec(line, {})


def test_the_declaration_is_the_code() -> None:
    (block,) = blocks(ROOT / "docs/formats/gaussdb-binary.md")
    declaration = block[block.index("NEW_TAG, ") :]
    assert declaration in (ROOT / "wireformat/formats/gaussdb_binary.py").read_text(encoding="utf-8")
