"""What compiled walks find wrong with records is said as the declaration says it, and only where it would say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.engine import faults
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan.faults import fields
from wireformat.arrow.scan.relations import relation_table
from wireformat.errors import DecodeError
from wireformat.formats.registry import find_format
from wireformat.options import ReadOptions

from ... import handmade, handmade_pgoutput
from ...engines import agree
from ...strategies import mutated

BINARY, PGOUTPUT = "gaussdb-binary", "pgoutput"
TEXTS = ("gaussdb-json", "mppdb-json", "gaussdb-text", "test-decoding", "opengauss-test-decoding")
NEW, CELL = handmade.new, handmade.cell
IMAGE, TEXT, CHANGE = handmade_pgoutput.image, handmade_pgoutput.text, handmade_pgoutput.change
VALUES = (TEXT(b"1"), TEXT("é".encode()))
UNKNOWN_OID = 99


def binary(body: bytes) -> bytes:
    """A message of the binary style with this record."""
    return handmade.message(body)


def row_of(*images: bytes) -> bytes:
    """A row change of the binary style."""
    return handmade.change(b"I", b"public", b"t", *images)


BINARY_CASES: dict[str, tuple[int, bytes]] = {
    "a schema that is no text": (fields.BAD_TEXT, handmade.change(b"I", b"\xe9", b"t")),
    "a table that is cut": (fields.BAD_LENGTH, b"I\0\1s\0\5t"),
    "no length of the table": (fields.SHORT, b"D\0\1s"),
    "half a length": (fields.SHORT, b"D\0\1s\0"),
    "another tag": (fields.BAD_FIELD_TAG, row_of(b"X")),
    "new after new": (fields.BAD_FIELD_TAG, row_of(NEW(), NEW())),
    "new after old": (fields.BAD_FIELD_TAG, row_of(handmade.old(), NEW())),
    "no cells": (fields.SHORT, row_of(NEW()[:2])),
    "a name that is cut": (fields.BAD_LENGTH, row_of(NEW(CELL(b"abc", 23, b"1"))[:6])),
    "no type": (fields.SHORT, row_of(NEW(CELL(b"abc", 23, b"1"))[:9])),
    "no length of a value": (fields.SHORT, row_of(NEW(CELL(b'"A"', 23, b"1"))[:-3])),
    "a value that is cut": (fields.BAD_LENGTH, row_of(NEW(CELL(b"a", 23, b"123"))[:-1])),
    "a character that is cut": (fields.BAD_TEXT, row_of(NEW(CELL(b"a", 25, b"ab\xe4\xb8")))),
    "a surrogate": (fields.BAD_TEXT, row_of(NEW(CELL(b"a", 25, b"\xed\xa0\x80")))),
    "a character that another one ends": (
        fields.BAD_TEXT,
        row_of(NEW(CELL(b"a", 25, b"\xf0\x90a"), CELL(b"", 0, b""))),
    ),
    "one cell too many": (fields.SHORT, row_of(b"N\0\2", CELL(b"a", 23, None))),
}
PGOUTPUT_CASES: dict[str, tuple[int, bytes]] = {
    "a value that is no text": (fields.BAD_TEXT, CHANGE(b"I", IMAGE(b"N", TEXT(b"1"), TEXT(b"caf\xe9")))),
    "a value that is cut": (fields.BAD_LENGTH, CHANGE(b"I", IMAGE(b"N", *VALUES))[:-1]),
    "a length that is cut": (fields.SHORT, CHANGE(b"I", IMAGE(b"N", b"t\0\0"))),
    "a binary value that is cut": (fields.BAD_LENGTH, CHANGE(b"U", IMAGE(b"N", b"b\0\0\0\5\0"))),
    "another tag": (fields.BAD_CELL_TAG, CHANGE(b"I", IMAGE(b"N", TEXT(b"1"), b"x"))),
    "a tag that is not printed": (fields.BAD_CELL_TAG, CHANGE(b"I", IMAGE(b"N", TEXT(b"1"), b"\x80"))),
    "no second cell": (fields.NO_CELL, CHANGE(b"I", IMAGE(b"N", *VALUES))[: -len(VALUES[1])]),
    "more bytes": (fields.TRAILING, CHANGE(b"D", IMAGE(b"K", *VALUES)) + b"x"),
    "a cell too few": (fields.WRONG_COUNT, CHANGE(b"I", IMAGE(b"N", TEXT(b"1")))),
    "a cell too many, after the old image": (
        fields.WRONG_COUNT,
        CHANGE(b"U", IMAGE(b"O", *VALUES), IMAGE(b"N", *VALUES, b"n")),
    ),
    "an unknown relation": (fields.UNKNOWN, CHANGE(b"I", IMAGE(b"N", *VALUES), oid=UNKNOWN_OID)),
    "an unknown relation, cut": (fields.BAD_LENGTH, CHANGE(b"I", IMAGE(b"N", *VALUES), oid=UNKNOWN_OID)[:-1]),
}
OF_TABLE = {"table_schema": "public", "table_name": "orders"}
GOOD_ROW = wf.Insert(**OF_TABLE, new=wf.TupleData(("a",), ("some \xc3\xa9",), ("text",)))
TEXT_CASES: dict[str, wf.RowChange] = {
    "a value": wf.Insert(
        **OF_TABLE, new=wf.TupleData(("a", "B", "c"), ("1", None, "caf\xe9 \xff"), ("integer", "text", "text"))
    ),
    "a value after quotes": wf.Insert(**OF_TABLE, new=wf.TupleData(("a", "b"), ("it's", "\xe9"), ("text", "text"))),
    "a name": wf.Insert(**OF_TABLE, new=wf.TupleData(("a", "\xe9b"), ("1", "2"), ("integer", "integer"))),
    "an old value": wf.Delete(**OF_TABLE, old=wf.TupleData(("a", "b"), ("x", "y\xe4\xb8"), ("text", "text"))),
    "both images": wf.Update(
        **OF_TABLE,
        new=wf.TupleData(("a",), ("\xe9 new",), ("text",)),
        old=wf.TupleData(("a",), ("old \xe9",), ("text",)),
    ),
    "only the new image": wf.Update(
        **OF_TABLE, new=wf.TupleData(("a",), ("new \xe9",), ("text",)), old=wf.TupleData(("a",), ("old",), ("text",))
    ),
}
NAMED_IN_QUOTES = "a name"
"""In JSON its quotes are escaped, and the declaration reads it."""


def text_messages(format: str, event: wf.RowChange) -> list[bytes]:
    """A message of a text format, in Latin-1."""
    is_batched = format.startswith("gaussdb")
    options = {"sending-batch": 1} if is_batched else None
    return [*wf.encode([replace(event, lsn=7 if is_batched else None)], format, options=options, encoding="latin-1")]


STREAMED = [handmade_pgoutput.start(7), handmade_pgoutput.relation(*handmade_pgoutput.COLUMNS, xid=handmade.u32(7))]


def streamed(row: bytes) -> bytes:
    """The message of a row in a streamed block."""
    return row[:1] + handmade.u32(7) + row[1:]


CASES = {
    **{
        f"{format}: {name}": (format, fields.BAD_TEXT, text_messages(format, event))
        for format in TEXTS
        for name, event in TEXT_CASES.items()
        if "json" not in format or name != NAMED_IN_QUOTES
    },
    "an unknown kind": (
        "mppdb-json",
        fields.BAD_KIND,
        [text_messages("mppdb-json", GOOD_ROW)[0].replace(b"INSERT", b"MERGE")],
    ),
    **{name: (BINARY, fault, [binary(body)]) for name, (fault, body) in BINARY_CASES.items()},
    **{
        f"{PGOUTPUT}: {name}": (PGOUTPUT, fault, [handmade_pgoutput.DESCRIBED, row])
        for name, (fault, row) in PGOUTPUT_CASES.items()
    },
}
STREAMED_CASES = {
    f"{PGOUTPUT}, streamed: {name}": (PGOUTPUT, fault, [*STREAMED, streamed(row)])
    for name, (fault, row) in PGOUTPUT_CASES.items()
}
GOOD = {
    BINARY: [binary(handmade.INSERT), binary(handmade.DELETE)],
    PGOUTPUT: [handmade_pgoutput.DESCRIBED, CHANGE(b"I", IMAGE(b"N", *VALUES))],
    **{format: text_messages(format, GOOD_ROW) for format in TEXTS},
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks are used from the first record on."""
    monkeypatch.setattr(faults, "FEW", 0)


@pytest.mark.parametrize("case", [*CASES, *STREAMED_CASES])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("tables", [None, ["public.*"], ["x.*"]])
def test_both_engines_agree(case: str, mode: str, tables: list[str] | None) -> None:
    format, _, messages = {**CASES, **STREAMED_CASES}[case]
    for enveloped in [False, True] if format == PGOUTPUT else [False]:
        given = [*GOOD[format], *messages, *GOOD[format], *messages]
        if enveloped:
            given = [handmade_pgoutput.envelope(message, index << 40) for index, message in enumerate(given)]
        agree(given, format=format, mode=mode, tables=tables)


@pytest.mark.parametrize("case", CASES)
def test_the_declaration_is_not_asked(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    format, fault, messages = CASES[case]
    found: list[int] = []
    find = faults.FaultFinder.find

    def noted(*given: Any) -> faults.Faults:
        answer = find(*given)
        found.extend(answer.facts[fields.FAULT].tolist())
        return answer

    monkeypatch.setattr(faults.FaultFinder, "find", noted)
    monkeypatch.setattr(Scanner, "_read", None)
    assert wf.arrow.changes(messages, format, mode="PERMISSIVE")["kind"].to_pylist()[-1] == "CORRUPT"
    assert found == [fault]


def test_names_in_quotes_where_wrong_bytes_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row_of(NEW(CELL(name, 25, value))[:-1])
        for name, value in ((b'"A"', b"\xff."), (b'"A\x8f"', b"x."), (b'"\xe9"', b"x."), (b'"A', b"x."))
    ]
    for encoding in ("utf-8", "gbk", "euc_jp"):
        options = {"mode": "PERMISSIVE", "encoding": encoding, "encoding_errors": "replace"}
        agree([*map(binary, rows)], **options)
    monkeypatch.setattr(Scanner, "_read", None)
    assert wf.arrow.changes([binary(rows[0])], BINARY, **options)["kind"].to_pylist() == ["CORRUPT"]


@pytest.mark.parametrize("case", STREAMED_CASES)
def test_of_a_streamed_block_the_declaration_reads_nothing(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    _, _, messages = STREAMED_CASES[case]
    given = [*messages, messages[-1], handmade_pgoutput.STOP]
    expected = agree(given, format=PGOUTPUT, mode="PERMISSIVE").table
    monkeypatch.setattr(Scanner, "_read", None)
    assert wf.arrow.changes(given, PGOUTPUT, mode="PERMISSIVE").equals(expected)


@pytest.mark.parametrize("format", GOOD)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    reading=st.fixed_dictionaries(
        {
            "mode": st.sampled_from(["PERMISSIVE", "DROPMALFORMED"]),
            "encoding": st.sampled_from(["utf-8", "gbk", "gb18030", "euc_jp", "koi8-r"]),
            "encoding_errors": st.sampled_from(["strict", "replace"]),
            "tables": st.sampled_from([None, ["public.*"]]),
        }
    ),
)
def test_any_bytes(format: str, data: st.DataObject, reading: dict[str, Any]) -> None:
    cases = [*CASES.values(), *STREAMED_CASES.values()]
    good = [*GOOD[format], *(message for of, _, messages in cases if of == format for message in messages[-2:])]
    messages = data.draw(st.lists(st.one_of(st.sampled_from(good), mutated(good)), max_size=8))
    agree([GOOD[format][0], *messages], format=format, **reading)


def test_a_few_records_are_read_by_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "FEW", 2)
    monkeypatch.setattr(faults, "load_fault_walk", None)
    _, _, messages = CASES["a value that is cut"]
    assert wf.arrow.changes(messages * 2, BINARY, mode="PERMISSIVE").num_rows == 2
    with pytest.raises(TypeError):
        wf.arrow.changes(messages * 3, BINARY, mode="PERMISSIVE")


def test_the_first_error_is_raised() -> None:
    _, _, messages = CASES["a value that is cut"]
    with pytest.raises(DecodeError, match="message 2"):
        wf.arrow.changes([*GOOD[BINARY], *messages, *messages], BINARY)


def test_the_texts_of_many_errors_are_not_too_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "BATCH_TEXT_BYTES", 3 * faults.TEXT_BYTES)
    _, _, messages = CASES["a value that is cut"]
    given = [*GOOD[BINARY], *messages * 3] * 3
    agree(given, mode="PERMISSIVE")
    agree(given, mode="DROPMALFORMED")
    scanner = Scanner(find_format(BINARY), ReadOptions.check(mode="PERMISSIVE"))
    assert len([scanned.row_count for scanned in scanner.scan(given)]) > 3
    assert len(wf.arrow.changes(given, BINARY, mode="DROPMALFORMED")) == 6


def test_names_of_tables_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "FEW", 0)
    monkeypatch.setattr(faults, "MOST_NAMES_BYTES", 20)
    images = [NEW(CELL(b"a", 23, b"123"))[:-1]]
    given = [binary(handmade.change(b"I", b"s", b"t%d" % number, *images)) for number in (*range(30), 29, 0)]
    agree(given, mode="PERMISSIVE")
    scanner = Scanner(find_format(BINARY), ReadOptions.check(mode="PERMISSIVE"))
    assert sum(scanned.row_count for message in given for scanned in scanner.scan([message])) == len(given)
    assert 0 < len(scanner._fault_finder._tables) < 20


def test_a_relation_for_which_the_scan_had_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation_table, "MOST_TEXT_OF_BATCH", 10)
    messages = [handmade_pgoutput.DESCRIBED, *(row for _, row in PGOUTPUT_CASES.values())]
    for tables in (None, ["x.*"]):
        agree(messages * 2, format=PGOUTPUT, mode="PERMISSIVE", tables=tables)


@pytest.mark.parametrize("few", [0, 1 << 20])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_rows_that_are_only_counted(monkeypatch: pytest.MonkeyPatch, few: int, mode: str) -> None:
    monkeypatch.setattr(faults, "FEW", few)
    for name in ("a value that is cut", f"{PGOUTPUT}: a value that is cut"):
        format, _, messages = CASES[name]
        counted = ReadOptions.check(mode=mode, tables=["x.*"])
        scanner = Scanner(find_format(format), ReadOptions.check(mode=mode), counted)
        (scanned,) = scanner.scan(messages)
        ((event,),) = [[one.event for one in events] for events in scanned.events.values()]
        assert isinstance(event, wf.Insert)
        assert scanner.reader.dropped == 0


def test_dropped_records_are_counted() -> None:
    _, _, messages = CASES["a value that is cut"]
    scanner = Scanner(find_format(BINARY), ReadOptions.check(mode="DROPMALFORMED"))
    assert sum(len(scanned.events) for scanned in scanner.scan(messages * 5)) == 5
    assert scanner.reader.dropped == 5


EMPTY_IN = ("gaussdb-binary", "gaussdb-json", "gaussdb-text", "mppdb-json", "test-decoding", "sql-decoding", PGOUTPUT)


@pytest.mark.parametrize("format", EMPTY_IN)
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("tables", [None, ["x.*"]])
def test_messages_without_bytes(format: str, mode: str, tables: list[str] | None) -> None:
    good = GOOD.get(format, [])
    agree([b"", *good, b"", b"", *good, b""], format=format, mode=mode, tables=tables)


@pytest.mark.parametrize("format", EMPTY_IN)
def test_of_messages_without_bytes_the_declaration_is_not_asked(monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setattr(Scanner, "_read", None)
    messages = [b"", *GOOD.get(format, []), b""]
    kinds = wf.arrow.changes(messages, format, mode="PERMISSIVE")["kind"].to_pylist()
    assert (kinds[0], kinds[-1]) == ("CORRUPT", "CORRUPT")
