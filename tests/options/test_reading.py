"""ReadOptions: what is allowed, what the error says, and which encodings can be trusted with ASCII."""

from __future__ import annotations

import encodings
import pkgutil
import warnings
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf

SERVER_ENCODINGS = [
    "utf-8",
    "gbk",
    "gb18030",
    "latin-1",
    "big5",
    "euc-jp",
    "euc-kr",
    "euc-cn",
    "koi8-r",
    "windows-1252",
    "ascii",
]
NOT_ASCII = [
    "utf-16",
    "utf-32",
    "utf-7",
    "utf-8-sig",
    "mac-arabic",
    "mac-farsi",
    "cp037",
    "hz",
    "iso2022_jp",
    "idna",
    "punycode",
    "unicode_escape",
    "rot13",
    "base64",
]


def test_defaults() -> None:
    options = wf.ReadOptions.check()
    assert options == wf.ReadOptions()
    assert (options.mode, options.encoding, options.encoding_errors) == ("FAILFAST", "utf-8", "strict")
    assert (options.heartbeat_unit, options.tables, options.kinds) == (None, None, None)


@pytest.mark.parametrize("encoding", SERVER_ENCODINGS)
def test_server_encodings(encoding: str) -> None:
    name = wf.ReadOptions.check(encoding=encoding).encoding
    assert "a".encode(name) == b"a"


@pytest.mark.parametrize("name", ["utf8", "UTF-8", "utf_8", "U8"])
def test_every_name_of_utf8_is_utf8(name: str) -> None:
    assert wf.ReadOptions.check(encoding=name).encoding == "utf-8"


@pytest.mark.parametrize("encoding", [*NOT_ASCII, "no-such-thing", "", None, 5])
def test_encodings_that_do_not_extend_ascii(encoding: Any) -> None:
    with pytest.raises(wf.OptionError, match="option encoding: expected a Python encoding that extends ASCII"):
        wf.ReadOptions.check(encoding=encoding)


def accepted_encodings() -> list[str]:
    """Every encoding of this Python that may be asked for."""
    found = set()
    for module in pkgutil.iter_modules(encodings.__path__):
        with suppress(wf.OptionError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.add(wf.ReadOptions.check(encoding=module.name).encoding)
    return sorted(found)


ACCEPTED = accepted_encodings()


SHIFTS = [b"\x1b$B!!\x1b(B", b"\x1b$)A\x0e!!\x0f", b"~{!!~}", b"+AEE-", b"\\u0041", b"xn--mnchen-3ya", b"%41", b"=41"]
"""ASCII that means something else in one encoding or another."""


@given(st.sampled_from(SHIFTS) | st.binary(max_size=40).map(lambda data: bytes(byte & 0x7F for byte in data)))
def test_ascii_is_itself_in_every_accepted_encoding(data: bytes) -> None:
    """The scan takes bytes below 0x80 as they are, whatever the encoding."""
    for encoding in ACCEPTED:
        assert data.decode(encoding) == data.decode("ascii"), encoding
        assert data.decode("ascii").encode(encoding) == data, encoding


def test_no_other_byte_is_a_quote_or_a_digit() -> None:
    """The scan finds quotes and the ends of names in the bytes; the declaration in some formats in the text."""
    for encoding in ACCEPTED:
        texts = [bytes([byte]).decode(encoding, "ignore") for byte in range(0x80, 0x100)]
        assert not any(text and text.isascii() for text in texts), encoding


REFUSED = {
    "mode": (
        {"mode": "permissive"},
        "option mode: expected FAILFAST, PERMISSIVE, DROPMALFORMED; got 'permissive', did you mean 'PERMISSIVE'?",
    ),
    "mode, nearly": ({"mode": "PERMISIVE"}, "did you mean 'PERMISSIVE'?"),
    "errors": ({"encoding_errors": "ignore"}, "option encoding_errors: expected strict, replace; got 'ignore'"),
    "unit": ({"heartbeat_unit": "seconds"}, "option heartbeat_unit: expected s, ms, us; got 'seconds'"),
    "kind": ({"kinds": ["insert"]}, "CORRUPT; got 'insert', did you mean 'INSERT'?"),
    "one kind": ({"kinds": "INSERT"}, "option kinds: expected a list of strings, got the string 'INSERT'"),
    "one table": ({"tables": "a.b"}, "option tables: expected a list of strings, got the string 'a.b'"),
    "one known table": (
        {"known_tables": "a.b"},
        "option known_tables: expected a list of strings, got the string 'a.b'",
    ),
    "a known table without a schema": ({"known_tables": ["t"]}, "option known_tables: expected schema.table"),
    "a pattern as known table": (
        {"known_tables": ["s.*"]},
        'option known_tables: expected one table, got the pattern "s.*"',
    ),
    "no schema": (
        {"tables": ["orders"]},
        'option tables: expected schema.table, a part with a dot in it in double quotes, got "orders"',
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    options, words = REFUSED[name]
    with pytest.raises(wf.OptionError) as raised:
        wf.ReadOptions.check(**options)
    assert words in str(raised.value)


def test_filters() -> None:
    options = wf.ReadOptions.check(tables=["public.*", '"a.b".c'], kinds=["INSERT", "BEGIN"])
    assert options.keeps("INSERT", ("public", "x"))
    assert options.keeps("INSERT", ("a.b", "c"))
    assert options.keeps("BEGIN", None)
    assert options.keeps("CORRUPT", None)
    assert not options.keeps("INSERT", ("a", "b"))
    assert not options.keeps("DELETE", ("public", "x"))
    assert not options.keeps("COMMIT", None)


def test_known_tables() -> None:
    options = wf.ReadOptions.check(known_tables=["my schema.t", '"a.b"."*"'])
    assert options.known_tables == {("my schema", "t"), ("a.b", "*")}
    assert wf.ReadOptions.check().known_tables == frozenset()
