"""Checks at the end of an input whether its messages have the format that they were read as.

A single message, a part of an input, or an endless input is not judged, since UNKNOWN records are not an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from ..errors import DecodeError, counted
from ..events import Event, Unknown
from ..formats.guess import LOOKED_AT, Guess, guess_format, named
from ..formats.row import HEAD_BYTES
from ..options import ReadOptions
from .reader import Located

UNKNOWN = "UNKNOWN"

LOOKED_AT_FILTERED = 100
"""How many messages are looked at where `kinds` has left out all records: good messages, most often."""


class Judged:
    """Messages that are read in FAILFAST mode, and the check of their format at the end.

    messages   what the reader must read: the given messages if they have a length, otherwise an iterator over them
    """

    def __init__(self, messages: Any, format: str, options: ReadOptions) -> None:
        self._format = format
        self._may_filter = options.kinds is not None
        self._heads: list[bytes] = []
        has_no_length = isinstance(messages, Iterable) and not hasattr(messages, "__len__")
        self._given = None if has_no_length else messages
        self.messages = self._with_heads_kept(messages) if has_no_length else messages

    def named(self, error: DecodeError) -> DecodeError:
        """Returns the error, with the format that the messages look like if it is another format."""
        return named(error, self._heads if self._given is None else self._given, self._format)

    def check_unknown(self, records: int) -> None:
        """Raises DecodeError if all records were UNKNOWN, and the messages look like another format.

        records   the number of UNKNOWN records, when there were no others. With the option `kinds` it must be 0, since
                  that option normally filters UNKNOWN records out; then the messages alone are judged
        """
        if self._count() < 2 or bool(records) == self._may_filter:
            return
        messages = self._heads if self._given is None else self._given
        guess = guess_format(islice(messages, LOOKED_AT_FILTERED) if self._may_filter else messages)
        if guess.candidates and self._format not in guess.candidates:
            got = (
                f"{counted(records, 'UNKNOWN record')} and no others" if records else "no record of the requested kinds"
            )
            raise wrong_format(self._format, got, guess)

    def _count(self) -> int:
        """Returns the number of messages that are not null."""
        if self._given is None:
            return len(self._heads)
        nulls = getattr(self._given, "null_count", None)
        return sum(message is not None for message in self._given) if nulls is None else len(self._given) - nulls

    def _with_heads_kept(self, messages: Iterable[Any]) -> Iterator[Any]:
        for message in messages:
            if len(self._heads) < LOOKED_AT and message is not None:
                # A null scalar of Arrow raises ValueError. Values that are not bytes are refused later.
                with suppress(TypeError, ValueError):
                    self._heads.append(bytes(memoryview(message)[:HEAD_BYTES]))
            yield message


def judged_input(events: Iterable[Event]) -> Iterator[Event]:
    """Yields all events of an input.

    Raises DecodeError at the end if there were several events, all UNKNOWN, and they look like a format.
    """
    remaining = iter(events)
    raws = []
    for event in remaining:
        yield event
        if not isinstance(event, Unknown):
            break
        raws.append(event.raw[:HEAD_BYTES])
    else:
        guess = guess_format(raws)
        if len(raws) > 1 and guess.candidates:
            raise wrong_format(None, f"{len(raws)} UNKNOWN records and no others", guess)
    yield from remaining


def wrong_format(format: str | None, got: str, guess: Guess) -> DecodeError:
    """Returns the error for an input of which no record could be read."""
    expected = "records that can be read" if format is None else f"records of {format}"
    return DecodeError(expected, got, format=format, hint=f"{guess.reason}; pass the format of the messages")


def judged_events(source: Any, messages: Any, format: str, options: ReadOptions) -> Iterator[Located]:
    """Yields the events of an engine.

    In FAILFAST mode it raises DecodeError at the end if all events are UNKNOWN and the messages look like another
    format. Every DecodeError then names the format that the messages look like.
    """
    if options.mode != "FAILFAST":
        yield from source.events(messages)
        return
    judged = Judged(messages, format, options)
    events: Iterator[Located] = source.events(judged.messages)
    unknown = 0
    try:
        for located in events:
            yield located
            if located.event.kind != UNKNOWN:
                break
            unknown += 1
        else:
            judged.check_unknown(unknown)
        yield from events
    except DecodeError as error:
        raise judged.named(error) from None
