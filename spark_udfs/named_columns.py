"""Whether the rows of a table name the columns of a schema that the caller gives: a look at the call.

A task sees some rows only, and columns come and go, so no task can say that a column is misspelled. Most often the
first INSERT names all columns, and that is enough. All rows are read only where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from wireformat.formats.signatures import HEAD_BYTES

NAMES = "array<string>"


def check_named(changes: DataFrame, own: DataFrame, columns: Sequence[str], table: str, format: str | None) -> None:
    """Raises OptionError for a column that no row of the table names, where a row names all columns; BadRows where
    nothing could be read.

    changes   all rows
    own       those that may be of the table
    An error in the rows themselves is left to the query that computes the result.
    """
    try:
        _check_named(changes, own, columns, table, format)
    except PySparkException:
        return


def _check_named(changes: DataFrame, own: DataFrame, columns: Sequence[str], table: str, format: str | None) -> None:
    from wireformat.arrow.typed_tables.columns import no_such_column  # loads numba
    from wireformat.arrow.typed_tables.images import is_numbered

    complete = own.where(F.col("kind").isin("INSERT", "RELATION"))
    has_no_types = (F.col("kind") == "INSERT") & F.col("types").isNull()
    first = complete.select(_names(own).alias("names"), has_no_types.alias("untyped")).limit(1).collect()
    if not first:
        check_readable(changes, own, format)
        return
    if set(columns) <= set(first[0]["names"]) or (first[0]["untyped"] and is_numbered(tuple(first[0]["names"]))):
        return
    named = [row["name"] for row in own.select(F.explode(_names(own)).alias("name")).distinct().collect()]
    missing = [name for name in columns if name not in named]
    if missing:
        raise no_such_column(missing[0], sorted(named), table)


def check_readable(changes: DataFrame, own: DataFrame, format: str | None) -> None:
    """Raises BadRows where there are no rows of a table, since no row at all could be read."""
    from wireformat.arrow.unread import HEADS, UNREAD, Seen  # loads numba

    if own.where(~F.col("kind").isin(*UNREAD)).limit(1).collect():
        return
    if changes.where(~F.col("kind").isin(*UNREAD)).limit(1).collect():
        return
    rows = changes.select(F.col("kind"), raw_head(changes).alias("raw")).limit(HEADS).collect()
    heads = tuple(bytes(row["raw"]) for row in rows if row["raw"] is not None)
    Seen(False, len(rows), len(rows), heads).check(format)


def raw_head(changes: DataFrame) -> Column:
    """The beginning of the bytes of a row that could not be read; null in others, and where there is no column raw."""
    from wireformat.arrow.unread import UNREAD

    if "raw" not in changes.columns:
        return F.lit(None).cast("binary")
    return F.when(F.col("kind").isin(*UNREAD), F.substring(F.col("raw"), 1, HEAD_BYTES))


def _names(own: DataFrame) -> Column:
    """The columns that a row names."""
    none = F.array().cast(NAMES)
    said = [F.map_keys("new"), F.map_keys("old"), F.col("unchanged")]
    if "detail" in own.columns:
        said.append(F.from_json(F.try_element_at(F.col("detail"), F.lit("columns")), NAMES))
    return F.concat(*[F.coalesce(names, none) for names in said])
