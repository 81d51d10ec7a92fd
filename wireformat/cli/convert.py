"""`wireformat convert`: a capture in another format, with a count of what that format cannot express."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..arrow.engine.choice import make_engine
from ..errors import EncodeError, LimitExceeded, OptionError, counted
from ..events import CommitPrepared, Event, Prepare, Relation, RollbackPrepared, StreamPrepare, TupleData
from ..formats.adapt import adapted
from ..formats.base import Format
from ..formats.registry import find_format
from ..limits import SENDER_BATCH_BYTES
from ..options import WRITE_OPTIONS, ReadOptions
from .decoding import Decoding
from .exits import BAD_DATA, Failed
from .inputs import all_messages, find_inputs, progress
from .options import STDOUT
from .output import Write, find_output, open_output
from .screen import say

_INDEX = re.compile(r"\[\d+\]")

MOST_REASONS = 50
"""How many reasons are counted apart, since an encoder may give another text for each event."""


class Conversion:
    """Writes events as far as the format can express them, and reads each back to find what is lost.

    given      the servers' options for writing, by name; those that let BEGIN and COMMIT carry more are on by default
    encoding   of the server

    `lost` is the number of records for each reason, which begins with their kind. `committed_unprepared` has the gids
    of COMMIT PREPARED without a PREPARE, if the format has no COMMIT PREPARED; before version 18, PostgreSQL sends no
    PREPARE for a transaction that changed nothing. A row of pgoutput may be written with a RELATION before it.

    Raises OptionError.
    """

    def __init__(self, format: Format, given: Mapping[str, Any], encoding: str) -> None:
        wanted = {**_all_facts(format, encoding), **given}
        alone = {**wanted, "skip-empty-xacts": False} if "skip-empty-xacts" in given else wanted
        self._format = format
        self._probe = format.writer(alone, encoding=encoding, batch_bytes=SENDER_BATCH_BYTES)
        self._writer = format.writer(wanted, encoding=encoding, batch_bytes=SENDER_BATCH_BYTES)
        self._stays_alone = not given.keys() & {"sending-batch", "skip-empty-xacts"}
        dialect = {"dialect": given["dialect"]} if "dialect" in given else {}  # the writer has checked it
        self._reader = make_engine(format, ReadOptions.check(mode="PERMISSIVE", encoding=encoding, **dialect))
        self.lost: Counter[str] = Counter()
        self.committed_unprepared: list[str] = []
        self._prepared: set[str | None] = set()

    def messages(self, events: Sequence[Event]) -> Iterator[bytes]:
        """Yields the messages that are complete with these events."""
        for event, alone in self._expressible(events):
            yield from alone if self._stays_alone else self._writer.write(event)

    def flush(self) -> list[bytes]:
        """Returns the rest of the messages at the end."""
        return self._writer.flush()

    def _expressible(self, events: Sequence[Event]) -> Iterator[tuple[Event, list[bytes]]]:
        """Yields the events that can be expressed, perhaps without some fields, with the messages of each alone."""
        written: list[tuple[Event, Event, list[bytes]]] = []
        for sent in events:
            event, _ = adapted(sent, self._format.name)
            ends_unknown = self._ends_unknown(sent)
            try:
                written.append((sent, event, [*self._probe.write(event), *self._probe.flush()]))
            except (EncodeError, LimitExceeded) as error:
                if ends_unknown and isinstance(sent, CommitPrepared):
                    self.committed_unprepared.append(str(sent.gid))
                elif not ends_unknown:
                    self._count(sent, str(error))
        owners = [index for index, (_, _, messages) in enumerate(written) for _ in messages]
        found: list[list[Event]] = [[] for _ in written]
        for located in self._reader.events([message for _, _, messages in written for message in messages]):
            found[owners[located.message]].append(located.event)
        for (sent, event, messages), read in zip(written, found, strict=True):
            back = read if isinstance(sent, Relation) else [item for item in read if not isinstance(item, Relation)]
            if [type(item) for item in back] == [type(sent)]:
                for path in _differences(sent, back[0]):
                    self._count(sent, path)
                yield event, messages
            else:
                kinds = " and ".join(item.kind for item in back) or "nothing"
                self._count(sent, f"it reads back as {kinds}")

    def _ends_unknown(self, event: Event) -> bool:
        """Whether this is the end of a prepared transaction that no event has prepared."""
        if isinstance(event, (Prepare, StreamPrepare)):
            self._prepared.add(event.gid)
        elif isinstance(event, (CommitPrepared, RollbackPrepared)):
            is_known = event.gid in self._prepared
            self._prepared.discard(event.gid)
            return not is_known
        return False

    def _count(self, event: Event, reason: str) -> None:
        reason = _INDEX.sub("[]", reason.removeprefix(f"{self._format.name} {event.kind}: "))
        text = f"{event.kind}: {reason}"
        self.lost[text if text in self.lost or len(self.lost) < MOST_REASONS else "other reasons"] += 1


def _all_facts(format: Format, encoding: str) -> dict[str, bool]:
    """Returns the options that let BEGIN and COMMIT carry more, as far as the writer has them."""
    names = [row.name for row in WRITE_OPTIONS if row.name.startswith("include-")]
    known = {}
    for name in names:
        with suppress(OptionError):
            format.writer({name: True}, encoding=encoding, batch_bytes=SENDER_BATCH_BYTES)
            known[name] = True
    return known


def _differences(event: Event, other: Event) -> Iterator[str]:
    """Yields the fields in which two events of one kind differ, of those that count."""
    if event == other:
        return
    for field in fields(event):
        if not field.compare:
            continue
        left, right = getattr(event, field.name), getattr(other, field.name)
        if left == right:
            continue
        if isinstance(left, TupleData) and isinstance(right, TupleData):
            parts = [part.name for part in fields(left) if getattr(left, part.name) != getattr(right, part.name)]
            yield from (f"{field.name}.{part}" for part in parts)
        else:
            yield field.name


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
