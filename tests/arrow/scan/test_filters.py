"""tables= and kinds=: what is left out, what always stays, and that names are compared as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.identifiers import quote_identifier

from ... import strategies
from ...accounting import EVERYTHING
from ...engines import ENGINES, FORMAT, read
from ...handmade import BEGIN, COMMIT, HEARTBEAT, cell, change, commit, message, new

each_engine = pytest.mark.parametrize("engine", ENGINES)


def insert(schema: str, table: str, encoding: str = "utf-8") -> bytes:
    return change(b"I", schema.encode(encoding), table.encode(encoding), new(cell(b"a", 23, b"1")))


TABLES = [
    ("public", "orders"),
    ("public", "order"),
    ("public", "Orders"),
    ("Public", "orders"),
    ("a.b", "c"),
    ("a", "b.c"),
    ("s", 'q"t'),
    ("表", "é"),
    ("", ""),
    ("*", "x"),
]
MESSAGES = [message(BEGIN, *[insert(*table) for table in TABLES], b"Zunknown", HEARTBEAT, COMMIT, commit(b"?"))]

PATTERNS: dict[str, tuple[list[str], set[tuple[str, str]]]] = {
    "one table": (["public.orders"], {("public", "orders")}),
    "a schema": (["public.*"], {("public", "orders"), ("public", "order"), ("public", "Orders")}),
    "a table of any schema": (["*.orders"], {("public", "orders"), ("Public", "orders")}),
    "all": (["*.*"], set(TABLES)),
    "none": ([], set()),
    "one that is not there": (["public.orderss"], set()),
    "two": (["a.*", "*.c"], {("a", "b.c"), ("a.b", "c")}),
    "a dot in the schema": (['"a.b".c'], {("a.b", "c")}),
    "a dot in the table": (['a."b.c"'], {("a", "b.c")}),
    "a quote in the table": (['s."q""t"'], {("s", 'q"t')}),
    "no ASCII": (["表.é"], {("表", "é")}),
    "no ASCII, any schema": (["*.é"], {("表", "é")}),
    "a quoted star is a name": (['"*".*'], {("*", "x")}),
}


@each_engine
@pytest.mark.parametrize("name", PATTERNS)
def test_tables(name: str, engine: str) -> None:
    """Records that name no table stay, and so does what cannot be read."""
    patterns, wanted = PATTERNS[name]
    events = read(MESSAGES, engine, mode="PERMISSIVE", tables=patterns)
    found = [(event.table_schema, event.table_name) for event in events if isinstance(event, wf.RowChange)]
    assert found == [table for table in TABLES if table in wanted]
    others = [event.kind for event in events if not isinstance(event, wf.RowChange)]
    assert others == ["BEGIN", "UNKNOWN", "HEARTBEAT", "COMMIT", "CORRUPT"]
    table = wf.arrow.changes(MESSAGES, FORMAT, engine=engine, mode="PERMISSIVE", tables=patterns)
    assert table["kind"].to_pylist() == [event.kind for event in events]
    records = [0, *(1 + place for place, one in enumerate(TABLES) if one in wanted), 11, 12, 13, 14]
    assert table["record"].to_pylist() == records


@each_engine
@pytest.mark.parametrize("count", [3, 100])
def test_many_patterns_beside_the_wanted_ones(count: int, engine: str) -> None:
    """The table of patterns has names of all lengths, in all places, and * for either part."""
    others = [
        pattern
        for number in range(count)
        for name in ("order" + "s" * (number % 70), f"t{number}", "表" * (number % 20 + 1))
        for pattern in (f"x{number}.{name}", f"{name}_{number}.orders", f"*.{name}_{number}", f"y{number}.*")
    ]
    for patterns, wanted in PATTERNS.values():
        for tables in (others + patterns, patterns + others):
            events = read(MESSAGES, engine, mode="PERMISSIVE", kinds=["INSERT"], tables=tables)
            found = [(event.table_schema, event.table_name) for event in events if isinstance(event, wf.RowChange)]
            assert found == [table for table in TABLES if table in wanted]


@each_engine
@pytest.mark.parametrize("encoding", ["gbk", "latin-1"])
def test_tables_in_other_encodings(encoding: str, engine: str) -> None:
    """The bytes of one name in gbk may be another name in UTF-8: names are compared after decoding."""
    name = "é" if encoding == "latin-1" else "表一"
    messages = [message(insert("s", name, encoding), insert("s", "t"), insert(name, "t", encoding))]
    for patterns, expected in (
        ([f"s.{name}"], [("s", name)]),
        ([f"*.{name}"], [("s", name)]),
        ([f"{name}.*"], [(name, "t")]),
        (["s.*"], [("s", name), ("s", "t")]),
        (["x.y"], []),
    ):
        events = read(messages, engine, encoding=encoding, tables=patterns)
        assert [(event.table_schema, event.table_name) for event in events] == expected


@each_engine
def test_kinds(engine: str) -> None:
    everything = read(MESSAGES, engine, mode="PERMISSIVE")
    for kind in ("BEGIN", "COMMIT", "INSERT", "UPDATE", "HEARTBEAT", "UNKNOWN", "TRUNCATE"):
        events = read(MESSAGES, engine, mode="PERMISSIVE", kinds=[kind])
        assert events == [event for event in everything if event.kind in (kind, "CORRUPT")]
    assert read(MESSAGES, engine, mode="PERMISSIVE", kinds=["CORRUPT"]) == everything[-1:]
    assert read(MESSAGES, engine, mode="PERMISSIVE", kinds=[]) == everything[-1:]
    assert read(MESSAGES, engine, mode="DROPMALFORMED", kinds=[]) == []


@each_engine
@pytest.mark.parametrize("kind", [list, tuple, set, iter], ids=lambda kind: kind.__name__)
def test_any_iterable_of_kinds_and_tables(kind: Any, engine: str) -> None:
    assert len(read(MESSAGES, engine, mode="DROPMALFORMED", kinds=kind(["INSERT"]))) == len(TABLES)
    assert len(read(MESSAGES, engine, mode="DROPMALFORMED", kinds=["INSERT"], tables=kind(["a.*"]))) == 1


@each_engine
def test_bad_cells_of_unwanted_tables_are_stepped_over(engine: str) -> None:
    """Whether the table has been seen before or not."""
    good, bad = message(insert("s", "t")), message(insert("s", "t")[:-1])
    for messages in ([bad], [good, bad, bad], [bad, good, bad]):
        assert read(messages, engine, tables=["x.y"]) == []
        with pytest.raises(wf.DecodeError):
            read(messages, engine, tables=["s.t"])


@pytest.mark.parametrize("engine", ENGINES)
def test_failfast_reports_bad_framing_and_bad_names_under_a_filter(engine: str) -> None:
    good = message(insert("s", "t"))
    for bad in (good[:-1], message(insert("s", "t")[:3])):
        for messages in ([bad], [good, bad]):
            with pytest.raises(wf.DecodeError):
                read(messages, engine, tables=["x.y"], kinds=["BEGIN"])


@given(st.lists(strategies.row_changes(), max_size=8), st.data())
def test_filters_are_a_choice_of_events(events: list[wf.RowChange], data: st.DataObject) -> None:
    """What is left is what a plain comprehension leaves, in both engines, for any names."""
    messages = list(wf.encode(events, FORMAT, options={**EVERYTHING[FORMAT], "sending-batch": 1}))
    names = sorted({name for event in events for name in (event.table_schema, event.table_name) if name})
    part = st.sampled_from(names) if names else st.just("x")
    chosen = data.draw(st.lists(st.tuples(st.none() | part, st.none() | part), max_size=3))
    patterns = [".".join("*" if name is None else quoted(name) for name in pair) for pair in chosen]
    kept = [
        event
        for event in events
        if any(schema in (None, event.table_schema) and table in (None, event.table_name) for schema, table in chosen)
    ]
    for engine in ENGINES:
        assert read(messages, engine, tables=patterns) == kept


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if quote_identifier(name) != name else name


@each_engine
def test_many_patterns(engine: str) -> None:
    """Names with and without a *, of several lengths: each table is kept that one of the patterns names."""
    names = ["a", "b", "é", "ab", "ba", "abc", "表", "*"]
    tables = [(schema, table) for schema in names for table in names]
    messages = [message(BEGIN, *[insert(*table) for table in tables], *[insert(*table) for table in tables], COMMIT)]
    listed = [".".join(map(quote_identifier, table)) for table in tables]
    for step in range(1, 12):
        for stars in ([], ["*.ab"], ["ba.*", "*.b", "*.a"]):
            patterns = [*listed[step % 3 :: step], *stars, *listed[step::step]]
            options = wf.ReadOptions.check(tables=patterns)
            kept = [table for table in tables if options.keeps_table(table)]
            chosen = {*tables[step % 3 :: step], *tables[step::step]}
            expected = [
                (schema, table)
                for schema, table in tables
                if (schema, table) in chosen or any(star in (f"*.{table}", f"{schema}.*") for star in stars)
            ]
            assert kept == expected
            events = read(messages, engine, tables=patterns, kinds=["INSERT"])
            found = [(event.table_schema, event.table_name) for event in events if isinstance(event, wf.RowChange)]
            assert found == expected * 2
