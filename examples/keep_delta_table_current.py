"""Keep a Delta table current from a capture, with the package deltalake: its MERGE needs neither Spark nor a JVM.

python examples/keep_delta_table_current.py CAPTURE FORMAT TABLE KEYS FOLDER
    CAPTURE   Parquet file with the messages of a slot, in order, in the column payload
    TABLE     as public.orders; KEYS its key columns, as order_id or order_id,line_no
    FOLDER    the Delta table; it is made where there is none
Without arguments: public.orders of the sample capture, into build/delta/orders.

Run it again with the next capture, or with one that overlaps: every MERGE notes, in its own commit, the position of the
last transaction that it holds, and transactions up to there are left out. So a run that was killed is simply run again.
(test_decoding sends no positions: its transactions are counted, and every capture must begin where the first did.)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import wireformat as wf
from wireformat.errors import needs

with needs("delta", "this example"):
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction

APP = "wireformat"
"""Under this name the Delta table keeps the position."""
BATCH = 50_000
"""Changes in a MERGE, more where one transaction has more: a transaction is never cut."""
SAMPLE = Path(__file__).resolve().with_name("sample_capture.parquet")

Key = tuple[Any, ...]


@dataclass
class Row:
    """A row that some changes have touched.

    origin   the key under which the Delta table has it; None: it is new
    sent     the values that the changes have sent
    """

    origin: Key | None
    sent: dict[str, Any] = field(default_factory=dict)


@dataclass
class Net:
    """What the changes of a batch come to: for each key they touched its row, or None: there is none any more."""

    keys: Sequence[str]
    rows: dict[Key, Row | None] = field(default_factory=dict)
    is_truncated: bool = False

    def take(self, change: dict[str, Any], columns: Sequence[str]) -> None:
        """One row of the typed table."""
        kind = change["_change_type"]
        if kind == "truncate":
            self.rows.clear()
            self.is_truncated = True
            return
        key = tuple(change[name] for name in self.keys)
        if kind == "delete":
            self.rows[key] = None
            return
        unsent = change["_unchanged"] or ()
        sent = {name: change[name] for name in columns if name not in unsent}
        if kind == "insert":
            self.rows[key] = Row(None, sent)
            return
        before = change["_old"] or change
        old_key = tuple(before[name] for name in self.keys)
        row = self.rows.get(old_key) or Row(None if self.is_truncated else old_key)
        if old_key != key:  # the row moves, with the values that were not sent
            self.rows[old_key] = None
        self.rows[key] = row
        row.sent |= sent


def keep_current(folder: str | Path, changes: pa.Table, keys: Sequence[str], batch: int = BATCH) -> DeltaTable:
    """Apply the changes of a table to the Delta table in a folder, but those that it holds already.

    changes   what `wf.arrow.typed(wf.arrow.transactions(...), complete=True)` gives
    keys      the columns that tell rows apart
    """
    names = [name for name in changes.column_names if not name.startswith("_")]
    missing = [key for key in keys if key not in names]
    if missing:  # before the folder is made
        raise wf.OptionError(f"keys: the table has no column {missing[0]!r}; there are {', '.join(names)}")
    columns = pa.schema([changes.schema.field(name) for name in names])
    delta = _opened(folder, columns)
    for part, position in _batches(changes, delta.transaction_version(APP), batch):
        net = Net(keys)
        for change in part.to_pylist():
            net.take(change, names)
        _merge(delta, net, columns, position)
    return delta


def _opened(folder: str | Path, columns: pa.Schema) -> DeltaTable:
    """The Delta table, with all these columns."""
    if not DeltaTable.is_deltatable(str(folder)):
        Path(folder).mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(str(folder), pa.schema([column.with_nullable(True) for column in columns]))
    delta = DeltaTable(str(folder))
    there = {column.name for column in delta.schema().fields}
    added = pa.schema([column for column in columns if column.name not in there])
    if len(added):
        delta.alter.add_columns(Schema.from_arrow(added).fields)
    return delta


def _batches(changes: pa.Table, done: int | None, size: int) -> Iterator[tuple[pa.Table, int]]:
    """The changes behind the position `done`, in parts that end with a transaction, and where each ends."""
    positions = [place["commit_lsn"] for place in changes["_sequence"].to_pylist()]
    start = next((row for row, lsn in enumerate(positions) if done is None or lsn > done), len(positions))
    while start < len(positions):
        stop = min(start + size, len(positions))
        while stop < len(positions) and positions[stop] == positions[stop - 1]:
            stop += 1
        yield changes.slice(start, stop - start), positions[stop - 1]
        start = stop


def _merge(delta: DeltaTable, net: Net, columns: pa.Schema, position: int) -> None:
    """One MERGE, so one commit, with the position in it.

    The source has columns k0, k1, … with the key; gone; and for each column v with the value and s whether to set it.
    """
    moved = [row.origin for key, row in net.rows.items() if row and row.origin not in (None, key)]
    before = _rows_at(delta, net.keys, moved)
    source = []
    for key, row in net.rows.items():
        values = {} if row is None else row.sent
        is_whole = row is not None and row.origin != key
        if row is not None and is_whole and row.origin is not None:
            values = before.get(row.origin, {}) | values
        source.append(
            {
                **{f"k{place}": value for place, value in enumerate(key)},
                "gone": row is None,
                **{f"v{place}": values.get(name) for place, name in enumerate(columns.names)},
                **{f"s{place}": is_whole or name in values for place, name in enumerate(columns.names)},
            }
        )
    schema = pa.schema(
        [
            *(pa.field(f"k{place}", columns.field(name).type) for place, name in enumerate(net.keys)),
            pa.field("gone", pa.bool_()),
            *(pa.field(f"v{place}", column.type) for place, column in enumerate(columns)),
            *(pa.field(f"s{place}", pa.bool_()) for place in range(len(columns))),
        ]
    )
    same = " and ".join(f"t.{_quoted(name)} = s.k{place}" for place, name in enumerate(net.keys))
    set_or_kept = {
        _quoted(name): f"case when s.s{place} then s.v{place} else t.{_quoted(name)} end"
        for place, name in enumerate(columns.names)
    }
    merger = (
        delta.merge(
            pa.Table.from_pylist(source, schema),
            same,
            source_alias="s",
            target_alias="t",
            commit_properties=CommitProperties(app_transactions=[Transaction(APP, position)]),
        )
        .when_matched_delete("s.gone")
        .when_matched_update(set_or_kept)
        .when_not_matched_insert({_quoted(name): f"s.v{i}" for i, name in enumerate(columns.names)}, "not s.gone")
    )
    if net.is_truncated:
        merger = merger.when_not_matched_by_source_delete()
    merger.execute()


def _rows_at(delta: DeltaTable, keys: Sequence[str], wanted: Sequence[Key | None]) -> dict[Key, dict[str, Any]]:
    """Rows of the Delta table by their keys."""
    if not wanted:
        return {}
    first = {key[0] for key in wanted if key is not None}
    found = delta.to_pyarrow_table(filters=[(keys[0], "in", sorted(first))]).to_pylist()
    return {tuple(row[name] for name in keys): row for row in found}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def main(arguments: Sequence[str]) -> None:
    """Read a capture, apply it, and say what the table is then."""
    if arguments:
        capture, format, table, keys, folder = arguments
    else:
        here = SAMPLE.parent.parent / "build" / "delta" / "orders"
        capture, format, table, keys, folder = str(SAMPLE), "gaussdb-binary", "public.orders", "order_id", str(here)
    messages = pq.read_table(capture)["payload"]
    changes = wf.arrow.transactions(wf.arrow.changes(messages, format))
    typed = wf.arrow.typed(changes, table, complete=True)
    delta = keep_current(folder, typed, [key.strip() for key in keys.split(",")])
    print(f"{folder}: version {delta.version()}, {delta.count():,} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
