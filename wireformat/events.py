"""The events: what one record says, as frozen values, and what of it the order of records depends on.

Every format reads and writes the same ones. Field names are those of the row-change table. A field is None where the
record does not carry it; numbers are unsigned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, NamedTuple, get_args, get_origin, get_type_hints

from .errors import counted

OF_STREAM = ("lsn", "relation_id", "relation_ids")
"""Fields that an encoder ignores: the stream that it writes has its own positions and its own numbers of tables."""


class Unchanged:
    """The type of UNCHANGED, the only one of its kind; it pickles to itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"

    def __reduce__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = Unchanged()
"""Stands for a TOAST value that did not change and was not sent: neither a value nor SQL NULL."""

LITERAL_TYPES = "?"
"""Types that begin with this are none: `sql-decoding` names no types, and keeps here how each value was written."""


@dataclass(frozen=True, slots=True)
class TupleData:
    """One row image: parallel tuples, in the order of the record.

    names   column names, without quotes; `$1`, `$2`, … where the format names none
    values  text form of each value as the type's output function gives it; None is SQL NULL, UNCHANGED was not sent
    types   SQL type names; `oid:16385` where the number is in no catalogue; `sql-decoding` has none, and says here how
            each value was written: `?null ?boolean ?number ?bits ?string ?unchanged`
    """

    names: tuple[str, ...] = ()
    values: tuple[str | Unchanged | None, ...] = ()
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises TypeError unless there are as many values as names, and as many types, or none."""
        try:
            names, values, types = len(self.names), len(self.values), len(self.types)
        except TypeError:
            raise TypeError("TupleData: expected three tuples: names, values, types; got something else") from None
        if names != values or types not in (names, 0):
            got = f"{counted(names, 'name')}, {counted(values, 'value')}, {counted(types, 'type')}"
            raise TypeError(f"TupleData: expected as many values and types as names, got {got}")

    def as_dict(self) -> dict[str, str | Unchanged | None]:
        """Column name to value."""
        return dict(zip(self.names, self.values, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Event:
    """Base of all events. `lsn` is the position that the record itself carries."""

    kind: ClassVar[str]
    lsn: int | None = None

    def __repr__(self) -> str:
        """The call that makes the event; fields with their default value are left out."""
        said = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(said)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Begin(Event):
    """A transaction begins; with a gid, one that will be prepared and not committed."""

    kind: ClassVar[str] = "BEGIN"
    csn: int | None = None
    """Commit sequence number: the order of commits in GaussDB and openGauss."""
    first_lsn: int | None = None
    """Where the transaction's first change is in the log."""
    xid: int | None = None
    commit_lsn: int | None = None
    """Where its commit lies in the log."""
    commit_time: str | None = None
    """As sent, in the sender's time zone; where a number was sent, its text in UTC. So are all times."""
    origin: int | None = None
    """Replication origin, signed 32 bits."""
    username: str | None = None
    gid: str | None = None
    """The name of a prepared transaction; its `lsn` is then where it is prepared."""
    end_lsn: int | None = None
    """Just after the commit or the prepare."""
    prepare_time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Commit(Event):
    """A transaction ends; in GaussDB's parallel styles `lsn` is the position just after it."""

    kind: ClassVar[str] = "COMMIT"
    csn: int | None = None
    """Sent here by the serial plugins, in BEGIN by the parallel styles."""
    xid: int | None = None
    commit_lsn: int | None = None
    end_lsn: int | None = None
    commit_time: str | None = None
    origin: int | None = None
    username: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Abort(Event):
    """A transaction was rolled back; sent only if an area of the log is decoded."""

    kind: ClassVar[str] = "ABORT"
    xid: int | None = None
    commit_time: str | None = None
    """As sent; it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prepare(Event):
    """A transaction is prepared; `lsn` is where. In openGauss only where an area of the log is decoded."""

    kind: ClassVar[str] = "PREPARE"
    xid: int | None = None
    commit_time: str | None = None
    """As openGauss sends it; it means nothing."""
    gid: str | None = None
    end_lsn: int | None = None
    prepare_time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitPrepared(Event):
    """A prepared transaction is committed."""

    kind: ClassVar[str] = "COMMIT_PREPARED"
    xid: int | None = None
    commit_lsn: int | None = None
    end_lsn: int | None = None
    commit_time: str | None = None
    gid: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackPrepared(Event):
    """A prepared transaction is rolled back. `lsn` is just after its prepare, `end_lsn` just after the rollback."""

    kind: ClassVar[str] = "ROLLBACK_PREPARED"
    xid: int | None = None
    end_lsn: int | None = None
    prepare_time: str | None = None
    commit_time: str | None = None
    """When it was rolled back."""
    gid: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamStart(Event):
    """A block of changes of a transaction that has not ended yet begins."""

    kind: ClassVar[str] = "STREAM_START"
    xid: int | None = None
    first_segment: bool | None = None
    """Whether it is the transaction's first block."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamStop(Event):
    """The block ends; the transaction may go on in another one."""

    kind: ClassVar[str] = "STREAM_STOP"
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamChange(Event):
    """A row changed in a streamed block; `test-decoding` says neither which nor how."""

    kind: ClassVar[str] = "STREAM_CHANGE"
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamAbort(Event):
    """A streamed transaction is dropped, or only one of its subtransactions. `lsn` is where it was aborted."""

    kind: ClassVar[str] = "STREAM_ABORT"
    xid: int | None = None
    """The transaction; `test-decoding` gives one number, which may be a subtransaction's."""
    subxid: int | None = None
    """What is dropped: the transaction's own number if all of it is."""
    commit_time: str | None = None
    """When it was aborted."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamCommit(Event):
    """A streamed transaction is committed."""

    kind: ClassVar[str] = "STREAM_COMMIT"
    xid: int | None = None
    commit_lsn: int | None = None
    end_lsn: int | None = None
    commit_time: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPrepare(Event):
    """A streamed transaction is prepared; `lsn` is where."""

    kind: ClassVar[str] = "STREAM_PREPARE"
    xid: int | None = None
    end_lsn: int | None = None
    prepare_time: str | None = None
    gid: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RowChange(Event):
    """Base of INSERT, UPDATE and DELETE: a table and up to two row images."""

    table_schema: str
    table_name: str
    new: TupleData | None = None
    """The row after the change."""
    old: TupleData | None = None
    """The columns of the replica identity before the change, or the whole row."""
    xid: int | None = None
    """The transaction or subtransaction, in a streamed block."""
    old_kind: str | None = None
    """`key` or `full`: which of them `old` is, where the record says so."""
    binary: tuple[str, ...] = ()
    """Columns whose values came in a binary form that this package does not know: they are `\\x` and hex digits."""
    relation_id: int | None = field(default=None, compare=False)
    """pgoutput: the OID of the table, which a table that is dropped and created again does not keep. It does not count
    in comparisons. Encoders of other formats ignore it; that of pgoutput prefers the number of a Relation event."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Insert(RowChange):
    """A row was inserted."""

    kind: ClassVar[str] = "INSERT"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Update(RowChange):
    """A row was updated."""

    kind: ClassVar[str] = "UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Delete(RowChange):
    """A row was deleted."""

    kind: ClassVar[str] = "DELETE"


ROW_CHANGES: dict[str, type[RowChange]] = {event.kind: event for event in (Insert, Update, Delete)}
"""The events that change a row, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Truncate(Event):
    """Tables were emptied by one statement: one event, but in the row-change table one row a table."""

    kind: ClassVar[str] = "TRUNCATE"
    tables: tuple[tuple[str, str], ...]
    """Pairs of schema and name; none where a streamed block of `test-decoding` does not say them."""
    restart_identity: bool = False
    cascade: bool = False
    xid: int | None = None
    relation_ids: tuple[int, ...] = field(default=(), compare=False)
    """pgoutput: the OIDs of the tables; see RowChange."""

    def of_tables(self, indexes: Iterable[int]) -> Truncate:
        """Returns the event for some of its tables, by their indexes in `tables`."""
        chosen = tuple(indexes)
        return replace(
            self,
            tables=tuple(self.tables[index] for index in chosen),
            relation_ids=tuple(self.relation_ids[index] for index in chosen) if self.relation_ids else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Message(Event):
    """A message that was written into the log with pg_logical_emit_message."""

    kind: ClassVar[str] = "MESSAGE"
    transactional: bool
    """Whether it counts only if its transaction commits."""
    prefix: str
    content: str | bytes | None = None
    """Text where the bytes are text in the encoding, else the bytes; None where only their number was sent."""
    size: int | None = None
    """Bytes of a content that was not sent."""
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Relation(Event):
    """Describes the rows of a table from here on: parallel tuples, in the order of the columns."""

    kind: ClassVar[str] = "RELATION"
    relation_id: int
    table_schema: str
    table_name: str
    replica_identity: str
    """`default`, `nothing`, `full` or `index`."""
    columns: tuple[str, ...]
    type_oids: tuple[int, ...]
    typmods: tuple[int, ...]
    """-1 is none."""
    key_columns: tuple[str, ...]
    """Those that are part of the replica identity."""
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Type(Event):
    """The name of a type that is not built in."""

    kind: ClassVar[str] = "TYPE"
    type_oid: int
    namespace: str
    name: str
    xid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Origin(Event):
    """The transaction came from another server; `lsn` is its commit there."""

    kind: ClassVar[str] = "ORIGIN"
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ddl(Event):
    """A DDL statement. The server and its options determine which fields are set."""

    kind: ClassVar[str] = "DDL"
    sql: str | None = None
    """The statement, where the server says it."""
    content: str | None = None
    """A template in JSON, as sent, or the words of a command without one."""
    prefix: str | None = None
    relid: int | None = None
    cmdtype: str | None = None
    size: int | None = None
    """Bytes of the content in the server's encoding, with a zero byte that is not sent."""
    owner: str | None = None
    """`none` where the server says so."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Heartbeat(Event):
    """A sign that the sender is alive. `lsn` is None in the bare layout and in PostgreSQL's keepalive."""

    kind: ClassVar[str] = "HEARTBEAT"
    wal_end: int
    """By LSN order the end of the log read; in CSN order the CSN already sent."""
    wal_flushed: int | None = None
    """By LSN order the log flushed to disk; in CSN order the CSN that the next transaction will get."""
    time: int
    """GaussDB: when the newest decoded log was written, since 1970; signed; the unit is not published. PostgreSQL: when
    the keepalive was sent, microseconds since 1970."""
    reply: bool | None = None
    """Whether the server wants an answer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Unknown(Event):
    """A well-framed record of a kind that no table lists: its bytes, without the framing."""

    kind: ClassVar[str] = "UNKNOWN"
    raw: bytes
    text: str | None = None
    """The bytes as text, in a text style and if they are text."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Corrupt(Event):
    """Bytes that could not be read, in PERMISSIVE mode.

    error   what is wrong and where: the text of the DecodeError that FAILFAST raises
    raw     the bytes, without the framing around them where that was good
    """

    kind: ClassVar[str] = "CORRUPT"
    error: str
    raw: bytes


def check_event(event: Event) -> Event:
    """Returns the event; raises TypeError if it is not an event, or if a row image is not a TupleData."""
    if not isinstance(event, Event):
        raise TypeError(f"events: expected events, got {type(event).__name__} among them")
    if isinstance(event, RowChange):
        for role, image in (("new", event.new), ("old", event.old)):
            if image is not None and not isinstance(image, TupleData):
                raise TypeError(
                    f"events: {event.kind} of {event.table_schema}.{event.table_name}: {role}: "
                    f"expected TupleData(names, values, types) or None, got {type(image).__name__}"
                )
    return event


def check_fields(event: Event) -> None:
    """Raises TypeError if a field holds a value of another type than it is declared with."""
    for name, hint in get_type_hints(type(event)).items():
        value = getattr(event, name)
        if get_origin(hint) is not ClassVar and not _fits(value, hint):
            declared = next(kind.__annotations__[name] for kind in type(event).__mro__ if name in kind.__annotations__)
            raise TypeError(f"events: {event.kind}: {name}: expected {declared}, got {type(value).__name__}")
        if isinstance(value, TupleData):
            for part, of_part in get_type_hints(TupleData).items():
                if not _fits(getattr(value, part), of_part):
                    raise TypeError(f"events: {event.kind}: {name}.{part}: expected {TupleData.__annotations__[part]}")


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a declared type: a class, a union, or a tuple."""
    parts = get_args(hint)
    if get_origin(hint) is not tuple:
        return any(_fits(value, part) for part in parts) if parts else isinstance(value, hint)
    if not isinstance(value, tuple):
        return False
    expected = parts[:1] * len(value) if parts[1:] == (...,) else parts
    return len(value) == len(expected) and all(map(_fits, value, expected))


EVENTS: dict[str, type[Event]] = {
    event.kind: event
    for event in [*globals().values()]
    if isinstance(event, type) and issubclass(event, Event) and "kind" in vars(event)
}
"""The event of each kind."""


def aborts_whole(xid: int | None, subxid: int | None) -> bool:
    """Whether a STREAM_ABORT with these numbers drops its whole transaction, not only a subtransaction."""
    return subxid is None or subxid == xid


class RecordFacts(NamedTuple):
    """What a record says about its transaction; None for what it does not say. The order of records depends on it."""

    kind: str
    xid: int | None = None
    gid: str | None = None
    subxid: int | None = None
    first_segment: bool | None = None
    transactional: bool | None = None

    @classmethod
    def of(cls, event: Event) -> RecordFacts:
        """Those of an event."""
        return cls(event.kind, *(getattr(event, name, None) for name in cls._fields[1:]))

    def __str__(self) -> str:
        said = ((name, getattr(self, name)) for name in ("xid", "subxid", "gid"))
        return " ".join([self.kind, *(f"{name} {value!r}" for name, value in said if value is not None)])
