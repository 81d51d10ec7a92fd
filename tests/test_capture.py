"""`Capture`: its verbs say what the functions say, and a stream read in pieces gives what the whole gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wireformat as wf
from wireformat.options.table_names import written
from wireformat.stream.capture_position import CapturePosition

from . import handmade_pgoutput as hand
from .examples import PROFILE
from .golden_cases import CASES, Case, find_case
from .servers.captures import capture_names, read_capture

SERVER_CAPTURES = [name for name in capture_names() if "test-decoding" not in name or "streaming" not in name]


TABLES_CHECKED = 4
"""About so many tables of each capture are compared."""


def stream(name: str) -> tuple[list[bytes], str]:
    return read_capture(name).messages, "pgoutput" if "pgoutput" in name else "test-decoding"


def check(messages: list[bytes], format: str, **options: Any) -> None:
    """Compares all verbs with the functions for tables that exist."""
    capture = wf.Capture(messages, format, **options)
    changes = wf.arrow.changes(messages, format, **options)
    assert capture.changes().read_all() == changes
    assert capture.changes(columns=["kind", "lsn"], kinds=["INSERT"]).read_all() == wf.arrow.changes(
        messages, format, columns=["kind", "lsn"], kinds=["INSERT"], **options
    )
    committed = wf.arrow.transactions(changes)
    assert capture.committed().read_all() == committed
    assert capture.open() == wf.arrow.open_transactions(changes)
    listed = wf.arrow.tables(changes)
    assert capture.tables() == listed
    tables_of_rows, listed_tables = (
        [*zip(rows["table_schema"].to_pylist(), rows["table_name"].to_pylist(), strict=True)]
        for rows in (committed, listed)
    )
    untyped = {name for name, types in zip(listed_tables, listed["types"].to_pylist(), strict=True) if None in types}
    names = sorted({*listed_tables})
    for name in names[:: max(1, len(names) // TABLES_CHECKED)]:
        table = written(name)
        try:
            expected = wf.arrow.typed(committed, table, schema=listed)
        except wf.WireformatError as error:
            with pytest.raises(type(error)):
                capture.typed(table).read_all()
            continue
        if name in untyped:
            with pytest.raises(wf.BadRows, match="rows that name the types"):
                capture.typed(table)
            continue
        alone = wf.Capture(messages, format, **options)  # it reads the rows with the list, unless they are many
        found, of_two_readings = alone.typed(table).read_all(), capture.typed(table).read_all()
        assert (alone.position, alone.unknown_prepared) == (capture.position, capture.unknown_prepared)
        for rows_of_table in (found, of_two_readings):
            assert rows_of_table.schema == expected.schema.remove_metadata()
            assert repr(rows_of_table.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself
        of_table = capture.committed(tables=[table]).read_all()
        mask = [of_row in (name, (None, None)) for of_row in tables_of_rows]
        assert of_table == committed.filter(pa.array(mask, pa.bool_()))
    check_all_tables(capture)


def check_all_tables(capture: wf.Capture) -> None:
    """Compares the tables of one pass with those of a pass for each."""
    found: dict[str, list[pa.RecordBatch]] = {}
    try:
        for table, rows in capture.typed_all():
            found.setdefault(table, []).append(rows)
    except wf.WireformatError as error:
        names = {written((row["table_schema"], row["table_name"])) for row in capture.tables().to_pylist()}
        with pytest.raises(type(error)):
            [capture.typed(name).read_all() for name in names]
        return
    for table, batches in found.items():
        expected = capture.typed(table).read_all()
        rows = pa.Table.from_batches(batches)
        assert rows.schema == expected.schema
        assert repr(rows.to_pylist()) == repr(expected.to_pylist())
    empty = {written((row["table_schema"], row["table_name"])) for row in capture.tables().to_pylist()} - {*found}
    assert all(not capture.typed(table).read_all().num_rows for table in empty)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_captures_of_gaussdb(case: Case) -> None:
    try:
        wf.arrow.transactions(wf.arrow.changes(case.messages, case.format, **case.reading))
    except wf.WireformatError as error:
        with pytest.raises(type(error)):
            wf.Capture(case.messages, case.format, **case.reading).committed().read_all()
        return
    check(case.messages, case.format, **case.reading)


@pytest.mark.parametrize("name", SERVER_CAPTURES)
def test_captures_of_servers(name: str) -> None:
    messages, format = stream(name)
    check(messages, format)


def rows(table: pa.Table) -> pa.Table:
    """The rows without their positions, which count from the beginning of what was read."""
    return table.drop_columns(["message", "record"])


CUT = next(message for message in read_capture("18-pgoutput-1").messages if message[:1] == b"I")[:-1]
"""A message that ends too early."""

PIECES = ("18-pgoutput-1", "18-pgoutput-3-streaming", "18-pgoutput-4-two-phase")
CUTS = 8 if PROFILE == "quick" else 40


@pytest.mark.parametrize("name", PIECES)
def test_a_stream_read_in_pieces(name: str) -> None:
    """Wherever the next piece begins, the rows are those of the whole, or an OrderError says what is missing."""
    messages, format = stream(name)
    whole = rows(wf.Capture(messages, format).committed().read_all())
    step = max(1, len(messages) // CUTS)
    refused = 0
    for end in range(0, len(messages), step):
        first = wf.Capture(messages[:end], format)
        handed_out = rows(first.committed().read_all())
        position = first.position.to_json()
        for begin in {0, max(0, end - 3), max(0, end - step), end}:
            second = wf.Capture(messages[begin:], format, after=position)
            try:
                more = rows(second.committed().read_all())
            except (wf.OrderError, wf.DecodeError):  # rows before the relations that are known at the position
                refused += 1
                continue
            assert pa.concat_tables([handed_out, more]) == whole, (end, begin)
        assert begins_at_the_oldest_message(messages, format, end, position, whole.slice(len(handed_out)))
    assert refused


def begins_at_the_oldest_message(
    messages: list[bytes], format: str, end: int, position: str, expected: pa.Table
) -> bool:
    """Whether the piece that begins with the first message of the oldest open transaction gives the rest."""
    found = wf.Capture(messages[:end], format).open()
    begin = min(found["message"].to_pylist(), default=end)
    return rows(wf.Capture(messages[begin:], format, after=position).committed().read_all()) == expected


@pytest.mark.parametrize("name", PIECES)
def test_an_older_piece_that_is_read_again_moves_no_position_back(name: str) -> None:
    messages, format = stream(name)
    whole = rows(wf.Capture(messages, format).committed().read_all())
    step = max(1, len(messages) // CUTS)
    for end in range(step, len(messages), step):
        first = wf.Capture(messages[:end], format)
        handed_out = len(first.committed().read_all())
        for older in (end // 3, end - 1):
            again = wf.Capture(messages[:older], format, after=first.position)
            assert not len(again.committed().read_all())
            rest = whole.slice(handed_out)
            position = again.position.to_json()
            assert begins_at_the_oldest_message(messages, format, end, position, rest), (end, older)


def test_a_position_covers_what_was_handed_out() -> None:
    """After each batch that was received, not after what was read ahead."""
    messages, format = stream("18-pgoutput-1")
    whole = rows(wf.Capture(messages, format).committed().read_all())
    capture = wf.Capture(pa.chunked_array([[message] for message in messages], pa.binary()), format)
    received: list[pa.Table] = []
    for batch in capture.committed():
        received.append(rows(pa.Table.from_batches([batch])))
        rest = wf.Capture(messages, format, after=capture.position).committed().read_all()
        assert pa.concat_tables([*received, rows(rest)]) == whole


def test_a_transaction_that_is_left_out_is_named() -> None:
    begin = wf.Begin(xid=5, commit_lsn=10**6, commit_time="2026-11-22 10:00:00+00")
    first = wf.Capture([hand.DESCRIBED, *wf.encode([begin], "pgoutput")], "pgoutput")
    first.committed().read_all()
    other = list(wf.encode([replace(begin, xid=99, commit_lsn=10**9)], "pgoutput"))
    with pytest.raises(wf.OrderError, match=r"the beginning of the plain transaction xid \d+, which was open"):
        wf.Capture(other, "pgoutput", after=first.position).committed().read_all()


def test_relations_are_known_after_a_position() -> None:
    messages, format = stream("18-pgoutput-1")
    kinds = [event.kind for event in wf.decode(messages, format)]
    cut = [index + 1 for index, kind in enumerate(kinds) if kind == "COMMIT"][len(kinds) // 20]
    first = wf.Capture(messages[:cut], format)
    first.committed().read_all()
    assert first.position.relations
    rest = wf.Capture(messages[cut:], format, after=first.position).committed().read_all()
    whole = wf.Capture(messages, format).committed().read_all()
    assert rows(rest) == rows(whole).slice(len(whole) - len(rest))
    with pytest.raises(wf.UnknownRelation):
        wf.Capture(messages[cut:], format).committed().read_all()


def test_a_falling_position_names_both_files(tmp_path: Path) -> None:
    case = find_case("b_num63_single")
    messages, format = case.messages, case.format
    kinds = [event.kind for event in wf.decode(messages, format)]
    assert len(kinds) == len(messages)
    half = next(index + 1 for index, kind in enumerate(kinds) if kind == "COMMIT" and index > len(kinds) // 2)
    pq.write_table(pa.table({"payload": messages[half:]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"payload": messages[:half]}), tmp_path / "2.parquet")
    with pytest.raises(wf.OrderError, match=r"1\.parquet, at csn \d+, got .*2\.parquet, which begins at \d"):
        wf.Capture(tmp_path, format).committed().read_all()
    in_order = wf.Capture([tmp_path / "2.parquet", tmp_path / "1.parquet"], format)
    assert rows(in_order.committed().read_all()) == rows(wf.Capture(messages, format).committed().read_all())


def test_an_error_names_its_file(tmp_path: Path) -> None:
    messages, _ = stream("18-pgoutput-1")
    pq.write_table(pa.table({"payload": [*messages, CUT]}), tmp_path / "bad.parquet")
    with pytest.raises(wf.DecodeError, match=r"source .*bad\.parquet, message") as error:
        wf.Capture(tmp_path, "pgoutput").changes(kinds=["INSERT"]).read_all()
    assert error.value.source == str(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    "verb",
    [
        lambda capture: capture.typed("public.by_key"),
        lambda capture: capture.latest("public.by_key"),
        lambda capture: [capture.changes(), capture.changes()],
    ],
)
def test_what_can_be_read_once_is_not_read_twice(verb: Any) -> None:
    messages, format = stream("18-pgoutput-1")
    with pytest.raises(wf.OptionError, match="messages can be read only once"):
        verb(wf.Capture(iter(messages), format))


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


def test_an_error_of_the_order_comes_with_the_rows() -> None:
    """Not with the list of tables, which is there all the same."""
    messages, format = stream("18-pgoutput-1")
    begins = [index for index, message in enumerate(messages) if message[:1] == b"B"]
    capture = wf.Capture([*messages[: begins[-1]], *messages[begins[-1] + 1 :]], format)
    rows = capture.typed("public.by_key")
    assert rows.schema.names[0] == "id"
    with pytest.raises(wf.OrderError):
        rows.read_all()


def test_what_can_be_read_once_is_read_once() -> None:
    messages, format = stream("18-pgoutput-1")
    assert (
        wf.Capture(iter(messages), format).committed().read_all() == wf.Capture(messages, format).committed().read_all()
    )


TIME = "2026-11-22 10:00:00+00"
OUTBOX = {
    "pgoutput": [
        wf.Message(lsn=90, transactional=False, prefix="loose", content="now"),
        wf.Begin(xid=5, commit_lsn=100, commit_time=TIME),
        wf.Message(lsn=91, transactional=True, prefix="outbox", content="é"),
        wf.Message(lsn=92, transactional=True, prefix="outbox", content=b"\xff\x00"),
        wf.Commit(commit_lsn=100, end_lsn=101, commit_time=TIME),
    ],
    "test-decoding": [
        wf.Message(transactional=False, prefix="loose", content="now"),
        wf.Begin(xid=5),
        wf.Message(transactional=True, prefix="outbox", content="é"),
        wf.Commit(xid=5),
    ],
}


@pytest.mark.parametrize("format", OUTBOX)
def test_messages(format: str) -> None:
    capture = wf.Capture(list(wf.encode(OUTBOX[format], format)), format)
    found = capture.messages().read_all().to_pylist()
    sent = [event for event in OUTBOX[format] if isinstance(event, wf.Message)]
    contents = [event.content.encode() if isinstance(event.content, str) else event.content for event in sent]
    assert [row["content"] for row in found] == contents
    assert [(row["transactional"], row["prefix"]) for row in found] == [
        (event.transactional, event.prefix) for event in sent
    ]
    assert [row["_sequence"] is not None for row in found] == [event.transactional for event in sent]
    assert {row["_xid"] for row in found if row["transactional"]} == {5}
    assert capture.messages(prefix="outbox").read_all()["content"].to_pylist() == contents[1:]
    assert capture.messages(prefix="other").read_all().num_rows == 0


def test_a_missing_table_names_near_ones() -> None:
    messages, format = stream("18-pgoutput-1")
    with pytest.raises(wf.BadRows, match="did you mean"):
        wf.Capture(messages, format).typed("public.by_keys")


def test_what_is_known_at_the_end() -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture([*messages, CUT], format, mode="DROPMALFORMED")
    for name in ("position", "unknown_prepared", "dropped"):
        with pytest.raises(wf.StateError):
            getattr(capture, name)
    capture.committed().read_all()
    assert (capture.dropped, capture.unknown_prepared) == (1, ())
    assert capture.position.format == "pgoutput"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"mode": "NONE"}, "option mode"),
        ({"threads": 0}, "option threads"),
        ({"engine": "none"}, "option engine"),
        ({"two_phase": "x"}, "option two_phase"),
        ({"after": 5}, "option after"),
        ({"memory_limit": -1}, "option memory_limit"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, Any], text: str) -> None:
    with pytest.raises(wf.OptionError, match=text):
        wf.Capture([], "pgoutput", **options)


def test_a_position_of_another_format_is_refused() -> None:
    capture = wf.Capture([], "gaussdb-json")
    capture.committed().read_all()
    with pytest.raises(wf.OptionError, match="expected a position of pgoutput, got one of gaussdb-json"):
        wf.Capture([], "pgoutput", after=capture.position)


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
    with pytest.raises(wf.OptionError, match=r"expected as many as an earlier reading had, at least \d+, got 0"):
        capture.committed().read_all()


def test_open_hands_out_no_committed_rows() -> None:
    messages, format = stream("18-pgoutput-1")
    capture = wf.Capture(messages, format)
    capture.open()
    with pytest.raises(wf.StateError):
        _ = capture.position


XID = 5


def relation(*columns: str, keys: tuple[str, ...], identity: str, xid: int | None = None) -> wf.Relation:
    return wf.Relation(
        relation_id=1,
        table_schema="public",
        table_name="t",
        replica_identity=identity,
        columns=columns,
        type_oids=(25,) * len(columns),
        typmods=(-1,) * len(columns),
        key_columns=keys,
        xid=xid,
    )


def insert(*columns: str, values: tuple[str, ...], xid: int | None = None) -> wf.Insert:
    row = wf.TupleData(columns, values, ("text",) * len(columns))
    return wf.Insert(table_schema="public", table_name="t", new=row, xid=xid)


def committed(lsn: int, *events: wf.Event) -> list[wf.Event]:
    begin = wf.Begin(xid=lsn, commit_lsn=lsn, commit_time=TIME)
    return [begin, *events, wf.Commit(commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]


def block(xid: int, *events: wf.Event, is_first: bool = True) -> list[wf.Event]:
    return [wf.StreamStart(xid=xid, first_segment=is_first), *events, wf.StreamStop()]


def rows_of(xid: int | None) -> list[wf.Event]:
    return [relation("id", keys=("id",), identity="default", xid=xid), insert("id", values=("1",), xid=xid)]


@pytest.mark.parametrize(
    "ended",
    [
        [wf.StreamAbort(xid=XID, subxid=XID)],
        committed(90, relation("id", keys=("id",), identity="default")),
    ],
    ids=["rolled back", "sent as a plain transaction"],
)
def test_a_streamed_transaction_that_ended_is_not_open(ended: list[wf.Event]) -> None:
    ended = [replace(event, xid=XID) if isinstance(event, wf.Begin) else event for event in ended]
    first = wf.Capture(wf.encode(block(XID, *rows_of(XID)), "pgoutput"), "pgoutput")
    first.committed().read_all()
    assert [one.xid for one in first.position.open] == [XID]
    second = wf.Capture(list(wf.encode(ended, "pgoutput")), "pgoutput", after=first.position)
    second.committed().read_all()
    assert second.position.open == ()


def position_after(events: list[wf.Event], after: CapturePosition | None = None) -> CapturePosition:
    capture = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput", after=after)
    capture.committed().read_all()
    return capture.position


def test_what_was_open_in_an_older_input_is_not_open_again() -> None:
    first, second = committed(10, *rows_of(None)), committed(20, *rows_of(None))
    for monday in ([*first, *second[:-1]], second[:-1], [*first, *block(XID, *rows_of(XID))]):
        ended = [*monday, second[-1]] if monday[-1] is second[-2] else [*monday, *streamed_commit(20)]
        tuesday = position_after(ended, position_after(monday))
        assert tuesday.open == ()
        again = position_after(monday, tuesday)
        assert again == tuesday
        assert position_after(committed(30, *rows_of(None)), again).delivered.lsn == 30


def streamed_commit(lsn: int) -> list[wf.Event]:
    return [wf.StreamCommit(xid=XID, commit_lsn=lsn, end_lsn=lsn + 8, commit_time=TIME)]


def test_what_is_open_after_the_position_is_open_in_an_input_that_overlaps() -> None:
    first = committed(10, *rows_of(None))
    for later in (block(XID, *rows_of(XID)), committed(20, *rows_of(None))[:-1]):
        for overlapping in ([*first, *later], later):
            found = position_after(overlapping, position_after(first))
            assert [one.changes for one in found.open] == [1]
            assert position_after(first, found).open == found.open


def test_an_older_input_does_not_bring_back_what_its_tables_were() -> None:
    earlier, later = (relation("id", name, keys=("id",), identity="default") for name in ("name", "title"))
    monday = committed(10, earlier, insert("id", "name", values=("1", "a")))
    tuesday = committed(20, later, insert("id", "title", values=("2", "b")))
    position = position_after(monday, position_after(tuesday, position_after(monday)))
    assert position.relations == (later,)
    wednesday = list(wf.encode([earlier, *committed(30, insert("id", "name", values=("3", "c")))], "pgoutput"))[1:]
    found = wf.Capture(wednesday, "pgoutput", after=position).latest("public.t", keys=["id"])
    assert found.select(["id", "title"]).to_pylist() == [{"id": "3", "title": "c"}]


@pytest.mark.parametrize("keys", [None, ["id"]])
def test_a_table_without_committed_changes_has_no_rows(keys: list[str] | None) -> None:
    first = committed(10, *rows_of(None))
    messages = list(wf.encode(first, "pgoutput"))
    for capture in (
        wf.Capture(messages[:-1], "pgoutput"),
        wf.Capture([], "pgoutput", after=position_after(first)),
    ):
        found = capture.latest("public.t", keys=keys)
        assert found.schema == wf.Capture(messages, "pgoutput").latest("public.t", keys=keys).schema
        assert not len(found)
    found = wf.Capture(messages, "pgoutput").latest("public.nothing", keys=["id"], schema={"id": "integer"})
    assert (len(found), found.schema.field("id").type) == (0, pa.int32())


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


AB, ABC = ("a", "b"), ("a", "b", "c")


def test_latest_counts_equal_rows_if_the_whole_row_is_the_identity() -> None:
    before = committed(16, relation("a", keys=("a",), identity="full"), insert("a", values=("1",)))
    messages = list(wf.encode([*before, *committed(32, insert("a", values=("1",)))], "pgoutput"))
    assert wf.Capture(messages, "pgoutput").latest("public.t").num_rows == 2


def test_latest_loses_no_rows_if_a_column_is_added() -> None:
    """With REPLICA IDENTITY FULL, an older row has any value of the new column; a row that is equal goes first."""
    inserted = insert(*AB, values=("1", "x"))
    before = committed(16, relation(*AB, keys=AB, identity="full"), inserted, inserted)
    new = insert(*ABC, values=("1", "x", "p"))
    deleted = wf.Delete(table_schema="public", table_name="t", old=new.new, old_kind="full")
    after = committed(32, relation(*ABC, keys=ABC, identity="full"), new)
    for count, wanted in ((0, [None, None, "p"]), (1, [None, None]), (2, [None]), (3, [])):
        deletes = committed(48, *[deleted] * count)
        capture = wf.Capture(list(wf.encode([*before, *after, *deletes], "pgoutput")), "pgoutput")
        rows = capture.latest("public.t").to_pylist()
        assert [row["c"] for row in rows] == wanted
        assert [row["_unchanged"] for row in rows] == [["c"] if value is None else None for value in wanted]


@pytest.mark.parametrize("keys", [None, []])
def test_latest_takes_the_identity_that_the_stream_states(keys: list[str] | None) -> None:
    """A DELETE by a key has the key alone: the whole row would not find it."""
    described = relation(*AB, keys=("a",), identity="default")
    old = wf.TupleData(("a",), ("1",), ("text",))
    deleted = wf.Delete(table_schema="public", table_name="t", old=old, old_kind="key")
    events = committed(16, described, insert(*AB, values=("1", "x")), insert(*AB, values=("2", "x")), deleted)
    rows = wf.Capture(list(wf.encode(events, "pgoutput")), "pgoutput").latest("public.t", keys=keys)
    assert rows["a"].to_pylist() == ["2"]


def test_latest_finds_rows_by_the_replica_identity_that_each_change_had() -> None:
    before = committed(16, relation(*AB, keys=("a",), identity="default"), insert(*AB, values=("1", "x")))
    new = wf.TupleData(ABC, ("1", "y", "p"), ("text",) * 3)
    inserted = insert(*ABC, values=("1", "y", "o"))
    updated = wf.Update(table_schema="public", table_name="t", new=new)
    after = committed(32, relation(*ABC, keys=AB, identity="default"), inserted, updated)
    capture = wf.Capture(list(wf.encode([*before, *after], "pgoutput")), "pgoutput")
    for keys in (None, ["a", "b"]):
        rows = capture.latest("public.t", keys=keys).to_pylist()
        assert [(row["a"], row["b"], row["c"]) for row in rows] == [("1", "x", None), ("1", "y", "p")]


def test_a_capture_after_a_position_knows_the_keys_and_typmods_of_its_relations() -> None:
    described = relation(*AB, keys=("a",), identity="default")
    first = wf.Capture(
        list(wf.encode(committed(16, described, insert(*AB, values=("1", "x"))), "pgoutput")), "pgoutput"
    )
    first.committed().read_all()
    second = list(wf.encode([described, *committed(32, insert(*AB, values=("2", "x")))], "pgoutput"))[1:]
    assert wf.Capture(second, "pgoutput", after=first.position).tables()["key_columns"].to_pylist() == [["a"]]


def test_the_rest_begins_at_the_first_message_of_what_is_open_among_other_streamed_transactions() -> None:
    """The other one has ended, but its later blocks are among the messages that are still needed."""
    events = [
        *block(XID, *rows_of(XID)),
        *block(6, *rows_of(6)),
        *block(XID, insert("id", values=("2",), xid=XID), is_first=False),
        wf.StreamCommit(xid=XID, commit_lsn=500, end_lsn=508, commit_time=TIME),
    ]
    messages = list(wf.encode(events, "pgoutput"))
    rest = list(
        wf.encode([*block(6), wf.StreamCommit(xid=6, commit_lsn=600, end_lsn=608, commit_time=TIME)], "pgoutput")
    )
    rest[0] = hand.start(6, is_first=False)
    first = wf.Capture(messages, "pgoutput")
    first.committed().read_all()
    needed = min(first.open()["message"].to_pylist())
    second = wf.Capture([*messages[needed:], *rest], "pgoutput", after=first.position)
    assert second.committed().read_all()["xid"].to_pylist() == [6]


def test_a_plain_transaction_that_is_left_out_before_a_streamed_one_is_named() -> None:
    begin = wf.Begin(xid=XID, commit_lsn=500, commit_time=TIME)
    first = wf.Capture(list(wf.encode([begin, *rows_of(None)], "pgoutput")), "pgoutput")
    first.committed().read_all()
    later = [*block(6, *rows_of(6)), wf.StreamCommit(xid=6, commit_lsn=600, end_lsn=608, commit_time=TIME)]
    second = wf.Capture(list(wf.encode(later, "pgoutput")), "pgoutput", after=first.position)
    with pytest.raises(wf.OrderError, match="the plain transaction xid 5"):
        second.committed().read_all()


@pytest.mark.parametrize("first_block_is_there", [True, False])
def test_streamed_transactions_of_test_decoding_in_pieces(first_block_is_there: bool) -> None:
    """Nothing is lost or comes twice silently. The records have neither LSNs nor a mark of the first block."""
    messages = read_capture("15-test-decoding-streaming").messages
    end = 1332 if first_block_is_there else 2220
    whole = rows(wf.Capture(messages, "test-decoding").committed().read_all())
    first = wf.Capture(messages[:end], "test-decoding")
    handed_out = rows(first.committed().read_all())
    begin = min(first.open()["message"].to_pylist()) if first_block_is_there else end
    second = wf.Capture(messages[begin:], "test-decoding", after=first.position)
    try:
        more = rows(second.committed().read_all())
    except wf.OrderError:
        return
    assert len(handed_out) + len(more) == len(whole)


def test_a_schema_without_the_key_of_a_delete() -> None:
    """INSERTs of sql-decoding name no columns, and the DELETE names its key, which would be lost."""
    messages = [
        b"BEGIN 5",
        b"insert into public.t values (1, 'x');",
        b"delete from public.t where id = 1;",
        b"COMMIT 5",
    ]
    capture = wf.Capture(messages, "sql-decoding")
    found = capture.typed("public.t", schema={"id": "integer", "size": "text"}).read_all()
    assert found["id"].to_pylist() == [1, 1]
    with pytest.raises(wf.OptionError, match="name a column 'id', which is not in the schema, did you mean 'idd'"):
        capture.typed("public.t", schema={"idd": "integer", "size": "text"}).read_all()


@pytest.mark.parametrize("memory", [0, 1 << 28])
@pytest.mark.parametrize("format", ["gaussdb-binary", "pgoutput", "sql-decoding"])
def test_all_tables_in_one_pass(format: str, memory: int) -> None:
    messages = [*wf.encode(wf.testing.stream(5, 60, seed=3, format=format), format)]
    capture = wf.Capture(messages, format, memory_limit=memory)
    if format == "sql-decoding":
        with pytest.raises(wf.BadRows, match="rows that name the types"):
            list(capture.typed_all())
        return
    check_all_tables(capture)
    names = [name for name, _ in capture.typed_all(tables=["shop.orders_1"])]
    assert {*names} == {"shop.orders_1"}
    position = capture.position
    list(capture.committed())
    assert capture.position == position
    assert not list(wf.Capture(messages, format, after=position).typed_all())


def test_all_tables_of_messages_that_can_be_read_once() -> None:
    with pytest.raises(wf.OptionError, match="this call reads it twice"):
        wf.Capture(iter([b""]), "gaussdb-binary").typed_all()
