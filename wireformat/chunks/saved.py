"""The saved state of a stream that is read in micro-batches.

It holds what the messages so far have left, and the messages of open transactions, as plain
data with a version, which later releases can read; see wireformat.stream.saved.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ..arrow.committed.state import BEGIN
from ..errors import OptionError
from ..events import Relation
from ..formats.pgoutput.relations import Relations
from ..stream.attempts import STAGES, AttemptKey, ChunkStart, OpenAtStart
from ..stream.capture_position import RELATIONS, columns_of, relation_of, relation_row, rows_of
from ..stream.controls import Control
from ..stream.positions import SHAPE as POSITION
from ..stream.positions import fields_of, position_of
from ..stream.records_before import NOTHING_BEFORE, RecordsBefore
from ..stream.saved import (
    COUNT,
    FLAG,
    NAME,
    TEXT,
    UNSIGNED,
    SavedTable,
    Shape,
    damaged,
    dump,
    load,
    maybe,
    one_of,
    seal,
    unseal,
)
from ..stream.transactions import TWO_PHASE
from .saved_records import RECORDS, fields_of_records, records_of

STREAM_KIND, PIECE_KIND = "wireformat.raw_stream", "wireformat.raw_piece"

QUESTIONS = {"records": "changes()", "transactions": "committed(), messages() or typed()"}
"""What a stream is read for: every record by itself, or the rows of committed transactions; and who asks for it. The
names are saved."""

_OPEN = SavedTable({"stage": one_of(*STAGES), "prepared_gid": maybe(TEXT), "before": COUNT, **BEGIN})
_UNDONE = SavedTable({"transaction": COUNT, "xid": UNSIGNED})
_HELD = SavedTable({"transaction": COUNT, "piece": COUNT, "key": maybe(NAME)})
_KNOWN = SavedTable({"scope": maybe(UNSIGNED), **RELATIONS.columns})
_LOST = SavedTable({"scope": maybe(UNSIGNED), "relation_id": UNSIGNED})

_LEFT_1: Shape = {
    "position": POSITION,
    "open": _OPEN,
    "undone": _UNDONE,
    "follows_position": FLAG,
    "open_before": [maybe(UNSIGNED)],
    "without_first_block": [UNSIGNED],
    "block": maybe(UNSIGNED),
    "relations": _KNOWN,
    "lost": _LOST,
}
"""What messages leave for the next ones: a ChunkStart, with the transactions in `open`, and the relations of pgoutput.

transaction        index in `open`
follows_position   whether `open_before` is known
scope              xid of the streamed transaction in which the relation was described; null outside of one
"""

_LEFT: Shape = {**_LEFT_1, "records": RECORDS}
"""Version 2 also has what records mean for later ones."""

_STREAM_1: Shape = {
    "format": TEXT,
    "question": one_of(*QUESTIONS),
    "two_phase": one_of(*TWO_PHASE),
    "drop_resent": FLAG,
    "order_by": [TEXT],
    "last": [NAME],
    "next_piece": COUNT,
    "held": _HELD,
    "left": _LEFT_1,
}
"""The fields of version 1 of a stream, which is never changed.

order_by, last   names of columns, and their values in the last message
next_piece       the number of the next piece
held             the pieces with rows of the transactions in `open`, each with the key of the transaction at its end
"""

_STREAM: Shape = {**_STREAM_1, "strict": FLAG, "skip_empty_xacts": FLAG, "exclude_users": [TEXT], "left": _LEFT}
"""The fields of version 2 of a stream, which is never changed."""

_PIECE_1: Shape = {"left": _LEFT_1}
_PIECE: Shape = {"left": _LEFT}
"""The fields of versions 1 and 2 of a piece, which are never changed: what the messages before it have left. The
messages follow, as an Arrow IPC stream of one batch."""


@dataclass(frozen=True)
class Left:
    """What the messages up to some point have left for the next ones.

    positions   of the messages of `records.held_rows`
    """

    start: ChunkStart = field(default_factory=ChunkStart)
    relations: Relations = field(default_factory=Relations)
    records: RecordsBefore = NOTHING_BEFORE
    positions: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True)
class StreamState:
    """The state of a stream between two micro-batches.

    last        the values of order_by in the last message; None before the first one
    next_piece  the number of the next piece
    held        for each transaction in `left.start.open`: the pieces with its rows, each with its key at the end of it
    """

    left: Left = field(default_factory=Left)
    last: tuple[Any, ...] | None = None
    next_piece: int = 0
    held: tuple[tuple[tuple[int, AttemptKey], ...], ...] = ()


@dataclass(frozen=True)
class Settings:
    """The settings with which a stream began, and which it must keep; see the saved fields."""

    format: str
    question: str
    two_phase: str
    drop_resent: bool
    order_by: tuple[str, ...]
    strict: bool = False
    skip_empty_xacts: bool = False
    exclude_users: tuple[str, ...] = ()


def write_stream(state: StreamState, settings: Settings) -> bytes:
    """Returns a state as bytes; there must have been a message."""
    held = [(index, *one) for index, pieces in enumerate(state.held) for one in pieces]
    fields = {
        **vars(settings),
        "last": state.last,
        "next_piece": state.next_piece,
        "held": columns_of(_HELD, held),
        "left": _fields_of_left(state.left),
    }
    return seal(STREAM_KIND, 2, dump(fields))


def read_stream(data: bytes, settings: Settings) -> StreamState:
    """Returns a state; raises StateError, and OptionError if it was written with other settings."""
    version, payload = unseal(STREAM_KIND, _STREAM_SHAPES, data)
    fields = {**_NO_FILTERS, **load(STREAM_KIND, payload, _STREAM_SHAPES[version])}
    for option, value in vars(settings).items():
        given = [*value] if isinstance(value, tuple) else value
        if fields[option] != given:
            found = (
                f"option {option}: expected the one with which the query was begun, {fields[option]!r}, got {given!r}: "
                "pass"
            )
            if option == "question":  # which is no option
                begun, now = (QUESTIONS[name] for name in (fields[option], settings.question))
                found = f"expected a query of {begun}, as it was begun, got one of {now}: go on with"
            raise OptionError(f"{found} the first one, or start over with a new checkpoint folder")
    columns = len(settings.order_by)
    left = _left_of(STREAM_KIND, fields["left"], columns)
    if len(fields["last"]) != columns:
        raise damaged(STREAM_KIND, "a value for each column of order_by in last", "more or fewer")
    held: list[list[tuple[int, AttemptKey]]] = [[] for _ in left.start.open]
    for transaction, piece, key in rows_of(fields["held"], _HELD):
        _expect(STREAM_KIND, transaction < len(held), "transactions of `open` in `held`")
        _expect(STREAM_KIND, piece < fields["next_piece"], "pieces before next_piece in `held`")
        held[transaction].append((piece, key))
    return StreamState(left, tuple(fields["last"]), fields["next_piece"], tuple(map(tuple, held)))


_STREAM_SHAPES = {1: _STREAM_1, 2: _STREAM}
_NO_FILTERS = {"strict": False, "skip_empty_xacts": False, "exclude_users": []}
"""The settings that version 1 does not have."""


def write_piece(left: Left, messages: pa.RecordBatch) -> bytes:
    """Returns messages, with what the messages before them have left, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, messages.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(messages)
    return seal(PIECE_KIND, 2, dump({"left": _fields_of_left(left)}) + b"\n" + sink.getvalue().to_pybytes())


def read_piece(data: bytes) -> tuple[Left, pa.RecordBatch]:
    """Returns what `write_piece` was given; raises StateError."""
    version, payload = unseal(PIECE_KIND, _PIECE_SHAPES, data)
    line, _, rest = bytes(payload).partition(b"\n")
    fields = load(PIECE_KIND, line, _PIECE_SHAPES[version])
    try:
        messages = pa.ipc.open_stream(rest).read_next_batch()
    except (pa.ArrowException, OSError, StopIteration):
        raise damaged(PIECE_KIND, "an Arrow IPC stream of one batch", "other bytes") from None
    return _left_of(PIECE_KIND, fields["left"], messages.num_columns - 1), messages


_PIECE_SHAPES = {1: _PIECE_1, 2: _PIECE}


def _fields_of_left(left: Left) -> dict[str, Any]:
    start, scopes = left.start, left.relations.scopes
    known = [(xid, number, relation) for xid, numbers in scopes.items() for number, relation in numbers.items()]
    return {
        "position": fields_of(start.position),
        "open": columns_of(_OPEN, [_open_row(one) for one in start.open]),
        "undone": columns_of(
            _UNDONE, [(index, xid) for index, one in enumerate(start.open) for xid in sorted(one.undone)]
        ),
        "follows_position": start.open_before is not None,
        "open_before": _sorted(start.open_before or ()),
        "without_first_block": _sorted(start.without_first_block),
        "block": left.relations.block,
        "relations": columns_of(
            _KNOWN, [(xid, *relation_row(relation)) for xid, _, relation in known if relation is not None]
        ),
        "lost": columns_of(_LOST, [(xid, number) for xid, number, relation in known if relation is None]),
        "records": fields_of_records(left.records, left.positions),
    }


def _open_row(open: OpenAtStart) -> list[Any]:
    return [open.stage, open.gid, open.before, *(getattr(open.begin, name) for name in BEGIN)]


def _sorted(xids: Collection[int | None]) -> list[int | None]:
    return sorted(xids, key=lambda xid: -1 if xid is None else xid)


def _left_of(kind: str, fields: dict[str, Any], columns: int) -> Left:
    undone: list[set[int]] = [set() for _ in fields["open"]["stage"]]
    for transaction, xid in rows_of(fields["undone"], _UNDONE):
        _expect(kind, transaction < len(undone), "transactions of `open` in `undone`")
        undone[transaction].add(xid)
    open = [
        OpenAtStart(stage, gid, Control(**dict(zip(BEGIN, begin, strict=True))), before, frozenset(of_open))
        for (stage, gid, before, *begin), of_open in zip(rows_of(fields["open"], _OPEN), undone, strict=True)
    ]
    _check_open(kind, open)
    scopes: dict[int | None, dict[int, Relation | None]] = {}
    for xid, *row in rows_of(fields["relations"], _KNOWN):
        relation = relation_of(tuple(row))
        scopes.setdefault(xid, {})[relation.relation_id] = relation
    for xid, number in rows_of(fields["lost"], _LOST):
        scopes.setdefault(xid, {})[number] = None
    start = ChunkStart(
        position_of(fields["position"]),
        tuple(open),
        frozenset(fields["open_before"]) if fields["follows_position"] else None,
        frozenset(fields["without_first_block"]),
    )
    records = records_of(kind, fields["records"], columns) if "records" in fields else (NOTHING_BEFORE, ())
    return Left(start, Relations.of_scopes(fields["block"], scopes), *records)


def _check_open(kind: str, open: Sequence[OpenAtStart]) -> None:
    current = [one for one in open if one.stage in ("plain", "block")]
    _expect(kind, len(current) <= 1, "at most one transaction in the stage plain or block")
    gids = [one.gid for one in open if one.stage == "prepared"]
    _expect(kind, None not in gids and len({*gids}) == len(gids), "a unique gid for each prepared transaction")
    xids = [one.begin.xid for one in open if one.stage in ("block", "streamed")]
    _expect(kind, None not in xids and len({*xids}) == len(xids), "a unique xid for each streamed transaction")


def _expect(kind: str, holds: bool, expected: str) -> None:
    if not holds:
        raise damaged(kind, expected, "others")
