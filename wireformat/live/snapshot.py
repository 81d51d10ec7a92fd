"""The existing rows of tables as one transaction of pgoutput, under a snapshot whose LSN is known.

The snapshot is that of a temporary slot, whose consistent point is just after the last transaction that the snapshot
sees. Changes of tables that were copied earlier are read up to that point, and changes of all copied tables afterwards.
Source: PostgreSQL manual, CREATE_REPLICATION_SLOT. The initial synchronisation of subscriptions does the same for each
table.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ..api import encode
from ..errors import ServerError
from ..events import Begin, Commit, Event, Relation, Type
from ..lsn import lsn_value
from ..options import ReadOptions
from ..options.table_names import written
from .checks.publications import IS_IDENTITY, index_keys, is_sent, with_sent_tables
from .connection import Connection
from .messages import Gathered, MessageFile
from .slots import waits_for_slot

_IDENTITIES = {"d": "default", "n": "nothing", "f": "full", "i": "index"}
_ARRAY_BYTES = 1 << 20
_FIRST_USER_OID = 16384

_TABLES = """{sent_tables}
select n.nspname as schema, c.relname as table, c.oid::text as oid, c.relreplident::text as identity,
    c.relkind::text as kind, p.filters,
    (select json_agg(json_build_array(a.attname, a.atttypid::text, a.atttypmod::text, t.typname, tn.nspname,
            c.relreplident = 'f' or coalesce(a.attnum = any ({key_columns}), false)) order by a.attnum)
        from pg_catalog.pg_attribute a
        join pg_catalog.pg_type t on t.oid = a.atttypid
        join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
        left join pg_catalog.pg_index i on i.indrelid = c.oid and {is_identity}
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and {published}) as columns
from sent p
join pg_catalog.pg_class c on c.oid = p.oid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
order by 1, 2
"""
"""The published tables and columns."""


_REWRITTEN = """
select pg_catalog.to_regclass({name}) = {oid}::oid and not exists (select from pg_catalog.pg_class c
    where (c.oid = {oid} or c.oid in (select relid from pg_catalog.pg_partition_tree({oid}::oid::regclass)))
    and pg_catalog.pg_relation_filenode(c.oid) is distinct from nullif(c.relfilenode, 0)) as is_same
"""
"""Whether a name is still that of a table with the files that the snapshot sees; functions see its newest files."""


class PublishedTable(NamedTuple):
    """A published table.

    filter   the condition on its rows; None for all
    """

    relation: Relation
    types: list[Type]
    is_partitioned: bool
    filter: str | None


class Snapshot(NamedTuple):
    """The rows of tables.

    messages   the rows, as one transaction
    lsn        the rows are those before all transactions that are committed at this LSN or later
    rows       the number of rows
    tables     schema and name of the tables that were copied
    is_last    whether all tables have now been copied
    """

    messages: MessageFile
    lsn: int
    rows: int
    tables: list[tuple[str, str]]
    is_last: bool


def take_snapshot(
    connection: Connection,
    publications: Sequence[str],
    patterns: tuple[tuple[str | None, str | None], ...] | None,
    copied: Collection[tuple[str, str]],
    most_bytes: int,
    tell: Callable[..., None],
) -> Snapshot:
    """Copies the rows of published tables to a temporary file.

    connection   a new connection, which cannot be used for anything else
    patterns     the patterns of the tables, as ReadOptions has them
    copied       the tables that have already been copied
    most_bytes   after this number of bytes, no further table begins
    tell         is called with what is being done, how many rows have been copied, and a connection that waits

    Raises Stopped, ServerError, OSError, and what `tell` raises.
    """
    state, count, rows = f"snapshot: {waits_for_slot(connection)}", 0, 0
    connection.on_wait = lambda: tell(state, count, connection)
    tell(state)
    connection.query("SET row_security = off")  # an error where policies would leave rows out
    connection.query("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    lsn = _begin(connection)
    (row,) = connection.query("select pg_catalog.now()::text as now")
    keeps = ReadOptions(tables=patterns).keeps_table
    left = {
        name: table
        for table in published_tables(connection, publications)
        if keeps(name := (table.relation.table_schema, table.relation.table_name)) and name not in copied
    }
    done: list[tuple[str, str]] = []
    file = MessageFile()
    try:
        # One byte before the LSN, where no record begins: a transaction may be committed at the LSN itself.
        facts = {"commit_lsn": lsn - 1, "commit_time": row["now"]}
        _write(file, [Begin(xid=0, **facts)])  # type: ignore[arg-type]
        for name, table in left.items():
            if done and file.size >= most_bytes:
                break
            state, count = f"snapshot: {'.'.join(name)}", 0
            with _explained(connection, table):
                for count in _copied(connection, table, file):
                    tell(state, count)
            rows += count
            done.append(name)
        _write(file, [Commit(end_lsn=lsn, **facts)])  # type: ignore[arg-type]
        file.end()
        connection.query("COMMIT")
    except BaseException:
        file.close()
        raise
    return Snapshot(file, lsn, rows, done, len(done) == len(left))


def _begin(connection: Connection) -> int:
    """Creates a temporary slot, and gives its snapshot to the transaction; returns its consistent point."""
    name = connection.identifier(f"wireformat_{secrets.token_hex(8)}")
    option = "(SNAPSHOT 'use')" if connection.version >= 15 else "USE_SNAPSHOT"
    try:
        (row,) = connection.query(f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL pgoutput {option}")
    except ServerError as error:
        if error.is_temporary:
            raise
        raise ServerError(
            f"snapshot: {error}; it needs a free slot beside that of the stream: see max_replication_slots",
            sqlstate=error.sqlstate,
        ) from None
    return lsn_value(row["consistent_point"] or "")


_CHANGED = ("42P01", "42703", "3F000", "40P01")
"""SQLSTATEs of a table, column or schema that does not exist, and of a deadlock with a statement that alters it."""

_FORBIDDEN = "42501"
"""SQLSTATE of a role that lacks a privilege, or from which policies would hide rows."""

_EXPLAINED = {
    _FORBIDDEN: "snapshot of {table}: {error}; the role needs SELECT on the table, and BYPASSRLS if the table has "
    "row-level security (ALTER ROLE … BYPASSRLS): its policies would leave rows out",
    # a standby replays the removal of rows that the copy must still see
    "40001": "snapshot of {table}: {error}; if it comes again, set hot_standby_feedback, or a longer "
    "max_standby_streaming_delay, on the standby",
    **dict.fromkeys(_CHANGED, "snapshot: {table} was changed meanwhile, and is copied under a new snapshot: {error}"),
}
"""What to do about a copy that fails, by SQLSTATE."""


@contextmanager
def _explained(connection: Connection, table: PublishedTable) -> Iterator[None]:
    """Raises ServerError, which says what to do, for an error of the copy of a table.

    The error is temporary if the table is no longer what it was when the snapshot began. A snapshot sees no rows of a
    table that is rewritten after it, for example by a new type of a column. This is checked after COPY, which locks the
    table.
    """
    name = (table.relation.table_schema, table.relation.table_name)
    try:
        yield
        quoted = connection.literal(".".join(map(connection.identifier, name)))
        (found,) = connection.query(_REWRITTEN.format(name=quoted, oid=table.relation.relation_id))
        if found["is_same"] != "t":
            raise ServerError("it was created again, or rewritten", sqlstate=_CHANGED[0])
    except ServerError as error:
        if error.sqlstate not in _EXPLAINED:
            raise
        text = _EXPLAINED[error.sqlstate].format(table=written(name), error=error)
        raise ServerError(text, sqlstate=error.sqlstate, is_temporary=error.sqlstate != _FORBIDDEN) from None


def published_tables(connection: Connection, publications: Sequence[str]) -> list[PublishedTable]:
    """Returns the tables of publications, with the columns that are published. Raises ServerError."""
    sql = _TABLES.format(
        sent_tables=with_sent_tables(connection, publications),
        published=is_sent(connection.version),
        key_columns=index_keys(connection.version),
        is_identity=IS_IDENTITY,
    )
    return [_table(row) for row in connection.query(sql)]


def _table(row: dict[str, str | None]) -> PublishedTable:
    columns = json.loads(row["columns"] or "[]")
    filters = json.loads(row["filters"] or "[null]")
    relation = Relation(
        relation_id=int(row["oid"] or 0),
        table_schema=row["schema"] or "",
        table_name=row["table"] or "",
        replica_identity=_IDENTITIES[row["identity"] or "d"],
        columns=tuple(name for name, *_ in columns),
        type_oids=tuple(int(oid) for _, oid, *_ in columns),
        typmods=tuple(int(typmod) for _, _, typmod, *_ in columns),
        key_columns=tuple(name for name, *_, is_key in columns if is_key),
    )
    types = [
        Type(type_oid=int(oid), namespace=namespace, name=type)
        for _, oid, _, type, namespace, _ in columns
        if int(oid) >= _FIRST_USER_OID
    ]
    # A row is published if one publication has it, and a publication without a filter has all rows.
    condition = None if None in filters else " or ".join(f"({one})" for one in filters)
    return PublishedTable(relation, types, row["kind"] == "p", condition)


def _write(file: MessageFile, events: Sequence[Event]) -> None:
    """Adds events to a file as messages of pgoutput."""
    gathered = Gathered()
    for message in encode(events, "pgoutput"):
        gathered.add(message)
    file.write(gathered.array())


def _copied(connection: Connection, table: PublishedTable, file: MessageFile) -> Iterator[int]:
    """Writes the rows of a table as INSERT messages; yields the number of rows so far."""
    relation = table.relation
    columns = ", ".join(map(connection.identifier, relation.columns))
    name = f"{connection.identifier(relation.table_schema)}.{connection.identifier(relation.table_name)}"
    source = name if table.is_partitioned else f"only {name}"
    condition = "" if table.filter is None else f" where {table.filter}"
    _write(file, [*table.types, relation])
    head = struct.pack(">cIcH", b"I", relation.relation_id, b"N", len(relation.columns))
    gathered, count = Gathered(), 0
    for row in connection.copy(f"copy (select {columns} from {source}{condition}) to stdout"):
        gathered.add(head + _cells(row) if relation.columns else head)
        count += 1
        if gathered.size >= _ARRAY_BYTES:
            file.write(gathered.array())
            gathered = Gathered()
            connection.check_stopped()
            yield count
    file.write(gathered.array())
    yield count


def _cells(row: bytes) -> bytes:
    """Returns the cells of a tuple from a line of COPY's text format."""
    found = []
    for text in row[:-1].split(b"\t"):
        if b"\\" in text:
            if text == b"\\N":
                found.append(b"n")
                continue
            text = _unescaped(text)
        found.append(b"t%b%b" % (len(text).to_bytes(4, "big"), text))
    return b"".join(found)


_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def _unescaped(text: bytes) -> bytes:
    """Returns a value of COPY's text format without its escapes. The server writes no octal or hexadecimal escapes."""
    first, *rest = text.split(b"\\")
    found = [first]
    parts = iter(rest)
    for part in parts:
        if part:
            found.append(_ESCAPES.get(part[:1], part[:1]) + part[1:])
        else:  # two backslashes are one, and what follows is as it is
            found.append(b"\\" + next(parts, b""))
    return b"".join(found)
