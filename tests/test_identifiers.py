"""Quoted names: as the server prints them, and back."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireformat.arrow.scan.kernels.literals import name_end
from wireformat.identifiers import KEYWORDS, quote_identifier, split_pattern, split_table, unquote_identifier

from . import strategies
from .engines import agree

QUOTED = {
    "id": "id",
    "_x9": "_x9",
    "Order": '"Order"',
    "order": '"order"',
    "select": '"select"',
    "a b": '"a b"',
    "a.b": '"a.b"',
    "a$b": '"a$b"',
    "9a": '"9a"',
    "": '""',
    '"': '""""',
    'a"b': '"a""b"',
    "é": '"é"',
    "a\n": '"a\n"',
    "name": "name",
    "value": "value",
}
"""`name` and `value` are keywords too, but unreserved ones: they need no quotes."""

NOT_CLOSED = ['"', '"a', '"a"b', '"a"b"', '"""', '"a"""b"']


@pytest.mark.parametrize("name", QUOTED)
def test_as_the_server_prints(name: str) -> None:
    assert quote_identifier(name) == QUOTED[name]
    assert unquote_identifier(QUOTED[name]) == name


@pytest.mark.parametrize("name", sorted(KEYWORDS))
def test_keywords_are_quoted(name: str) -> None:
    assert quote_identifier(name) == f'"{name}"'


def test_compiled_code_knows_plain_names() -> None:
    """Of every byte at the first and second place: it ends the name, or not, as where a name is quoted."""
    for name in (bytes(pair) for pair in product(range(256), repeat=2)):
        text = name.decode("latin-1")
        is_plain, begins = (quote_identifier(part, frozenset()) == part for part in (text, text[0]))
        data = np.frombuffer(name, np.uint8)
        assert name_end(data, 0, 2) == (2 if is_plain else 1 if begins else 0), name


def test_both_engines_take_the_same_plain_names() -> None:
    names = ["a", "_", "a1", "a_1_", "1a", "A", "aB", "a$", "a-", "é", "aé", "", "a b", "z9"]
    for name in names:
        line = f"table {name}.t: INSERT: {name}[integer]:1".encode()
        answer = agree([line], format="test-decoding", mode="PERMISSIVE")
        assert [event.kind for event in answer.events] == ["INSERT" if quote_identifier(name) == name else "CORRUPT"], (
            name
        )


@given(strategies.names())
def test_there_and_back(name: str) -> None:
    assert unquote_identifier(quote_identifier(name)) == name


@pytest.mark.parametrize("text", NOT_CLOSED)
def test_bad_quotes(text: str) -> None:
    with pytest.raises(ValueError, match="double quote"):
        unquote_identifier(text)


@pytest.mark.parametrize("text", ["", "Upper", "a b", 'in"side', 'end"'])
def test_a_text_that_does_not_begin_with_a_quote_is_the_name(text: str) -> None:
    assert unquote_identifier(text) == text


PATTERNS = {
    "a.b": ("a", "b"),
    "public.*": ("public", None),
    "*.t": (None, "t"),
    "*.*": (None, None),
    '"*".t': ("*", "t"),
    '"a*".b': ("a*", "b"),
    '"a.b".c': ("a.b", "c"),
    'a."b.c"': ("a", "b.c"),
    '"a""b"."c"': ('a"b', "c"),
    "a b.ç": ("a b", "ç"),
    '"".a': ("", "a"),
    'a.""': ("a", ""),
    '"""".""': ('"', ""),
}


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns_are_split(text: str) -> None:
    assert split_pattern(text) == PATTERNS[text]


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", ".", "a.", ".a", "a.b.c", '"a.b', 'a."b', 'a"b.c', '"a"x.b', 'a."b"x', '"".'),
        *("a*.b", "public.ord*", "*a.b", "a.**", "a.b ", " a.b", "a. b"),
    ],
)
def test_not_two_parts(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema\.table"):
        split_pattern(text)


@pytest.mark.parametrize("text", ["orders", '"Order.s"', "a b"])
def test_a_name_alone_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema\.table") as raised:
        split_pattern(text)
    written = f'"public.{text}", or "*.{text}" for every schema'
    assert str(raised.value).endswith(f'got "{text}": write {written}')
    assert split_pattern(f"public.{text}")[0] == "public"
    assert split_pattern(f"*.{text}")[0] is None


@pytest.mark.parametrize("text", ["orders", '"Order.s"', "a b"])
def test_where_one_table_is_wanted_no_pattern_is_suggested(text: str) -> None:
    with pytest.raises(ValueError, match=r"schema\.table") as raised:
        split_table(text)
    assert str(raised.value).endswith(f'got "{text}": write "public.{text}"')
    assert split_table(f"public.{text}")[0] == "public"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*", 'in double quotes, got "*"'),
        ("public.*", 'expected one table, got the pattern "public.*"'),
        ("public.ord*", 'got "public.ord*": a name with a * in it is in double quotes'),
    ],
)
def test_one_table_is_no_pattern(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words) + "$"):
        split_table(text)


@pytest.mark.parametrize("text", ["public.ord*", "pub*.orders", "*s.orders", "orders*"])
def test_a_star_in_a_name_is_told_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"a \* matches a whole part"):
        split_pattern(text)


names = st.text(min_size=1, max_size=8)


@given(names, names)
def test_quoted_parts_are_split_right(schema: str, table: str) -> None:
    text = ".".join('"' + name.replace('"', '""') + '"' for name in (schema, table))
    assert split_pattern(text) == (schema, table)
