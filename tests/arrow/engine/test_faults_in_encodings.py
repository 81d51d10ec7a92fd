"""Wrong texts in other encodings than UTF-8 are found as the declaration finds them, and it is not asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import wireformat as wf
from wireformat.arrow.engine import faults
from wireformat.arrow.engine.scanner import Scanner
from wireformat.arrow.scan.faults import fields

from ...engines import agree

BINARY, PGOUTPUT, UNQUOTED = "gaussdb-binary", "pgoutput", "gaussdb-text"
FORMATS = (BINARY, "gaussdb-json", UNQUOTED, "mppdb-json", "test-decoding", "opengauss-test-decoding", PGOUTPUT)

WORDS = {
    "utf-8": "表",
    "gbk": "表",
    "gb18030": "表𠀀",
    "big5": "表",
    "euc_jp": "表",
    "euc_kr": "표",
    "shift_jis": "表",
    "johab": "표",
    "koi8-r": "таблица",
    "cp1252": "größe",
    "ascii": "",
}
"""A word in each encoding; in Shift-JIS, `表` ends in a backslash, which counts as one only in JSON."""

TAILS = (b"\xff", b"\x81", b"\x81 ", b"\xfe\xff ok", b"\x8f\xa1", b"\x90\x30\x81 x", b"\xa4\xd4\xa4")
"""What may not be text."""

OID = 16_400
TYPES, OIDS = ("text", "text", "text"), (25, 25, 25)


def raw(data: bytes) -> str:
    """A text that is these bytes if it is written in Latin-1."""
    return data.decode("latin-1")


def row(names: tuple[str, ...], *values: str | None, schema: str = "public", table: str = "orders") -> wf.Insert:
    """A row that is inserted."""
    return wf.Insert(table_schema=schema, table_name=table, new=wf.TupleData(names, values, TYPES))


def written(format: str, *events: wf.RowChange) -> list[bytes]:
    """Messages of these rows, in Latin-1."""
    batched = format.startswith("gaussdb")
    if format == PGOUTPUT:
        return [message for event in events for message in wf.encode(described(event), format, encoding="latin-1")]
    given = [replace(event, lsn=7 if batched else None) for event in events]
    return [*wf.encode(given, format, options={"sending-batch": 1} if batched else None, encoding="latin-1")]


def described(event: wf.RowChange) -> list[wf.Event]:
    """A row of pgoutput, after the description of its table."""
    image = event.new or event.old
    assert image is not None
    relation = wf.Relation(
        relation_id=OID,
        table_schema=event.table_schema,
        table_name=event.table_name,
        replica_identity="full",
        columns=image.names,
        type_oids=OIDS,
        typmods=(-1,) * len(OIDS),
        key_columns=image.names,
    )
    return [relation, replace(event, relation_id=OID, old_kind="full" if event.old else None)]


def rows_in(encoding: str) -> dict[str, list[wf.RowChange]]:
    """Rows whose texts are good, or not, in an encoding."""
    word = raw(WORDS[encoding].encode(encoding))
    plain, named = ("id", "a", "b"), ("id", f"{word}a", "My b")
    found: dict[str, list[wf.RowChange]] = {"good": [row(plain, "1", word, None), row(named, "1", f"it's {word}", "x")]}
    for index, tail in enumerate(map(raw, TAILS)):
        bad = f"{word}{tail}"
        image = wf.TupleData(named, (bad, word, bad), TYPES)
        found[f"{index}"] = [
            row(plain, "1", word, bad),
            row(named, "1", bad, f"{word} {bad}"),
            row(plain, word, "it's ok", bad, schema=f"My {word}", table=f"{word}s"),
            wf.Update(table_schema="public", table_name=f"{word}t", old=image, new=found["good"][1].new),
            wf.Delete(table_schema="public", table_name="orders", old=image),
            row((f"{bad}", "a", "b"), "1", bad, word),
            row(plain, "1", f"it's {bad}", bad, table=bad),
        ]
    return found


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks are used from the first record on."""
    monkeypatch.setattr(faults, "FEW", 0)


@pytest.mark.parametrize("encoding", WORDS)
@pytest.mark.parametrize("format", FORMATS)
def test_both_engines_agree(format: str, encoding: str) -> None:
    rows = [event for events in rows_in(encoding).values() for event in events]
    messages = written(format, *rows)
    messages += [message[:-1] for message in messages]
    for mode, tables in (("PERMISSIVE", None), ("PERMISSIVE", ["x.*"]), ("DROPMALFORMED", ["public.*"])):
        agree(messages, format=format, mode=mode, encoding=encoding, tables=tables)


@pytest.mark.parametrize("encoding", [encoding for encoding in WORDS if encoding not in ("ascii", "koi8-r")])
@pytest.mark.parametrize("format", FORMATS)
def test_the_declaration_is_not_asked(monkeypatch: pytest.MonkeyPatch, format: str, encoding: str) -> None:
    found: list[int] = []
    find = faults.FaultFinder.find

    def noted(*given: Any) -> faults.Faults:
        answer = find(*given)
        found.extend(answer.facts[fields.FAULT].tolist())
        return answer

    monkeypatch.setattr(faults.FaultFinder, "find", noted)
    monkeypatch.setattr(Scanner, "_read", None)
    word = raw(WORDS[encoding].encode(encoding))
    if encoding == "shift_jis" and "json" in format:
        word = "a"
    rows = [
        row(("id", "a", "b"), "1", word, f"{word}\xff"),
        row((f"{word}d", "My a", "b"), word, f"{word}\xff", "\xff", schema=f"My {word}", table=f"{word}s"),
    ]
    if encoding == "cp1252":
        rows = [replace(event, new=replace(event.new, values=("1", word, f"{word}\x81"))) for event in rows]
    messages = written(format, *rows)
    kinds = wf.arrow.changes(messages, format, mode="PERMISSIVE", encoding=encoding)["kind"].to_pylist()
    assert [kind for kind in kinds if kind != "RELATION"] == ["CORRUPT"] * 2
    assert found == [fields.BAD_TEXT] * 2


WRONG_NAMES: dict[str, wf.RowChange] = {
    "column": row(("id", "\xff\xffa", "b"), "1", "2", "3"),
    "schema": row(("id", "a", "b"), "1", "2", "3", schema="\xff\xffs"),
    "table": row(("id", "a", "b"), "1", "2", "3", schema="My s", table="\xff\xfft"),
    "table of a plain schema": row(("id", "a", "b"), "1", "2", "3", table="\xff\xfft"),
    "value with quotes": wf.Delete(
        table_schema="s", table_name="t", old=wf.TupleData(("id", "My a", "b"), ("it's", "2", "it's \xff\xff"), TYPES)
    ),
}


@pytest.mark.parametrize("name", WRONG_NAMES)
@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "euc_jp"])
@pytest.mark.parametrize("format", FORMATS)
def test_wrong_names(monkeypatch: pytest.MonkeyPatch, format: str, encoding: str, name: str) -> None:
    messages = written(format, WRONG_NAMES[name], WRONG_NAMES["column"], WRONG_NAMES[name])
    for tables in (None, ["x.*"]):
        agree(messages, format=format, mode="PERMISSIVE", encoding=encoding, tables=tables)
    if format != PGOUTPUT and (name != "value with quotes" or "json" in format or format == BINARY):
        monkeypatch.setattr(Scanner, "_read", None)
        found = wf.arrow.changes(messages, format, mode="PERMISSIVE", encoding=encoding)
        assert set(found["kind"].to_pylist()) == {"CORRUPT"}


@pytest.mark.parametrize("room", [1, 3, 4])
@pytest.mark.parametrize("format", [BINARY, "gaussdb-json", "test-decoding", PGOUTPUT])
def test_more_texts_than_are_listed_at_a_time(monkeypatch: pytest.MonkeyPatch, format: str, room: int) -> None:
    monkeypatch.setattr(faults, "MOST_LISTED", room)
    monkeypatch.setattr(faults, "MOST_LISTED", room)
    messages = written(format, *(event for events in rows_in("gbk").values() for event in events))
    agree(messages, format=format, mode="PERMISSIVE", encoding="gbk")


def test_a_table_whose_name_holds_the_replacement_character() -> None:
    named = row(("a", "b", "c"), "1", "x", "y", table="\N{REPLACEMENT CHARACTER}")
    (message,) = wf.encode([replace(named, lsn=7)], BINARY, options={"sending-batch": 1})
    for tables in (["public.*"], ["x.*"]):
        agree([message.replace(b"x", b"\xff")], format=BINARY, mode="PERMISSIVE", tables=tables)
    assert not [*wf.decode([message.replace(b"\0\0\0\1x", b"\0\0\0\1\xff")], BINARY, mode="PERMISSIVE", tables=["x.*"])]


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "euc_jp"])
@pytest.mark.parametrize("format", FORMATS)
def test_names_in_quotes(monkeypatch: pytest.MonkeyPatch, format: str, encoding: str) -> None:
    """Plain ones, those with quotes and escapes in them, and wrong ones, before and after another wrong text."""
    monkeypatch.setattr(faults, "FEW", 0)
    names = ["A", "my id", 'a"b', '"', '""', "a\\b", "it's", "tab\t", raw(b"\xff"), raw(b"a\xff b"), raw(b'"\xff"x')]
    names += [raw(b"\x81"), raw(b"\xe8\xa1\xa8"), raw(b"a name of more than sixteen bytes \xff")]
    messages = []
    for name in names:
        for others in (("a", "b"), ("B", raw(b"\xff")), (raw(b"\xfe"), "b")):
            messages += written(
                format, row((name, *others), "1", raw(b"x\xff"), None), row((*others, name), "1", "2", "")
            )
            messages += written(format, row(("a", name, "b"), "1", raw(b"\xff"), "2", table=name))
    agree(messages, format=format, encoding=encoding, mode="PERMISSIVE")
