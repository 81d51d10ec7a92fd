"""The scan of sql-decoding: what it reads by itself, and that both engines say the same of odd statements."""

from __future__ import annotations

import pytest

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan.notes import GOOD, STATUS
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from ...engines import MODES, agree

FORMAT = "sql-decoding"

READ_BY_THE_SCAN = [
    b"BEGIN",
    b"BEGIN 5",
    b"insert into s.t values (1, 'a', null, true);",
    b"insert into s.t values (2, 'b''c', -1.5e+3, NaN);",
    b"insert into s.t values (null, B'01', '', unchanged-toast-datum);",
    b"insert into s.t values (2, 3);",
    b"insert into s.t values (2, 3, );",
    b"insert into s.t values ;",
    b"insert into s.t values  (no-tuple-data);",
    b'delete from s.t where id = 1 and "x""y" = \'a\';',
    b'delete from s.t where id = 1 and "x""y" = null;',
    b'delete from s.t where "where" = 1 and "and" = \' and b = ;\';',
    b"delete from s.t where ;",
    b"delete from s.t where  (no-tuple-data);",
    b"delete from s.t where id = 1;insert into s.t values (1, '; ) , (', 3, unchanged-toast-datum);",
    b"delete from s.t where id = unchanged-toast-datum;insert into s.t values (2, 3);",
    b"delete from s.t where ;insert into s.t values (2, 3);",
    b"delete from s.t where id = 1;insert into s.t values  (no-tuple-data);",
    b'insert into "s t"."values " values (1);',
    b'insert into "s;""t"."v" values (1);',
    b"COMMIT (at 2026-11-21 01:02:03+08) 7",
    b"ABORT 5",
    b"table s.t, s.u: TRUNCATE: (no-flags)",
]
LEFT_TO_THE_DECLARATION = [
    b"delete from s.t where id = 1;insert into s.t values ;",
    b'delete from s.t where id = 1;insert into "s".t values (1);',
    b"table s.t,s.u: TRUNCATE: (no-flags)",
    b'{"TDDL":"DROP TABLE a"}',
    b"insert into s.t values (%s);" % b", ".join([b"1"] * 1601),
    b"insert into s.t values ();",
    b"insert into s.t values (1",
    b"insert into s.t values (1)",
    b"insert into s.t values (1));",
    b"insert into s.t values (1,2);",
    b"insert into s.t values (1, );x",
    b"insert into s.t values (1.5x);",
    b"insert into s.t values (B'12');",
    b"insert into s.t values ('a);",
    b"insert into s.t values (TRUE);",
    b"insert into s.t",
    b"insert into s.t where (1);",
    b"insert into s.",
    b'insert into s."t values (1);',
    b"INSERT INTO s.t values (1);",
    b"delete from s.t where a = 1",
    b"delete from s.t where a =1;",
    b"delete from s.t where a = 1 and ;",
    b"delete from s.t where a = 1;insert into s.u values (1);",
    b"delete from s.t where a = 1;insert into s.t where (1);",
    b"delete from s.t where a = 1;insert",
    b"delete from s.t where a = 1; ",
]


def read_by_the_scan(messages: list[bytes]) -> list[bool]:
    """Whether the scan has read each record by itself."""
    (batch_scan,) = Scanner(find_format(FORMAT), ReadOptions.check()).batch_scans(messages)
    count = batch_scan.step()
    found = (batch_scan.notes.rows[STATUS, :count] == GOOD).tolist()
    batch_scan.close()
    return found


@pytest.mark.parametrize("times", [1, 2])
def test_what_the_scan_reads(times: int) -> None:
    """The second time the relations are known."""
    assert all(read_by_the_scan(READ_BY_THE_SCAN * times))
    assert not any(read_by_the_scan(LEFT_TO_THE_DECLARATION * times))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tables", [None, ["s.t"], ["s.u"], ["other.*"]])
def test_both_engines_agree(mode: str, tables: list[str] | None) -> None:
    for bad in LEFT_TO_THE_DECLARATION:
        for messages in ([bad], [*READ_BY_THE_SCAN, bad], [READ_BY_THE_SCAN[2], bad, READ_BY_THE_SCAN[9]]):
            agree(messages, format=FORMAT, mode=mode, tables=tables)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
def test_texts_in_other_encodings(encoding: str) -> None:
    text = "ÿ" if encoding == "latin-1" else "表"
    line = f'delete from s."{text}" where "{text}" = \'{text}\';insert into s."{text}" values (\'{text}\');'
    agree([line.encode(encoding)] * 3, format=FORMAT, encoding=encoding)
    agree([line.encode(encoding)] * 3, format=FORMAT, mode="PERMISSIVE")


def test_types_are_forms_in_events_and_null_in_the_table() -> None:
    lines = [b"insert into s.t values (1, null);", b"insert into s.t values ('1', true);", b"insert into s.t values ;"]
    events = list(wf.decode(lines, FORMAT))
    assert [event.new.types for event in events] == [("?number", "?null"), ("?string", "?boolean"), ()]
    assert wf.arrow.changes(lines, FORMAT)["types"].to_pylist() == [None, None, []]


@pytest.mark.parametrize("engine", ["scan", "declaration"])
def test_typed_tables_of_captures(engine: str) -> None:
    """Columns are found by their numbers, whatever the literals look like."""
    lines = [b"BEGIN 5", *(b"insert into s.t values (%d, %s);" % (n, (b"null", b"'x'")[n % 2]) for n in range(4))]
    lines += [b"delete from s.t where a = 1;insert into s.t values (7, 'y');", b"COMMIT 5"]
    capture = wf.Capture(lines, FORMAT, engine=engine)
    typed = capture.typed("s.t", schema={"a": "integer", "b": "text"}).read_all()
    assert typed.select(["a", "b"]).to_pylist() == [
        *({"a": n, "b": (None, "x")[n % 2]} for n in range(4)),
        {"a": 7, "b": "y"},
    ]
