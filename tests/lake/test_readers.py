"""DuckDB, Polars and deltalake read lakes."""

from __future__ import annotations

from pathlib import Path

import deltalake
import duckdb
import polars
import pyarrow as pa
import pytest

import wireformat as wf
from wireformat.lake.lake import Lake

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


def test_no_pattern_finds_files_before_all_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB and Polars do not skip names that begin with a dot."""
    wf.Capture(MESSAGES[:20], "gaussdb-binary").write(tmp_path)
    folder = Path(wf.lake.tables(tmp_path)["folder"][0].as_py())
    (count,) = duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/*.parquet')").fetchall()[0]
    found = []

    def look(lake: Lake) -> None:
        if [*folder.glob(".wireformat-*")]:
            for pattern in (f"{folder}/*.parquet", f"{folder}/**/*.parquet"):
                rows = duckdb.sql(f"SELECT count(*) FROM read_parquet('{pattern}')").fetchall()
                found.extend([*rows, (polars.scan_parquet(pattern).select("id").collect().height,)])
        check_alone(lake)

    check_alone = Lake.check_alone
    monkeypatch.setattr(Lake, "check_alone", look)
    wf.Capture(MESSAGES, "gaussdb-binary").write(tmp_path)
    assert set(found) == {(count,)}
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{folder}/*.parquet')").fetchall()[0][0] > count


_TEXTS = ["a/b", "..", "%41", "a%2Fb", "é", "a=b", " x ", "x\ny", "'\"", "a:b", "a\\b", "#x?y&z", "+", "NULL", None]


@pytest.mark.parametrize(
    ("sql_type", "texts"),
    [
        ("text", _TEXTS),
        ("double precision", ["NaN", "Infinity", "0", "1e+300", None]),
        ("timestamp with time zone", ["2024-01-01 10:00:00.123456+00", "2024-01-01 10:00:00+05"]),
        ("boolean", ["t", "f", None]),
    ],
)
@pytest.mark.parametrize("durable", [False, True])
def test_partitions_of_a_delta_table(sql_type: str, texts: list[str | None], durable: bool, tmp_path: Path) -> None:
    """Polars takes their values from the names of folders, not from the log."""
    parts: list[list[wf.Event]] = []
    for number, text in enumerate(texts):
        lsn = 100 + 50 * number
        row = wf.TupleData(("id", "v"), (str(number), text), ("integer", sql_type))
        insert = wf.Insert(lsn=lsn + 8, table_schema="a", table_name="t", new=row)
        begin = wf.Begin(lsn=lsn, csn=number + 1, first_lsn=lsn)
        parts.append([begin, insert, wf.Commit(lsn=lsn + 16, xid=number)])
    messages = messages_of(parts)
    for end in (1, len(messages)):
        capture = wf.Capture(messages[:end], "gaussdb-binary")
        capture.write(tmp_path, format="delta", partition_by="v", durable=durable)
    wanted = repr(capture.typed("a.t").read_all()["v"].to_pylist())
    folder = str(tmp_path / "a" / "t")
    assert repr(deltalake.DeltaTable(folder).to_pyarrow_table().sort_by("id")["v"].to_pylist()) == wanted
    found = polars.read_delta(folder).sort("id")["v"].to_list()
    assert repr(pa.array(found, capture.typed("a.t").schema.field("v").type).to_pylist()) == wanted
