"""PostgreSQL's logical replication protocol, `pgoutput`: events from its messages.

What a message means depends on those before it: rows name their table by a number that a Relation message has
described, and inside of a streamed block most messages carry a transaction id. The declaration is in
wireformat/formats/pgoutput/messages.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from construct import Container

from ...declare import parse
from ...errors import BadLength, BadText, BadValue, DecodeError, UnknownRelation, counted
from ...events import (
    ROW_CHANGES,
    UNCHANGED,
    Event,
    Heartbeat,
    Message,
    Relation,
    RowChange,
    Truncate,
    TupleData,
    Type,
    Unknown,
)
from ...framing import copy_data
from ...framing.frames import Frame, find_end
from ...options import ReadOptions
from ...pgtypes import type_name
from ...pgtypes.binary import binary_text
from ...times import MICROS_OF_2000
from ...tracing import active_trace
from ..guess import hinted
from ..registry import ROWS
from .messages import (
    ASIDE_BYTES,
    BINARY_CELL,
    IMAGES,
    KEY,
    LEAST_ROW_BYTES,
    NULL,
    OLD_KINDS,
    RECORDS,
    RELATION_TAG,
    SYSTEM_SCHEMA,
    UNCHANGED_CELL,
    is_aside,
    read_relation,
)
from .relations import OUTSIDE, Lost, Outside, Relations
from .writer import PgOutputWriter, said


class PgOutput:
    """The format `pgoutput`, and what one stream of it has said so far.

    relations   what earlier messages said
    """

    name = ROWS["pgoutput"].name
    sentence = ROWS["pgoutput"].sentence
    separator = b""

    def __init__(self, relations: Relations | None = None) -> None:
        self.relations = relations or Relations()

    def fresh(self, relations: Relations | None = None) -> PgOutput:
        """See Format.fresh."""
        return PgOutput(relations)

    def frames(self, message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
        """See Format.frames."""
        return copy_data.frames(message)

    def find_end(self, data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
        """See Format.find_end."""
        return find_end(data, start, searched, seen, "pgoutput")

    def read(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        """See Format.read."""
        try:
            event = self._event(message, frame, options)
        except DecodeError as error:
            lost = self.lost(message, frame, options)
            if lost is not None:
                self.relations.take(lost)
            raise hinted(error, message, frame.start, frame.stop, self.name) from None
        self.relations.take(event)
        return event

    def lost(self, message: bytes, frame: Frame, options: ReadOptions) -> Lost | Outside | None:
        """What a message says that cannot be read: a table may look otherwise from here on, or no block is open."""
        kind = message[frame.start]
        if kind in RECORDS[options.dialect] and issubclass(RECORDS[options.dialect][kind][0], OUTSIDE):
            return Outside()
        if kind != RELATION_TAG:
            return None
        at = frame.start + (1 if self.relations.block is None else 5)
        return Lost(int.from_bytes(message[at : at + 4], "big")) if at + 4 <= frame.stop else None

    def _in_block(self, message: bytes, frame: Frame) -> bool:
        """Whether the message begins with a transaction id, if it is of a kind that may have one."""
        return self.relations.block is not None and not is_aside(message[frame.start : frame.start + ASIDE_BYTES])

    def _event(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        if message[frame.start] == RELATION_TAG and active_trace() is None:
            record = message[frame.start : frame.stop]
            found = read_relation(record, self._in_block(message, frame), options.encoding, options.encoding_errors)
            if found is not None:
                return found if frame.lsn is None else replace(found, lsn=frame.lsn)
        return self._parsed(message, frame, options)

    def _parsed(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        kind = message[frame.start]
        records = RECORDS[options.dialect]
        if kind not in records:
            return Unknown(lsn=frame.lsn, raw=message[frame.start : frame.stop])
        event, declaration = records[kind]
        streamed = self._in_block(message, frame)
        try:
            found = parse(
                declaration,
                message,
                frame.start + 1,
                frame.stop,
                encoding=options.encoding,
                errors=options.encoding_errors,
                streamed=streamed,
            )
        except DecodeError as error:
            relation = self._relation_of_row(message, frame, streamed) if issubclass(event, RowChange) else None
            raise error.add(names=(relation.table_schema, relation.table_name)) if relation else error from None
        values = {name: value for name, value in found.items() if name not in ("_io", "at", "flags", "more")}
        if values.get("lsn") is None:
            values["lsn"] = frame.lsn
        adapt = _ADAPT.get(event)
        return event(**(adapt(self.relations, values, found, options) if adapt else values))

    def _relation_of_row(self, message: bytes, frame: Frame, streamed: bool) -> Relation | None:
        """What is known of the relation of a row that cannot be read, if it is long enough to name one."""
        at = frame.start + (5 if streamed else 1)
        if frame.stop - frame.start < LEAST_ROW_BYTES:
            return None
        return self.relations.find(int.from_bytes(message[at : at + 4], "big"))

    def says(self, event: type[Event]) -> Set[str]:
        """See Format.says."""
        return said(event)

    def writer(self, options: Mapping[str, Any] | None, *, encoding: str, batch_bytes: int) -> PgOutputWriter:
        """See Format.writer."""
        return PgOutputWriter(options, encoding)


Values = dict[str, Any]

CELL_RULE = "the cell of this column"


def _relation(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    columns = values.pop("columns")
    return {
        **values,
        "table_schema": values["table_schema"] or SYSTEM_SCHEMA,
        "columns": tuple(column.name for column in columns),
        "type_oids": tuple(column.type_oid for column in columns),
        "typmods": tuple(column.typmod for column in columns),
        "key_columns": tuple(column.name for column in columns if column.is_key),
    }


def _type(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    return {**values, "namespace": values["namespace"] or SYSTEM_SCHEMA}


def _row(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    relation = _known(relations, values["relation_id"], found.at, "relation_id")
    values |= {"table_schema": relation.table_schema, "table_name": relation.table_name}
    binary: dict[str, None] = {}
    try:
        for tag, image in values.pop("images"):
            values[IMAGES[tag]] = _image(relation, tag, image, options, binary)
            if tag in OLD_KINDS:
                values["old_kind"] = OLD_KINDS[tag]
    except DecodeError as error:
        raise error.in_table(relation.table_schema, relation.table_name) from None
    return {**values, "binary": tuple(binary)}


def _image(relation: Relation, tag: int, image: Container, options: ReadOptions, binary: dict[str, None]) -> TupleData:
    """A row image with the names of its relation; of a key only its columns, since the others are sent as NULL."""
    if len(image.cells) != len(relation.columns):
        raise BadLength(
            f"{counted(len(relation.columns), 'cell')}, a cell a column of the relation",
            f"{len(image.cells)}",
            message_offset=image.at,
            path=f"{IMAGES[tag]}.cells",
        )
    trace = active_trace()
    if trace is not None:
        for index, name in enumerate(relation.columns):
            trace.whole(f"{IMAGES[tag]}.cells[{index}]", CELL_RULE, name)
    keys = frozenset(relation.key_columns)
    names, values, types = [], [], []
    for index, (name, oid, cell) in enumerate(zip(relation.columns, relation.type_oids, image.cells, strict=True)):
        form, value = cell.cell
        if tag == KEY and form == NULL and name not in keys:
            continue
        if form == UNCHANGED_CELL:
            value = UNCHANGED
        elif form == BINARY_CELL:
            value = _binary(oid, value, options, cell.at + 5, f"{IMAGES[tag]}.cells[{index}].value", name, binary)
        names.append(name)
        values.append(value)
        types.append(type_name(oid))
    return TupleData(tuple(names), tuple(values), tuple(types))


def _binary(oid: int, data: bytes, options: ReadOptions, at: int, path: str, name: str, binary: dict[str, None]) -> str:
    try:
        text = binary_text(oid, data, options.encoding, options.encoding_errors)
    except UnicodeDecodeError:
        raise BadText(f"text in {options.encoding}", "invalid bytes", message_offset=at, path=path) from None
    except ValueError:
        raise BadValue(f"the binary form of {type_name(oid)}", "other bytes", message_offset=at, path=path) from None
    if text is None:
        binary[name] = None
        return f"\\x{data.hex()}"
    return text


def _truncate(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    del values["count"]
    cascade, restart_identity = found.flags
    tables = [
        _known(relations, relation_id, found.at + 4 * index, f"relation_ids[{index}]")
        for index, relation_id in enumerate(values["relation_ids"])
    ]
    return {
        **values,
        "tables": tuple((relation.table_schema, relation.table_name) for relation in tables),
        "relation_ids": tuple(values["relation_ids"]),
        "cascade": cascade,
        "restart_identity": restart_identity,
    }


def _message(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    try:
        return {**values, "content": values["content"].decode(options.encoding)}
    except UnicodeDecodeError:
        return values


def _keepalive(relations: Relations, values: Values, found: Container, options: ReadOptions) -> Values:
    return {**values, "time": values["time"] + MICROS_OF_2000}


def _known(relations: Relations, relation_id: int, at: int, path: str) -> Relation:
    relation = relations.find(relation_id)
    if relation is None:
        raise UnknownRelation(
            "a relation that an earlier message describes", f"oid {relation_id}", message_offset=at, path=path
        )
    return relation


Adapt = Callable[[Relations, Values, Container, ReadOptions], Values]

_ADAPT: dict[type[Event], Adapt] = {
    Relation: _relation,
    Type: _type,
    **dict.fromkeys(ROW_CHANGES.values(), _row),
    Truncate: _truncate,
    Message: _message,
    Heartbeat: _keepalive,
}
"""Where an event is not just the fields of its message."""

PGOUTPUT = PgOutput()
