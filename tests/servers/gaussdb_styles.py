"""The changes of a PostgreSQL server as GaussDB would send them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import wireformat as wf
from wireformat.identifiers import quote_identifier

from .replica import Replica, Table

STYLES = ("gaussdb-binary", "gaussdb-json", "gaussdb-text")

WITHOUT_COLUMNS = ("public", "z")
"""A table whose rows JSON cannot say."""


def said_by_gaussdb(events: Iterable[wf.Event], format: str) -> list[wf.Event]:
    """The events that GaussDB has, from those of version 1 of pgoutput, where everything is committed.

    GaussDB leaves out the columns that were not sent, its text styles name all types, and JSON cannot say a row without
    columns. It has no TRUNCATE: the rows that the table holds there are deleted one by one, by their key, or by the
    whole row where the table has none.
    """
    events = list(events)
    names = {
        f"oid:{event.type_oid}": f"{quote_identifier(event.namespace)}.{quote_identifier(event.name)}"
        for event in events
        if isinstance(event, wf.Type) and format != "gaussdb-binary"
    }
    without_columns = {WITHOUT_COLUMNS} if format == "gaussdb-json" else set()
    return [
        found
        for event in _without_truncates(events)
        if (found := _as_gaussdb(event, names, without_columns)) is not None
    ]


def _without_truncates(events: Iterable[wf.Event]) -> Iterator[wf.Event]:
    replica = Replica()
    types: dict[Table, dict[str, str]] = {}
    for event in events:
        if isinstance(event, wf.Truncate):
            for schema, name in event.tables:
                table = schema, name
                for row in replica.rows.get(table, ()):
                    columns = replica.keys[table] or tuple(row)
                    cells = [(column, row[column], types[table][column]) for column in columns]
                    yield wf.Delete(table_schema=schema, table_name=name, old=wf.TupleData(*zip(*cells, strict=True)))
        else:
            if isinstance(event, wf.RowChange) and event.new is not None:
                sent = dict(zip(event.new.names, event.new.types, strict=True))
                types.setdefault((event.table_schema, event.table_name), {}).update(sent)
            yield event
        replica.take(event)


def _as_gaussdb(event: wf.Event, names: dict[str, str], without_columns: set[Table]) -> wf.Event | None:
    """The event with what GaussDB's styles need and without what they have no place for; None: nothing is left."""
    match event:
        case wf.Begin():
            return wf.Begin(lsn=0, csn=1, first_lsn=event.commit_lsn, xid=event.xid, commit_time=event.commit_time)
        case wf.Commit():
            return wf.Commit(lsn=event.end_lsn, commit_time=event.commit_time)
        case wf.RowChange() if (event.table_schema, event.table_name) not in without_columns:
            return replace(event, lsn=0, old_kind=None, new=_sent(event.new, names), old=_sent(event.old, names))
    return None


def _sent(image: wf.TupleData | None, names: dict[str, str]) -> wf.TupleData | None:
    if image is None:
        return None
    cells = [
        (name, value, names.get(type, type))
        for name, value, type in zip(image.names, image.values, image.types, strict=True)
        if not isinstance(value, wf.Unchanged)
    ]
    return wf.TupleData(*zip(*cells, strict=True)) if cells else wf.TupleData()
