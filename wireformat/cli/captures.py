"""`wireformat tables`, `typed`, `latest` and `write`: the tables of a stream, on the screen, in a file or in a lake.

They read a capture of files, folders and standard input, with a progress bar.
"""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import lake
from ..arrow.typed_tables.listed import names_of
from ..capture import Capture
from ..errors import OptionError, WireformatError, counted
from ..formats.registry import find_format
from ..options import ReadOptions
from ..options.table_names import written
from ..printable import printable
from ..sources.find import find_sources
from ..sources.parquet_files import ParquetSource
from ..sources.source import Source
from ..temporary import NO_ROOM, naming_the_folder
from .decoding import TableFilter, is_empty_text
from .exits import BAD_DATA, BAD_USAGE, Failed, in_words_of_the_command, text_of_os_error
from .inputs import all_messages, progress
from .options import STDIN
from .output import CheckedOutput, cell_texts, find_output, open_output
from .screen import print_lines, print_rows, say, say_skipped

LISTED = pa.schema(
    [
        ("table", pa.string()),
        ("version", pa.int32()),
        ("columns", pa.string()),
        ("key", pa.string()),
        ("changes", pa.int64()),
        ("first", pa.string()),
        ("last", pa.string()),
    ]
)
"""The columns that `tables` prints, with a row for each version of a table; first and last are message and record."""


def tables(paths: Sequence[str], output: Path | None, *, to: str | None, **options: Any) -> None:
    """Prints the tables of a stream, or writes what `Capture.tables` returns. Raises Failed."""
    target = _target(output, to, paths)
    with opened(paths, on_screen=False, **options) as (capture, _):
        listed = capture.tables()
        skipped = capture.dropped
    if target is not None:
        _written(listed.to_batches(), listed.schema, target)
    else:
        _print_list(listed)
    say_skipped(skipped)


def _print_list(listed: pa.Table) -> None:
    rows = [
        {
            "table": written((row["table_schema"], row["table_name"])),
            "version": row["version"],
            "columns": ", ".join(
                f"{name} {type or '?'}" for name, type in zip(row["columns"], row["types"], strict=True)
            ),
            "key": "?" if row["key_columns"] is None else ", ".join(row["key_columns"]),
            "changes": row["changes"],
            "first": _position(row["first"]),
            "last": _position(row["last"]),
        }
        for row in listed.to_pylist()
    ]
    print_table([pa.RecordBatch.from_pylist(rows, LISTED)], LISTED)


def _position(change: dict[str, int]) -> str:
    return f"{change['message']}/{change['record']}"


def typed(
    paths: Sequence[str],
    table: str,
    output: Path | None,
    *,
    to: str | None,
    rows: int,
    schema: Mapping[str, str] | None,
    complete: bool,
    **options: Any,
) -> None:
    """Prints or writes the committed changes of a table.

    output   None prints the first rows
    to       the format of standard output
    rows     how many rows are printed
    schema   the types of the columns; None takes those of the stream

    Raises Failed.
    """
    target = _target(output, to, paths)
    with opened(paths, on_screen=output is None, **options) as (capture, _):
        found = capture.typed(table, schema=schema, complete=complete)
        _shown_or_written(found, found.schema, target, rows)
        if options["mode"] == "DROPMALFORMED":
            for _ in found:  # the rows that are not shown: what was skipped is known at the end
                pass
            say_skipped(capture.dropped)


def latest(
    paths: Sequence[str],
    table: str,
    output: Path | None,
    *,
    to: str | None,
    rows: int,
    schema: Mapping[str, str] | None,
    keys: Sequence[str] | None,
    **options: Any,
) -> None:
    """Prints or writes the rows that a table has at the end of the stream; see `typed`. Raises Failed."""
    target = _target(output, to, paths)
    with opened(paths, on_screen=output is None, **options) as (capture, _):
        found = capture.latest(table, keys=keys, schema=schema)
        _shown_or_written(found.to_batches(), found.schema, target, rows)
        say_skipped(capture.dropped)


def _target(output: Path | None, to: str | None, paths: Sequence[str]) -> CheckedOutput | None:
    return None if output is None else find_output(output, to, paths)


def _shown_or_written(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: CheckedOutput | None, rows: int
) -> None:
    if target is not None:
        _written(batches, schema, target)
    elif print_table(batches, schema, rows):
        say(f"only the first {counted(rows, 'row', ',')}: --rows prints more, -o writes all to a file")


def _written(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: CheckedOutput) -> None:
    names = [field.name for field in schema if not pa.types.is_struct(field.type) or field.type.num_fields]
    schema = pa.schema([schema.field(name) for name in names], schema.metadata)
    count = 0
    with open_output(target, schema) as write:
        for batch in batches:
            if len(batch):
                write(batch.select(names))
                count += len(batch)
    say(f"{target.name}: {counted(count, 'row', ',')}")


def print_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, most: int | None = None) -> bool:
    """Prints rows to standard output; returns whether there are more.

    most   the number of rows to print; None for all
    """
    rows: list[list[str]] = []
    has_more = False
    for batch in batches:
        left = len(batch) if most is None else most - len(rows)
        has_more = len(batch) > left
        columns = [cell_texts(column) for column in batch.slice(0, left).columns]
        rows += ([*map(printable, cells)] for cells in zip(*columns, strict=True))
        if has_more:
            break
    are_numbers = [pa.types.is_integer(type) or pa.types.is_floating(type) for type in schema.types]
    print_rows([*map(printable, schema.names)], rows, are_numbers)
    return has_more


WRITTEN = pa.schema(
    [
        ("table", pa.string()),
        *((name, pa.int64()) for name in ("rows", "files", "open", "dropped", "corrupt")),
    ]
)
"""The columns that are printed at the end."""

_READ_OPTIONS = ("encoding", "encoding_errors", "dialect")
"""The options on which the names of the tables depend."""


def write(
    paths: Sequence[str],
    folder: str,
    *,
    lake_format: str,
    state: str,
    tables: Sequence[str] | None,
    partition_by: str | None,
    keys: Mapping[str, Sequence[str]] | None,
    schemas: Mapping[str, Mapping[str, str]] | None,
    rejects: str | None,
    go_on: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Writes all tables to a lake, and prints what was written.

    go_on     whether the messages begin where the lake ends
    as_json   whether to print a line of JSON for each row of what `Capture.write` returns

    Raises Failed.
    """
    if go_on and _is_there(folder):
        options["after"] = lake.position(folder)
    with opened(paths, on_screen=False, **options) as (capture, sources):
        found = capture.write(
            folder,
            format=lake_format,
            state=state,
            tables=tables,
            partition_by=partition_by,
            keys=keys,
            schemas=schemas,
            rejects=rejects,
        )
        told = [*_complaints(found, sources, tables, options)]
    for line in told:
        say(line)
    if as_json:
        print_lines(found.to_pylist())
        return
    rows = [
        {
            "table": "" if row["table_name"] is None else written((row["table_schema"], row["table_name"])),
            **{name: row[name] for name in WRITTEN.names[1:]},
        }
        for row in found.to_pylist()
    ]
    print_table([pa.RecordBatch.from_pylist(rows, WRITTEN)], WRITTEN)


def _complaints(
    found: pa.Table, sources: Sequence[Source], tables: Sequence[str] | None, options: Mapping[str, Any]
) -> Iterator[str]:
    """Returns a line for each pattern that matches no table of the input. Reads the input again if nothing was written
    for a pattern, until it has matched a table.

    found    what `Capture.write` returned
    tables   the patterns
    """
    names = names_of(found)
    checked = ReadOptions.check(tables=tables, **{name: options[name] for name in _READ_OPTIONS})
    table_filter = TableFilter(find_format(options["format"]), checked)
    table_filter.add((schema, table) for schema, table in names if table is not None)
    for messages in all_messages(sources) if table_filter.has_unmatched else ():
        table_filter.look(messages)
    return table_filter.complaints()


def _is_there(folder: str) -> bool:
    """Whether there is a lake in a folder."""
    try:
        lake.position(folder)
    except OptionError:
        return False
    return True


@contextmanager
def opened(
    paths: Sequence[str], *, on_screen: bool, format: str, column: str | None, **options: Any
) -> Iterator[tuple[Capture, list[Source]]]:
    """Yields the capture of some files and folders, and its sources. Its errors become those of the command.

    on_screen   whether the command prints to the terminal; there is then no progress bar
    options     those of Capture

    Raises Failed.
    """
    copies: dict[str, str] = {}
    try:
        with ExitStack() as held:
            try:
                files = _files(paths, held, copies)
                sources = find_sources(files, find_format(format), column)
            except OSError as error:  # without the name of a file, it is about the content of one
                code = BAD_DATA if error.filename is None or error.errno in NO_ROOM else BAD_USAGE
                raise Failed(_with_given_names(text_of_os_error(error), copies), code) from None
            for source in sources:
                if source.size == 0 or (isinstance(source, ParquetSource) and not source.has_rows):
                    say(_with_given_names(is_empty_text(source.name), copies))
            advance = held.enter_context(progress(sources, on_screen=on_screen))
            yield Capture(files, format, column=column, progress=advance, **options), sources
    except OptionError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_USAGE) from None
    except WireformatError as error:
        raise Failed(_with_given_names(str(error), copies), BAD_DATA) from None


def _with_given_names(text: str, copies: dict[str, str]) -> str:
    """Returns the text of an error, with the names that the user gave in place of those of copies."""
    for copy, name in copies.items():
        text = text.replace(copy, name)
    return in_words_of_the_command(text)


def _files(paths: Sequence[str], held: ExitStack, copies: dict[str, str]) -> list[str]:
    """Returns the paths. Standard input and pipes are copied to files: a capture may read its files more than once.

    held     deletes the copies at its end
    copies   gets the path of each copy, with the name of its original
    """
    if paths.count(STDIN) > 1:
        raise Failed(f"{STDIN} (standard input) can be read only once", BAD_USAGE)
    return [_copied(path, held, copies) if path == STDIN or _is_stream(path) else path for path in paths]


def _is_stream(path: str) -> bool:
    """Whether a path can be read only once, such as `<(zcat capture.bin.gz)` in a shell."""
    try:
        kind = Path(path).stat().st_mode
    except (OSError, ValueError):  # opening it later says what is wrong
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)


def _copied(path: str, held: ExitStack, copies: dict[str, str]) -> str:
    """Returns the path of a copy of a file that can be read only once."""
    with ExitStack() as opened, naming_the_folder():
        file = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="wireformat-"))) / "messages"
        copies[str(file)] = "standard input" if path == STDIN else path
        source = sys.stdin.buffer if path == STDIN else opened.enter_context(Path(path).open("rb"))
        with file.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return str(file)
