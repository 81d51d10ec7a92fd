"""The columns of a published table, from the server's catalogue: the same as the stream describes them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

import wireformat as wf
from wireformat.live.connection import Connection
from wireformat.live.snapshot import published_tables
from wireformat.options.table_names import one_table, written

from .options import SlotOptions
from .ranges import FORMAT


def describe(options: SlotOptions) -> pa.Table:
    """Returns what `Capture.tables` says of the table. Raises OptionError if it is not published, and ServerError."""
    assert options.table is not None, "one table is read"
    wanted = one_table(options.table)
    with Connection(options.dsn, options.driver) as connection:
        published = published_tables(connection, options.publications)
    for one in published:
        relation = one.relation
        if (relation.table_schema, relation.table_name) == wanted:
            facts = {"commit_lsn": 1, "commit_time": "2000-01-01 00:00:00+00"}
            begin, commit = wf.Begin(xid=0, **facts), wf.Commit(end_lsn=2, **facts)  # type: ignore[arg-type]
            messages = [*wf.encode([begin, *one.types, relation, commit], FORMAT)]
            return wf.Capture(messages, FORMAT).tables()
    names = ", ".join(written((one.relation.table_schema, one.relation.table_name)) for one in published)
    raise wf.OptionError(
        f"option table: {options.publication} does not publish {options.table}: ALTER PUBLICATION … ADD TABLE, or "
        f"choose one that it publishes: {names or 'it has none'}"
    )


def check_columns(descriptions: Iterable[bytes], table: str, names: Iterable[str]) -> None:
    """Raises BadRows if the stream describes a column of the table that the rows of Spark do not have."""
    known = {*names}
    for relation in wf.decode([one for one in descriptions if one.startswith(b"R")], FORMAT):
        if not isinstance(relation, wf.Relation) or (relation.table_schema, relation.table_name) != one_table(table):
            continue
        added = [name for name in relation.columns if name not in known]
        if added:
            raise wf.BadRows(
                f"the columns that {table} had when the query began",
                f"also {', '.join(added)}",
                table=table,
                hint="start the query again, which finds the columns of the table, or name the columns that you need "
                "with .schema(…)",
            )
