"""The partitions of a table: the rows of each value of a column have a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BadRows, OptionError
from ..options.checks import shown
from ..options.table_names import one_table, written

COMMIT_DATE = "commit_date"
"""In `partition_by`: the date of `_commit_time`."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value in the name of the folder whose rows have NULL."""

_MOST_FOLDER_CHARACTERS = 255
"""File systems accept no longer names."""


def partition_column(given: str | Mapping[str, str] | None, table: tuple[str, str]) -> str | None:
    """Returns the column that `partition_by` names for a table; None if the table has no partitions."""
    if given is None or isinstance(given, str):
        return given
    return next((column for name, column in given.items() if one_table(name) == table), None)


def check_partition_column(
    table: tuple[str, str], column: str, columns: pa.StructType, *, is_merged: bool, state: str
) -> None:
    """Raises OptionError if a table cannot have partitions by a column.

    columns     the columns of the table
    is_merged   see Partitions
    """
    where = f"option partition_by: table {written(table)}"
    names = [field.name for field in columns]
    if column == COMMIT_DATE:
        if state == "latest":
            raise OptionError("option partition_by: rows of state='latest' have no commit_date; name a column")
        if column in names:
            raise OptionError(f"{where} has a column {column!r} of its own; partition it by another one")
    elif column not in names:
        raise OptionError(
            f"{where} has no column {shown(column)}; give a mapping of table to column, or {COMMIT_DATE!r}"
        )
    elif is_merged and not column.isprintable():
        raise OptionError(
            f"{where}: deltalake cannot merge into partitions by a column whose name has characters that are not "
            "printed; name another one, or write state='changes'"
        )
    elif pa.types.is_nested(columns.field(names.index(column)).type):
        raise OptionError(f"{where}: column {column!r} has arrays, which no partition can have; name another one")


class Partitions:
    """The partitions of a table; one without a column has a single partition, whose value is "".

    table      schema and name
    column     the column, or COMMIT_DATE; None if the table has no partitions
    name       the name under which the column is stored
    is_delta   whether the table is a Delta table, whose log also has the values
    is_merged  whether deltalake merges into the table, and then makes folders of its own
    is_local   whether the names of folders are limited, as on this machine; object stores have no folders
    """

    def __init__(
        self,
        table: tuple[str, str],
        column: str | None,
        name: str | None,
        *,
        is_delta: bool,
        is_merged: bool,
        is_local: bool,
    ) -> None:
        self._table = table
        self._column = column
        self._name = name
        self._is_delta = is_delta
        self._is_merged = is_merged
        self._is_local = is_local

    @property
    def names(self) -> list[str]:
        """The stored names of the columns: one or none."""
        return [] if self._name is None else [self._name]

    def check(self, rows: pa.RecordBatch) -> None:
        """Raises BadRows if a stored row has a value that no partition can have."""
        if self._name not in rows.schema.names:
            return
        values = rows[self._name]
        if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
            self._check_texts(values)
        if self._is_merged:
            for value in pc.cast(values, pa.string()).unique().drop_null().to_pylist():
                # deltalake writes numbers without an exponent
                self.folder(f"{Decimal(value):f}" if pa.types.is_floating(values.type) else value)

    def _check_texts(self, values: pa.Array) -> None:
        try:
            texts = pc.cast(values, pa.string())
        except pa.ArrowInvalid:
            raise self._bad("text in UTF-8", "other bytes", "pass another column as partition_by") from None
        if self._is_delta and pc.min(pc.binary_length(texts)).as_py() == 0:
            raise self._bad(
                "no empty text",
                "one",
                "Delta reads an empty text in a partition as NULL: pass another column as partition_by, or write "
                "format='parquet'",
            )
        if not self._is_delta and pc.any(pc.equal(texts, _NULL)).as_py():
            raise self._bad(
                f"no text {_NULL}",
                "one",
                "readers take it for NULL in the name of a folder: pass another column as partition_by, or write "
                "format='delta'",
            )

    def with_column(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns stored rows with the column of the partitions: the commit date is made from `_commit_time`."""
        if self._column != COMMIT_DATE:
            return batch
        dates = batch["_commit_time"].cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
        return batch.append_column(pa.field(self._name, pa.date32()), dates)

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yields the value of each partition, and its rows without the column."""
        if self._name is None:
            yield "", batch
            return
        texts = pc.cast(batch[self._name], pa.string())
        rest = batch.drop_columns([self._name])
        for value in texts.unique().to_pylist():
            is_of = texts.is_null() if value is None else pc.fill_null(pc.equal(texts, value), False)
            yield value, rest.filter(is_of)

    def values(self, value: str | None) -> dict[str, str | None]:
        """Returns the column and the value of a partition, as the log of a Delta table has them."""
        return {} if self._name is None else {self._name: value}

    def folder(self, value: str | None) -> str:
        """Returns the folder of a partition below that of its table, with a slash before it; "" if it has none.

        Raises BadRows if its name is too long. A Delta table into which nothing is merged then needs no folder, since
        its log has the value; otherwise it gets one for Polars, which looks only at the name of the folder.
        """
        if self._name is None:
            return ""
        folder = f"{quote(self._name, safe='')}={_NULL if value is None else quote(value, safe='')}"
        if len(folder) <= _MOST_FOLDER_CHARACTERS or not self._is_local:
            return f"/{folder}"
        if self._is_delta and not self._is_merged:
            return ""
        instead = "state='changes'" if self._is_merged else "format='delta'"
        raise self._bad(
            f"values of at most {_MOST_FOLDER_CHARACTERS} characters, percent-encoded and with the column's name,",
            "a longer one",
            f"they are names of folders: pass another column as partition_by, or write {instead}",
        )

    def _bad(self, expected: str, got: str, hint: str) -> BadRows:
        where = f"in column {self._column}, by which the table is partitioned"
        return BadRows(f"{expected} {where}", got, table=written(self._table), hint=hint)
