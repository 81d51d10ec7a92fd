"""register: registers the SQL functions in a session."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

from ..schemas import rows_of_message, rows_of_table, rows_of_transactions
from ..source.data_source import WireformatSource
from .lsn_functions import LSN_FUNCTIONS
from .scalar_functions import wal_decode, wal_decode_pandas
from .table_function import WalChanges
from .transactions_function import WalTransactions


def register(spark: SparkSession) -> None:
    """Registers the SQL functions and the data source `wireformat`.

    The functions are wal_changes, wal_transactions, wal_decode, wal_decode_pandas, lsn_text and lsn_value.

    Call it once per session; more calls do no harm. docs/spark.md describes the functions.
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
