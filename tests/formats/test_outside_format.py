"""A format of another package: found by its entry point, and treated like a built-in one everywhere."""

from __future__ import annotations

import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.arrow.jit.compiler import outside_mark
from wireformat.formats import registry
from wireformat.formats.adapt import adapted
from wireformat.formats.registry import ROWS, all_rows
from wireformat.formats.row import FormatRow, load

from ..cli.commands import run
from ..engines import agree, read

FOLDER = Path(__file__).parents[1] / "outside"
PAGE = Path(__file__).parents[2] / "docs" / "adding_a_format.md"
FORMAT = "fixed-width"


def tuple_data(**values: str | None) -> wf.TupleData:
    return wf.TupleData(tuple(values), tuple(values.values()), ("text",) * len(values))


ORDERS = {"table_schema": "public", "table_name": "orders"}
EVENTS = [
    wf.Begin(xid=5),
    wf.Insert(**ORDERS, new=tuple_data(id="1", note=None, empty="")),
    wf.Update(**ORDERS, new=tuple_data(id="2", note="à la carte"), old=tuple_data(id="1")),
    wf.Delete(**ORDERS, old=tuple_data(id="2")),
    wf.Commit(xid=5, commit_time="2026-11-22 10:00:00+00"),
]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `pip install`: the package and its metadata are on the path."""
    monkeypatch.syspath_prepend(str(FOLDER))


def messages() -> list[bytes]:
    return list(wf.encode(EVENTS, FORMAT))


def test_what_is_written_is_read_by_both_engines() -> None:
    assert agree(messages(), format=FORMAT).events == EVENTS
    assert agree(messages(), format=FORMAT, strict=True).events == EVENTS
    assert agree(messages(), format=FORMAT, tables=["other.*"], kinds=["INSERT", "COMMIT"]).events == EVENTS[-1:]
    assert wf.Decoder(FORMAT).decode(messages()[1]) == EVENTS[1:2]


def test_other_encodings() -> None:
    written = list(wf.encode(EVENTS[:2], FORMAT, encoding="gbk"))
    assert agree(written, format=FORMAT, encoding="gbk").events == EVENTS[:2]
    assert agree(messages(), format=FORMAT, encoding="latin-1").events != EVENTS
    assert agree([messages()[2].replace(b"\xc3", b"\xff")], format=FORMAT).error is not None


def test_tables_of_its_changes() -> None:
    rows = wf.arrow.changes(messages(), FORMAT)
    (insert, update, delete) = wf.arrow.typed(rows, "public.orders").to_pylist()
    assert (insert["id"], insert["note"], insert["empty"]) == ("1", None, "")
    assert (update["note"], delete["_change_type"]) == ("à la carte", "delete")


def test_it_is_recognised() -> None:
    assert wf.guess_format(messages()).name == FORMAT
    assert wf.guess_format([b"BEGIN 5"]).name is None
    with pytest.raises(wf.DecodeError, match="fixed-width"):
        list(wf.decode(messages(), "gaussdb-binary"))


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (replace(EVENTS[1], new=tuple_data(id="x" * 31)), "expected a text of 0 to 30 bytes"),
        (replace(EVENTS[1], new=tuple_data(id="x ")), "does not end in a blank"),
        (replace(EVENTS[1], new=tuple_data(id=wf.UNCHANGED)), "expected a text for every name, type and value"),
        (replace(EVENTS[1], table_name="x" * 17), "expected a text of 1 to 16 bytes"),
        (replace(EVENTS[1], new=tuple_data()), "a tuple without columns"),
        (wf.Message(prefix="p", content=b"c", transactional=True), "the format cannot say it"),
    ],
)
def test_what_it_cannot_say(event: wf.Event, error: str) -> None:
    with pytest.raises(wf.EncodeError, match=error):
        list(wf.encode([EVENTS[0], event], FORMAT))


def test_events_are_adapted_to_it() -> None:
    empty = replace(EVENTS[2], old=tuple_data(), xid=7)
    event, changed = adapted(empty, FORMAT)
    assert event == replace(EVENTS[2], old=None)
    assert len(changed) == 2


def test_the_command_line_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "capture.parquet"
    pq.write_table(pa.table({"payload": messages()}), path)
    assert run("show", "--format", FORMAT, path).stdout_bytes.splitlines() == messages()
    listed = run("formats").stdout
    assert "fixed-width              A made-up format" in listed
    converted = tmp_path / "converted.parquet"
    assert run("convert", "--format", FORMAT, "--to", "test-decoding", path, "-o", converted).exit_code == 0
    assert len(read(pq.read_table(converted)["payload"], format="test-decoding")) == len(EVENTS)


def test_it_is_listed_after_the_built_in_ones() -> None:
    assert list(wf.FORMATS) == [*ROWS, FORMAT] == [*all_rows()]
    assert wf.FORMATS[FORMAT].name == FORMAT
    with pytest.raises(wf.OptionError, match="unknown format 'fixed-with', did you mean 'fixed-width'"):
        wf.decode([], "fixed-with")


def test_other_packages_are_not_asked_for_a_built_in_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entry_points", None)
    assert read([b"BEGIN 5"], format="test-decoding", strict=True) == [wf.Begin(xid=5)]


def install(folder: Path, value: str, **sources: str) -> None:
    metadata = folder / "bad-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text(f"[{registry.GROUP}]\nbad = {value}\n")
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)


ROW = "from dataclasses import replace\nfrom fixed_width import ROW\nROW = replace(ROW, {})\n"
BAD = {
    "missing": ("bad_missing:ROW", {}, "bad_missing:ROW raised ModuleNotFoundError"),
    "no row": ("bad_text:ROW", {"bad_text": "ROW = 'x'"}, "expected bad_text:ROW to be a FormatRow, got str"),
    "another name": ("bad_name:ROW", {"bad_name": ROW.format("name='x'")}, "its row in bad_name:ROW is named x"),
    "order": ("bad_order:ROW", {"bad_order": ROW.format("order='mine'")}, "order of the format fixed-width.*'mine'"),
    "what it cannot say": (
        "bad_names:ROW",
        {"bad_names": ROW.format("name='bad', cannot_say=('fact', 'lsn')")},
        "cannot_say of the format bad: expected names in DIFFERENCES, got 'fact', did you mean 'facts'",
    ),
    "a signature": (
        "bad_sign:ROW",
        {"bad_sign": ROW.format("name='bad', signatures=('begin', 'comit')")},
        "signatures of the format bad: expected bytes or names in PATTERNS, got 'comit', did you mean 'commit'",
    ),
    "a pattern": (
        "bad_pattern:ROW",
        {"bad_pattern": ROW.format("name='bad', signatures=(b'[',)")},
        r"signatures of the format bad: expected regular expressions, got b'\['",
    ),
    "types": ("bad_types:ROW", {"bad_types": ROW.format("types='mine'")}, "types of the format fixed-width.*'mine'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_row_that_cannot_be_loaded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error where it is asked for; where all formats are listed, the others are listed with a warning."""
    value, sources, error = BAD[name]
    install(tmp_path, value, **sources)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(wf.OptionError, match=f"the format bad cannot be loaded: .*{error}"):
        wf.decode([], "bad")
    registry._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"the format bad cannot be loaded: .*{error}"):
        assert list(wf.FORMATS) == [*ROWS, FORMAT]


def test_a_name_that_two_packages_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "entry_points.txt").write_text(f"[{registry.GROUP}]\nboth = {package}:ROW\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(wf.OptionError, match="several packages have one of this name: one:ROW, two:ROW"):
        wf.decode([], "both")


@pytest.mark.parametrize("reference", ["", "module", "module:", ":name"])
def test_references_have_two_parts(reference: str) -> None:
    with pytest.raises(wf.OptionError, match="expected module:name"):
        load(reference)


def test_compiled_code_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compile cache tells the releases of a package apart; it is named after wireformat's own sources alone."""
    assert outside_mark(outside_mark) == ""
    marks = set()
    for release in range(2):
        folder = tmp_path / f"copy_{release}"
        shutil.copytree(FOLDER / "fixed_width", folder)
        with (folder / "__init__.py").open("a") as file:
            file.write("\n\ndef own():\n    return 1\n")
        (folder / "declaration.py").write_text((folder / "declaration.py").read_text() + "# another\n" * release)
        (tmp_path / f"single_{release}.py").write_text(f"def scan():\n    return {release}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        marks.add(outside_mark(import_module(f"copy_{release}.scan").read_record))
        marks.add(outside_mark(import_module(f"single_{release}").scan))
        marks.add(outside_mark(import_module(f"copy_{release}").own))
    found = import_module("copy_0.scan")
    assert outside_mark(outside_mark, found.read_record) in marks
    marks |= {outside_mark(found.find_kind), outside_mark(found.find_kind, found.read_record)}
    assert len(marks) == 8


def test_a_row_is_plain_data() -> None:
    """A format is loaded by its name: rows can be listed without it."""
    for row in all_rows().values():
        assert isinstance(row, FormatRow)
        assert load(row.format).name == row.name
        assert import_module(row.framing)


def test_it_is_small() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix in (".py", ".txt")]
    assert len(files) == 4
    assert sum(len(path.read_text().splitlines()) for path in files) <= 300


def test_the_page_shows_its_files() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for path in FOLDER.rglob("*.py"):
        assert f"```py\n{path.read_text(encoding='utf-8')}```" in page, path.name
    (written,) = FOLDER.rglob("entry_points.txt")
    head, entry = written.read_text(encoding="utf-8").split()[0], written.read_text(encoding="utf-8").splitlines()[1]
    name, value = entry.split(" = ")
    assert f'[project.entry-points."{head.strip("[]")}"]\n{name} = "{value}"\n' in page
