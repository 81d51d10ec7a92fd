"""Rules of `wireformat` as Spark SQL: which rows are resent or undone, and the order of the rows of a TRUNCATE.

tests/spark/test_sql_rules.py compares each with the rule in Python, for every combination of values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import BinaryType


def is_resent(commit_lsn: Column, csn: Column, highest_lsn: Column, highest_csn: Column) -> Column:
    """`Position.covers`: whether a transaction with this commit LSN and CSN came before, given the highest ones.

    Numbers are bigints with the bits of unsigned ones.
    """
    is_lsn_below = F.coalesce(_unsigned(commit_lsn) <= _unsigned(highest_lsn), F.lit(False))
    is_csn_below = F.coalesce(_unsigned(csn) <= _unsigned(highest_csn), F.lit(False))
    return is_lsn_below & (csn.isNull() | is_csn_below)


def _unsigned(number: Column) -> Column:
    """A bigint that is ordered as the unsigned number with the same bits."""
    return number.bitwiseXOR(F.lit(-(1 << 63)))


def is_undone(undone: Column, xid: Column) -> Column:
    """`Attempt.is_undone`: whether an array, which may be null, holds the xid of a row."""
    return F.coalesce(F.array_contains(undone, xid), F.lit(False))


def truncate_tie() -> Column:
    """What orders the rows of one TRUNCATE: schema and name of the table; empty in all other rows."""
    names = [F.coalesce(F.col(name), F.lit("")) for name in ("table_schema", "table_name")]
    return F.when(F.col("kind") == "TRUNCATE", F.concat_ws("\0", *names)).otherwise("").cast(BinaryType())


def truncate_ties(rows: pa.RecordBatch) -> pa.Array:
    """`truncate_tie` of a record batch, as texts, which Arrow orders by their bytes."""
    names = [pc.fill_null(rows[name], "") for name in ("table_schema", "table_name")]
    return pc.if_else(pc.equal(rows["kind"], "TRUNCATE"), pc.binary_join_element_wise(*names, "\0"), "")
