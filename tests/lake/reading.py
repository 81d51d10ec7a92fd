"""What a lake holds, as tables like those of `Capture.typed` and `Capture.latest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import wireformat as wf

Table = tuple[str, str]


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "_wireformat.json").read_text()))


def tables_of(folder: Path) -> list[Table]:
    return [(row["table_schema"], row["table_name"]) for row in manifest_of(folder)["tables"]]


def read(folder: Path, table: Table) -> pa.Table:
    """The rows of a table, in the order of `_sequence`."""
    return _rows_of(_listed(folder)[table])


def read_all(folder: Path) -> dict[Table, pa.Table]:
    """The same of all tables."""
    return {table: _rows_of(row) for table, row in _listed(folder).items()}


def read_all_with_duckdb(folder: Path) -> dict[Table, pa.Table]:
    """The rows of all tables, as DuckDB reads them, with the types that `read_all` has."""
    found = {}
    for table, row in _listed(folder).items():
        if row["files"] is None:
            rows = deltalake.DeltaTable(Path(row["folder"]).as_uri()).to_pyarrow_dataset()
            source, schema = duckdb.arrow(rows), rows.schema
        else:
            source = duckdb.read_parquet(row["files"], union_by_name=True)
            schema = pa.unify_schemas([pq.read_schema(file) for file in row["files"]], promote_options="permissive")
        found[table] = in_order(source.to_arrow_table().cast(schema))
    return found


def _listed(folder: Path) -> dict[Table, dict[str, Any]]:
    return {(row["table_schema"], row["table_name"]): row for row in wf.lake.tables(folder).to_pylist()}


def _rows_of(row: dict[str, Any]) -> pa.Table:
    if row["files"] is None:
        delta = deltalake.DeltaTable(Path(row["folder"]).as_uri())
        found = delta.to_pyarrow_table()
        commits = {path.stem: path.read_text() for path in Path(row["folder"], "_delta_log").glob("*.json")}
        if "0" * 20 in commits:  # else early ones have been removed
            own = [path.name for path in Path(row["folder"]).rglob("wireformat-*.parquet")]
            log = " ".join(commits.values())
            assert not [name for name in own if name not in log], "what readers of the folder see"
    else:
        schema = pa.unify_schemas([pq.read_schema(file) for file in row["files"]], promote_options="permissive")
        found = ds.dataset(row["files"], schema).to_table()
        assert sorted(ds.dataset(row["folder"]).files) == sorted(row["files"]), "what readers of the folder see"
    return in_order(found)


def in_order(table: pa.Table) -> pa.Table:
    sequence = table["_sequence"]
    keys = pa.table({name: pc.struct_field(sequence, name) for name in ("commit_lsn", "ordinal")})
    # rows that are equal, which have one _sequence, need no order
    return table.take(pc.sort_indices(keys, [("commit_lsn", "ascending"), ("ordinal", "ascending")]))


def values(table: pa.Table) -> list[str]:
    """The rows as texts, which show NaN as equal to itself; times of day as text, and without the old rows of tables
    without columns."""
    fields = [field for field in table.schema if not pa.types.is_struct(field.type) or field.type.num_fields]
    return sorted(repr([_plain(row[field.name]) for field in fields]) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.isoformat(timespec="microseconds") if hasattr(value, "hour") and not hasattr(value, "year") else value


def names_of(tables: pa.Table) -> list[Table]:
    return list(dict.fromkeys(zip(tables["table_schema"].to_pylist(), tables["table_name"].to_pylist(), strict=True)))
