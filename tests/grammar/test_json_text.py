"""The JSON styles: other spellings of the same object, and escapes undone before characters are decoded."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable

import pytest

import wireformat as wf
from wireformat.grammar.json_text import FEW_BYTES

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


LONG = 'x\n"\\é\u0001' * (FEW_BYTES // 4)
"""Characters that are escaped, in more bytes than are cut into objects."""
LONG_INSERT = wf.Insert(
    table_schema="public", table_name="t", new=wf.TupleData(names=("a",), values=(LONG,), types=("text",))
)


def peak_of(run: Callable[[], object]) -> int:
    """How many bytes a call has allocated at most."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("format", FORMATS)
def test_a_long_text_of_escapes(format: str) -> None:
    """It takes some times its own memory, not an object for each escape."""
    (message,) = wf.encode([LONG_INSERT], format)
    blank = message.replace(b'":', b'": ', 1)  # the scan leaves it to the declaration
    assert agree([message, blank], format=format).events == [LONG_INSERT] * 2
    assert peak_of(lambda: read([blank], format=format)) < 10 * len(message)
    assert peak_of(lambda: [*wf.encode([LONG_INSERT], format)]) < 10 * len(message)


def test_a_bad_escape_in_a_long_text() -> None:
    """Its place is told as in a short one."""
    good = rb"'\n\n\u0041"
    for repeats in (1, FEW_BYTES):
        with pytest.raises(wf.DecodeError, match="an escape of JSON") as caught:
            read([insert(good * repeats + rb"\x'")], format="mppdb-json")
        assert caught.value.field_offset == len(good) * repeats
