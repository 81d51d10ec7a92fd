"""Rules of `wireformat` in Spark SQL: which rows are resent or undone, and the order of the rows of a TRUNCATE.

tests/spark/test_sql_rules.py compares each with the rule in Python, for every combination of values.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import BinaryType


def is_resent(commit_lsn: Column, csn: Column, highest_lsn: Column, highest_csn: Column) -> Column:
    """Returns whether a transaction with this commit LSN and CSN has been delivered before, given the highest ones.

    The rule is `Position.covers`.

    Numbers are bigints with the bits of unsigned ones.
    """
    is_lsn_below = F.coalesce(_unsigned(commit_lsn) <= _unsigned(highest_lsn), F.lit(False))
    is_csn_below = F.coalesce(_unsigned(csn) <= _unsigned(highest_csn), F.lit(False))
    return is_lsn_below & (csn.isNull() | is_csn_below)


def _unsigned(number: Column) -> Column:
    """Returns a bigint that sorts like the unsigned number with the same bits."""
    return number.bitwiseXOR(F.lit(-(1 << 63)))


def is_undone(undone: Column, xid: Column) -> Column:
    """Returns whether an array, which may be null, contains the xid of a row: the rule `Attempt.is_undone`."""
    return F.coalesce(F.array_contains(undone, xid), F.lit(False))


def truncate_tie() -> Column:
    """Returns what sorts the rows of one TRUNCATE: schema and name of the table; empty in all other rows."""
    names = [F.coalesce(F.col(name), F.lit("")) for name in ("table_schema", "table_name")]
    return F.when(F.col("kind") == "TRUNCATE", F.concat_ws("\0", *names)).otherwise("").cast(BinaryType())


def truncate_ties(rows: pa.RecordBatch) -> pa.Array:
    """Returns `truncate_tie` for a record batch, as texts, which Arrow sorts by their bytes."""
    names = [pc.fill_null(rows[name], "") for name in ("table_schema", "table_name")]
    return pc.if_else(pc.equal(rows["kind"], "TRUNCATE"), pc.binary_join_element_wise(*names, "\0"), "")
