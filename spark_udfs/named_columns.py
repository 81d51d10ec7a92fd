"""The check, when `typed` is called, that the rows of a table name the columns of a given schema.

A task sees only some rows, and columns come and go, so no task can tell that a column is misspelled. Usually the first
INSERT names all columns, which is enough. Otherwise, all rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from wireformat.formats.signatures import HEAD_BYTES

NAMES = "array<string>"


def check_named(changes: DataFrame, own: DataFrame, columns: Sequence[str], table: str, format: str | None) -> None:
    """Raises OptionError if the schema and the rows of the table do not name the same columns; BadRows if no row could
    be read.

    changes   all rows
    own       the rows that may belong to the table
    columns   the columns of the schema

    If a row names all columns, each column of the schema must be one of them. If INSERTs name no columns, as in
    sql-decoding, the schema must have each column that another row names. An error in the rows themselves is left to
    the query that computes the result.
    """
    try:
        _check_named(changes, own, columns, table, format)
    except PySparkException:
        return


def _check_named(changes: DataFrame, own: DataFrame, columns: Sequence[str], table: str, format: str | None) -> None:
    from wireformat.arrow.typed_tables.columns import check_no_column_lost, no_such_column  # loads numba
    from wireformat.arrow.typed_tables.images import is_numbered

    complete = own.where(F.col("kind").isin("INSERT", "RELATION"))
    has_no_types = (F.col("kind") == "INSERT") & F.col("types").isNull()
    first = complete.select(_names(own).alias("names"), has_no_types.alias("untyped")).limit(1).collect()
    if not first:
        check_readable(changes, own, format)
        return
    inserts_have_no_names = first[0]["untyped"] and is_numbered(tuple(first[0]["names"]))
    if not inserts_have_no_names and set(columns) <= set(first[0]["names"]):
        return
    named = sorted(row["name"] for row in own.select(F.explode(_names(own)).alias("name")).distinct().collect())
    if inserts_have_no_names:
        check_no_column_lost(columns, named, table)
        return
    missing = [name for name in columns if name not in named]
    if missing:
        raise no_such_column(missing[0], named, table)


def check_readable(changes: DataFrame, own: DataFrame, format: str | None) -> None:
    """Raises BadRows if there are no rows of a table because no row at all could be read."""
    from wireformat.arrow.unread import HEADS, UNREAD, ReadSummary  # loads numba

    if own.where(~F.col("kind").isin(*UNREAD)).limit(1).collect():
        return
    if changes.where(~F.col("kind").isin(*UNREAD)).limit(1).collect():
        return
    rows = changes.select(F.col("kind"), raw_head(changes).alias("raw")).limit(HEADS).collect()
    heads = tuple(bytes(row["raw"]) for row in rows if row["raw"] is not None)
    ReadSummary(False, len(rows), len(rows), heads).check(format)


def raw_head(changes: DataFrame) -> Column:
    """Returns the first bytes of a row that could not be read; null for other rows, or if there is no column raw."""
    from wireformat.arrow.unread import UNREAD

    if "raw" not in changes.columns:
        return F.lit(None).cast("binary")
    return F.when(F.col("kind").isin(*UNREAD), F.substring(F.col("raw"), 1, HEAD_BYTES))


def _names(own: DataFrame) -> Column:
    """Returns the columns that a row names."""
    none = F.array().cast(NAMES)
    named = [F.map_keys("new"), F.map_keys("old"), F.col("unchanged")]
    if "detail" in own.columns:
        named.append(F.from_json(F.try_element_at(F.col("detail"), F.lit("columns")), NAMES))
    return F.concat(*[F.coalesce(names, none) for names in named])
