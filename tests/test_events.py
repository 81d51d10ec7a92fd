"""Events: the marker of a value that was not sent, and the rows of events that the binary style does not have."""

from __future__ import annotations

import copy
import pickle

import wireformat as wf

from .engines import rows


def test_unchanged_is_one_thing() -> None:
    image = wf.TupleData(("a",), (wf.UNCHANGED,), ("text",))
    for again in (pickle.loads(pickle.dumps(image)), copy.deepcopy(image), copy.copy(image)):
        assert again == image
        assert again.values[0] is wf.UNCHANGED
    assert repr(wf.UNCHANGED) == "UNCHANGED"
    assert isinstance(wf.UNCHANGED, wf.Unchanged)
    assert image.as_dict() == {"a": wf.UNCHANGED}
    assert image != wf.TupleData(("a",), (None,), ("text",))


def row(message: bytes, format: str = "opengauss-test-decoding") -> list[dict[str, object]]:
    found = rows(wf.arrow.changes([message], format))
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_row_of_values_that_were_not_sent() -> None:
    at = {"message": 0, "record": 0, "table_schema": "s", "table_name": "t"}
    assert row(b"table s.t: UPDATE: a[integer]:1 b[text]:unchanged-toast-datum c[text]:null") == [
        {"kind": "UPDATE", **at, "new": [("a", "1"), ("c", None)], "types": ["integer", "text"], "unchanged": ["b"]}
    ]
    assert row(
        b"table s.t: UPDATE: old-key: a[integer]:1 b[text]:unchanged-toast-datum new-tuple: (no-tuple-data)"
    ) == [{"kind": "UPDATE", **at, "old": [("a", "1")], "types": ["integer"], "unchanged": ["b"]}]
    assert row(b"insert into s.t values (1, '2');", "sql-decoding") == [
        {"kind": "INSERT", **at, "new": [("$1", "1"), ("$2", "2")]}
    ]


def test_rows_of_a_truncate() -> None:
    detail = [("restart_identity", "true"), ("cascade", "false")]
    message = b'table s.a, "S".b: TRUNCATE: restart_seqs'
    at = {"message": 0, "record": 0, "kind": "TRUNCATE", "detail": detail}
    assert row(message) == [
        {**at, "table_schema": "s", "table_name": "a"},
        {**at, "table_schema": "S", "table_name": "b"},
    ]
    for engine in ("scan", "declaration"):
        (event,) = wf.decode([message], "mppdb-json", tables=["S.*"], engine=engine)
        assert event == wf.Truncate(tables=(("S", "b"),), restart_identity=True)
        assert list(wf.decode([message], "mppdb-json", tables=["x.*"], engine=engine)) == []
        assert list(wf.decode([message], "mppdb-json", kinds=["COMMIT"], engine=engine)) == []


def test_rows_of_lines_of_the_serial_plugins() -> None:
    time = "2026-11-21 01:02:03+08"
    assert row(f"COMMIT 5 (at {time}) CSN 18446744073709551615".encode()) == [
        {
            "message": 0,
            "record": 0,
            "kind": "COMMIT",
            "xid": 5,
            "csn": -1,
            "commit_time": 1_795_194_123_000_000,
            "detail": [("commit_time", time)],
        }
    ]
    assert row(b"ABORT 5 (at (timestamp out of range))") == [
        {"message": 0, "record": 0, "kind": "ABORT", "xid": 5, "detail": [("commit_time", "(timestamp out of range)")]}
    ]
