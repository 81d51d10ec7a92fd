"""Names without quotes: the rule by which schema and table are split, with and without known tables."""

from __future__ import annotations

import time

import pytest

import wireformat as wf
from wireformat.arrow.engine.scanner import Scanner
from wireformat.formats.registry import find_format
from wireformat.limits import NAME_BYTES
from wireformat.options import ReadOptions

from ..engines import ENGINES, agree, read
from ..golden_cases import find_case

ROW = b" INSERT: a[integer]:1"
RULE = {
    "no choice": (b"s t", None, ("s", "t")),
    "the shortest schema": (b"my schema my table", None, ("my", "schema my table")),
    "a blank at the beginning is part of the schema": (b" lead t", None, (" lead", "t")),
    "a blank at the end is part of the table": (b"s t ", None, ("s", "t ")),
    "a known table": (b"my schema my table", ["my schema.my table"], ("my schema", "my table")),
    "a known table with dots and quotes": (b'a.b c "d', ['"a.b c"."""d"'], ("a.b c", '"d')),
    "of two known tables the shorter schema": (b"a b c", ["a b.c", "a.b c"], ("a", "b c")),
    "another known table changes nothing": (b"my schema t", ["my.table"], ("my", "schema t")),
    "a table that looks like a mark": (b"s t UPDATE: a[integer]:1", None, ("s", "t UPDATE: a[integer]:1")),
    "a schema that looks like a mark": (b"s INSERT: x t", ["s INSERT: x.t"], ("s INSERT: x", "t")),
    "names of two bytes a character": ("模式 表".encode(), None, ("模式", "表")),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RULE)
def test_names_without_quotes_are_told_apart(name: str, engine: str) -> None:
    names, known, wanted = RULE[name]
    (event,) = read([b"table " + names + ROW], engine, format="gaussdb-text", known_tables=known)
    assert (event.table_schema, event.table_name) == wanted
    assert event.new == wf.TupleData(("a",), ("1",), ("integer",))


def test_what_the_rule_gives_for_the_captures() -> None:
    """Without known tables: right where no name has a blank, or where the first blank ends the schema."""
    case = find_case("t_names_spaces_single")
    told = read(case.messages, format=case.format, **case.reading)
    guessed = read(case.messages, format=case.format)
    rows = 0
    for right, guess in zip(told, guessed, strict=True):
        if isinstance(right, wf.RowChange) and isinstance(guess, wf.RowChange):
            text = f"{right.table_schema} {right.table_name}"
            schema = text[: text.index(" ", 1)]
            assert (guess.table_schema, guess.table_name) == (schema, text[len(schema) + 1 :])
            assert (guess.new, guess.old) == (right.new, right.old)
            rows += 1
    assert rows


def test_every_split_is_written_as_it_was() -> None:
    case = find_case("t_names_spaces_single")
    assert list(wf.encode(read(case.messages, format=case.format), case.format)) == case.messages


def test_few_places_are_tried() -> None:
    longest = b"table " + b"s" * NAME_BYTES + b" " + b"t" * NAME_BYTES + ROW
    assert read([longest], format="gaussdb-text")[0].kind == "INSERT"
    with pytest.raises(wf.BadTag):
        read([b"table " + b"s" * (NAME_BYTES + 1) + b" " + b"t" * NAME_BYTES + ROW], format="gaussdb-text")
    start = time.process_time()
    many = b"table " + b" a INSERT: b[text]:'" * 100_000
    events = read([many], format="gaussdb-text", mode="PERMISSIVE", known_tables=["x.y"])
    assert [event.kind for event in events] == ["CORRUPT"]
    assert time.process_time() - start < 5


NAMES = [
    *(names for names, _, _ in RULE.values()),
    *(
        b"a  b",
        b"  a b",
        b" a b ",
        b"a b c d",
        b"my schema my table",
        b"x y z",
        b"a INSERT: b c",
        b" INSERT: a b",
        b"a b ",
    ),
    *("模式 一 表".encode(), "模式 一 表".encode("gbk"), "é x t".encode("latin-1"), b"\xff x t"),
]
KNOWN = [
    None,
    ["s.t"],
    ["my schema.my table", "a b.c d", "a.b c d", "a b c.d"],
    ["模式 一.表", "é x.t", "x.y z", '"a ".b', 'a." b"'],
    ["é.x t"],
]


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "latin-1"])
@pytest.mark.parametrize("known", KNOWN, ids=str)
def test_the_scan_splits_as_the_grammar(known: list[str] | None, encoding: str) -> None:
    rows = [b" INSERT: a[integer]:1", b" DELETE: a[text]:'x UPDATE: b[integer]:1'", b" UPDATE: a[integer]:"]
    messages = [b"table " + names + row for names in NAMES for row in rows]
    cut = [message[:stop] for message in messages[::3] for stop in range(6, len(message), 3)]
    for errors in ("strict", "replace"):
        options = {"encoding": encoding, "encoding_errors": errors, "known_tables": known}
        agree([*messages, *cut], format="gaussdb-text", mode="PERMISSIVE", **options)


@pytest.mark.parametrize("known", [None, ["my schema.my table"]])
def test_names_with_blanks_are_left_to_nobody(known: list[str] | None) -> None:
    """They were read by the grammar, a hundred times slower."""
    scanner = Scanner(find_format("gaussdb-text"), ReadOptions.check(known_tables=known))
    found = list(scanner.scan([b"table my schema my table" + ROW, "table é x t".encode() + ROW][: 1 if known else 2]))
    assert not any(scanned.events for scanned in found)
