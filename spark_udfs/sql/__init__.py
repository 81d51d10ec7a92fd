"""The SQL functions, and `register`, which makes them known to a session. lsn_text and lsn_value are written here."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

from ..schemas import rows_of_message, rows_of_table, rows_of_transactions
from ..source.data_source import WireformatSource
from .functions import WalChanges, WalTransactions, wal_decode, wal_decode_pandas

LSN_FUNCTIONS = (
    """
    CREATE OR REPLACE TEMPORARY FUNCTION lsn_text(lsn BIGINT)
    RETURNS STRING
    COMMENT 'An LSN as the servers print it: 0/CFE5C80. Takes the bigint with the same bits.'
    RETURN concat(hex(shiftrightunsigned(lsn, 32)), '/', hex(lsn & 4294967295))
    """,
    """
    CREATE OR REPLACE TEMPORARY FUNCTION lsn_value(text STRING)
    RETURNS BIGINT
    COMMENT 'The bigint with the bits of an LSN such as 0/CFE5C80.'
    RETURN CASE
        WHEN text IS NULL THEN NULL
        WHEN text <> '' AND text = regexp_extract(text, '^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}', 0) THEN
            shiftleft(CAST(conv(split_part(text, '/', 1), 16, 10) AS BIGINT), 32)
            | CAST(conv(split_part(text, '/', 2), 16, 10) AS BIGINT)
        ELSE raise_error(concat(
            'lsn_value: an LSN is two hexadecimal numbers of up to 8 digits with a slash between, got ', text))
    END
    """,
)
"""The SQL statements that create the functions. `wireformat.lsn` does the same in Python.

They have no backslash, which a setting of the session may keep as it is."""


def register(spark: SparkSession) -> None:
    """Registers the SQL functions and the data source `wireformat`.

    spark   the session, also one of Spark Connect

    The functions are wal_changes, wal_transactions, wal_decode, wal_decode_pandas, lsn_text and lsn_value. Call it once
    per session; more calls do no harm. Raises TypeError if it is no session. docs/spark.md describes the functions.
    """
    if not all(hasattr(spark, name) for name in ("sql", "udf", "udtf")):  # Spark Connect has a class of its own
        raise TypeError(f"spark: expected a SparkSession, got {type(spark).__name__}")
    spark.udtf.register("wal_changes", arrow_udtf(WalChanges, returnType=rows_of_table()))  # type: ignore[arg-type]
    committed = arrow_udtf(WalTransactions, returnType=rows_of_transactions())
    spark.udtf.register("wal_transactions", committed)  # type: ignore[arg-type]
    rows = rows_of_message()
    spark.udf.register("wal_decode", arrow_udf(wal_decode, rows))  # type: ignore[call-overload]
    spark.udf.register("wal_decode_pandas", pandas_udf(wal_decode_pandas, rows))  # type: ignore[call-overload]
    try:
        spark.dataSource.register(WireformatSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # a new session has those of the one that made it
            raise
    for statement in LSN_FUNCTIONS:
        spark.sql(statement)
