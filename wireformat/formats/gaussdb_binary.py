"""GaussDB's and openGauss's binary style: the declaration of its records, and events from and to it.

Framing is in wireformat/framing/gauss_batch.py. Source: GaussDB document "Logical Decoding Options"; openGauss's
parallel decoding, decode-style=b; releases 3.0, 5.0 and 6.0 differ in the tagged fields that they send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from construct import Construct, GreedyBytes, Int16ub, Int32sb, Int32ub, Int64sb, Int64ub, Struct

from ..declare import Counted, Identifier, Tagged, Text, build, parse
from ..errors import DecodeError, EncodeError, LimitExceeded
from ..events import Begin, Commit, Delete, Event, Heartbeat, Insert, RowChange, TupleData, Unknown, Update
from ..framing import gauss_batch
from ..framing.frames import Frame
from ..limits import RECORD_BYTES
from ..options import resolve
from ..pgtypes import type_name, type_oid

CELL = Struct(
    "name" / Identifier(Int16ub),
    "type_oid" / Int32ub,
    "value" / Text(Int32ub, null=0xFFFFFFFF),
)
TUPLE = Struct("cells" / Counted(Int16ub, CELL))
ROW_CHANGE = Struct(
    "table_schema" / Text(Int16ub),
    "table_name" / Text(Int16ub),
    "tuples" / Tagged({ord("N"): ("new", TUPLE), ord("O"): ("old", TUPLE)}, in_order=True),
)
FACTS = Tagged(
    {
        ord("X"): ("xid", Int64ub),
        ord("T"): ("commit_time", Text(Int32ub)),
        ord("O"): ("origin", Int32sb),
        ord("N"): ("username", Text(Int32ub)),
    },
    in_order=False,
)
BEGIN = Struct("csn" / Int64ub, "first_lsn" / Int64ub, "facts" / FACTS)
COMMIT = Struct("facts" / FACTS)
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

XLOG_DATA_HEADER_BYTES = 25
"""'w' and three 8-byte numbers: the sender counts them when it compares a batch with its limit (seen in captures)."""

_ROW_HEAD = Struct(*ROW_CHANGE.subcons[:2], GreedyBytes)
_KINDS = {event: (kind, declaration) for kind, (event, declaration) in RECORDS.items()}
_OPTION_OF_FIELD = {
    "xid": "include-xids",
    "commit_time": "include-timestamp",
    "origin": "include-originid",
    "username": "include-user",
}


class GaussdbBinary:
    """The format `gaussdb-binary`."""

    name = "gaussdb-binary"
    sentence = "GaussDB and openGauss, parallel decoding, decode-style=b: batched or not, heartbeats in both layouts"

    def frames(self, message: bytes) -> Iterator[Frame]:
        """See Format.frames."""
        return gauss_batch.frames(message)

    def find_end(self, data: bytes | bytearray, start: int, searched: int) -> tuple[bool, int]:
        """See Format.find_end."""
        return gauss_batch.find_end(data, start, searched)

    def read(self, message: bytes, frame: Frame, *, encoding: str, errors: str) -> Event:
        """See Format.read."""
        kind = message[frame.start]
        if kind not in RECORDS:
            return Unknown(lsn=frame.lsn, raw=message[frame.start : frame.stop])
        event, declaration = RECORDS[kind]
        try:
            found = parse(declaration, message, frame.start + 1, frame.stop, encoding=encoding, errors=errors)
        except DecodeError as error:
            if declaration is ROW_CHANGE:
                error.add(table=_table_name(message, frame, encoding))
            raise
        values = {name: value for name, value in found.items() if name not in ("_io", "facts", "tuples")}
        values |= found.get("facts", {})
        values |= {name: _tuple_data(value) for name, value in found.get("tuples", {}).items()}
        return event(lsn=frame.lsn, **values)

    def writer(self, options: Mapping[str, Any] | None, *, encoding: str, batch_bytes: int) -> GaussdbBinaryWriter:
        """See Format.writer."""
        return GaussdbBinaryWriter(resolve(options), encoding, batch_bytes)


class GaussdbBinaryWriter:
    """Writes events as a sender does: which fields, which batches, which transactions are the options' affair."""

    def __init__(self, options: Mapping[str, bool | int], encoding: str, batch_bytes: int) -> None:
        self._options = options
        self._encoding = encoding
        self._batch_bytes = batch_bytes if options["sending-batch"] else 0
        self._records: list[bytes] = []
        self._bytes = 0
        self._held: Begin | None = None

    def write(self, event: Event) -> list[bytes]:
        """See Writer.write."""
        if isinstance(event, Begin) and self._options["skip-empty-xacts"]:
            self._held = event
            return []
        if isinstance(event, Commit) and self._held is not None:
            self._held = None
            return []
        if isinstance(event, Heartbeat) and event.lsn is None:
            return [*self.flush(), self._body(event) + gauss_batch.END]
        messages: list[bytes] = []
        if self._held is not None and not isinstance(event, Heartbeat):
            messages, self._held = self._append(self._held), None
        return [*messages, *self._append(event)]

    def flush(self) -> list[bytes]:
        """See Writer.flush."""
        return self._send(gauss_batch.CLOSE_BY_TIMEOUT) if self._records else []

    def _append(self, event: Event) -> list[bytes]:
        if event.lsn is None or not 0 <= event.lsn < 1 << 64:
            raise EncodeError(f"gaussdb-binary {event.kind}: expected an lsn of 64 bits, got {event.lsn}")
        body = self._body(event)
        if len(body) > RECORD_BYTES - 8:
            raise LimitExceeded(f"limits.RECORD_BYTES is {RECORD_BYTES}, the record has {len(body) + 8} bytes")
        self._records.append(gauss_batch.record(event.lsn, body))
        self._bytes += len(self._records[-1])
        full = XLOG_DATA_HEADER_BYTES + self._bytes + len(self._records) - 1 > self._batch_bytes
        return self._send(gauss_batch.END) if full else []

    def _send(self, close: bytes) -> list[bytes]:
        message = gauss_batch.join(self._records, close)
        self._records, self._bytes = [], 0
        return [message]

    def _body(self, event: Event) -> bytes:
        if isinstance(event, Unknown):
            if not event.raw or event.raw[0] in RECORDS:
                raise EncodeError("gaussdb-binary UNKNOWN: expected raw to begin with a kind byte that no table lists")
            return event.raw
        if type(event) not in _KINDS:
            raise EncodeError(f"gaussdb-binary cannot say {event.kind}")
        kind, declaration = _KINDS[type(event)]
        try:
            return bytes([kind]) + build(declaration, self._values(event), encoding=self._encoding)
        except EncodeError as error:
            raise EncodeError(f"gaussdb-binary {event.kind}: {error}") from None

    def _values(self, event: Event) -> dict[str, Any]:
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        if isinstance(event, RowChange):
            values["tuples"] = {name: _cells(name, values[name]) for name in ("new", "old")}
        else:
            values["facts"] = {
                name: values[name]
                for name, option in _OPTION_OF_FIELD.items()
                if name in values and self._options[option]
            }
        return values


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
    keys = ("name", "type_oid", "value")
    return {"cells": [dict(zip(keys, cell, strict=True)) for cell in zip(image.names, oids, image.values, strict=True)]}


def _table_name(message: bytes, frame: Frame, encoding: str) -> str | None:
    """The table of a record that cannot be read, if its first two fields can.

    No identifier holds a zero byte: where one does, a length lied, and what follows may be a value.
    """
    try:
        found = parse(_ROW_HEAD, message, frame.start + 1, frame.stop, encoding=encoding, errors="replace")
    except DecodeError:
        return None
    name = f"{found.table_schema}.{found.table_name}"
    return None if "\0" in name else name
