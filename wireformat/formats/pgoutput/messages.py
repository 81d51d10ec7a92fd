"""The declaration of pgoutput's messages, in PostgreSQL's and in openGauss's dialect.

Relation messages, which servers send very often, are also read without construct, which takes twenty times as long.
Source: PostgreSQL manual, "Logical Replication Message Formats", versions 1 to 4; openGauss's plugin of the same name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from construct import Computed, Construct, If, Subconstruct, this

from ...declare import (
    Chosen,
    Coded,
    Counted,
    Int8ub,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Int64ub,
    Sized,
    Struct,
    Tell,
    Text,
    Time,
    Told,
    ZeroEnded,
)
from ...errors import BadTag, ShortData
from ...events import (
    Begin,
    Commit,
    CommitPrepared,
    Ddl,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Message,
    Origin,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    Type,
    Update,
)
from ...framing import copy_data
from .relations import Columns, RelationMessage

RELATION_TAG = ord("R")
MESSAGE_TAG = ord("M")
TRUNCATE_TAG = ord("T")
NULL, UNCHANGED_CELL, TEXT_CELL, BINARY_CELL = b"nutb"
KEY, OLD, NEW = b"KON"
IMAGES = {KEY: "old", OLD: "old", NEW: "new"}
CELLS_WITHOUT_VALUE, CELLS_WITH_VALUE = frozenset((NULL, UNCHANGED_CELL)), frozenset((TEXT_CELL, BINARY_CELL))
CELL_HEAD_BYTES = 5
"""Tag and length of a cell with a value."""

OLD_KINDS = {KEY: "key", OLD: "full"}
LEAST_ROW_BYTES = 9
"""Kind, transaction id, relation: a shorter message of a row change names no relation, in a streamed block or not."""

REPLICA_IDENTITIES = {ord(name[0]): name for name in ("default", "nothing", "full", "index")}
SYSTEM_SCHEMA = "pg_catalog"
"""Sent as an empty name."""


class TaggedImages(Subconstruct):
    """Row images, each after the byte that says which it is, in the order of the steps.

    steps   the bytes that may stand there, and whether one of them must
    The result is a list of (byte, image).
    """

    def __init__(self, *steps: tuple[bytes, bool]) -> None:
        super().__init__(TUPLE)
        self.steps = steps

    def _parse(self, stream: Any, context: Any, path: str) -> list[tuple[int, Any]]:
        found = []
        for tags, required in self.steps:
            start = stream.position
            tag = stream.message[start : min(start + 1, stream.stop)]
            if tag and tag in tags:
                stream.read(1)
                path_of_image = path.rpartition(" -> ")[0] + f" -> {IMAGES[tag[0]]}"
                if stream.trace is not None:
                    rule = "a byte that says which row image follows, " + " or ".join(f"'{chr(byte)}'" for byte in tags)
                    stream.note(start, f"{path_of_image} -> tag", rule, chr(tag[0]))
                found.append((tag[0], self.subcon._parse(stream, context, path_of_image)))
            elif required:
                expected = " or ".join(f"'{chr(byte)}'" for byte in tags)
                if not tag:
                    raise ShortData(expected, "the end of the record", message_offset=start, path=path)
                raise BadTag(expected, "another byte", message_offset=start, path=path)
        return found

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        for tag, image in obj:
            stream.write(bytes([tag]))
            self.subcon._build(image, stream, context, path.rpartition(" -> ")[0] + f" -> {IMAGES[tag]}")
        return obj


def _more(name: str) -> Callable[[Any], bool]:
    """Whether fields that may be missing are there: reading, if anything follows; writing, if there is this one."""
    return lambda context: context._io.left > 0 if context._parsing else context[name] is not None


def _row_change(*steps: tuple[bytes, bool]) -> Struct:
    return Struct(XID, "at" / Tell, "relation_id" / Int32ub, "images" / TaggedImages(*steps))


XID = "xid" / Told("streamed", Int32ub)
"""There only in a streamed block; it may be a subtransaction's."""

NO_FLAGS = "flags" / Coded(Int8ub, {0: None}, "flags 0")
COMMIT_FIELDS = ("commit_lsn" / Int64ub, "end_lsn" / Int64ub, "commit_time" / Time(Int64sb))
PREPARE_FIELDS = (
    "lsn" / Int64ub,
    "end_lsn" / Int64ub,
    "prepare_time" / Time(Int64sb),
    "xid" / Int32ub,
    "gid" / ZeroEnded(),
)
CELL = Struct(
    "at" / Tell,
    "cell" / Chosen({NULL: None, UNCHANGED_CELL: None, TEXT_CELL: Text(Int32ub), BINARY_CELL: Sized(Int32ub)}),
)


class Cell(NamedTuple):
    """A cell as CELL reads it: where it begins, and its tag and value."""

    at: int
    cell: tuple[int, Any]


class Cells(Counted):
    """Cells, of which the good ones are read without construct: a bad row often has many of them."""

    def good_items(self, stream: Any, context: Any, most: int) -> list[Any]:
        """See Counted.good_items."""
        message, at, stop = stream.message, stream.position, stream.stop
        encoding, errors = context["_params"]["encoding"], context["_params"]["errors"]
        found: list[Cell] = []
        while len(found) < most and at < stop:
            tag, begin = message[at], at + CELL_HEAD_BYTES
            if tag in CELLS_WITHOUT_VALUE:
                found.append(Cell(at, (tag, None)))
                at += 1
                continue
            end = begin + int.from_bytes(message[at + 1 : begin], "big")
            if end > stop or tag not in CELLS_WITH_VALUE:
                break
            value = message[begin:end]
            if tag == TEXT_CELL:
                try:
                    value = str(value, encoding, errors)
                except UnicodeDecodeError:
                    break
            found.append(Cell(at, (tag, value)))
            at = end
        stream.position = at
        return found


TUPLE = Struct("at" / Tell, "cells" / Cells(Int16ub, CELL))
COLUMN = Struct(
    "is_key" / Coded(Int8ub, {0: False, 1: True}, "flags 0 or 1"),
    "name" / ZeroEnded(),
    "type_oid" / Int32ub,
    "typmod" / Int32sb,
)

BEGIN = Struct("commit_lsn" / Int64ub, "commit_time" / Time(Int64sb), "xid" / Int32ub)
COMMIT = Struct(NO_FLAGS, *COMMIT_FIELDS)
ORIGIN = Struct("lsn" / Int64ub, "origin" / ZeroEnded())
RELATION = Struct(
    XID,
    "relation_id" / Int32ub,
    "table_schema" / ZeroEnded(),
    "table_name" / ZeroEnded(),
    "replica_identity" / Coded(Int8ub, REPLICA_IDENTITIES, "'d', 'n', 'f' or 'i'"),
    "columns" / Counted(Int16ub, COLUMN),
)
TYPE = Struct(XID, "type_oid" / Int32ub, "namespace" / ZeroEnded(), "name" / ZeroEnded())
INSERT = _row_change((bytes([NEW]), True))
UPDATE = _row_change((bytes([KEY, OLD]), False), (bytes([NEW]), True))
DELETE = _row_change((bytes([KEY, OLD]), True))
TRUNCATE = Struct(
    XID,
    "count" / Int32ub,
    "flags" / Coded(Int8ub, {bits: (bool(bits & 1), bool(bits & 2)) for bits in range(4)}, "flags 0 to 3"),
    "at" / Tell,
    "relation_ids" / Counted(this.count, Int32ub),
)
MESSAGE = Struct(
    XID,
    "transactional" / Coded(Int8ub, {0: False, 1: True}, "flags 0 or 1"),
    "lsn" / Int64ub,
    "prefix" / ZeroEnded(),
    "content" / Sized(Int32ub),
)
STREAM_START = Struct("xid" / Int32ub, "first_segment" / Coded(Int8ub, {0: False, 1: True}, "0 or 1"))
STREAM_COMMIT = Struct("xid" / Int32ub, NO_FLAGS, *COMMIT_FIELDS)
STREAM_ABORT = Struct(
    "xid" / Int32ub,
    "subxid" / Int32ub,
    "more" / Computed(_more("commit_time")),
    "lsn" / If(this.more, Int64ub),
    "commit_time" / If(this.more, Time(Int64sb)),
)
BEGIN_PREPARE = Struct(*PREPARE_FIELDS)
PREPARE = Struct(NO_FLAGS, *PREPARE_FIELDS)
COMMIT_PREPARED = Struct(NO_FLAGS, *COMMIT_FIELDS, "xid" / Int32ub, "gid" / ZeroEnded())
ROLLBACK_PREPARED = Struct(
    NO_FLAGS,
    "lsn" / Int64ub,
    "end_lsn" / Int64ub,
    "prepare_time" / Time(Int64sb),
    "commit_time" / Time(Int64sb),
    "xid" / Int32ub,
    "gid" / ZeroEnded(),
)
KEEPALIVE = Struct("wal_end" / Int64ub, "time" / Int64sb, "reply" / Coded(Int8ub, {0: False, 1: True}, "0 or 1"))

OPENGAUSS_BEGIN = Struct(
    "commit_lsn" / Int64ub, "commit_time" / Time(Int64sb), "xid" / Int64ub, "csn" / If(_more("csn"), Int64ub)
)
OPENGAUSS_DDL = Struct(NO_FLAGS, "lsn" / Int64ub, "prefix" / ZeroEnded(), "content" / Text(Int64ub))

Records = Mapping[int, tuple[type[Event], Construct]]

_COMMON: Records = {
    ord("C"): (Commit, COMMIT),
    ord("O"): (Origin, ORIGIN),
    RELATION_TAG: (Relation, RELATION),
    ord("Y"): (Type, TYPE),
    ord("I"): (Insert, INSERT),
    ord("U"): (Update, UPDATE),
    ord("D"): (Delete, DELETE),
    ord("T"): (Truncate, TRUNCATE),
    copy_data.KEEPALIVE: (Heartbeat, KEEPALIVE),
}
RECORDS: dict[str, Records] = {
    "postgresql": {
        ord("B"): (Begin, BEGIN),
        **_COMMON,
        ord("M"): (Message, MESSAGE),
        ord("S"): (StreamStart, STREAM_START),
        ord("E"): (StreamStop, Struct()),
        ord("c"): (StreamCommit, STREAM_COMMIT),
        ord("A"): (StreamAbort, STREAM_ABORT),
        ord("b"): (Begin, BEGIN_PREPARE),
        ord("P"): (Prepare, PREPARE),
        ord("K"): (CommitPrepared, COMMIT_PREPARED),
        ord("r"): (RollbackPrepared, ROLLBACK_PREPARED),
        ord("p"): (StreamPrepare, PREPARE),
    },
    "opengauss": {ord("B"): (Begin, OPENGAUSS_BEGIN), **_COMMON, ord("L"): (Ddl, OPENGAUSS_DDL)},
}
"""What follows each kind byte, by dialect. openGauss's connection information, `S`, is of no kind: UNKNOWN."""

FIRST_NORMAL_XID = 3
"""PostgreSQL gives no transaction a lower one."""

ASIDE_BYTES = 6
"""How much of a message `is_aside` looks at."""


def is_aside(head: bytes) -> bool:
    """Whether the first bytes are those of a Message outside of blocks that is not transactional.

    Such a one may be the first message after a connection broke inside a block, and only its content tells: where it
    has no transaction id, its LSN is in the place of the id, which is then lower than any that PostgreSQL gives, or in
    the place of the flags. An LSN of 3 TiB or higher whose bits 32 to 39 are 0 or 1 cannot be told.
    """
    if len(head) < ASIDE_BYTES or head[0] != MESSAGE_TAG or head[1] != 0:
        return False
    return head[5] > 1 or int.from_bytes(head[1:5], "big") < FIRST_NORMAL_XID


HEAD_BYTES, STREAMED_HEAD_BYTES = 5, 9
"""A Relation message begins with its kind, in streamed blocks a transaction id, and the number of the relation."""

_NUMBER = struct.Struct(">I")

_TYPE = struct.Struct(">Ii")
"""Number and modifier of a column's type."""

MOST_CACHED_BYTES = 1 << 14
"""Longer columns of a relation are not kept: most are some hundred bytes."""


def read_relation(record: bytes, streamed: bool, encoding: str, errors: str) -> Relation | None:
    """The event of a Relation message, without an LSN; None if the declaration must read it, which says what is wrong.

    record             from the kind byte to the end
    streamed           whether it has a transaction id
    encoding, errors   as bytes.decode takes them
    """
    found = try_message(record, STREAMED_HEAD_BYTES if streamed else HEAD_BYTES, encoding, errors)
    return found and found.event(int.from_bytes(record[1:5], "big") if streamed else None)


def number_of(record: bytes) -> int:
    """The number of the relation in a Relation message without a transaction id."""
    return int(_NUMBER.unpack_from(record, HEAD_BYTES - _NUMBER.size)[0])


def read_message(record: bytes, encoding: str, errors: str) -> RelationMessage:
    """What a Relation message says that compiled code has found to be good; it has no transaction id."""
    found = try_message(record, HEAD_BYTES, encoding, errors)
    assert found is not None
    return found


def try_message(record: bytes, head: int, encoding: str, errors: str) -> RelationMessage | None:
    """What a Relation message says, or None if the declaration must read it; see `read_relation`.

    head   the bytes before the names of a table
    """
    try:
        schema, table, columns = record[head:].split(b"\0", 2)
        rest = (_cached_columns if len(columns) <= MOST_CACHED_BYTES else _read_columns)(columns, encoding, errors)
        schema_name, name = str(schema, encoding, errors), str(table, encoding, errors)
    except ValueError:  # a name without its end, or bytes that are no text
        return None
    (relation_id,) = _NUMBER.unpack_from(record, head - _NUMBER.size)
    return rest and RelationMessage(relation_id, schema_name or SYSTEM_SCHEMA, name, rest)


def _read_columns(data: bytes, encoding: str, errors: str) -> Columns | None:
    """Reads what follows the names of the table; raises UnicodeDecodeError. None as for `read_relation`."""
    at = 3  # after the replica identity and the number of columns
    if len(data) < at or data[0] not in REPLICA_IDENTITIES:
        return None
    flags: list[int] = []
    numbers: list[int] = []
    names: list[bytes] = []
    for _ in range(int.from_bytes(data[1:3], "big")):
        end = data.find(b"\0", at + 1)
        if end < 0 or end + _TYPE.size >= len(data) or data[at] > 1:
            return None
        flags.append(data[at])
        names.append(data[at + 1 : end])
        numbers += _TYPE.unpack_from(data, end + 1)
        at = end + 1 + _TYPE.size
    if at != len(data):
        return None
    columns = tuple([name.decode(encoding, errors) for name in names])
    return Columns(
        replica_identity=REPLICA_IDENTITIES[data[0]],
        columns=columns,
        type_oids=tuple(numbers[::2]),
        typmods=tuple(numbers[1::2]),
        key_columns=tuple([name for name, flag in zip(columns, flags, strict=True) if flag]),
    )


_cached_columns = lru_cache(maxsize=256)(_read_columns)
"""Thousands of tables are mostly partitions, or those of many clients: they have their columns in common."""
