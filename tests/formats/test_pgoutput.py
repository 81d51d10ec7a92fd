"""pgoutput: messages in blocks and envelopes, unknown ones, encodings, filters, and the captures of servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf

from .. import handmade_pgoutput as hand
from ..engines import agree, read, rows
from ..handmade import u32, u64
from ..handmade_pgoutput import (
    ALL,
    DESCRIBED,
    OPENGAUSS,
    RELATION,
    ROWS,
    STOP,
    binary,
    change,
    column,
    envelope,
    image,
    relation,
    row,
    start,
    streamed,
    text,
)
from ..servers.captures import capture_names, read_capture

FORMAT = "pgoutput"
ROW_TAGS = (b"I", b"U", b"D")
INSERT = change(b"I", image(b"N", text(b"1"), hand.NULL))


def events_of(*messages: bytes, **options: Any) -> list[wf.Event]:
    """The events in which both engines agree, but for that of DESCRIBED, which comes first."""
    first, *others = agree([DESCRIBED, *messages], format=FORMAT, **options).events
    assert first == RELATION
    return others


def encoded(events: list[wf.Event], **options: Any) -> list[bytes]:
    return list(wf.encode(events, FORMAT, options=options))


@pytest.mark.parametrize("name", ROWS)
def test_in_a_streamed_block(name: str) -> None:
    """They carry the number of a transaction or subtransaction; those around the block do not."""
    message, event = ROWS[name]
    wanted = [wf.StreamStart(xid=800, first_segment=False), replace(event, xid=801), wf.StreamStop(), event]  # type: ignore[call-arg]
    messages = [start(800, is_first=False), streamed(message), STOP, message]
    assert events_of(*messages) == wanted
    assert encoded([RELATION, *wanted]) == [DESCRIBED, *messages]


@pytest.mark.parametrize("name", ALL)
def test_in_an_envelope(name: str) -> None:
    """The LSN is the envelope's, but where the record has its own. A keepalive comes without one."""
    message, event = ALL[name]
    if message[:1] == b"k":
        return
    wanted = event if event.lsn is not None else replace(event, lsn=0xFFFF_FFFF_0000_0001)
    assert events_of(envelope(message, 0xFFFF_FFFF_0000_0001)) == [wanted]


def test_rows_of_opengauss() -> None:
    """Nothing opens a streamed block there: no message has a transaction id of its own."""
    messages = [OPENGAUSS["connection information"][0], ROWS["insert"][0], OPENGAUSS["begin of 24 bytes"][0], INSERT]
    assert [event.kind for event in events_of(*messages, dialect="opengauss")] == [
        "UNKNOWN",
        "INSERT",
        "BEGIN",
        "INSERT",
    ]


@pytest.mark.parametrize("kind", sorted(set(range(256)) - set(b"BCORYIUDTMSEcAbPKrpwk")))
def test_other_kinds_are_unknown(kind: int) -> None:
    message = bytes([kind]) + b"\0\xff"
    assert events_of(message, envelope(message, 7)) == [wf.Unknown(raw=message), wf.Unknown(lsn=7, raw=message)]
    assert encoded([wf.Unknown(raw=message)]) == [message]


@pytest.mark.parametrize("raw", [b"", b"I", b"w" + bytes(30)], ids=["nothing", "a known kind", "an envelope"])
def test_bytes_that_would_be_read_as_something_else(raw: bytes) -> None:
    with pytest.raises(wf.EncodeError, match="pgoutput UNKNOWN: expected raw to begin with a kind byte that no table"):
        encoded([wf.Unknown(raw=raw)])


def test_cells_in_binary_form() -> None:
    """Turned into text where the type is known; else they stay as they are, and the row says which."""
    described = relation(column(b"a", 23), column(b"b", 16400), column(b"c", 600))
    insert = change(b"I", image(b"N", text(b"7"), binary(b"\x00\xff"), binary(b"")))
    _, event = agree([described, insert], format=FORMAT).events
    assert event == wf.Insert(
        table_schema="public",
        table_name="t",
        new=wf.TupleData(("a", "b", "c"), ("7", "\\x00ff", "\\x"), ("integer", "oid:16400", "point")),
        binary=("b", "c"),
    )
    (found,) = rows(wf.arrow.changes([described, insert], FORMAT, kinds=["INSERT"]))
    assert dict(found["detail"]) == {"relation_id": str(hand.OID), "binary": '["b", "c"]'}
    assert encoded(read([described, insert], format=FORMAT)) == [described, insert]


def test_rows_of_the_table() -> None:
    """What a row of each kind holds beside its image."""
    messages = [DESCRIBED, ROWS["update of a key"][0], ROWS["type"][0], hand.OTHERS["commit prepared"][0]]
    described, update, type_, committed = rows(wf.arrow.changes(messages, FORMAT))
    assert (described["table_schema"], described["table_name"]) == ("public", "t")
    assert dict(described["detail"]) == {
        "relation_id": "16385",
        "replica_identity": "default",
        "columns": '["id", "v"]',
        "type_oids": "[23, 25]",
        "typmods": "[-1, -1]",
        "key_columns": '["id"]',
    }
    assert (update["old"], update["detail"]) == ([("id", "1")], [("relation_id", "16385"), ("old", "key")])
    assert (type_["table_schema"], type_["table_name"], type_["detail"]) == ("s", "mood", [("type_oids", "[16400]")])
    assert dict(committed["detail"]) == {"commit_time": hand.TIME_TEXT, "end_lsn": "0/6", "gid": "g"}
    assert (committed["xid"], committed["commit_lsn"], committed["commit_time"]) == (700, 5, hand.MICROS)


@pytest.mark.parametrize("name", capture_names("pgoutput"))
def test_captures(name: str) -> None:
    """Both engines give the same events, every byte comes back but envelopes, and nothing is unknown.

    Values that came in a binary form are written as text, and read again are the same.
    """
    messages = read_capture(name).messages
    events = read(messages, format=FORMAT)
    assert read(messages, "declaration", format=FORMAT) == events
    assert not [event for event in events if isinstance(event, wf.Unknown)]
    bare = [message[25:] if message[:1] == b"w" else message for message in messages]
    written = encoded(events)
    assert [one for one in written if one[:1] not in ROW_TAGS] == [one for one in bare if one[:1] not in ROW_TAGS]
    if name.endswith("binary"):
        assert read(written, format=FORMAT) == events
    else:
        assert written == bare


@pytest.mark.parametrize("name", ["18-pgoutput-1", "18-pgoutput-4-two-phase-binary"])
def test_rows_of_captures(name: str) -> None:
    assert agree(read_capture(name).messages, format=FORMAT).error is None


@pytest.mark.parametrize("encoding", ["gbk", "latin-1", "utf-8"])
def test_names_and_values_in_an_encoding(encoding: str) -> None:
    """Names in the relation, values in the row, of both engines; and back."""
    word = {"gbk": "订单", "latin-1": "café", "utf-8": "表é𝄞"}[encoding]
    data = word.encode(encoding)
    described = relation(column(data), column(b"plain"), schema=data, table=data + b" 2")
    messages = [described, change(b"I", image(b"N", text(data), text(b"x"))), b"O" + u64(1) + data + b"\0"]
    relation_, insert, origin = agree(messages, format=FORMAT, encoding=encoding).events
    assert (relation_.table_schema, relation_.columns) == (word, (word, "plain"))
    assert (insert.table_name, insert.new.as_dict()) == (f"{word} 2", {word: word, "plain": "x"})
    assert origin.origin == word
    assert list(wf.encode([relation_, insert, origin], FORMAT, encoding=encoding)) == messages


def test_a_value_in_an_encoding_with_plain_names() -> None:
    """The scan reads it; only the value is transcoded, and the filters look at what it then says."""
    messages = [DESCRIBED, change(b"I", image(b"N", text(b"1"), text("订单".encode("gbk"))))] * 3
    wanted = wf.Insert(table_schema="public", table_name="t", new=row("1", "订单"))
    for more in ({}, {"tables": ["public.t"]}):
        events = agree(messages, format=FORMAT, encoding="gbk", **more).events
        assert events == [RELATION, wanted] * 3
    assert agree(messages, format=FORMAT, encoding="gbk", tables=["other.*"]).events == []


def test_replaced_text() -> None:
    messages = [DESCRIBED, change(b"I", image(b"N", text(b"1"), text(b"a\xff")))]
    _, event = agree(messages, format=FORMAT, encoding_errors="replace").events
    assert event.new.values == ("1", "a\ufffd")


FILTERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "kinds": ({"kinds": ["INSERT", "DELETE"]}, ["INSERT", "DELETE"]),
    "a table": ({"tables": ["public.t"]}, ["STREAM_START", "RELATION", "INSERT", "DELETE", "STREAM_STOP"]),
    "another table": ({"tables": ["public.other"]}, ["STREAM_START", "STREAM_STOP"]),
    "both": ({"tables": ["*.t"], "kinds": ["DELETE"]}, ["DELETE"]),
    "nothing": ({"kinds": []}, []),
}


@pytest.mark.parametrize("name", FILTERS)
def test_what_is_left_out_is_learned_from(name: str) -> None:
    """Rows need the RELATION, and the block that is open, whether anybody wants to see them or not."""
    options, wanted = FILTERS[name]
    messages = [start(8), streamed(DESCRIBED), streamed(INSERT), streamed(ROWS["delete by key"][0]), STOP]
    events = agree(messages, format=FORMAT, **options).events
    assert [event.kind for event in events] == wanted


def test_columns() -> None:
    table = wf.arrow.changes([DESCRIBED, INSERT], FORMAT, columns=["new", "kind"], kinds=["INSERT"])
    assert table.to_pylist() == [{"new": [("id", "1"), ("v", None)], "kind": "INSERT"}]


def test_an_oid_beyond_the_catalogue_names_itself() -> None:
    messages = [relation(column(b"a", 1 << 31)), change(b"I", image(b"N", text(b"")), oid=hand.OID)]
    assert agree(messages, format=FORMAT).events[1].new.types == ("oid:2147483648",)


def test_a_key_column_that_the_relation_has_not_cannot_be_said() -> None:
    relation = wf.Relation(
        relation_id=1,
        table_schema="s",
        table_name="t",
        replica_identity="default",
        columns=("id",),
        type_oids=(23,),
        typmods=(-1,),
        key_columns=("nope",),
    )
    with pytest.raises(wf.EncodeError, match="key_columns: expected names of columns"):
        list(wf.encode([relation], "pgoutput"))


def test_the_first_number() -> None:
    """A relation may have any number."""
    messages = [relation(*hand.COLUMNS, oid=0), change(b"I", image(b"N", text(b"1"), hand.NULL), oid=0)]
    assert agree(messages, format=FORMAT).events[1].new == row("1", None)
    last = 0xFFFFFFFF
    messages = [relation(*hand.COLUMNS, oid=last), b"T" + u32(1) + b"\0" + u32(last)]
    assert agree(messages, format=FORMAT).events[1].tables == (("public", "t"),)


def test_rows_without_a_relation_keep_the_oid_of_their_table() -> None:
    """A table that was dropped and created again has two; a number that another table has is not given twice."""
    rows = [(16500, "t"), (16500, "t"), (16600, "t"), (16600, "u"), (None, "t")]
    image = wf.TupleData(("id",), ("1",), ("integer",))
    events = [wf.Insert(table_schema="s", table_name=table, new=image, relation_id=oid) for oid, table in rows]
    back = [event for event in read(encoded(events), format=FORMAT) if isinstance(event, wf.Insert)]
    assert [(event.relation_id, event.table_name) for event in back] == [
        *((16500, "t"), (16500, "t"), (16600, "t"), (16384, "u"), (16600, "t"))
    ]


@pytest.mark.parametrize(
    ("type", "value", "binary", "words"),
    [
        ("integer", "\\x00000005", ("a",), "a binary integer is read as its text"),
        ("text", "\\x6162", ("a",), "a binary text is read as its text"),
        ("numeric", "\\x00010000000000000001", ("a",), "a binary numeric is read as its text"),
        ("numeric", "\\x0001", ("a",), "a binary numeric is read as its text"),
        ("inet", "\\x02", ("b",), "expected names of columns of the row"),
    ],
)
def test_binary_cells_that_would_be_read_as_something_else(
    type: str, value: str, binary: tuple[str, ...], words: str
) -> None:
    row = wf.Insert(table_schema="s", table_name="t", new=wf.TupleData(("a",), (value,), (type,)), binary=binary)
    with pytest.raises(wf.EncodeError, match=words):
        [*wf.encode([row], FORMAT)]


@pytest.mark.parametrize("value", ["\\x0001017700000000000a", "\\x00010177400000000001"])
def test_numbers_whose_text_would_be_too_long_are_written_as_they_were_read(value: str) -> None:
    """1e1501 in a few bytes, of which the text has more than a thousand zeros."""
    new = wf.TupleData(("a",), (value,), ("numeric",))
    row = wf.Insert(table_schema="s", table_name="t", new=new, binary=("a",))
    (back,) = (event for event in read(encoded([row]), format=FORMAT) if isinstance(event, wf.Insert))
    assert (back.new, back.binary) == (new, ("a",))
