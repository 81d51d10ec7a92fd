"""`wireformat decode`: the row-change table, as a file or on standard output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..arrow.schemas import change_schema, widened, with_format
from ..arrow.unread import UNREAD
from ..errors import counted
from ..formats.registry import find_format
from ..options import ReadOptions
from .decoding import Decoding
from .inputs import all_messages, find_inputs, progress
from .output import find_output, open_output
from .screen import say


def decode(
    paths: Sequence[str],
    output: Path,
    *,
    to: str | None,
    format: str,
    column: str | None,
    columns: list[str] | None,
    **options: Any,
) -> None:
    """Writes the rows of all inputs to one file, which appears only if there was no error, or to standard output.

    to        the format of standard output, a key of STREAMS
    columns   columns of the row-change table; None for all

    The other options are those of `ReadOptions`. Raises Failed and OptionError.
    """
    schema = with_format(change_schema(columns), format)
    wider = widened(schema, "kind", "message", "raw")
    checked = ReadOptions.check(**options)
    decoding = Decoding(find_format(format), checked)
    written = find_output(output, to, paths)
    rows, unread = 0, Counter[str]()
    with (
        find_inputs(paths, find_format(format), column) as inputs,
        open_output(written, schema) as write,
        progress(inputs, on_screen=written.is_screen) as advance,
    ):
        for messages in all_messages(inputs):
            for batch in decoding.batches(messages, wider):
                rows += len(batch)
                unread.update({kind: _rows_of_kind(batch, kind) for kind in UNREAD})
                write(batch.select(schema.names))
            advance(messages.read_bytes)
        decoding.check()
    summary = [f"{counted(rows, 'row', ',')} from {counted(decoding.messages, 'message', ',')}"]
    summary += [f"{count:,} of them {kind}" for kind, count in unread.items() if count]
    if decoding.dropped:
        summary.append(f"{decoding.dropped:,} skipped")
    say(f"{written.name}: {', '.join(summary)}")
    for line in decoding.complaints():
        say(line)


def _rows_of_kind(batch: pa.RecordBatch, kind: str) -> int:
    return pc.sum(pc.equal(batch["kind"], kind)).as_py() or 0
