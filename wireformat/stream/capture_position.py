"""`CapturePosition`: where to continue reading a stream, of which some transactions have been handed out."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..errors import StateError
from ..events import Relation
from ..formats.pgoutput.relations import RELATION_LISTS, list_text, relation_lists
from .attempts import STAGES
from .controls import Control, commit_lsn_of
from .positions import SHAPE as DELIVERED
from .positions import Position, fields_of, position_of
from .saved import COUNT, NAME, TEXT, UNSIGNED, SavedTable, Shape, check, damaged, maybe, one_of

KIND = "wireformat.capture_position"


class OpenTransaction(NamedTuple):
    """A transaction that had begun and not ended.

    stage     plain, block, streamed or prepared; see `wireformat.stream.transactions`
    xid, gid, csn, commit_lsn   as far as its first record states them; of a transaction that will be prepared, the LSN
                                of its PREPARE
    changes   the number of its row changes so far
    """

    stage: str
    xid: int | None = None
    gid: str | None = None
    csn: int | None = None
    commit_lsn: int | None = None
    changes: int = 0

    def __str__(self) -> str:
        names = " ".join(
            f"{name} {value}" for name, value in (("xid", self.xid), ("gid", self.gid)) if value is not None
        )
        return f"{self.stage} transaction {names}".strip()


def open_transaction(stage: str, gid: str | None, begin: Control, changes: int) -> OpenTransaction:
    """Returns the transaction that this record began.

    gid   of a prepared transaction
    """
    is_to_be_prepared = begin.gid is not None  # its own LSN is then that of the PREPARE
    commit_lsn = commit_lsn_of(begin) if is_to_be_prepared else begin.commit_lsn
    return OpenTransaction(stage, begin.xid, begin.gid if gid is None else gid, begin.csn, commit_lsn, changes)


class SlotPosition(NamedTuple):
    """How far a slot of a server has been read.

    system     the server's system identifier, as IDENTIFY_SYSTEM returns it
    slot       name of the slot
    lsn        everything before it has been handed out: what a consumer reports to the server as flushed
    timeline   of the server's log, which changes when a standby is promoted; 0 if it is not known
    copied     while the rows of tables are copied: schema and name of those that are there, whose changes have been
               handed out too; None before and afterwards
    """

    system: str
    slot: str
    lsn: int
    timeline: int = 0
    copied: tuple[tuple[str, str], ...] | None = None

    @property
    def version(self) -> int:
        """The first version of a saved position that has its fields."""
        return 4 if self.copied is not None else 3 if self.timeline else 2

    def to_fields(self) -> dict[str, Any]:
        """Returns its fields as they are saved."""
        fields = {name: value for name, value in self._asdict().items() if value or name in _SLOT}
        if self.copied is not None:
            fields |= {"timeline": self.timeline, "copied": columns_of(_COPIED, self.copied)}
        return fields

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> SlotPosition:
        """Returns the position of saved fields."""
        if "copied" in fields:
            fields = {**fields, "copied": tuple(rows_of(fields["copied"], _COPIED))}
        return cls(**fields)


class CapturePosition(NamedTuple):
    """The position where the next capture of a stream continues.

    The next input must contain the messages of the open transactions from their beginning. What was handed out before
    is dropped from it.

    format      name of the format
    delivered   how far transactions have been handed out
    open        the transactions that had begun and not ended
    relations   of pgoutput: the tables that were described before the oldest message that is still needed. Those that
                are only known in a streamed transaction that ends after it have its xid
    slot        of a stream that comes from a slot: which one, and how far it has been read
    relations_of_input   the relations before the first message of an input that begins before this position; None if
                it begins here. They are not saved
    """

    format: str
    delivered: Position = Position()
    open: tuple[OpenTransaction, ...] = ()
    relations: tuple[Relation, ...] = ()
    slot: SlotPosition | None = None
    relations_of_input: tuple[Relation, ...] | None = None

    @property
    def first_relations(self) -> tuple[Relation, ...]:
        """The relations before the first message of the next input."""
        return self.relations if self.relations_of_input is None else self.relations_of_input

    def without_tables(self) -> CapturePosition:
        """Returns the position without what it says of tables. The files of each of them can tell it: with what it says
        of all the others, these would have the square of the tables."""
        slot = None if self.slot is None else self.slot._replace(copied=None)
        return self._replace(relations=(), slot=slot)

    def to_json(self) -> str:
        """Returns the position as JSON with a version. Later releases can read it."""
        has_xids = any(relation.xid is not None for relation in self.relations)
        shape = _RELATIONS_WITH_XIDS if has_xids else RELATIONS
        fields = {
            "kind": KIND,
            "version": (1 if self.slot is None else self.slot.version) + (_WITH_XIDS if has_xids else 0),
            "format": self.format,
            "delivered": fields_of(self.delivered),
            "open": columns_of(_OPEN, self.open),
            "relations": columns_of(shape, [relation_row(relation, shape) for relation in self.relations]),
        }
        if self.slot is not None:
            fields["slot"] = self.slot.to_fields()
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> CapturePosition:
        """Returns the position that `to_json` made the text of; raises StateError."""
        try:
            fields = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            raise damaged(KIND, "JSON", "other text") from None
        if not isinstance(fields, dict) or fields.get("kind") != KIND:
            raise StateError(f"position: expected one of {KIND}, as CapturePosition.to_json writes it")
        version = fields.get("version")
        shape = _SHAPES.get(version) if type(version) is int else None
        if shape is None:
            raise StateError(
                f"position: expected version 1 to {max(_SHAPES)}, which this release reads, got another one: continue "
                "with the release that wrote it"
            )
        check(fields, shape, KIND)
        relations = _RELATIONS_WITH_XIDS if "xid" in fields["relations"] else RELATIONS
        return cls(
            fields["format"],
            position_of(fields["delivered"]),
            tuple(OpenTransaction(*row) for row in rows_of(fields["open"], _OPEN)),
            tuple(relation_of(row, relations) for row in rows_of(fields["relations"], relations)),
            SlotPosition.from_fields(fields["slot"]) if "slot" in fields else None,
        )


_OPEN = SavedTable(
    {
        "stage": one_of(*STAGES),
        "xid": maybe(UNSIGNED),
        "gid": maybe(TEXT),
        "csn": maybe(UNSIGNED),
        "commit_lsn": maybe(UNSIGNED),
        "changes": COUNT,
    }
)
RELATIONS = SavedTable(
    {
        "relation_id": UNSIGNED,
        "table_schema": TEXT,
        "table_name": TEXT,
        "replica_identity": TEXT,
        **dict.fromkeys(RELATION_LISTS, TEXT),
    }
)
_RELATIONS_WITH_XIDS = SavedTable({**RELATIONS.columns, "xid": maybe(UNSIGNED)})
_SHAPE_1: Shape = {
    "kind": TEXT,
    "version": NAME,
    "format": TEXT,
    "delivered": DELIVERED,
    "open": _OPEN,
    "relations": RELATIONS,
}
_SLOT: Shape = {"system": TEXT, "slot": TEXT, "lsn": UNSIGNED}
_COPIED = SavedTable({"table_schema": TEXT, "table_name": TEXT})
_SHAPES_WITHOUT_XIDS: dict[int, Shape] = {
    1: _SHAPE_1,
    2: {**_SHAPE_1, "slot": _SLOT},
    3: {**_SHAPE_1, "slot": {**_SLOT, "timeline": COUNT}},
    4: {**_SHAPE_1, "slot": {**_SLOT, "timeline": COUNT, "copied": _COPIED}},
}
"""The fields of each version, which are never changed. The lists of a relation are JSON texts. Version 2 is that of a
stream from a slot, version 3 with its timeline, version 4 with the tables that have been copied."""
_WITH_XIDS = len(_SHAPES_WITHOUT_XIDS)
"""So much higher is the version of the same fields where relations have xids."""
_SHAPES = _SHAPES_WITHOUT_XIDS | {
    version + _WITH_XIDS: {**shape, "relations": _RELATIONS_WITH_XIDS}
    for version, shape in _SHAPES_WITHOUT_XIDS.items()
}


def columns_of(table: SavedTable, rows: Any) -> dict[str, list[Any]]:
    """Returns rows as the columns of a saved table."""
    return {name: [row[index] for row in rows] for index, name in enumerate(table.columns)}


def rows_of(columns: dict[str, list[Any]], table: SavedTable) -> Any:
    """Returns the rows of a saved table, as tuples."""
    return zip(*(columns[name] for name in table.columns), strict=True)


def relation_row(relation: Relation, table: SavedTable = RELATIONS) -> list[Any]:
    """Returns a relation as a row of RELATIONS, or of a table with more columns."""
    return [
        list_text(getattr(relation, name)) if name in RELATION_LISTS else getattr(relation, name)
        for name in table.columns
    ]


def relation_of(row: tuple[Any, ...], table: SavedTable = RELATIONS) -> Relation:
    """Returns the relation of such a row; raises StateError."""
    fields = dict(zip(table.columns, row, strict=True))
    try:
        lists = relation_lists(fields)
    except (TypeError, ValueError, RecursionError):
        raise damaged(KIND, "lists in relations", "other text") from None
    return Relation(**{**fields, **lists})
