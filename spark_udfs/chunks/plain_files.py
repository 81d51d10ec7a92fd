"""Which DataFrames do nothing but read Parquet files of this machine, which Python can then read without the JVM."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame

_SQL = "org.apache.spark.sql"
_PROJECT = f"{_SQL}.catalyst.plans.logical.Project"
_ATTRIBUTE = f"{_SQL}.catalyst.expressions.AttributeReference"
_READ = f"{_SQL}.execution.datasources.LogicalRelation"
_OF_FILES = f"{_SQL}.execution.datasources.HadoopFsRelation"
_PARQUET = f"{_SQL}.execution.datasources.parquet.ParquetFileFormat"
_LISTED = f"{_SQL}.execution.datasources.InMemoryFileIndex"

_IGNORING = ("ignoreCorruptFiles", "ignoreMissingFiles")
"""Options, and settings below spark.sql.files, with which Spark leaves out what it cannot read."""

_BY_IDS = "spark.sql.parquet.fieldId.read.enabled"
"""With this setting, Spark may find columns by other things than their names."""


def parquet_files(df: DataFrame, names: Collection[str]) -> list[Path] | None:
    """Returns the Parquet files of which a DataFrame is all rows, with these columns as they are in the files.

    None if the DataFrame is anything else, has a filter for example, or is cached, or if it cannot be seen: Spark
    Connect does not show its plan.
    """
    if not hasattr(df, "_jdf"):  # as in Spark Connect
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        read = _plain_read(df, names)
        files = [] if read is None else [urlsplit(str(file)) for file in read.location().inputFiles()]
    except Py4JError:  # what is looked at is no public interface of Spark
        return None
    if not files or any(file.scheme != "file" or file.netloc for file in files) or len({*files}) < len(files):
        return None  # a file may be read twice
    return [Path(unquote(file.path)) for file in files]


def _plain_read(df: DataFrame, names: Collection[str]) -> Any:
    """Returns the relation that a DataFrame does nothing but read, or None."""
    plan = df._jdf.queryExecution().optimizedPlan()
    while _class(plan) == _PROJECT:
        if any(_class(column) != _ATTRIBUTE for column in _items(plan.projectList())):
            return None
        plan = plan.child()
    if _class(plan) != _READ or _class(read := plan.relation()) != _OF_FILES:
        return None
    folders = {name.lower() for name in read.partitionSchema().fieldNames()}
    conf = df.sparkSession.conf
    ignores = any(
        read.options().contains(name) or conf.get(f"spark.sql.files.{name}", "false") != "false" for name in _IGNORING
    )
    is_plain = (
        (_class(read.fileFormat()), _class(read.location())) == (_PARQUET, _LISTED)
        and read.bucketSpec().isEmpty()
        and folders.isdisjoint(name.lower() for name in names)
        and not ignores
        and conf.get(_BY_IDS, "false") == "false"
    )
    return read if is_plain else None


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]
