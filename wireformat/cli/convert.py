"""`wireformat convert`: what a capture says, in another style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from ..formats.registry import find_format
from ..options import ReadOptions
from .changes_file import RowGroups, changes_file, check_output
from .conversion import Conversion
from .decoding import Decoding
from .exits import BAD_DATA, Failed
from .inputs import all_parts, find_inputs
from .progress import progress

CAPTURE = pa.schema([pa.field("seq", pa.int64()), pa.field("payload", pa.binary())])

EVENTS_AT_ONCE = 1 << 14
"""How many events are held, written and read back at a time."""


def convert(
    paths: Sequence[str],
    output: Path,
    *,
    format: str,
    to: str,
    given: Mapping[str, str],
    skip: bool,
    column: str,
    **options: Any,
) -> None:
    """Write the events of all inputs as messages of another format to one Parquet file with the columns of CAPTURE.

    given   the servers' options for writing; what BEGIN and COMMIT can carry is written if they do not say otherwise
    skip    leave out what the format cannot say; else there is no file then
    The other options are those of `ReadOptions`. Raises Failed, OptionError.
    """
    checked = ReadOptions.check(**options)
    decoding = Decoding(find_format(format), checked)
    conversion = Conversion(find_format(to), given, checked.encoding)
    check_output(output, paths)
    with (
        find_inputs(paths, find_format(format), column) as inputs,
        changes_file(output, CAPTURE) as file,
        progress(inputs) as advance,
    ):
        written = 0
        for part in all_parts(inputs):
            events = decoding.events(part)
            while some := list(islice(events, EVENTS_AT_ONCE)):
                written += _write(file, written, list(conversion.messages(some)))
            advance(part.read_bytes)
        written += _write(file, written, conversion.flush())
        if conversion.lost:
            typer.echo(f"{to} cannot say, in so many records:", err=True)
        for reason, count in conversion.lost.items():
            typer.echo(f"{count:>9,}  {reason}", err=True)
        if conversion.lost and not skip:
            raise Failed(f"{output}: not written; --skip writes what {to} can say", BAD_DATA)
    summary = [f"{written:,} messages from {decoding.messages:,} messages"]
    if decoding.dropped:
        summary.append(f"{decoding.dropped:,} records left out")
    typer.echo(f"{output}: {', '.join(summary)}", err=True)


def _write(file: RowGroups, first: int, messages: list[bytes]) -> int:
    """Add messages, numbered from `first`; gives how many there are."""
    numbers = pa.array(range(first, first + len(messages)), pa.int64())
    file.write(pa.RecordBatch.from_arrays([numbers, pa.array(messages, pa.binary())], schema=CAPTURE))
    return len(messages)
