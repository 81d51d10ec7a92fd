"""Checks whether the input has each table that a filter names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow import change_schema
from ..arrow.engine.choice import make_engine
from ..formats.base import Format
from ..options import ReadOptions
from ..options.table_names import TableName, suggestion, written
from ..sources.source import SourceMessages

COLUMNS = ("kind", "table_schema", "table_name")


class TableFilter:
    """Reads the names of tables for a command that filters by them, until each pattern has matched one.

    name_text   returns the text with which a table is named
    """

    def __init__(self, format: Format, options: ReadOptions, name_text: Callable[[str], str] = str) -> None:
        everything = ReadOptions(
            mode="PERMISSIVE",
            encoding=options.encoding,
            encoding_errors=options.encoding_errors,
            known_tables=options.known_tables,
            dialect=options.dialect,
        )
        self._unmatched = [replace(options, tables=(pattern,), kinds=None) for pattern in options.tables or ()]
        self._name_text = name_text
        self._engine = make_engine(format, everything, threads=None)
        self._schema = change_schema(COLUMNS)
        self._tables: set[TableName] = set()

    @property
    def has_unmatched(self) -> bool:
        """Whether a pattern has matched no table so far."""
        return bool(self._unmatched)

    def look(self, given: SourceMessages) -> None:
        """Takes the names of tables from the next messages."""
        if self._unmatched and not given.is_lost:
            self.add(self._names(given))

    def _names(self, given: SourceMessages) -> Iterator[TableName]:
        for batch in self._engine.batches(given.messages, self._schema):
            named = pa.Table.from_batches([batch]).filter(pc.field("kind") != "TYPE").drop(["kind"])
            for row in named.group_by([*COLUMNS[1:]]).aggregate([]).drop_null().to_pylist():
                yield row["table_schema"], row["table_name"]

    def add(self, tables: Iterable[TableName]) -> None:
        """Takes the names of tables that the input is known to have."""
        self._tables.update(tables)
        self._unmatched = [
            option for option in self._unmatched if not any(option.keeps("INSERT", table) for table in self._tables)
        ]

    def complaints(self) -> Iterator[str]:
        """Yields a line for each pattern that has matched no table so far, with the tables that it may mean."""
        there = [self._name_text(written(table)) for table in self._tables]
        for option in self._unmatched:
            pattern = self._name_text(written((option.tables or ())[0]))
            yield f"--tables {pattern}: matches no table of the input{suggestion(pattern, there)}"
