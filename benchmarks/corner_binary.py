"""Corners of pgoutput's values in binary form: four columns of one type, beside an integer and texts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

import pyarrow as pa

import wireformat as wf
from wireformat.pgtypes import type_oid

from .corner import Corner
from .generate import PGOUTPUT

OID = 16_500
COLUMNS, TEXTS = 4, 3

Value = Callable[[int], bytes]


def numeric(number: int) -> bytes:
    """A number with two digits after the point."""
    return struct.pack(">HhHHHH", 2, 0, 0, 2, number % 10_000, 2500)


def array(element: str, *items: bytes) -> bytes:
    """An array of one dimension."""
    cells = b"".join(struct.pack(">i", len(item)) + item for item in items)
    return struct.pack(">iiIii", 1, 0, type_oid(element), len(items), 1) + cells


VALUES: dict[str, Value] = {
    "numeric": numeric,
    "real": lambda row: struct.pack(">f", row / 7),
    "double precision": lambda row: struct.pack(">d", row / 7),
    "uuid": lambda row: UUID(int=row << 64).bytes,
    "jsonb": lambda row: b'\1{"a": %d, "b": "some text"}' % row,
    "bytea": lambda row: row.to_bytes(4, "big") * 5,
    "time without time zone": lambda row: struct.pack(">q", row * 1_000_003),
    "interval": lambda row: struct.pack(">qii", row * 1_000_003, row, 3),
    "timestamp with time zone": lambda row: struct.pack(">q", row * 1_000_003 if row % 10 else (1 << 63) - 1),
    "text[]": lambda row: array("text", b"abc", b"d %d" % row, b"e"),
    "integer[]": lambda row: array("integer", *(struct.pack(">i", row + item) for item in range(COLUMNS))),
    "numeric[]": lambda row: array("numeric", *(numeric(row + item) for item in range(COLUMNS))),
    "line": lambda row: bytes(16) + row.to_bytes(8, "big"),
}
"""Of each type; a tenth of the timestamps are `infinity`, and a line has no text form."""


def rows_of(sql_type: str, value: Value, tag: bytes = b"b", text: bytes = b"some text") -> Callable[[int], pa.Array]:
    """Messages of rows whose first columns have values of this type.

    tag    of the cells with these values: b for binary form, t for text
    text   value of the other columns
    """

    def cell(data: bytes, kind: bytes) -> bytes:
        return kind + struct.pack(">I", len(data)) + data

    def make(rows: int) -> pa.Array:
        columns = [("id", 23), *((f"c{index}", type_oid(sql_type)) for index in range(COLUMNS))]
        columns += [(f"t{index}", type_oid("text")) for index in range(TEXTS)]
        head = wf.Relation(
            relation_id=OID,
            table_schema="public",
            table_name="binary",
            replica_identity="default",
            columns=tuple(name for name, _ in columns),
            type_oids=tuple(oid for _, oid in columns),
            typmods=(-1,) * len(columns),
            key_columns=("id",),
        )
        begin = struct.pack(">cIcH", b"I", OID, b"N", len(columns))
        texts = cell(text, b"t") * TEXTS
        found = [*wf.encode([head], PGOUTPUT)]
        for row in range(rows):
            cells = b"".join(cell(value(row + index), tag) for index in range(COLUMNS))
            found.append(begin + cell(struct.pack(">i", row), b"b") + cells + texts)
        return pa.array(found, pa.binary())

    return make


CHINESE = "表格 x".encode("gbk")
EASY = f"{PGOUTPUT}: a binary integer and texts"

BINARY_VALUES: tuple[Corner, ...] = (
    Corner(EASY, PGOUTPUT, rows_of("text", lambda row: b"note %d of the order" % row, b"t"), None),
    *(Corner(f"{PGOUTPUT}: binary {name}", PGOUTPUT, rows_of(name, value), EASY) for name, value in VALUES.items()),
    *(
        Corner(
            f"{PGOUTPUT}: binary {name}, gbk",
            *(PGOUTPUT, rows_of(name, VALUES[name], text=CHINESE), EASY),
            {"encoding": "gbk"},
        )
        for name in ("numeric", "text[]", "line")
    ),
)
