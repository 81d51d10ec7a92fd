"""`wireformat convert`: a capture in another format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import counted
from ..formats.registry import find_format
from ..options import ReadOptions
from .conversion import Conversion
from .decoding import Decoding
from .exits import BAD_DATA, Failed
from .inputs import all_messages, find_inputs
from .options import STDOUT
from .output import find_output, open_output
from .progress import progress
from .screen import say
from .table_writers import Write

CAPTURE = pa.schema([pa.field("seq", pa.int64()), pa.field("payload", pa.binary())])

EVENTS_AT_ONCE = 1 << 14
"""How many events are held, written and read back at a time."""

SHOWN_GIDS = 3
"""How many gids a message names."""


def convert(
    paths: Sequence[str],
    output: Path,
    *,
    format: str,
    to: str,
    given: Mapping[str, str],
    skip: bool,
    column: str | None,
    **options: Any,
) -> None:
    """Writes the events of all inputs as messages of another format to a file with the columns of CAPTURE.

    Standard output gets them as an Arrow stream, the only one of STREAMS that holds bytes unchanged.

    given   the servers' options for writing; by default, BEGIN and COMMIT are written with all that they can carry
    skip    leaves out what the format cannot express; without it, there is then no file

    The other options are those of `ReadOptions`. Raises Failed and OptionError.
    """
    checked = ReadOptions.check(**options)
    decoding = Decoding(find_format(format), checked)
    conversion = Conversion(find_format(to), given, checked.encoding)
    written_to = find_output(output, "arrow" if str(output) == STDOUT else None, paths)
    with (
        find_inputs(paths, find_format(format), column) as inputs,
        open_output(written_to, CAPTURE) as write,
        progress(inputs, on_screen=written_to.is_screen) as advance,
    ):
        written = 0
        for messages in all_messages(inputs):
            events = decoding.events(messages)
            while some := list(islice(events, EVENTS_AT_ONCE)):
                written += _write(write, written, list(conversion.messages(some)))
            advance(messages.read_bytes)
        written += _write(write, written, conversion.flush())
        decoding.check()
        if conversion.lost:
            say(f"{to} cannot express the following, by number of records:")
        for reason, count in conversion.lost.items():
            say(f"{count:>9,}  {reason}")
        if conversion.lost and not skip:
            state = "incomplete" if written_to.path is None else "not written"
            raise Failed(f"{written_to.name}: {state}; --skip writes the rest", BAD_DATA)
    summary = [f"{counted(written, 'message', ',')} from {counted(decoding.messages, 'message', ',')}"]
    if decoding.dropped:
        summary.append(f"{counted(decoding.dropped, 'record', ',')} skipped")
    say(f"{written_to.name}: {', '.join(summary)}")
    if gids := conversion.committed_unprepared:
        shown = ", ".join(map(repr, gids[:SHOWN_GIDS])) + (", …" if len(gids) > SHOWN_GIDS else "")
        say(
            f"{len(gids):,} COMMIT PREPARED without a PREPARE in the input, gid {shown}: these transactions changed "
            "nothing, or the input begins after their PREPARE and lacks their changes"
        )
    for line in decoding.complaints():
        say(line)


def _write(write: Write, first: int, messages: list[bytes]) -> int:
    """Writes messages, numbered from `first`; returns their number."""
    numbers = pa.array(range(first, first + len(messages)), pa.int64())
    write(pa.RecordBatch.from_arrays([numbers, pa.array(messages, pa.binary())], schema=CAPTURE))
    return len(messages)
