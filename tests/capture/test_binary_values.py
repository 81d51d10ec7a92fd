"""Values from the binary form of pgoutput to typed columns: as from their text form, and by every way to read them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireformat as wf
from wireformat.pgtypes import SQL_NAMES, type_oid
from wireformat.pgtypes.binary import DATES, INT32, INT64, TIMESTAMPS, binary_text
from wireformat.times import MICROS_OF_DAY

from .. import handmade_pgoutput as hand
from ..arrow.scan.test_binary_text import WITH_TEXT, values_of
from ..engines import ENGINES, MODES
from ..examples import at_most
from ..handmade import u32, u64
from ..pgtypes.test_binary import numeric

MODIFIERS = [(5, 2), (18, 0), (20, 4), (38, 38), (38, 10), (1000, 3), (3, -2), (2, 5)]
"""Of numeric: digits, and digits after the point."""

TYPES = [*WITH_TEXT, *(f"numeric{modifier}" for modifier in MODIFIERS), "numeric(9, 3)[]", "money", "inet", "int4range"]
"""Types with a text form; numeric with modifiers; and some whose values become hexadecimal."""

GROUPS = [TYPES[first::8] for first in range(8)]
"""Each with all sorts of types."""

FIRST_DAY, LAST_DAY = (
    (date(year, month, day) - date(2000, 1, 1)).days for year, month, day in ((1, 1, 1), (9999, 12, 31))
)
DAYS = (*INT32, DATES[0], DATES[-1], FIRST_DAY, FIRST_DAY - 1, LAST_DAY, LAST_DAY + 1)
TIMES = (*INT64, TIMESTAMPS[0], TIMESTAMPS[-1], *(MICROS_OF_DAY * day + at for day in DAYS[4:] for at in (-1, 0)))
EXTREMES = {
    "real": [struct.pack(">f", one) for one in (math.nan, math.inf, -math.inf, -0.0, 1e-45, 3.4028235e38)],
    "double precision": [struct.pack(">d", one) for one in (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308)],
    "numeric": [numeric([], 0, sign, 0) for sign in (0xC000, 0xD000, 0xF000)]
    + [numeric([9999] * 10, 9, 0x4000, 0), numeric([1], 9, 0, 0), numeric([1], -1, 0, 38), numeric([5], -1, 0, 5)],
    "date": [struct.pack(">i", day) for day in DAYS],
    "timestamp without time zone": [struct.pack(">q", time) for time in TIMES],
    "timestamp with time zone": [struct.pack(">q", time) for time in TIMES],
    "time without time zone": [struct.pack(">q", time) for time in (0, MICROS_OF_DAY - 1, MICROS_OF_DAY)],
}
VALUE = b"="
"""In front of a value, so that it is like no other cell."""

XID = 800


def typmod(type: str) -> bytes:
    if "(" not in type:
        return hand.NO_MODIFIER
    precision, scale = map(int, type[type.index("(") + 1 : type.index(")")].split(","))
    return u32((precision << 16 | scale & 0x7FF) + 4)


def oid(type: str) -> int:
    base, _, rest = type.partition("(")
    return type_oid(base + ("[]" if rest.endswith("[]") else ""))


def text_of(type: str, value: bytes) -> bytes | None:
    """The text form of a value; None if it has none because it is damaged."""
    try:
        text = binary_text(oid(type), value, "utf-8", "strict")
    except ValueError:
        return None
    return (f"\\x{value.hex()}" if text is None else text).encode()


def as_text(type: str, value: bytes) -> bytes:
    found = text_of(type, value)
    assert found is not None
    return hand.text(found)


def as_binary(type: str, value: bytes) -> bytes:
    return hand.binary(value)


@dataclass(frozen=True)
class Row:
    """A change: its kind, and the cells of its images by their tags."""

    kind: bytes
    images: dict[bytes, list[bytes]]

    def message(self, types: Sequence[str], form: Callable[[str, bytes], bytes], xid: bytes) -> bytes:
        images = [
            hand.image(
                tag,
                *(form(type, cell[1:]) if cell[:1] == VALUE else cell for type, cell in zip(types, cells, strict=True)),
            )
            for tag, cells in self.images.items()
        ]
        return hand.change(self.kind, *images, xid=xid)


@st.composite
def rows(draw: st.DrawFn, types: Sequence[str], *, damaged: bool) -> Row:
    """A change of a table with columns of these types."""

    def cells(has_unsent: bool) -> list[bytes]:
        found = []
        for type in types:
            value = draw(
                st.none()
                | values_of(SQL_NAMES[oid(type)])
                | st.sampled_from(EXTREMES.get(type.partition("(")[0], [b""]))
            )
            if value is None or not (damaged or text_of(type, value)):
                found.append(draw(st.sampled_from([hand.NULL, hand.UNCHANGED])) if has_unsent else hand.NULL)
            else:
                found.append(VALUE + value)
        return found

    kind = draw(st.sampled_from([b"I", b"U", b"U", b"D"]))
    olds = {b"I": [b""], b"U": [b"", b"K", b"O"], b"D": [b"K", b"O"]}
    old = draw(st.sampled_from(olds[kind]))
    images = {old: cells(has_unsent=False)} if old else {}
    if kind != b"D":
        images[b"N"] = cells(has_unsent=kind == b"U")
    return Row(kind, images)


def stream(
    types: Sequence[str], transactions: Sequence[tuple[bool, list[Row]]], form: Callable[[str, bytes], bytes]
) -> list[bytes]:
    """The messages; a transaction is streamed, or it is not."""
    columns = [
        hand.column(b"c%d" % index, oid(type), is_key=not index, typmod=typmod(type))
        for index, type in enumerate(types)
    ]
    messages: list[bytes] = []
    for number, (is_streamed, changes) in enumerate(transactions):
        xid = XID + number
        inner = u32(xid) if is_streamed else b""
        lsn = 100 * (number + 1)
        end = b"\0" + u64(lsn) + u64(lsn + 8) + hand.TIME
        messages += [
            hand.start(xid) if is_streamed else b"B" + u64(lsn) + hand.TIME + u32(xid),
            *([hand.relation(*columns, xid=inner)] if is_streamed or not number else []),
            *(change.message(types, form, inner) for change in changes),
            *([hand.STOP, b"c" + u32(xid) + end] if is_streamed else [b"C" + end]),
        ]
    return messages


@st.composite
def streams(draw: st.DrawFn, group: list[str], *, damaged: bool) -> tuple[list[str], list[tuple[bool, list[Row]]]]:
    """Types of columns, and transactions: whether they are streamed, and their changes."""
    types = draw(st.lists(st.sampled_from(group), min_size=1, max_size=4))
    changes = st.lists(rows(types, damaged=damaged), max_size=5)
    first = draw(st.tuples(st.just(False), changes))
    return types, [first, *draw(st.lists(st.tuples(st.booleans(), changes), max_size=2))]


@st.composite
def readings(draw: st.DrawFn) -> dict[str, Any]:
    """Options of `typed`."""
    return {"images": draw(st.sampled_from(["new", "both"])), "complete": draw(st.booleans())}


def answer(read: Callable[[], pa.Table]) -> Any:
    """What a reading returns, in a form in which a NaN is like another, and -0.0 not like 0.0; or its error."""
    try:
        table = read()
    except wf.WireformatError as error:
        facts = {name: value for name, value in error.__dict__.items() if not name.startswith("source")}
        return type(error), str(error).replace("source messages, ", ""), sorted(facts.items(), key=repr)
    table.validate(full=True)
    return table.schema, [repr(row) for row in table.to_pylist()]


def typed(messages: list[bytes], mode: str, options: dict[str, Any], engine: str = "scan") -> Any:
    return answer(
        lambda: wf.Capture(messages, "pgoutput", mode=mode, engine=engine).typed("public.t", **options).read_all()
    )


def typed_of_tables(messages: list[bytes], mode: str, options: dict[str, Any]) -> Any:
    """By way of the row-change table, which the capture does not make."""

    def read() -> pa.Table:
        changes = wf.arrow.changes(messages, "pgoutput", mode=mode)
        listed = wf.arrow.tables(changes)
        return wf.arrow.typed(wf.arrow.transactions(changes), "public.t", schema=listed, mode=mode, **options)

    return answer(read)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
@at_most(30)
@given(data=st.data(), mode=st.sampled_from(MODES), options=readings())
def test_the_column_is_that_of_the_text_form(
    group: list[str], data: st.DataObject, mode: str, options: dict[str, Any]
) -> None:
    types, transactions = data.draw(streams(group, damaged=False))
    binary, text = (stream(types, transactions, form) for form in (as_binary, as_text))
    assert typed(binary, mode, options) == typed(text, mode, options)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
@at_most(30)
@given(data=st.data(), mode=st.sampled_from(MODES), options=readings(), damaged=st.booleans())
def test_every_way_to_read_them_is_the_same(
    group: list[str], data: st.DataObject, mode: str, options: dict[str, Any], damaged: bool
) -> None:
    types, transactions = data.draw(streams(group, damaged=damaged))
    messages = stream(types, transactions, as_binary)
    found = [typed(messages, mode, options, engine) for engine in ENGINES]
    assert found[0] == found[1]
    assert found[0] == typed_of_tables(messages, mode, options)
