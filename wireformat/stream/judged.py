"""Whether a whole input that has ended is of the format that it was read as.

A single message, a part of an input, or one that goes on is never judged: records that no table lists are no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ..errors import DecodeError
from ..events import Event, Unknown
from ..formats.guess import LOOKED_AT, Guess, guess_format, named
from ..formats.signatures import HEAD_BYTES
from ..options import ReadOptions
from .reader import Located

UNKNOWN = "UNKNOWN"


class Judged:
    """Messages on their way to a reader in FAILFAST, and what can be said of them at the end.

    messages    what the reader takes: as they were given where they have a length, else one by one as it asks for them
    """

    def __init__(self, messages: Any, format: str, options: ReadOptions) -> None:
        self._format = format
        self._may_filter = options.kinds is not None
        self._heads: list[bytes] = []
        is_source = isinstance(messages, Iterable) and not hasattr(messages, "__len__")
        self._given = None if is_source else messages
        self.messages = self._taken(messages) if is_source else messages

    def named(self, error: DecodeError) -> DecodeError:
        """The error with the format that the messages look like, where that is another one."""
        return named(error, self._heads if self._given is None else self._given, self._format)

    def check_unknown(self, records: int) -> None:
        """Raises DecodeError where these records, all UNKNOWN, are all that was read, and look like another format.

        A filter of kinds leaves UNKNOWN records out, unless somebody asks for them: where it left nothing, the messages
        alone are judged.
        """
        if self._count() < 2 or bool(records) == self._may_filter:
            return
        guess = guess_format(self._heads if self._given is None else self._given)
        if guess.candidates and self._format not in guess.candidates:
            got = f"{records} UNKNOWN records and no other" if records else "no record of the kinds that are wanted"
            raise wrong_format(self._format, got, guess)

    def _count(self) -> int:
        """How many messages there were, without null ones."""
        if self._given is None:
            return len(self._heads)
        nulls = getattr(self._given, "null_count", None)
        return sum(message is not None for message in self._given) if nulls is None else len(self._given) - nulls

    def _taken(self, messages: Iterable[Any]) -> Iterator[Any]:
        for message in messages:
            if len(self._heads) < LOOKED_AT and message is not None:
                with suppress(TypeError, ValueError):  # a null scalar of Arrow; what holds no bytes is refused later
                    self._heads.append(bytes(memoryview(message)[:HEAD_BYTES]))
            yield message


def judged_input(events: Iterable[Event]) -> Iterator[Event]:
    """All events of an input.

    Raises DecodeError at the end where there are several, all are UNKNOWN, and they look like a format.
    """
    left = iter(events)
    raws = []
    for event in left:
        yield event
        if not isinstance(event, Unknown):
            break
        raws.append(event.raw[:HEAD_BYTES])
    else:
        guess = guess_format(raws)
        if len(raws) > 1 and guess.candidates:
            raise wrong_format(None, f"{len(raws)} UNKNOWN records and no other", guess)
    yield from left


def wrong_format(format: str | None, got: str, guess: Guess) -> DecodeError:
    """The error for an input in which nothing could be read."""
    expected = "records that can be read" if format is None else f"records of {format}"
    return DecodeError(expected, got, format=format, hint=f"{guess.reason}; give the format of the messages")


def judged_events(source: Any, messages: Any, format: str, options: ReadOptions) -> Iterator[Located]:
    """The events of an engine. In FAILFAST it raises DecodeError at the end where all of them are UNKNOWN, and the
    messages look like another format; and every DecodeError names the format that the messages look like."""
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
