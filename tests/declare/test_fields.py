"""The fields of declarations, each alone: what it reads, what it writes, and the place that its errors name."""

from __future__ import annotations

from typing import Any

import pytest
from construct import Byte, Construct, Int8ub, Int16ub, Int32ub, Struct

import wireformat as wf
from wireformat.declare import Counted, Identifier, Tagged, Text, build, parse

PAIR = Struct("name" / Identifier(Int8ub), "value" / Text(Int8ub, null=0xFF))
FIELDS: dict[str, Construct] = {
    "text": Struct("text" / Text(Int8ub)),
    "null": Struct("text" / Text(Int8ub, null=0xFF)),
    "name": Struct("name" / Identifier(Int16ub)),
    "counted": Struct("pairs" / Counted(Int8ub, PAIR)),
    "tagged": Struct("first" / Byte, "facts" / Tagged({65: ("a", Byte), 66: ("b", Text(Int8ub))}, in_order=False)),
    "ordered": Struct("facts" / Tagged({65: ("a", Byte), 66: ("b", Byte)}, in_order=True)),
    "number": Struct("number" / Int32ub),
}


def read(name: str, data: bytes, encoding: str = "utf-8", errors: str = "strict") -> Any:
    """Read data by a field, with other bytes around it that must not matter."""
    return parse(FIELDS[name], b"<<<" + data + b"\xff>>", 3, 3 + len(data), encoding=encoding, errors=errors)


def test_a_name_whose_last_character_is_cut() -> None:
    """Its bytes are those between the quotes, of which a decoder of characters would take the last one."""
    name = b'"\x8f"'
    assert read("name", b"\0\3" + name, "euc_jp", "replace") == {"name": "\ufffd"}
    with pytest.raises(wf.BadText):
        read("name", b"\0\3" + name, "euc_jp")


def write(name: str, values: Any, encoding: str = "utf-8") -> bytes:
    return build(FIELDS[name], values, encoding=encoding)


BOTH_WAYS: list[tuple[str, bytes, dict[str, Any]]] = [
    ("text", b"\0", {"text": ""}),
    ("text", b"\2\xc3\xa9", {"text": "é"}),
    ("null", b"\xff", {"text": None}),
    ("null", b"\1x", {"text": "x"}),
    ("name", b'\0\6"A""b"', {"name": 'A"b'}),
    ("name", b"\0\1a", {"name": "a"}),
    ("counted", b"\0", {"pairs": []}),
    ("counted", b"\2\1a\0\1b\xff", {"pairs": [{"name": "a", "value": ""}, {"name": "b", "value": None}]}),
    ("tagged", b"\5", {"first": 5, "facts": {}}),
    ("tagged", b"\5A\7B\1x", {"first": 5, "facts": {"a": 7, "b": "x"}}),
    ("tagged", b"\5B\0", {"first": 5, "facts": {"b": ""}}),
    ("ordered", b"A\1B\2", {"facts": {"a": 1, "b": 2}}),
    ("number", b"\0\0\1\0", {"number": 256}),
]


@pytest.mark.parametrize(("name", "data", "values"), BOTH_WAYS)
def test_both_ways(name: str, data: bytes, values: dict[str, Any]) -> None:
    found = read(name, data)
    assert plain(found) == values
    assert write(name, values) == data


def test_tagged_fields_are_read_in_any_order_and_written_in_one() -> None:
    found = read("tagged", b"\5B\1xA\7")
    assert plain(found) == {"first": 5, "facts": {"a": 7, "b": "x"}}
    assert write("tagged", found) == b"\5A\7B\1x"


def test_encodings() -> None:
    assert plain(read("text", b"\1\xe9", "latin-1")) == {"text": "é"}
    assert write("text", {"text": "é"}, "latin-1") == b"\1\xe9"
    assert plain(read("text", b"\1\xe9", errors="replace")) == {"text": "�"}


BAD: list[tuple[str, bytes, type[wf.DecodeError], int, str | None, str]] = [
    ("number", b"\0\0\0", wf.ShortData, 0, "number", "expected 4 bytes, got 3, then the record ends"),
    ("number", b"", wf.ShortData, 0, "number", "expected 4 bytes, got 0"),
    ("number", b"\0\0\0\1x", wf.TrailingBytes, 4, None, "got 1 more byte ["),
    ("text", b"\5abcd", wf.BadLength, 0, "text", "at most 4, the rest of the record, got 5"),
    ("text", b"\3a\xffb", wf.BadText, 1, "text", "text in utf-8"),
    ("name", b'\0\2"x', wf.BadValue, 0, "name", "double quotes"),
    ("counted", b"\2\1a\0", wf.ShortData, 4, "pairs[1].name", "expected 1 byte, got 0"),
    ("counted", b"\2\1a\0\1b\2c", wf.BadLength, 6, "pairs[1].value", "at most 1"),
    ("tagged", b"\5C", wf.BadTag, 1, "tag", "'A' or 'B' or the end of the record, got 'C'"),
    ("tagged", b"\5A\1A\1", wf.BadTag, 3, "tag", "expected 'B' or the end of the record, got 'A'"),
    ("tagged", b"\5A", wf.ShortData, 2, "a", "expected 1 byte, got 0"),
    ("tagged", b"\5\0", wf.BadTag, 1, "tag", "got 0x00"),
    ("ordered", b"B\1A\1", wf.BadTag, 2, "tag", "expected the end of the record, got 'A'"),
]


@pytest.mark.parametrize(("name", "data", "kind", "at", "path", "words"), BAD)
def test_errors_name_the_place(
    name: str, data: bytes, kind: type[wf.DecodeError], at: int, path: str | None, words: str
) -> None:
    with pytest.raises(kind) as raised:
        read(name, data)
    error = raised.value
    assert (error.message_offset, error.path or None) == (3 + at, path)
    assert words in str(error)
    assert data[at:].startswith(error.spot)


UNWRITABLE: list[tuple[str, dict[str, Any], str]] = [
    ("number", {"number": 1 << 32}, "number: expected a number that fits the field"),
    ("number", {"number": "5"}, "number: expected a number that fits the field"),
    ("number", {"number": None}, "number: expected a number that fits the field, got none: the field is missing"),
    ("text", {"text": 5}, "text: expected a str, got int"),
    ("text", {"text": None}, "text: expected a str, got NoneType"),
    ("text", {"text": "x" * 256}, "text: expected at most 255 bytes, got 256"),
    ("null", {"text": "x" * 255}, "text: expected at most 255 bytes, got 255"),
    ("text", {"text": "a\ud800"}, "text: character 1 has no bytes in utf-8"),
    ("counted", {"pairs": [{"name": "a", "value": ""}, {"name": 5, "value": ""}]}, "pairs[1].name: expected a str"),
]


@pytest.mark.parametrize(("name", "values", "words"), UNWRITABLE)
def test_what_cannot_be_written(name: str, values: dict[str, Any], words: str) -> None:
    with pytest.raises(wf.EncodeError) as raised:
        write(name, values)
    assert str(raised.value).startswith(words)


def plain(found: Any) -> Any:
    """construct's containers as plain dicts and lists."""
    if isinstance(found, dict):
        return {name: plain(value) for name, value in found.items() if name != "_io"}
    return [plain(value) for value in found] if isinstance(found, list) else found
