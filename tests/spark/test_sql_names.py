"""SQL writes names in any case, and sees a missing format in words of the function."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import wireformat as wf
from spark_udfs.sql.functions import WalTransactions, read_arguments

from ..engines import FORMAT
from .messages import transaction

pytestmark = pytest.mark.spark


def test_names_of_arguments(spark: SparkSession) -> None:
    spark.createDataFrame([(1, transaction("a"))], "seq int, payload binary").createOrReplaceTempView("named_messages")
    upper = f"SELECT * FROM wal_changes(TABLE(named_messages), FORMAT => '{FORMAT}', KINDS => array('INSERT'))"
    assert spark.sql(upper).count() == 1
    scalar = f"SELECT inline(wal_decode(payload, '{FORMAT}', KINDS => array('INSERT'))) FROM named_messages"
    assert spark.sql(scalar).count() == 1
    changes = f"SELECT * FROM wal_changes(TABLE(named_messages), '{FORMAT}')"
    prepare = "WITH SINGLE PARTITION ORDER BY (seq, record), TWO_PHASE => 'prepare'"
    assert spark.sql(f"SELECT * FROM wal_transactions(TABLE({changes}) {prepare})").count() == 1
    with pytest.raises(
        PythonException, match="wal_transactions: unknown option 'two_phases', did you mean 'two_phase'"
    ):
        spark.sql(f"SELECT * FROM wal_transactions(TABLE({changes}), two_phases => 'prepare')").collect()
    with pytest.raises(PythonException, match="wal_changes: expected the name of a format"):
        spark.sql("SELECT * FROM wal_changes(TABLE(named_messages))").collect()


def test_an_option_that_is_given_twice() -> None:
    """In two cases, or by position and by name: neither is the one that counts."""
    text, mode = pa.array(["gaussdb-json"]), pa.array(["PERMISSIVE"])
    calls: list[tuple[str, Any, list[Any], dict[str, Any]]] = [
        ("mode", text, [], {"mode": mode, "MODE": mode}),
        ("mode", text, [mode], {"Mode": mode}),
        ("format", text, [], {"FORMAT": text}),
        ("format", None, [], {"FORMAT": text, "Format": text}),
    ]
    for name, *arguments in calls:
        with pytest.raises(wf.OptionError, match=f"wal_changes: option {name} is given twice"):
            read_arguments("wal_changes", *arguments)
    rows = wf.arrow.changes([transaction("a")], FORMAT).rename_columns({"message": "seq"}).to_batches()[0]
    with pytest.raises(wf.OptionError, match="wal_transactions: option two_phase is given twice"):
        [*WalTransactions().eval(rows, pa.array(["prepare"]), TWO_PHASE=pa.array(["commit"]))]
