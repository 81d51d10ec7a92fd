"""Every call of spark_udfs as a query, by name: what a test asks through Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql.types import StructType

import spark_udfs
from spark_udfs.session import STATE_STORE

from ..engines import FORMAT
from ..servers.captures import read_capture
from .messages import LATE, TORN, transaction

CAPTURE = "18-pgoutput-4-two-phase"
"""A real server's: streamed, prepared and rolled back transactions, tables that change, values that are not sent."""
HALF = 1290
"""A message in the middle of it, where transactions are open."""
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for many small queries: compiling them would take longer than running them."""

MESSAGES = [transaction("a", None, "b"), None, transaction("é表", commit_time=LATE)]
TORN_MESSAGES = [transaction("a"), TORN]
"""Of gaussdb-binary."""
KEPT = {
    "months": "CAST(seq AS INTERVAL MONTH)",
    "time": "TIMESTAMP '0001-01-01 00:00:00 UTC'",
    "a.b": "array(seq, NULL)",
    "pairs": "map('k', CAST(seq AS decimal(20, 3)))",
}
"""Types that travel as text, nested ones, and a name with a dot."""
NOT_ALIKE = ("c time without time zone", "_old", "_error")
"""Columns of the table with all types: a time of day is text on Spark."""
PLACE: dict[str, Any] = {"order_by": ["seq"]}


class Input:
    """What the calls read, in one session; folder is for the files of streaming queries."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.raw.createOrReplaceTempView("connect_raw")
        self.torn.createOrReplaceTempView("connect_torn")
        self.records.selectExpr("'one' AS stream", "*").createOrReplaceTempView("connect_records")

    @cached_property
    def raw(self) -> DataFrame:
        """Messages of gaussdb-binary."""
        return self._frame(MESSAGES).repartition(2)

    @cached_property
    def torn(self) -> DataFrame:
        """A good message and a torn one."""
        return self._frame(TORN_MESSAGES)

    @cached_property
    def capture(self) -> DataFrame:
        """Messages of pgoutput, in three partitions and in any order."""
        return self._frame(read_capture(CAPTURE).messages).repartition(3)

    def questions(self, where: str = "true", **options: Any) -> spark_udfs.Capture:
        """The capture of the messages."""
        return spark_udfs.capture(self.capture.where(where), "payload", "pgoutput", **PLACE, **options)

    @cached_property
    def files(self) -> spark_udfs.Capture:
        """The capture of the messages in files, which the workers read."""
        folder = self.folder / "messages"
        folder.mkdir()
        messages = read_capture(CAPTURE).messages
        for number, part in enumerate((messages[:HALF], messages[HALF:])):
            pq.write_table(pa.table({"payload": pa.array(part, pa.binary())}), folder / f"{number}.parquet")
        return spark_udfs.capture(paths=folder, format="pgoutput", mode="PERMISSIVE")

    @cached_property
    def records(self) -> DataFrame:
        """The records of the capture."""
        return self.decoded().cache()

    def decoded(self, **options: Any) -> DataFrame:
        """The capture by `decode`."""
        return spark_udfs.decode(self.capture, "payload", "pgoutput", keep=["seq"], **PLACE, **options)

    def typed(self, table: str, *, mode: str = "FAILFAST", **options: Any) -> DataFrame:
        """Changes of a table."""
        return self.questions(mode=mode).typed(table, **options)

    def _frame(self, messages: list[Any]) -> DataFrame:
        columns = {"seq": pa.array(range(len(messages)), pa.int64()), "payload": pa.array(messages, pa.binary())}
        return self.spark.createDataFrame(pa.table(columns))

    def streamed(self, rows: DataFrame, call: Callable[[DataFrame], DataFrame], *parts: str) -> DataFrame:
        """What a streaming query delivers of these rows, all at once or part by part, from its checkpoint each time."""
        folder = self.folder / str(len(list(self.folder.iterdir())))
        given, found = str(folder / "given"), str(folder / "found")
        for part in parts or ["true"]:
            rows.where(part).write.mode("append").parquet(given)
            stream = call(self.spark.readStream.schema(rows.schema).parquet(given))
            writer = stream.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
            writer.format("parquet").trigger(availableNow=True).start(found).awaitTermination()
        return self.spark.read.parquet(found)


def _decode_all_kept(data: Input, **options: Any) -> DataFrame:
    rows = data.raw.selectExpr("*", *[f"{value} AS `{name}`" for name, value in KEPT.items()])
    decoded = spark_udfs.decode(rows, "payload", keep=["seq", *KEPT], **options)
    return decoded.withColumn("months", F.col("months").cast("string"))  # nor does Spark collect it by Arrow


def _typed_by_spark_schema(data: Input) -> DataFrame:
    fields = data.typed("public.by_key").schema.fields
    names = [field.name for field in fields]
    return data.typed("public.by_key", schema=StructType(fields[: names.index("_change_type")]))


def _unknown_prepared(data: Input) -> DataFrame:
    ends = data.questions("substring(payload, 1, 1) = X'4B'")  # COMMIT PREPARED
    return data.spark.createDataFrame([(gid,) for gid in ends.unknown_prepared], "gid string")


def _committed(rows: DataFrame) -> DataFrame:
    return spark_udfs.capture(rows, "payload", "pgoutput", **PLACE).committed()


CALLS: dict[str, Callable[[Input], DataFrame]] = {
    "decode": lambda data: spark_udfs.decode(data.raw, "payload", keep=["seq"]),
    "decode, kept": _decode_all_kept,
    "decode, kept, pandas": lambda data: _decode_all_kept(data, engine="pandas"),
    "decode, pgoutput": lambda data: data.decoded(),
    "decode, pgoutput, pandas": lambda data: data.decoded(engine="pandas", tables=["public.big"]),
    "capture.changes": lambda data: data.questions().changes(),
    "capture.committed": lambda data: data.questions(chunks=4).committed(),
    "capture.committed of a stream": lambda data: data.streamed(
        data.capture, _committed, f"seq < {HALF}", f"seq >= {HALF}"
    ),
    "capture.open": lambda data: data.questions(f"seq < {HALF}").open(),
    "capture.tables": lambda data: data.questions().tables(),
    "capture.typed": lambda data: data.questions().typed("public.by_key"),
    "capture.latest": lambda data: data.questions().latest("public.long_by_key", keys=["id"]),
    "capture.write": lambda data: (
        data.questions(mode="PERMISSIVE").write(str(data.folder / "lake")).drop("folder", "files")
    ),
    "capture.changes of files": lambda data: data.files.changes(),
    "capture.committed of files": lambda data: data.files.committed(),
    "capture.tables of files": lambda data: data.files.tables(),
    "capture.typed of files": lambda data: data.files.typed("public.by_key"),
    "capture.latest of files": lambda data: data.files.latest("public.long_by_key", keys=["id"]),
    "capture.write of files": lambda data: data.files.write(str(data.folder / "files")).drop("folder", "files"),
    "decode of a stream": lambda data: data.streamed(
        data.raw, lambda rows: spark_udfs.decode(rows, "payload", keep=["seq"])
    ),
    "wal_changes": lambda data: data.spark.sql(
        f"SELECT * FROM wal_changes(TABLE(connect_torn), '{FORMAT}', mode => 'PERMISSIVE')"
    ),
    "wal_decode": lambda data: data.spark.sql(
        f"SELECT r.seq, c.* FROM connect_raw r LATERAL VIEW inline(wal_decode(r.payload, '{FORMAT}')) c"
    ),
    "wal_decode_pandas": lambda data: data.spark.sql(
        f"SELECT seq, inline(wal_decode_pandas(payload, '{FORMAT}', tables => array('public.*'))) FROM connect_raw"
    ),
    "wal_transactions": lambda data: data.spark.sql(
        "SELECT * FROM wal_transactions(TABLE(connect_records) PARTITION BY stream ORDER BY (seq, record, table_name))"
    ),
    "lsn_text, lsn_value": lambda data: data.spark.sql(
        "SELECT lsn_text(lsn) AS text, lsn FROM connect_records WHERE lsn >= lsn_value('0/1')"
    ),
    "capture.committed, at prepare": lambda data: data.questions(chunks=5, two_phase="prepare").committed(),
    "capture.unknown_prepared": _unknown_prepared,
    "typed, all types": lambda data: data.typed("public.every_type", mode="PERMISSIVE").drop(*NOT_ALIKE),
    "typed, both images": lambda data: data.typed("public.by_row_with_key", images="both"),
    "typed, by a schema": _typed_by_spark_schema,
    "typed, by names": lambda data: data.typed("public.big", schema={"id": "bigint"}, complete=True),
    "latest of typed changes": lambda data: spark_udfs.latest(data.typed("public.long_by_key"), ["id"]),
    "latest, by row": lambda data: data.questions().latest("public.by_row"),
}


def _corrupt(data: Input) -> DataFrame:
    return spark_udfs.capture(data.torn, "payload", mode="PERMISSIVE", **PLACE).committed()


def _other_state_store(data: Input) -> DataFrame:
    before = data.spark.conf.get(STATE_STORE)
    data.spark.conf.set(STATE_STORE, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        return data.streamed(data.capture, _committed)
    finally:
        data.spark.conf.set(STATE_STORE, str(before))


FAULTS: dict[str, Callable[[Input], DataFrame]] = {
    "decode": lambda data: spark_udfs.decode(data.torn, "payload", keep=["seq"]),
    "decode of a stream": lambda data: data.streamed(
        data.torn, lambda rows: spark_udfs.decode(rows, "payload", keep=["seq"])
    ),
    "capture": _corrupt,
    "capture of a stream": _other_state_store,
    "an option": lambda data: spark_udfs.decode(data.raw, "payload", mode="FAILFST"),
    "local_session": lambda data: spark_udfs.local_session().range(1),
}
"""Calls that end with an error."""


def fault(data: Input, name: str) -> str:
    """The error that ends a call; raises LookupError if none does."""
    try:
        FAULTS[name](data).toArrow()
    except Exception as error:  # whatever a user of Spark sees
        return f"{type(error).__name__}: {error}"
    raise LookupError(name)
