"""DuckDB, Polars and deltalake read lakes."""

from __future__ import annotations

from pathlib import Path

import deltalake
import duckdb
import polars
import pytest

import wireformat as wf

from .histories import TABLES, messages_of, transactions

MESSAGES = messages_of([*transactions(60, more="total")])


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("state", ["changes", "latest"])
def test_readers(format: str, state: str, tmp_path: Path) -> None:
    """Also after a second write, which adds a column."""
    keys = {"keys": ["id"]} if state == "latest" else {}
    for messages in (MESSAGES[:20], MESSAGES) if (format, state) != ("parquet", "latest") else (MESSAGES,):
        wf.Capture(messages, "gaussdb-binary").write(tmp_path, format=format, state=state, **keys)
    folders = {row["table_name"]: row["folder"] for row in wf.lake.tables(tmp_path).to_pylist()}
    for name in TABLES:
        capture, table, folder = wf.Capture(MESSAGES, "gaussdb-binary"), f"public.{name}", folders[name]
        wanted = capture.latest(table, keys=["id"]) if keys else capture.typed(table).read_all()
        rows = sorted(zip(*(wanted[column].to_pylist() for column in ("id", "text", "total")), strict=True), key=repr)
        if format == "parquet":
            source = f"read_parquet('{folder}/*.parquet', union_by_name=true)"
            frames = [polars.read_parquet(file).drop("_old", strict=False) for file in Path(folder).glob("*.parquet")]
            frame = polars.concat(frames, how="diagonal")
        else:
            dataset = deltalake.DeltaTable(folder).to_pyarrow_dataset()
            source, frame = "dataset", polars.read_delta(folder)
            assert dataset.count_rows() == len(rows)
        assert sorted(duckdb.sql(f"SELECT id, text, total FROM {source}").fetchall(), key=repr) == rows
        assert sorted(frame.select("id", "text", "total").rows(), key=repr) == rows
        place = frame.filter(polars.col("_sequence").struct.field("commit_lsn") > 0)
        assert len(place) == len(rows)
