"""The conversion of events to another format, with a count of what that format cannot express."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any

from ..arrow.engine.choice import make_engine
from ..errors import EncodeError, LimitExceeded, OptionError
from ..events import CommitPrepared, Event, Prepare, Relation, RollbackPrepared, StreamPrepare, TupleData
from ..formats.adapt import adapted
from ..formats.base import Format
from ..limits import SENDER_BATCH_BYTES
from ..options import WRITE_OPTIONS, ReadOptions

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
