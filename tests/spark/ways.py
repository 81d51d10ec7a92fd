"""The ways to decode on Spark, by name, behind one signature; and their rows in a form that compares well."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import spark_udfs
import wireformat as wf

from .. import engines
from ..engines import FORMAT

SHOWN = 200
"""How much of what differs is shown."""


@dataclass(frozen=True)
class Way:
    """One way to decode."""

    run: Callable[..., DataFrame]
    """(messages with columns seq and payload, format, options of ReadOptions) to seq and the rows"""

    def wanted(self, messages: Any, format: str = FORMAT, **options: Any) -> list[dict[str, Any]]:
        """The rows of `wf.arrow.changes`, in the form of `found_rows`."""
        return found_rows(wf.arrow.changes(messages, format, **options).rename_columns({"message": "seq"}))


def write_messages(folder: Path, messages: Sequence[bytes | None], *, files: int = 2) -> str:
    """Put messages into Parquet files with the columns seq and payload; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"seq": pa.array(range(len(messages)), pa.int64()), "payload": pa.array(messages, pa.binary())})
    size = max(1, -(-len(messages) // files))
    for number, begin in enumerate(range(0, len(messages), size)):
        pq.write_table(table.slice(begin, size), folder / f"part-{number}.parquet")
    return str(folder)


def _with_arrow(df: DataFrame, format: str = FORMAT, **options: Any) -> DataFrame:
    return spark_udfs.decode(df, "payload", format, keep=["seq"], **options)


def _with_pandas(df: DataFrame, format: str = FORMAT, **options: Any) -> DataFrame:
    return spark_udfs.decode(df, "payload", format, keep=["seq"], engine="pandas", **options)


def _with_table_function(df: DataFrame, format: str = FORMAT, **options: Any) -> DataFrame:
    df.createOrReplaceTempView("messages")
    table = "TABLE(SELECT seq, payload FROM messages)"
    return df.sparkSession.sql(f"SELECT * FROM wal_changes({table}, format => '{format}'{_named(options)})")


def _with_scalar(df: DataFrame, format: str = FORMAT, **options: Any) -> DataFrame:
    df.createOrReplaceTempView("messages")
    rows = f"wal_decode(m.payload, '{format}'{_named(options)})"
    return df.sparkSession.sql(f"SELECT m.seq, c.* FROM messages m LATERAL VIEW inline({rows}) c")


def _with_pandas_scalar(df: DataFrame, format: str = FORMAT, **options: Any) -> DataFrame:
    df.createOrReplaceTempView("messages")
    rows = f"wal_decode_pandas(payload, '{format}'{_named(options)})"
    return df.sparkSession.sql(f"SELECT seq, inline({rows}) FROM messages")


WAYS = {
    "decode": Way(_with_arrow),
    "decode in pandas": Way(_with_pandas),
    "wal_changes": Way(_with_table_function),
    "wal_decode": Way(_with_scalar),
    "wal_decode_pandas": Way(_with_pandas_scalar),
}


def _named(options: dict[str, Any]) -> str:
    """Options as SQL writes them by name."""
    return "".join(f", {name} => {_literal(value)}" for name, value in options.items())


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return f"array({', '.join(map(_literal, value))})"


def found_rows(rows: DataFrame | pa.Table) -> list[dict[str, Any]]:
    """All rows in the order of the messages. Errors lose the number of the message, which is another in each task."""
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    found = engines.rows(table.sort_by([("seq", "ascending"), ("record", "ascending")]))
    for row in found:
        row["error"] = row["error"] and re.sub(r"message \d+, ", "", row["error"])
    return found


def assert_same_rows(found: Iterable[dict[str, Any]], wanted: Iterable[dict[str, Any]]) -> None:
    """Fails at the first row that differs: a difference of whole lists takes minutes to print."""
    for place, (left, right) in enumerate(zip(found, wanted, strict=True)):
        assert left == right, f"row {place}: {different_fields(left, right)}"


def different_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The fields in which two rows differ, with the beginning of what differs."""
    return {
        name: different_texts(repr(one.get(name)), repr(other.get(name)))
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    }


def different_texts(one: str, other: str) -> tuple[str, str]:
    """What two texts have from shortly before their first difference on."""
    places = (place for place, pair in enumerate(zip_longest(one, other)) if pair[0] != pair[1])
    begin = max(0, next(places, 0) - 20)
    return one[begin : begin + SHOWN], other[begin : begin + SHOWN]
