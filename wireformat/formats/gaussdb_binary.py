"""GaussDB's and openGauss's binary style: the declaration of its records, and events from and to it.

Framing is in wireformat/framing/gauss_batch.py. Source: GaussDB document "Logical Decoding Options"; openGauss's
parallel decoding, decode-style=b; releases 3.0, 5.0 and 6.0 differ in the tagged fields that they send.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields
from functools import lru_cache
from typing import Any

from construct import Construct

from ..declare import (
    Counted,
    Identifier,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Int64ub,
    Struct,
    Tagged,
    Text,
    build,
    parse,
)
from ..errors import DecodeError, EncodeError
from ..events import UNCHANGED, Begin, Commit, Delete, Event, Heartbeat, Insert, RowChange, TupleData, Unknown, Update
from ..framing import gauss_batch
from ..framing.frames import Frame, record
from ..options import ReadOptions, resolve
from ..pgtypes import type_name, type_oid
from .base import refuse_others
from .direct.layouts import Layouts, Part, Value, ValueWriter, image_cells
from .direct.records import DirectRecords, RecordForm
from .guess import hinted
from .message_writer import OPTION_OF_FIELD, MessageWriter, Packing
from .pgoutput.relations import Relations
from .registry import ROWS

_LENGTH = struct.Struct(">I")

MOST_HEADS = 1 << 12
"""How many heads of cells are kept, which the layouts of a table share."""


class BinaryRows:
    """Makes the parts of row changes."""

    def __init__(self) -> None:
        self._built_head = lru_cache(MOST_HEADS)(self._build_head)

    def parts(self, event: RowChange, encoding: str) -> Iterator[Part]:
        """See RowParts."""
        write = _value_writer(encoding)
        table = {"table_schema": event.table_schema, "table_name": event.table_name}
        yield bytes([_KINDS[type(event)][0]]) + build(ROW_HEAD, table, encoding=encoding)
        for name, tag in (("new", NEW_TAG), ("old", OLD_TAG)):
            image = getattr(event, name)
            if image is not None:
                yield bytes([tag]) + build(Int16ub, len(image.names), encoding=encoding)
                for column, type_text in image_cells(image):
                    yield self._built_head(column, type_text, encoding)
                    yield write

    def _build_head(self, column: str, type_text: str, encoding: str) -> bytes:
        return build(CELL_HEAD, {"name": column, "type_oid": type_oid(type_text)}, encoding=encoding)


def _value_writer(encoding: str) -> ValueWriter:
    encode, length = str.encode, _LENGTH.pack
    null = length(NULL_LENGTH)

    def write(value: Value) -> bytes:
        if value is None:
            return null
        data = encode(value, encoding)  # type: ignore[arg-type]  # a TypeError is for the declaration
        return length(len(data)) + data

    return write


NEW_TAG, OLD_TAG = b"NO"
XID_TAG, TIME_TAG, ORIGIN_TAG, USERNAME_TAG = b"XTON"
NULL_LENGTH = 0xFFFFFFFF

CELL_HEAD = Struct("name" / Identifier(Int16ub), "type_oid" / Int32ub)
CELL = Struct(*CELL_HEAD.subcons, "value" / Text(Int32ub, null=NULL_LENGTH))
TUPLE = Struct("cells" / Counted(Int16ub, CELL))
ROW_HEAD = Struct("table_schema" / Text(Int16ub), "table_name" / Text(Int16ub))
ROW_CHANGE = Struct(
    *ROW_HEAD.subcons,
    "tuples" / Tagged({NEW_TAG: ("new", TUPLE), OLD_TAG: ("old", TUPLE)}, in_order=True),
)
TAGGED_FIELDS = Tagged(
    {
        XID_TAG: ("xid", Int64ub),
        TIME_TAG: ("commit_time", Text(Int32ub)),
        ORIGIN_TAG: ("origin", Int32sb),
        USERNAME_TAG: ("username", Text(Int32ub)),
    },
    in_order=False,
)
BEGIN = Struct("csn" / Int64ub, "first_lsn" / Int64ub, "facts" / TAGGED_FIELDS)
COMMIT = Struct("facts" / TAGGED_FIELDS)
HEARTBEAT = Struct("wal_end" / Int64ub, "wal_flushed" / Int64ub, "time" / Int64sb)

RECORDS: dict[int, tuple[type[Event], Construct]] = {
    ord("B"): (Begin, BEGIN),
    ord("C"): (Commit, COMMIT),
    ord("I"): (Insert, ROW_CHANGE),
    ord("U"): (Update, ROW_CHANGE),
    ord("D"): (Delete, ROW_CHANGE),
    ord("h"): (Heartbeat, HEARTBEAT),
}
"""What follows each kind byte, to the end of the record."""

_PACKING = Packing(record, gauss_batch.MORE, gauss_batch.END, gauss_batch.CLOSE_BY_TIMEOUT)
_LENGTH_BYTES = Int16ub.sizeof()
"""Before the name of a schema or table."""
_KINDS = {event: (kind, declaration) for kind, (event, declaration) in RECORDS.items()}
_ROWS = BinaryRows()


class GaussdbBinary:
    """The format `gaussdb-binary`."""

    name = ROWS["gaussdb-binary"].name
    sentence = ROWS["gaussdb-binary"].sentence
    separator = b""
    relations = None

    def fresh(self, relations: Relations | None = None) -> GaussdbBinary:
        """See Format.fresh."""
        return self

    def frames(self, message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
        """See Format.frames."""
        try:
            yield from gauss_batch.frames(message, at, record)
        except DecodeError as error:
            raise hinted(error, message, 0, len(message), self.name) from None

    def find_end(self, data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
        """See Format.find_end."""
        return gauss_batch.find_end(data, start, searched, seen)

    def read(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        """See Format.read."""
        kind = message[frame.start]
        if kind not in RECORDS:
            return Unknown(lsn=frame.lsn, raw=message[frame.start : frame.stop])
        event, declaration = RECORDS[kind]
        try:
            found = parse(
                declaration,
                message,
                frame.start + 1,
                frame.stop,
                encoding=options.encoding,
                errors=options.encoding_errors,
            )
        except DecodeError as error:
            table = _raw_table(message, frame) if declaration is ROW_CHANGE else None
            if table is not None:
                error.in_table(*(str(name, options.encoding, "replace") for name in table))
                if not all(_is_text(name, options.encoding) for name in table):
                    error.add(names=None)
            raise hinted(error, message, frame.start, frame.stop, self.name) from None
        values = {name: value for name, value in found.items() if name not in ("_io", "facts", "tuples")}
        values |= found.get("facts", {})
        values |= {name: _tuple_data(value) for name, value in found.get("tuples", {}).items()}
        return event(lsn=frame.lsn, **values)

    def says(self, event: type[Event]) -> Set[str]:
        """See Format.says."""
        return _said(event)

    def writer(self, options: Mapping[str, Any] | None, *, encoding: str, batch_bytes: int) -> MessageWriter:
        """See Format.writer."""
        given = resolve(options, ROWS[self.name].options)
        bodies = _BinaryBodies(given, encoding)
        return MessageWriter(
            self.name, given, _PACKING, batch_bytes, bodies.body, bodies.whole, bodies.rows, bodies.form
        )


def _said(event: type[Event]) -> Set[str]:
    if event is Unknown:
        return {"raw", "text"}
    found = {field.name for field in _KINDS[event][1].subcons} if event in _KINDS else set()
    for group, names in (("tuples", ("new", "old")), ("facts", [name for name, _ in TAGGED_FIELDS.fields.values()])):
        if group in found:
            found = found - {group} | set(names)
    return found


_RECORDS = DirectRecords({kind: (event, declared, _said(event)) for event, (kind, declared) in _KINDS.items()})

GAUSSDB_BINARY = GaussdbBinary()


class _BinaryBodies:
    """Events to bytes; which fields are written is the options' affair."""

    def __init__(self, options: Mapping[str, bool | int], encoding: str) -> None:
        self._encoding = encoding
        self._chosen = [name for name, option in OPTION_OF_FIELD.items() if options[option]]
        self.rows = Layouts(_ROWS.parts, encoding, new_first=True)

    def whole(self, event: Event) -> bytes | None:
        """A bare heartbeat."""
        if not isinstance(event, Heartbeat) or event.lsn is not None:
            return None
        try:
            return self.body(event) + gauss_batch.END
        except EncodeError as error:
            raise EncodeError(f"gaussdb-binary {event.kind}: {error}") from None

    def form(self, event: type[Event]) -> RecordForm | None:
        """How events of this type are written."""
        if event not in _KINDS:
            return None
        kind, declaration = _KINDS[event]
        return RecordForm.of(kind, declaration, _said(event), self._chosen)

    def body(self, event: Event) -> bytes:
        """Kind and body of a record; raises EncodeError."""
        if isinstance(event, RowChange):
            written = self.rows.write(event)
        else:
            kind, _ = _KINDS.get(type(event), (0, None))
            written = _RECORDS.write(kind, event, {"facts": self._facts(event)}, self._encoding)
        return self._declared(event) if written is None else written

    def _declared(self, event: Event) -> bytes:
        if isinstance(event, Unknown):
            if not event.raw or event.raw[0] in RECORDS:
                raise EncodeError("expected raw to begin with a kind byte that no table lists")
            return event.raw
        if type(event) not in _KINDS:
            raise EncodeError("the format cannot say it")
        refuse_others(event, _said(type(event)))
        kind, declaration = _KINDS[type(event)]
        return bytes([kind]) + build(declaration, self._values(event), encoding=self._encoding)

    def _values(self, event: Event) -> dict[str, Any]:
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        if isinstance(event, RowChange):
            values["tuples"] = {name: _cells(name, values[name]) for name in ("new", "old")}
        else:
            values["facts"] = self._facts(event)
        return values

    def _facts(self, event: Event) -> dict[str, Any]:
        """The values of tagged fields that the options ask for."""
        return {name: getattr(event, name) for name in self._chosen if hasattr(event, name)}


def _tuple_data(found: Any) -> TupleData:
    cells = found.cells
    return TupleData(
        names=tuple(cell.name for cell in cells),
        values=tuple(cell.value for cell in cells),
        types=tuple(type_name(cell.type_oid) for cell in cells),
    )


def _cells(name: str, image: TupleData | None) -> dict[str, Any] | None:
    if image is None:
        return None
    if not len(image.names) == len(image.values) == len(image.types):
        raise EncodeError(f"{name}: names, values and types must have the same length")
    try:
        oids = [type_oid(text) for text in image.types]
    except ValueError as error:
        raise EncodeError(f"{name}: {error}") from None
    if UNCHANGED in image.values:
        raise EncodeError(f"{name}: a value that was not sent cannot be said")
    keys = ("name", "type_oid", "value")
    return {"cells": [dict(zip(keys, cell, strict=True)) for cell in zip(image.names, oids, image.values, strict=True)]}


def _is_text(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _raw_table(message: bytes, frame: Frame) -> tuple[bytes, bytes] | None:
    """Schema and table of a record that cannot be read, if its first two fields can.

    No identifier holds a zero byte: where one does, a length lied, and what follows may be a value.
    """
    names: list[bytes] = []
    at = frame.start + 1
    for _ in range(2):
        begin = at + _LENGTH_BYTES
        at = begin + int.from_bytes(message[at:begin], "big")
        if at > frame.stop:
            return None
        names.append(message[begin:at])
    schema, table = names
    return None if b"\0" in schema or b"\0" in table else (schema, table)
