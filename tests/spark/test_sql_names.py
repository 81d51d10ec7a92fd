"""SQL writes names in any case, and sees a missing format in words of the function."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

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
