"""The JSON styles: other spellings of the same object, and escapes undone before characters are decoded."""

from __future__ import annotations

import json

import pytest

import wireformat as wf

from ..engines import agree, read
from ..text_samples import J

FORMATS = ("gaussdb-json", "mppdb-json")


def insert(value: bytes) -> bytes:
    return J.replace(b"'x'", value)


SPELLINGS = {
    "blanks": J.replace(b":", b" : ").replace(b",", b"\t,\n ").replace(b"{", b"{\r ").replace(b"]}", b"] } "),
    "another order": json.dumps(dict(reversed(json.loads(J).items()))).encode(),
    "escapes that are not needed": J.replace(b"INSERT", rb"\u0049NSERT").replace(b"'x'", rb"'\u0078'"),
    "a name in quotes without need": J.replace(b'"a"', rb'"\"a\""'),
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_say_the_same(name: str, format: str) -> None:
    assert SPELLINGS[name] != J
    assert agree([SPELLINGS[name]], format=format).events == read([J], format=format)


ESCAPES = {
    rb"'\"\\\/\b\f\n\r\t'": '"\\/\b\f\n\r\t',
    rb"'\u0000\u001f\u007f'": "\0\x1f\x7f",
    rb"'\u8868\u00e9'": "表é",
    rb"'\ud83d\ude00'": "😀",
    rb"'\\u0041'": "\\u0041",
    rb"'\\\\\"'": '\\\\"',
    "'表'".encode(): "表",
    b"'it''s'": "it's",
    rb"'\u0027\u0027'": "'",
}


@pytest.mark.parametrize("value", ESCAPES)
def test_escapes(value: bytes) -> None:
    (event,) = agree([insert(value)], format="gaussdb-json").events
    assert isinstance(event, wf.Insert)
    assert event.new is not None
    assert event.new.values == ("1", ESCAPES[value])


def test_escapes_in_another_encoding() -> None:
    """The second byte of a GBK character may be a backslash, which is escaped like any other."""
    character = b"\x81\x5c".decode("gbk")
    for value in (rb"'" + b"\x81\\\\'", f"'\\u{ord(character):04x}'".encode()):
        (event,) = agree([insert(value)], format="gaussdb-json", encoding="gbk").events
        assert isinstance(event, wf.Insert)
        assert event.new is not None
        assert event.new.values[1] == character
    (written,) = wf.encode([event], "gaussdb-json", encoding="gbk")
    assert written == insert(b"'\x81\\\\'")


def test_an_escape_for_a_character_that_the_encoding_lacks() -> None:
    answer = agree([insert(rb"'\u8868'")], format="gaussdb-json", encoding="latin-1")
    assert isinstance(answer.error, wf.BadText)
    assert "expected characters of iso8859-1, got an escape for a character that it lacks" in str(answer.error)


def test_words_that_look_like_json_in_names() -> None:
    image = wf.TupleData(('","columns_val":["', "]}"), ("[", None), ('"a]"[]', "text"))
    event = wf.Update(table_schema='s".', table_name='.","op_type":"DELETE', new=image, old=image)
    assert agree(list(wf.encode([event], "gaussdb-json")), format="gaussdb-json").events == [event]
