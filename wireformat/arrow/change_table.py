"""Messages to the row-change table as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from ..errors import OptionError
from ..formats.registry import find_format, find_format_name
from ..options import ReadOptions
from ..options.keywords import checks_keywords
from .engine.choice import make_engine
from .schemas import DROPPED, change_schema, with_format
from .unread import judged_batches


@checks_keywords
def changes(
    messages: Any,
    format: str,
    *,
    mode: str = "FAILFAST",
    columns: Sequence[str] | None = None,
    tables: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
    engine: str = "scan",
    threads: int | None = None,
) -> pa.Table:
    """Decodes messages into the row-change table.

    messages    an iterable of bytes-like objects, or a pyarrow binary array or chunked array (read without
                copying, but for small chunks); None and null give no rows
    columns     the columns to return; None for all
    threads     the number of threads; None for as many as Arrow uses (`pyarrow.cpu_count`)

    The other options are those of `wireformat.ReadOptions`. The schema metadata `wireformat.format` names the format;
    in DROPMALFORMED mode, `wireformat.dropped` is the number of skipped records. Raises DecodeError (FAILFAST),
    OrderError (strict), OptionError, LimitExceeded, TypeError.
    """
    options = ReadOptions.check(
        mode=mode,
        encoding=encoding,
        encoding_errors=encoding_errors,
        heartbeat_unit=heartbeat_unit,
        tables=tables,
        kinds=kinds,
        known_tables=known_tables,
        exclude_users=exclude_users,
        skip_empty_xacts=skip_empty_xacts,
        strict=strict,
        dialect=dialect,
    )
    schema = checked_schema(columns, format)
    chosen = make_engine(find_format(format), options, engine, threads)
    table = pa.Table.from_batches(judged_batches(chosen, messages, schema, format, options), schema=schema)
    if mode != "DROPMALFORMED":
        return table
    return table.replace_schema_metadata({**(schema.metadata or {}), DROPPED: str(chosen.dropped)})


@checks_keywords
def batches(
    messages: Any,
    format: str,
    *,
    mode: str = "FAILFAST",
    columns: Sequence[str] | None = None,
    tables: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    exclude_users: Iterable[str] | None = None,
    skip_empty_xacts: bool = False,
    strict: bool = False,
    encoding: str = "utf-8",
    encoding_errors: str = "strict",
    heartbeat_unit: str | None = None,
    known_tables: Iterable[str] | None = None,
    dialect: str = "postgresql",
    engine: str = "scan",
    threads: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of `changes` as record batches, in constant memory; the options are the same.

    Raises OptionError when called, and the other errors of `changes` while iterating.
    """
    checked = ReadOptions.check(
        mode=mode,
        encoding=encoding,
        encoding_errors=encoding_errors,
        heartbeat_unit=heartbeat_unit,
        tables=tables,
        kinds=kinds,
        known_tables=known_tables,
        exclude_users=exclude_users,
        skip_empty_xacts=skip_empty_xacts,
        strict=strict,
        dialect=dialect,
    )
    chosen = make_engine(find_format(format), checked, engine, threads)
    return judged_batches(chosen, messages, checked_schema(columns, format), format, checked)


def checked_schema(columns: Sequence[str] | None, format: str) -> pa.Schema:
    """Returns the schema of the requested columns, with the format in its metadata; raises OptionError."""
    schema = with_format(change_schema(columns), find_format_name(format))
    if not len(schema):
        raise OptionError("option columns: expected at least one; a table without columns has no rows either")
    return schema
