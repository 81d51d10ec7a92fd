"""How often a capture reads its messages, and what it knows after a reading."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.formats.pgoutput import relations

from .streams import CUT, committed, insert, relation, stream


def transaction(xid: int, columns: str) -> list[bytes]:
    """Of test-decoding, with one row."""
    return [b"BEGIN %d" % xid, f"table public.t: INSERT: {columns}".encode(), b"COMMIT %d" % xid]


TO_LIST = "give a list, an Arrow table or files"


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        (
            lambda capture: capture.typed("public.by_key"),
            f"this call may read them twice without a schema: pass schema, or {TO_LIST}",
        ),
        (
            lambda capture: capture.latest("public.by_key"),
            f"this call reads them twice without keys: pass keys and schema, or {TO_LIST}",
        ),
        (lambda capture: capture.typed_all(), f"this call may read them twice: {TO_LIST}"),
        (lambda capture: [capture.changes(), capture.changes()], f"were read before: {TO_LIST}"),
    ],
    ids=["typed", "latest", "typed_all", "two questions"],
)
def test_what_can_be_read_once_is_not_read_twice(verb: Any, text: str) -> None:
    messages, format = stream("18-pgoutput-1")
    with pytest.raises(wf.OptionError) as error:
        verb(wf.Capture(iter(messages), format))
    assert str(error.value) == f"messages can be read only once, and {text}"


@pytest.mark.parametrize(
    ("limit", "readings"), [(1 << 28, 1), (8 * 1024, 2)], ids=["changes that are kept", "changes that are many"]
)
@pytest.mark.parametrize("verb", ["typed", "latest"])
def test_a_table_is_read_once_if_its_changes_fit_into_memory(verb: str, limit: int, readings: int) -> None:
    messages, format = stream("18-pgoutput-1")
    messages = pa.array(messages, pa.large_binary())
    read: list[int] = []
    capture = wf.Capture(messages, format, memory_limit=limit, progress=read.append)
    found = getattr(capture, verb)("public.by_key")
    found = found if verb == "latest" else found.read_all()
    assert sum(read) == readings * messages.nbytes
    assert capture._held is None
    expected = wf.Capture(messages, format).typed("public.by_key", schema=capture.tables()).read_all()
    if verb == "typed":
        assert found == expected
        assert len(expected) > 1
    whole = wf.Capture(messages, format)
    whole.committed().read_all()
    assert (capture.position, capture.dropped, capture.unknown_prepared) == (whole.position, 0, ())


def test_what_can_be_read_once_is_read_once() -> None:
    messages, format = stream("18-pgoutput-1")
    assert (
        wf.Capture(iter(messages), format).committed().read_all() == wf.Capture(messages, format).committed().read_all()
    )


def test_what_is_known_at_the_end() -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture([*messages, CUT], format, mode="DROPMALFORMED")
    for name in ("position", "unknown_prepared", "dropped"):
        with pytest.raises(wf.StateError):
            getattr(capture, name)
    capture.committed().read_all()
    assert (capture.dropped, capture.unknown_prepared) == (1, ())
    assert capture.position.format == "pgoutput"


class OneReading:
    """A stream of Arrow data that has nothing the second time, like the result of a database cursor."""

    def __init__(self, messages: list[bytes]) -> None:
        self._reader = pa.table({"payload": messages}).to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def test_a_second_reading_that_has_fewer_messages_is_an_error() -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture(OneReading(messages), format)
    assert capture.tables().num_rows
    with pytest.raises(
        wf.BadRows, match=r"expected as many messages as an earlier reading had, at least \d+, got 0; give a list"
    ):
        capture.committed().read_all()


def written(capture: wf.Capture, folder: Path) -> pa.Table:
    capture.write(folder)
    return pq.read_table(folder / "public" / "t")


@pytest.mark.parametrize("verb", ["typed", "latest", "typed_all", "write"])
def test_columns_of_messages_that_came_after_the_list_are_not_lost(verb: str, tmp_path: Path) -> None:
    rows = [transaction(xid, "id[integer]:1") for xid in (1, 2)]
    more = transaction(3, "id[integer]:2 name[text]:'a'")
    verbs: dict[str, Callable[[wf.Capture], Any]] = {
        "typed": lambda capture: capture.typed("public.t").read_all(),
        "latest": lambda capture: capture.latest("public.t", keys=["id"]),
        "typed_all": lambda capture: pa.Table.from_batches([rows for _, rows in capture.typed_all()]),
        "write": lambda capture: written(capture, tmp_path / str(len(messages))),
    }
    messages = [message for one in rows for message in one]
    capture = wf.Capture(messages, "test-decoding")
    capture.tables()
    messages += more
    with pytest.raises(wf.BadRows, match="as many messages as when the tables were listed, 6, got 9; give a list"):
        verbs[verb](capture)
    assert len(capture.committed().read_all()) == 3  # which finds that the list is old
    assert "name" in verbs[verb](capture).schema.names
    messages += transaction(4, "id[integer]:2 name[text]:'a' other[text]:'b'")
    assert len(capture.committed().read_all()) == 4
    assert "other" in verbs[verb](capture).schema.names


def test_open_hands_out_no_committed_rows() -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture(messages, format)
    capture.open()
    with pytest.raises(wf.StateError):
        _ = capture.position


def test_a_reading_that_failed_has_no_position() -> None:
    new, old = (
        wf.TupleData(("id", "name"), ("1", "a"), ("integer", "text")),
        wf.TupleData(("id",), ("1",), ("integer",)),
    )
    events: list[wf.Event] = [
        wf.Begin(lsn=10, csn=1, first_lsn=10),
        wf.Insert(lsn=11, table_schema="public", table_name="orders", new=new),
        wf.Delete(lsn=12, table_schema="public", table_name="orders", old=old),
        wf.Commit(lsn=13, xid=10),
    ]
    messages = list(wf.encode(events, "gaussdb-binary"))
    capture = wf.Capture(messages, "gaussdb-binary")
    for _ in range(2):  # a reading before it counts no more
        with pytest.raises(wf.BadRows):
            capture.latest("public.orders", keys=["name"])
        for name in ("position", "unknown_prepared", "dropped"):
            with pytest.raises(wf.StateError):
                getattr(capture, name)
        capture.committed().read_all()
        assert capture.position.delivered.lsn == 13
    with pytest.raises(wf.BadCell):
        capture.typed("public.orders", schema={"id": "integer", "name": "integer"}).read_all()
    with pytest.raises(wf.StateError):
        _ = capture.position


@pytest.mark.parametrize("verb", ["committed", "tables", "typed", "latest"])
def test_a_relation_that_is_sent_again_and_again_is_read_a_few_times(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = relation("id", keys=("id",), identity="default")
    rows = [event for _ in range(50) for event in (described, insert("id", values=("1",)))]
    capture = wf.Capture(list(wf.encode(committed(90, *rows), "pgoutput")), "pgoutput")
    texts: list[str] = []
    read_list = relations.read_list
    monkeypatch.setattr(relations, "read_list", lambda text: (texts.append(text), read_list(text))[1])
    found = getattr(capture, verb)(*(["public.t"] if verb in ("typed", "latest") else []))
    assert (found.read_all() if isinstance(found, pa.RecordBatchReader) else found).num_rows
    assert len(texts) <= 4 * 4  # lists of a relation, for each of those who read it


@pytest.mark.parametrize("make", [list, pa.array])
def test_a_capture_can_be_pickled(make: Callable[[list[bytes]], Any]) -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture(make(messages), format)
    rows = pickle.loads(pickle.dumps(capture)).committed().read_all()
    assert capture.committed().read_all() == rows
    assert pickle.loads(pickle.dumps(capture)).position == capture.position


@pytest.mark.parametrize("format", wf.FORMATS)
def test_a_capture_of_any_format_can_be_pickled(format: str) -> None:
    assert pickle.loads(pickle.dumps(wf.Capture([], format))).changes().read_all().num_rows == 0
