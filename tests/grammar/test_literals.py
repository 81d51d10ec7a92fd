"""Literals: read by their first byte, written by the name of the type."""

from __future__ import annotations

import pytest

import wireformat as wf
from wireformat.grammar.cursor import Cursor
from wireformat.grammar.literals import read_literal, write_literal

READ = {
    b"null": (None, "null"),
    b"'null'": ("null", "string"),
    b"true": ("t", "boolean"),
    b"false": ("f", "boolean"),
    b"'t'": ("t", "string"),
    b"unchanged-toast-datum": (wf.UNCHANGED, "unchanged"),
    b"'unchanged-toast-datum'": ("unchanged-toast-datum", "string"),
    b"''": ("", "string"),
    b"''''": ("'", "string"),
    b"'it''s'": ("it's", "string"),
    b"'\\'": ("\\", "string"),
    b"B''": ("", "bits"),
    b"B'101'": ("101", "bits"),
    b"0": ("0", "number"),
    b"-12.30": ("-12.30", "number"),
    b".5": (".5", "number"),
    b"1e+300": ("1e+300", "number"),
    b"NaN": ("NaN", "number"),
    b"-Infinity": ("-Infinity", "number"),
}


def cursor(data: bytes) -> Cursor:
    return Cursor(data, 0, len(data), "utf-8", "strict")


@pytest.mark.parametrize("literal", READ)
def test_the_value_of_a_literal(literal: bytes) -> None:
    assert read_literal(cursor(literal)) == READ[literal]


@pytest.mark.parametrize("tail", [b" b", b",", b")", b";"])
@pytest.mark.parametrize("literal", READ)
def test_what_follows_is_left(literal: bytes, tail: bytes) -> None:
    place = cursor(literal + tail)
    assert read_literal(place) == READ[literal]
    assert place.at == len(literal)


@pytest.mark.parametrize(
    "literal",
    [b"", b" ", b"nul", b"NULL", b"True", b"b'1'", b"'x", b"B'1", b"B'2'", b"1x", b"--1", b"+1", b"1e", b"Inf"],
)
def test_no_literal(literal: bytes) -> None:
    with pytest.raises(wf.DecodeError) as raised:
        read_literal(cursor(literal))
    assert raised.value.path == "value"


WRITTEN = [
    ("5", "integer", b"5"),
    ("5", "oid", b"5"),
    ("255", "tinyint", b"255"),
    ("NaN", "double precision", b"NaN"),
    ("5", "text", b"'5'"),
    ("5", '"integer"', b"'5'"),
    ("5", "integer[]", b"'5'"),
    ("5", "money", b"'5'"),
    ("t", "boolean", b"true"),
    ("f", "boolean", b"false"),
    ("t", "flag", b"'t'"),
    ("101", "bit", b"B'101'"),
    ("", "bit varying", b"B''"),
    ("it's", "text", b"'it''s'"),
    (None, "text", b"null"),
    (wf.UNCHANGED, "text", b"unchanged-toast-datum"),
]


@pytest.mark.parametrize(("value", "type_", "literal"), WRITTEN)
def test_written_by_type(value: str | None, type_: str, literal: bytes) -> None:
    assert write_literal(value, type_, "utf-8") == literal
    assert read_literal(cursor(literal))[0] == value


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("x", "integer"),
        ("", "numeric"),
        ("1 ", "bigint"),
        ("yes", "boolean"),
        ("true", "boolean"),
        ("12", "bit"),
        ("\ud800", "text"),
        (5, "text"),
    ],
)
def test_values_that_no_server_gives_for_the_type(value: str, type_: str) -> None:
    with pytest.raises(wf.EncodeError) as raised:
        write_literal(value, type_, "utf-8")
    assert str(raised.value).startswith("value: ")
