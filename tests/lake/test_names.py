"""Names from the wire are data: each table has a folder of its own inside the lake."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.lake.stored.names import folder_of, stored_names
from wireformat.options.table_names import written

from .reading import read, tables_of, values

NAMES = (
    *(
        "",
        "plain",
        "../../x",
        "..",
        ".",
        "a/b",
        "a\\b",
        "_hidden",
        ".x",
        "-x",
        "Orders",
        "orders",
        "ORDERS",
        "a.b",
        "a=b",
    ),
    *("con", "lpt1", "a%2Fb", "~2F", "~", "a~", "a b", " a", "a ", "x" * 63, "X" * 63, "é" * 31, "区" * 21, "e\u0301"),
    *("\u00e9", "*", "?", '"', "'", ":", "\t", "\n", "\x7f", "CON", "a" * 500, "a" * 501, "𝔘" * 15),
)


def row_of(number: int, columns: tuple[str, ...]) -> wf.TupleData:
    texts = tuple(str(number + index) for index in range(len(columns)))
    return wf.TupleData(columns, texts, ("integer",) * len(columns))


def history(names: list[str], columns: tuple[str, ...] = ("id",)) -> list[bytes]:
    rows = [
        wf.Insert(
            lsn=17 + number,
            table_schema="public" if number % 2 else name,
            table_name=name,
            new=row_of(number, columns),
        )
        for number, name in enumerate(names)
    ]
    events = [wf.Begin(lsn=16, csn=5, first_lsn=16), *rows, wf.Commit(lsn=900, xid=9)]
    return list(wf.encode(events, "gaussdb-binary"))


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_hostile_names(format: str, tmp_path: Path) -> None:
    lake = tmp_path / "100% lake"
    capture = wf.Capture(history([*NAMES]), "gaussdb-binary")
    capture.write(lake, format=format)
    names = tables_of(lake)
    assert len(names) == len(NAMES)
    folders = {str(row["folder"]) for row in wf.lake.tables(lake).to_pylist()}
    assert len({folder.casefold() for folder in folders}) == len(NAMES)
    for name in names:
        assert values(read(lake, name)) == values(capture.typed(written(name)).read_all())
    outside = [path for path in tmp_path.rglob("*") if lake not in (path, *path.parents)]
    assert outside == []
    capture.write(lake, format=format)
    assert sum(row["rows"] or 0 for row in wf.lake.tables(lake).to_pylist()) in (0, len(NAMES))


@given(st.lists(st.tuples(st.text(max_size=63), st.text(max_size=63)), min_size=2, max_size=2, unique=True))
def test_folders(names: list[tuple[str, str]]) -> None:
    """They are different, also where letters' case does not count, and below the lake."""
    first, second = map(folder_of, names)
    assert first.casefold() != second.casefold()
    for folder in (first, second):
        parts = folder.split("/")
        assert len(parts) == 2
        for part in parts:
            assert part.isascii()
            assert 0 < len(part) <= 200
            assert part[0] not in "._-"
            assert os.path.normpath(part) == part
            assert not {*part} & {*' %=:*?"<>|\\'}


def test_columns_that_differ_in_case_only() -> None:
    assert stored_names(["Id", "id", "ID", "id_2"], {}, ["_sequence"]) == {
        "Id": "Id",
        "id": "id_2",
        "ID": "ID_3",
        "id_2": "id_2_2",
    }
    assert stored_names(["a", "id", "Id"], {"Id": "Id"}, []) == {"Id": "Id", "a": "a", "id": "id_2"}
    assert stored_names(["_XID"], {}, ["_xid"]) == {"_XID": "_XID_2"}


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("state", ["changes", "latest"])
def test_such_columns_are_stored(format: str, state: str, tmp_path: Path) -> None:
    messages = history(["t"], ("Id", "id", "a b"))
    keys = {"keys": ["Id"]} if state == "latest" else {}
    wf.Capture(messages, "gaussdb-binary").write(tmp_path, format=format, state=state, **keys)
    found = read(tmp_path, ("t", "t"))
    assert found.select(["Id", "id_2", "a b"]).to_pylist() == [{"Id": 0, "id_2": 1, "a b": 2}]
    if format == "parquet":
        assert found.schema.field("id_2").metadata[b"wireformat.column"] == b"id"
        assert found.schema.field("id_2").metadata[b"wireformat.sql_type"] == b"integer"


def test_a_column_with_a_name_of_ours(tmp_path: Path) -> None:
    with pytest.raises(wf.OptionError, match=r"table t\.t: .*_change_type"):
        wf.Capture(history(["t"], ("id", "_change_type")), "gaussdb-binary").write(tmp_path)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("state", ["changes", "latest"])
@pytest.mark.parametrize("key", [["id"], []])
@pytest.mark.parametrize(
    ("column", "sql_type"), [("_relation_id", "integer"), ("_relation_id", "text"), ("_error", "text")]
)
def test_a_column_with_a_name_that_is_only_sometimes_ours(
    column: str, sql_type: str, key: list[str], state: str, tmp_path: Path
) -> None:
    """The format sends no OIDs, and values that do not fit are an error: the columns are those of the table."""
    types = ("integer", sql_type)
    rows = [wf.TupleData(("id", column), (str(number), str(10 + number)), types) for number in range(4)]
    changes = [wf.Insert(lsn=0, table_schema="t", table_name="t", new=row) for row in rows]
    keys = {"keys": key} if state == "latest" else {}
    for number, inserts in enumerate((changes[:2], changes[2:])):
        lsn = 100 + 50 * number
        placed = [replace(insert, lsn=lsn + 8) for insert in inserts]
        events = [wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn), *placed, wf.Commit(lsn=lsn + 16, xid=number)]
        messages = list(wf.encode(events, "gaussdb-binary"))
        wf.Capture(messages, "gaussdb-binary").write(tmp_path, format="delta", state=state, **keys)
    found = read(tmp_path, ("t", "t"))
    assert sorted(map(str, found[column].to_pylist())) == ["10", "11", "12", "13"]


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_a_column_whose_name_is_that_of_errors_in_other_case(format: str, tmp_path: Path) -> None:
    """A later write may be PERMISSIVE, with errors in a column of that name."""
    messages = history(["t"], ("id", "_Error"))
    wf.Capture(messages, "gaussdb-binary").write(tmp_path / "one", format=format)
    wf.Capture(messages, "gaussdb-binary", mode="PERMISSIVE").write(tmp_path / "other", format=format)
    for name in ("one", "other"):
        assert read(tmp_path / name, ("t", "t"))["_Error_2"].to_pylist() == [1]


def test_a_folder_that_deltalake_would_take_for_another_one(tmp_path: Path) -> None:
    capture = wf.Capture(history(["t"]), "gaussdb-binary")
    with pytest.raises(wf.OptionError, match=r"percent sign and two hex digits .* choose another folder"):
        capture.write(tmp_path / "a%20b", format="delta")
    assert not [*tmp_path.iterdir()]
    for name in ("a%20b", "100%", "a b"):
        capture.write(tmp_path / name / "parquet")
        assert len(read(tmp_path / name / "parquet", ("t", "t"))) == 1
    for name in ("100%", "a b"):
        capture.write(tmp_path / name / "delta", format="delta")
        assert len(read(tmp_path / name / "delta", ("t", "t"))) == 1


@pytest.mark.parametrize("name", [("public", "wireformat-events"), ("wireformat-prod", "t")])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_tables_that_are_called_as_files_are(format: str, name: tuple[str, str], tmp_path: Path) -> None:
    row = wf.Insert(lsn=5, table_schema=name[0], table_name=name[1], new=wf.TupleData(("id",), ("1",), ("integer",)))
    begin = wf.Begin(lsn=4, csn=1, first_lsn=4, commit_time="2026-11-22 10:00:00+00")
    messages = list(wf.encode([begin, row, wf.Commit(lsn=6, xid=7)], "gaussdb-binary"))
    for _ in range(2):
        wf.Capture(messages, "gaussdb-binary").write(tmp_path, format=format)
        (tmp_path / ".wireformat-begun").touch()
    assert read(tmp_path, name)["id"].to_pylist() == [1]
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
