"""The formats, a row each: everything else about formats derives from these rows.

Other packages add formats by entry points of the group `wireformat.formats`, each a FormatRow.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..options import TEST_DECODING_OPTIONS, WRITE_OPTIONS, Option, write_options
from ..options.checks import shown
from ..options.table import nearest
from .row import FormatRow, Scan, load

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .base import Format

GROUP = "wireformat.formats"


def outside_row(name: str) -> FormatRow | None:
    """Returns the row of this name, or None if no package has it. Raises OptionError if it cannot be loaded."""
    found = _entry_points(tuple(sys.path)).get(name, ())
    return _load(name, found) if found else None


def outside_rows() -> dict[str, FormatRow]:
    """Returns all rows by name. A row that cannot be loaded is left out with a RuntimeWarning."""
    rows = {}
    for name, found in _entry_points(tuple(sys.path)).items():
        try:
            rows[name] = _load(name, found)
        except OptionError as error:
            _warn(str(error))
    return rows


@cache
def _entry_points(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    from importlib.metadata import entry_points  # takes a part of every start

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


@cache
def _load(name: str, points: tuple[EntryPoint, ...]) -> FormatRow:
    found, *others = points
    if others:
        values = ", ".join(sorted(point.value for point in points))
        raise OptionError(f"the format {name} cannot be loaded: several packages have one of this name: {values}")
    try:
        row = found.load()
        if isinstance(row, FormatRow):
            row.check_differences()
    except Exception as error:
        raise OptionError(
            f"the format {found.name} cannot be loaded: {found.value} raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(row, FormatRow):
        raise OptionError(
            f"the format {found.name} cannot be loaded: expected {found.value} to be a FormatRow, "
            f"got {type(row).__name__}"
        )
    if row.name != found.name:
        raise OptionError(f"the format {found.name} cannot be loaded: its row in {found.value} is named {row.name}")
    return row


@cache
def _warn(message: str) -> None:
    """Once for each message."""
    warnings.warn(message, RuntimeWarning, stacklevel=2)


_FORMATS = "wireformat.formats"
_FRAMING = "wireformat.framing"
_KERNELS = "wireformat.arrow.scan.kernels"
_BINARY_TEXT = "wireformat.arrow.scan.binary_text"
_FAULTS = "wireformat.arrow.scan.faults"
_LINES = "wireformat.grammar.lines"
_DDL = "wireformat.grammar.ddl_lines"

_SERIAL_SIGNATURES = ("begin", "commit", "bare commit", "abort or prepare", "truncate")
_NEVER = ("change records only", "no messages, blocks or relations")
_TEXT_NAMES = ("types without a name", "heartbeat")


def _serial_options(*more: str) -> tuple[Option, ...]:
    """Returns the options of every serial plugin, and more. By default these plugins write times."""
    names = ("include-xids", "include-timestamp", "skip-empty-xacts", *more)
    return tuple(row for row in write_options("serial") if row.name in names)


ROWS: dict[str, FormatRow] = {
    row.name: row
    for row in (
        FormatRow(
            name="gaussdb-binary",
            sentence="GaussDB and openGauss, parallel decoding, decode-style=b: batched or not, "
            "heartbeats in both layouts",
            format=f"{_FORMATS}.gaussdb_binary:GAUSSDB_BINARY",
            framing=f"{_FRAMING}.gauss_batch",
            order="parallel",
            types="any",
            is_binary=True,
            signatures=("batched binary", "binary end", "binary row"),
            cannot_say=("facts", "unsent values", "unnumbered types", *_NEVER),
            options=WRITE_OPTIONS,
            scan=Scan(
                f"{_KERNELS}.gaussdb_binary:scan_gaussdb_binary",
                rare=f"{_KERNELS}.gaussdb_binary:walk_heartbeats",
                faults=f"{_FAULTS}.gaussdb_binary:find_binary_faults",
            ),
        ),
        FormatRow(
            name="gaussdb-json",
            sentence="GaussDB and openGauss, parallel decoding, decode-style=j: batched or not",
            format=f"{_FORMATS}.gaussdb_texts:GAUSSDB_JSON",
            framing=f"{_FRAMING}.text_batch",
            order="parallel",
            types="opengauss",
            signatures=("batched json", "batched line", "parallel line", "bare commit", "json row"),
            cannot_say=("facts", "empty tuples", "clob", "unsent values", *_TEXT_NAMES, *_NEVER, "lsn"),
            options=WRITE_OPTIONS,
            scan=Scan(
                f"{_KERNELS}.json_changes:scan_gaussdb_json",
                quoted=True,
                lines=f"{_LINES}:PARALLEL",
                faults=f"{_FAULTS}.row_texts:find_json_faults",
            ),
        ),
        FormatRow(
            name="gaussdb-text",
            sentence="GaussDB and openGauss, parallel decoding, decode-style=t: batched or not",
            format=f"{_FORMATS}.gaussdb_texts:GAUSSDB_TEXT",
            framing=f"{_FRAMING}.text_batch",
            order="parallel",
            types="opengauss",
            signatures=("batched table", "batched line", "parallel line", "bare commit", "unquoted row"),
            cannot_say=("facts", "one image", "clob", *_TEXT_NAMES, *_NEVER, "blanks in schemas", "lsn"),
            options=WRITE_OPTIONS,
            scan=Scan(
                f"{_KERNELS}.text_changes:scan_gaussdb_text",
                lines=f"{_LINES}:PARALLEL",
                prepare=f"{_KERNELS}.text_changes:KnownTables",
                faults=f"{_FAULTS}.row_texts:find_unquoted_faults",
            ),
        ),
        FormatRow(
            name="mppdb-json",
            sentence="GaussDB and openGauss, serial plugin mppdb_decoding: rows in JSON",
            format=f"{_FORMATS}.gaussdb_texts:MPPDB_JSON",
            framing=f"{_FRAMING}.frames",
            order="serial",
            types="opengauss",
            signatures=(
                *(*_SERIAL_SIGNATURES, "begin with origin", "commit with csn", "commit at a time"),
                *("json row", "mppdb ddl"),
            ),
            cannot_say=("facts", "empty tuples", "clob", "unsent values", *_TEXT_NAMES, _NEVER[1], "lsn"),
            options=_serial_options("include-originid"),
            scan=Scan(
                f"{_KERNELS}.json_changes:scan_mppdb_json",
                quoted=True,
                lines=f"{_LINES}:MPPDB",
                ddl=f"{_DDL}:MPPDB_DDL",
                rare=f"{_KERNELS}.serial_lines:walk_serial_lines",
                faults=f"{_FAULTS}.row_texts:find_json_faults",
            ),
        ),
        FormatRow(
            name="opengauss-test-decoding",
            sentence="openGauss, serial plugin test_decoding: rows in TEXT",
            format=f"{_FORMATS}.gaussdb_texts:OPENGAUSS_TEST_DECODING",
            framing=f"{_FRAMING}.frames",
            order="serial",
            types="opengauss",
            signatures=(*_SERIAL_SIGNATURES, "commit with csn", "commit at a time", "quoted row", "serial ddl"),
            cannot_say=("facts", "one image", "clob", *_TEXT_NAMES, _NEVER[1], "lsn"),
            options=_serial_options(),
            scan=Scan(
                f"{_KERNELS}.text_changes:scan_opengauss_text",
                quoted=True,
                lines=f"{_LINES}:TEST_DECODING",
                ddl=f"{_DDL}:MESSAGE_DDL",
                rare=f"{_KERNELS}.serial_lines:walk_serial_lines",
                faults=f"{_FAULTS}.row_texts:find_quoted_faults",
            ),
        ),
        FormatRow(
            name="sql-decoding",
            sentence="GaussDB and openGauss, serial plugin sql_decoding: rows as SQL statements",
            format=f"{_FORMATS}.gaussdb_texts:SQL_DECODING",
            framing=f"{_FRAMING}.frames",
            order="serial",
            types="opengauss",
            signatures=(*_SERIAL_SIGNATURES, "commit and csn", "statement", "serial ddl"),
            cannot_say=(
                *("facts", "one image", "types", "names of new", *_TEXT_NAMES, _NEVER[1], "lsn"),
                *("digits of floats", "dropped last columns"),
            ),
            options=_serial_options(),
            scan=Scan(
                f"{_KERNELS}.sql_statements:scan_sql_decoding",
                quoted=True,
                lines=f"{_LINES}:SQL",
                ddl=f"{_DDL}:MESSAGE_DDL",
                rare=f"{_KERNELS}.serial_lines:walk_serial_lines",
            ),
        ),
        FormatRow(
            name="test-decoding",
            sentence="PostgreSQL, plugin test_decoding, 9.4 to 18: rows in TEXT",
            format=f"{_FORMATS}.test_decoding:TEST_DECODING",
            framing=f"{_FRAMING}.line_feeds",
            order="text",
            types="postgresql",
            signatures=(
                *("begin", "prepared", "message", "streamed", "commit at a time", "commit", "bare commit"),
                *("sequence", "quoted row", "truncate"),
            ),
            cannot_say=(
                *("both of stream abort", "facts", "xid of truncate", "one image", "types without a name"),
                *("records of test_decoding", "end of a prefix", "all quotes", "owners of types", "lsn"),
            ),
            options=TEST_DECODING_OPTIONS,
            scan=Scan(
                f"{_KERNELS}.text_changes:scan_opengauss_text",
                quoted=True,
                lines=f"{_LINES}:POSTGRES_SCANNED",
                messages=True,
                rare=f"{_KERNELS}.rare_lines:walk_rare_lines",
                faults=f"{_FAULTS}.row_texts:find_quoted_faults",
            ),
        ),
        FormatRow(
            name="pgoutput",
            sentence="PostgreSQL's logical replication protocol, versions 1 to 4, and openGauss's dialect of it",
            format=f"{_FORMATS}.pgoutput.reader:PGOUTPUT",
            framing=f"{_FRAMING}.copy_data",
            order="pgoutput",
            types="any",
            is_binary=True,
            signatures=("pgoutput", "binary row"),
            cannot_say=(
                *("facts", "one image", "unnumbered types", "lsn", "control without facts", "rows without images"),
                *("xids outside of blocks", "rows without a relation", "kind of old", "records of pgoutput"),
                "records of its opengauss dialect",
            ),
            scan=Scan(
                f"{_KERNELS}.pgoutput:scan_pgoutput",
                prepare=f"{_KERNELS}.pgoutput_relations:PreparedRelations",
                rare=f"{_KERNELS}.pgoutput_rare:walk_pgoutput_rare",
                binary=f"{_BINARY_TEXT}.walk:write_binary_texts",
                faults=f"{_FAULTS}.pgoutput:find_pgoutput_faults",
            ),
            has_relation_ids=True,
        ),
    )
}
"""The built-in ones, in the order in which they are listed."""


def all_rows() -> dict[str, FormatRow]:
    """Returns the built-in rows, then those of other packages, which cannot replace a built-in row."""
    return {**ROWS, **{name: row for name, row in outside_rows().items() if name not in ROWS}}


def find_row(name: Any) -> FormatRow:
    """The row of this name; raises OptionError with the known ones. Other packages are asked for other names only."""
    row = ROWS.get(name) or outside_row(name) if isinstance(name, str) else None
    if row is None:
        known = all_rows()
        raise OptionError(f"unknown format {shown(name)}{nearest(name, known)}; known are {', '.join(known)}")
    return row


class Formats(Mapping[str, "Format"]):
    """All formats by name: a read-only mapping. A format is loaded when it is looked up."""

    def __getitem__(self, name: str) -> Format:
        row = ROWS.get(name) or outside_row(name)
        if row is None:
            raise KeyError(name)
        format: Format = load(row.format)
        return format

    def __iter__(self) -> Iterator[str]:
        return iter(all_rows())

    def __len__(self) -> int:
        return len(all_rows())


FORMATS = Formats()


def find_format(name: Any) -> Format:
    """Returns the format of this name; raises OptionError, which lists the known names."""
    return FORMATS[find_row(name).name]


def find_format_name(name: Any) -> str:
    """Returns the name without loading the format; raises OptionError, which lists the known names."""
    return find_row(name).name
