"""Relation messages that compiled code writes to the dictionary, and odd ones, which it leaves to Python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.arrow.scan.kernels import pgoutput_relations
from wireformat.arrow.scan.relations import new_relations
from wireformat.pgtypes import SQL_NAMES

from ... import handmade_pgoutput as hand
from ...engines import agree
from .small_limits import shrink

NAMES = [
    b"id",
    b"a",
    b"",
    b"a name of more than sixteen bytes",
    "é表".encode(),
    b'q"',
    b"b\\",
    b"\x1f",
    b"\xff",
    b"~\x7f",
    b"a\x81\x5c",  # GBK, the second byte of a character is a backslash
    b"\x81",
    "é".encode("gbk"),
    "ñ".encode("gb18030"),  # four bytes, of which the second one is a digit
    "é".encode("euc_jp"),  # three bytes
]
TEXTS = ["", "id", "ñ", "a name of more than sixteen bytes", 'q"', "b\\", "\x1f'\n", "é表", "表"]
TYPES = [23, 25, 17, 3908, 16383, 16384, (1 << 32) - 1, 1007]
MODIFIERS = [b"\xff" * 4, b"\0\0\0\x08", b"\x80\0\0\0"]

columns = st.builds(
    hand.column,
    st.sampled_from(NAMES),
    st.sampled_from(TYPES),
    is_key=st.booleans(),
    typmod=st.sampled_from(MODIFIERS),
)
relations = st.builds(
    lambda columns, **more: (hand.relation(*columns, **more), len(columns), more["oid"]),
    st.lists(columns, max_size=5),
    oid=st.sampled_from([1, 70_000, (1 << 32) - 1]),
    schema=st.sampled_from([b"public", b"", "é".encode(), b"\xff"]),
    table=st.sampled_from([b"t", b't"', "表".encode(), b""]),
    identity=st.sampled_from([b"d", b"n", b"f", b"i", b"x"]),
)


@given(
    described=st.lists(relations, max_size=8),
    values=st.lists(st.sampled_from([hand.text(b"1"), hand.NULL, hand.binary(b"\0\0\0\7")]), min_size=5, max_size=5),
    cut=st.integers(-3, 3),
    encoding=st.sampled_from(["utf-8", "latin-1", "gbk", "gb18030", "euc_jp", "shift_jis"]),
    errors=st.sampled_from(["strict", "replace"]),
)
def test_any_relations(
    described: list[tuple[bytes, int, int]], values: list[bytes], cut: int, encoding: str, errors: str
) -> None:
    messages = []
    for message, count, oid in described:
        messages += [message, hand.change(b"I", hand.image(b"N", *values[:count]), oid=oid)]
    if cut and messages:
        messages += [(messages[0] + b"xyz")[: len(messages[0]) + cut]]
    agree(messages * 2, format="pgoutput", mode="PERMISSIVE", encoding=encoding, encoding_errors=errors)


@pytest.mark.parametrize("xid", [b"", hand.BLOCK_XID])
def test_the_utf8_of_a_name_may_be_the_bytes_of_another_one(monkeypatch: pytest.MonkeyPatch, xid: bytes) -> None:
    """The first relation is rewritten in UTF-8, and the next one is looked at as it is."""
    monkeypatch.setattr(pgoutput_relations, "MOST_AT_ONCE", 1)
    first, second = (name.encode("gbk") for name in ("é", "茅"))
    assert second == "é".encode()
    messages = [
        hand.relation(hand.column(first)),
        *([hand.start(800)] if xid else []),
        hand.relation(hand.column(second), oid=hand.OTHER_OID, xid=xid),
        hand.change(b"I", hand.image(b"N", hand.text(b"1")), oid=hand.OTHER_OID, xid=xid),
    ]
    found = agree(messages, format="pgoutput", encoding="gbk").events
    assert [event.columns for event in found if isinstance(event, wf.Relation)] == [("é",), ("茅",)]


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "gb18030", "latin-1", "shift_jis", "euc_jp"])
def test_python_reads_none_of_them(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    texts = [text.encode(encoding, "replace") for text in TEXTS]
    messages = []
    for number in range(600):
        types = list(SQL_NAMES)[number % len(SQL_NAMES) :][:4]
        names = [b"c%d_%d%s" % (number, index, texts[number % len(texts)]) for index in range(len(types))]
        cells = [*map(hand.column, names, types), hand.column(b"other", 99_999, is_key=number % 2 > 0)]
        row = hand.change(b"I", hand.image(b"N", *[hand.text(b"v")] * len(cells)), oid=number)
        messages += [hand.relation(*cells, oid=number, table=b"t%d" % number + texts[-1]), row]
    expected = agree(messages, format="pgoutput", encoding=encoding).table
    monkeypatch.setattr(pgoutput_relations, "try_message", None)
    assert wf.arrow.changes(messages, "pgoutput", encoding=encoding).equals(expected)


def test_a_key_of_a_name_that_two_columns_have() -> None:
    """The key is told by names."""
    for is_key in ((True, False), (False, True), (True, True)):
        cells = [hand.column(b"same", is_key=one) for one in is_key]
        relation = hand.relation(*cells, hand.column(b"other"), identity=b"i")
        keys = hand.change(b"D", hand.image(b"K", hand.text(b"1"), hand.text(b"2"), hand.NULL))
        agree([relation, keys], format="pgoutput")


def test_columns_in_common_with_messages_that_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The places of messages that are kept are used again."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=200)
    monkeypatch.setattr(pgoutput_relations, "MOST_KEPT", 100)
    messages = []
    for number in range(40):
        cells = [hand.column(b"%c%d" % (97 + number % 3, index)) for index in range(2)]
        row = hand.change(b"I", hand.image(b"N", hand.text(b"v"), hand.text(b"w")), oid=number)
        messages += [hand.relation(*cells, oid=number, table=b"t%02d" % number), row]
    agree(messages, format="pgoutput")


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
@pytest.mark.parametrize("kept", [1 << 24, 300])
def test_types_in_common_with_the_last_relation(monkeypatch: pytest.MonkeyPatch, kept: int, encoding: str) -> None:
    """Whose columns have other names, keys or identities, some of them as many as the types, or a type that differs."""
    shrink(monkeypatch, MESSAGE_BATCH_BYTES=400)
    monkeypatch.setattr(pgoutput_relations, "MOST_KEPT", kept)
    messages = []
    for number in range(120):
        oids = [[25, 17, 70_000], [25, 17], [25, 17, 70_001], [25, 17, 70_000]][number // 3 % 4]
        names = [f"{'表' * (number % 2 * index)}c{number % 7}_{index}".encode(encoding) for index in range(len(oids))]
        facts = {"is_key": number % 5 == 0, "typmod": MODIFIERS[number // 40]}
        cells = [hand.column(name, oid, **facts) for name, oid in zip(names, oids, strict=True)]
        row = hand.change(b"I", hand.image(b"N", hand.text(b"v"), *[hand.binary(b"\1")] * (len(oids) - 1)), oid=number)
        messages += [hand.relation(*cells, oid=number, table=b"t%d" % number, identity=b"df"[number % 2 :][:1]), row]
    agree(messages, format="pgoutput", encoding=encoding)


def test_room_for_a_column() -> None:
    """Ten bytes of a message make sure of more text than its column needs besides its name."""
    written = ['"", "", ', "4294967295, ", "-2147483648, ", max(SQL_NAMES.values(), key=len)]
    assert len("".join(written)) <= 10 * (new_relations.TEXT_PER_BYTE - 3)
