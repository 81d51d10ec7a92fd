"""Events to messages of `pgoutput`: each event is one message, preceded by the Relation that a row needs."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import fields, replace
from typing import Any

from construct import Construct

from ...declare import build
from ...errors import EncodeError
from ...events import (
    Begin,
    Commit,
    CommitPrepared,
    Ddl,
    Event,
    Heartbeat,
    Message,
    Origin,
    Prepare,
    Relation,
    RollbackPrepared,
    RowChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    TupleData,
    Type,
    Unknown,
)
from ...framing.copy_data import ENVELOPE
from ...options import Option, resolve
from ...options.reading import DIALECTS
from ...options.table import words
from ...pgtypes import type_oid
from ...times import MICROS_OF_2000
from ..base import refuse_others
from ..direct.layouts import ROW_CHANGE_EVENTS, ByteLayout
from ..direct.records import DirectRecords, RecordForm
from .messages import RECORDS, SYSTEM_SCHEMA, is_aside
from .relations import Relations
from .row_layouts import RowLayouts, fits, images

OPTIONS = (Option("dialect", DIALECTS[0], words(*DIALECTS), "whose pgoutput it is"),)

FIRST_OID = 16384
"""The first number that a server gives to a table of a user."""

BEGIN_PREPARE = ord("b")
"""The second message that is a BEGIN: of one with a gid."""


_PLAIN = frozenset(
    (
        *(Begin, Commit, Origin, Prepare, CommitPrepared, RollbackPrepared),
        *(StreamStart, StreamStop, StreamCommit, StreamPrepare),
    )
)
"""Events whose fields a message has as they are."""


def said(event: type[Event]) -> Set[str]:
    """The fields that a message has a place for: PostgreSQL's, or openGauss's where only that has such a message."""
    if event is Unknown:
        return {"raw", "text"}
    for records in RECORDS.values():
        declarations = [declaration for kind, declaration in records.values() if kind is event]
        if declarations:
            return set().union(*(_places(event, declaration) for declaration in declarations))
    return set()


def _places(event: type[Event], declaration: Construct) -> Set[str]:
    """The fields of an event that this declaration has a place for."""
    own = {field.name for field in fields(event)}
    if event is Relation:
        return own
    found = {field.name for field in declaration.subcons} & own
    if issubclass(event, RowChange):
        found |= {"table_schema", "table_name", "new", "old", "old_kind", "binary"}
    elif event is Truncate:
        found |= {"tables", "restart_identity", "cascade"}
    return found


class PgOutputWriter:
    """Writes events; keeps the relations that it has written, as a server does.

    A row whose table no Relation event has described gets one of its own: with the OID of the event or numbers from
    FIRST_OID on, and the columns that the row has. An event that it refuses changes nothing. Raises OptionError.
    """

    def __init__(self, options: Mapping[str, Any] | None, encoding: str) -> None:
        self._records = RECORDS[resolve(options, OPTIONS)["dialect"]]
        self._encoding = encoding
        self._tags = {event: tag for tag, (event, _) in self._records.items() if tag != BEGIN_PREPARE}
        self._relations = Relations(names=True)
        self._made: set[int] = set()
        self._oids: dict[tuple[str, str], int] = {}
        """The last OID of each table, which keeps it where the server forgets that it has described the table."""
        self._owners: dict[int, tuple[str, str]] = {}
        """The last table that had each OID."""
        self._last_oid = FIRST_OID - 1
        self._plain = DirectRecords(
            {
                tag: (event, declaration, _places(event, declaration))
                for tag, (event, declaration) in self._records.items()
                if event in _PLAIN
            }
        )
        self._rows = RowLayouts(
            {event: tag for event, tag in self._tags.items() if event in ROW_CHANGE_EVENTS}, encoding
        )

    def write(self, event: Event) -> list[bytes]:
        """See Writer.write."""
        last_oid = self._last_oid
        try:
            return self._messages(event)
        except EncodeError as error:
            self._last_oid = last_oid
            raise EncodeError(f"pgoutput {event.kind}: {error}") from None

    def flush(self) -> list[bytes]:
        """See Writer.flush."""
        return []

    def layout(self, event: RowChange) -> tuple[ByteLayout, int] | None:
        """The layout of the messages of rows like this one, and the number of their relation; None if they have none,
        which is so in a streamed block."""
        known = self._known(event)
        if known is None or self._relations.block is not None or event.xid is not None:
            return None
        layout = self._rows.layout(event, known)
        return None if layout is None else (layout, known.relation_id)

    def form(self, event: type[Event]) -> RecordForm | None:
        """How events of this type are written now; None in a streamed block, where they may say more or end it."""
        tag = self._tags.get(event)
        if tag is None or self._relations.block is not None:
            return None
        declaration = self._records[tag][1]
        return RecordForm.of(tag, declaration, _places(event, declaration), ())

    def _messages(self, event: Event) -> list[bytes]:
        if isinstance(event, RowChange) and type(event) in ROW_CHANGE_EVENTS:
            known = self._known(event)
            in_block = self._relations.block is not None
            written = None if known is None else self._rows.write(event, known, in_block=in_block)
            if written is not None:
                return [written]
        return self._declared(event)

    def _declared(self, event: Event) -> list[bytes]:
        if isinstance(event, Unknown):
            if not event.raw or event.raw[0] in self._records or event.raw[0] == ENVELOPE:
                raise EncodeError("expected raw to begin with a kind byte that no table lists")
            return [event.raw]
        made: list[Relation] = []
        more: dict[str, Any] = {}
        if isinstance(event, RowChange):
            relation = self._relation(event, made)
            more = {"relation_id": relation.relation_id, "images": images(event, relation)}
        elif isinstance(event, Truncate):
            found = [self._table(schema, table, event.xid, made) for schema, table in event.tables]
            more = {"count": len(found), "relation_ids": [relation.relation_id for relation in found]}
            more["flags"] = (event.cascade, event.restart_identity)
        messages = [*(self._message(relation, {}) for relation in made), self._message(event, more)]
        self._made |= {relation.relation_id for relation in made}
        for one in (*made, event):
            self._relations.take(one)
            if isinstance(one, Relation):
                self._oids[one.table_schema, one.table_name] = one.relation_id
                self._owners[one.relation_id] = one.table_schema, one.table_name
        return messages

    def _message(self, event: Event, more: dict[str, Any]) -> bytes:
        """The bytes of one event; `more` are fields that the message has and the event has not."""
        tag = BEGIN_PREPARE if isinstance(event, Begin) and event.gid is not None else self._tags.get(type(event))
        if tag is None or tag not in self._records:
            raise EncodeError("the format cannot say it")
        declaration = self._records[tag][1]
        written = self._plain.write(tag, event, {"flags": None}, self._encoding)
        if written is not None:
            return written
        refuse_others(event, _places(type(event), declaration))
        in_block = self._relations.block is not None
        streamed = in_block and not (isinstance(event, Message) and event.xid is None)
        if not streamed and _has_own_xid(event) and getattr(event, "xid", None) is not None:
            raise EncodeError("xid: the format cannot say it outside of a streamed block")
        values = {field.name: getattr(event, field.name) for field in fields(event)}
        values = {"flags": None, **values, **_written(event, self._encoding), **more}
        data = bytes([tag]) + build(declaration, values, encoding=self._encoding, streamed=streamed)
        if in_block and isinstance(event, Message) and is_aside(data) == streamed:
            raise EncodeError(
                "xid: a MESSAGE in a streamed block needs one of 3 or higher, else it is read as one outside"
            )
        return data

    def _relation(self, event: RowChange, made: list[Relation]) -> Relation:
        """The relation of a row, which is made if it is a new one."""
        known = self._known(event)
        image = event.new or event.old or TupleData()
        if known is not None and (known.relation_id not in self._made or fits(event, known)):
            return known
        if not len(image.names) == len(image.types):
            raise EncodeError("names, values and types must have the same length")
        try:
            oids = tuple(type_oid(name) for name in image.types)
        except ValueError as error:
            raise EncodeError(str(error)) from None
        is_full = event.old is not None and (event.old_kind == "full" or event.old.names == image.names)
        keys = () if event.old is None else event.old.names
        return self._describe(
            Relation(
                relation_id=known.relation_id
                if known
                else self._oid(event.table_schema, event.table_name, event.relation_id),
                table_schema=event.table_schema,
                table_name=event.table_name,
                replica_identity="full" if is_full and event.old_kind != "key" else "default",
                columns=image.names,
                type_oids=oids,
                typmods=(-1,) * len(oids),
                key_columns=keys,
            ),
            event.xid,
            made,
        )

    def _known(self, event: RowChange) -> Relation | None:
        """The relation that has the name of the row's table, if it may be its own."""
        known = self._relations.named(event.table_schema, event.table_name)
        if known is not None and known.relation_id in self._made and event.relation_id not in (None, known.relation_id):
            return None  # another table of the same name
        return known

    def _table(self, schema: str, table: str, xid: int | None, made: list[Relation]) -> Relation:
        """The relation of a table of a TRUNCATE, of which nothing else is known."""
        known = self._relations.named(schema, table)
        if known is not None:
            return known
        for relation in made:
            if (relation.table_schema, relation.table_name) == (schema, table):
                return relation
        nothing: tuple[Any, ...] = ()
        relation = Relation(
            relation_id=self._oid(schema, table),
            table_schema=schema,
            table_name=table,
            replica_identity="default",
            columns=nothing,
            type_oids=nothing,
            typmods=nothing,
            key_columns=nothing,
        )
        return self._describe(relation, xid, made)

    def _describe(self, relation: Relation, xid: int | None, made: list[Relation]) -> Relation:
        if self._relations.block is not None:
            relation = replace(relation, xid=self._relations.block if xid is None else xid)
        made.append(relation)
        return relation

    def _oid(self, schema: str, table: str, wanted: int | None = None) -> int:
        """Returns the OID that is wanted, or that the table has; or the next one if another relation has it."""
        last = self._oids.get((schema, table))
        if wanted is None and last is not None and self._owners[last] == (schema, table):
            wanted = last
        if wanted is not None and self._relations.find(wanted) is None:
            return wanted
        self._last_oid += 1
        while self._last_oid in self._owners:
            self._last_oid += 1
        return self._last_oid


def _has_own_xid(event: Event) -> bool:
    return isinstance(event, (RowChange, Truncate, Message, Relation, Type))


def _written(event: Event, encoding: str) -> dict[str, Any]:
    """The fields that a message has in another form than the event."""
    if isinstance(event, Relation):
        return {"table_schema": _schema(event.table_schema), "columns": _columns(event)}
    if isinstance(event, Type):
        return {"namespace": _schema(event.namespace)}
    if isinstance(event, Message):
        return {"content": _content(event, encoding)}
    if isinstance(event, Heartbeat):
        return {"time": event.time - MICROS_OF_2000}
    if isinstance(event, Ddl) and event.content is None:
        raise EncodeError("content: expected a text")
    return {}


def _schema(name: str) -> str:
    if not name:
        raise EncodeError(f"schema: expected a name; the empty one is read back as {SYSTEM_SCHEMA}")
    return "" if name == SYSTEM_SCHEMA else name


def _columns(event: Relation) -> list[dict[str, Any]]:
    if not len(event.columns) == len(event.type_oids) == len(event.typmods):
        raise EncodeError("columns, type_oids and typmods must have the same length")
    keys = frozenset(event.key_columns)
    if not keys.issubset(event.columns):
        raise EncodeError("key_columns: expected names of columns")
    cells = zip(event.columns, event.type_oids, event.typmods, strict=True)
    return [{"is_key": name in keys, "name": name, "type_oid": oid, "typmod": typmod} for name, oid, typmod in cells]


def _content(event: Message, encoding: str) -> bytes:
    if event.content is None:
        raise EncodeError("content: expected text or bytes")
    try:
        return event.content.encode(encoding) if isinstance(event.content, str) else event.content
    except UnicodeEncodeError as error:
        raise EncodeError(f"content: character {error.start} has no bytes in {encoding}") from None
