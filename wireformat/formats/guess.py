"""Which format bytes look like: one record, for errors about bytes of another format, or the messages of an input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import DecodeError, add_hint, counted
from .registry import ROWS, all_rows
from .row import HEAD_BYTES, first_pattern, matches

LOOKED_AT = 1000
"""How many messages are examined, from the first on."""

_LOOKS_LIKE = "it looks like "
"""How the hint about a single record begins."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The likely format of an input.

    name         the format; None if no format or several formats match
    candidates   the formats that match: one if there is a name, none if nothing is recognised
    reason       why, in a sentence
    messages     how many were looked at
    """

    name: str | None
    candidates: tuple[str, ...]
    reason: str
    messages: int

    def __str__(self) -> str:
        return " or ".join(self.candidates) or "no format that this package knows"


def guess_format(messages: Iterable[Any]) -> Guess:
    """The likely format of messages, by how they begin.

    messages    an iterable of bytes-like objects, or a pyarrow binary array or chunked array; None is left out
    Looks at the first messages only (`LOOKED_AT`), and at the first bytes of each. Raises TypeError for what holds no
    bytes.
    """
    found: Counter[str] = Counter()
    count = 0
    for head in heads(messages):
        count += 1
        found.update(look(head, 0, len(head)))
    if not found:
        none = "the message does not begin" if count == 1 else f"none of {counted(count, 'message')} begins"
        return Guess(None, (), f"{none} like one of a known format", count)
    most = max(found.values())
    names = tuple(sorted(name for name, number in found.items() if number == most))
    these = "the message" if count == 1 else f"{most} of {counted(count, 'message')}"
    reason = f"{these} begin{'s' if most == 1 else ''} like those of {' or '.join(names)}"
    if len(names) == 1:
        return Guess(names[0], names, reason, count)
    return Guess(None, names, f"{reason}, which these messages do not tell apart", count)


def heads(messages: Iterable[Any]) -> Iterator[bytes]:
    """The beginnings of the first messages."""
    if isinstance(messages, (bytes, bytearray, memoryview, str)):
        raise TypeError(f"messages: expected an iterable of messages, got one {type(messages).__name__}")
    if not isinstance(messages, Iterable):
        raise TypeError(f"messages: expected an iterable of bytes-like objects, got {type(messages).__name__}")
    count = 0
    for message in messages:
        data = message
        if hasattr(message, "as_py"):  # of Arrow; as_py would copy the whole message
            data = message.as_buffer() if "binary" in str(message.type) else message.as_py()
        if data is None:
            continue
        try:
            with memoryview(data) as view:
                head = bytes(view[:HEAD_BYTES])
        except TypeError:
            raise TypeError(f"messages: expected bytes, got {type(data).__name__}") from None
        count += 1
        yield head
        if count == LOOKED_AT:
            return


def named(error: DecodeError, messages: Iterable[Any], format: str) -> DecodeError:
    """The error with the format that several messages look like, where that is another one.

    A hint about the record alone is narrowed to the formats that all messages look like, so there is only one.
    """
    guess = guess_format(messages)
    if guess.messages < 2 or not guess.candidates or format in guess.candidates or guess.reason in (error.hint or ""):
        return error
    parts = (error.hint or "").split("; ")
    for index, part in enumerate(parts):
        of_record = part.removeprefix(_LOOKS_LIKE).split(" or ") if part.startswith(_LOOKS_LIKE) else []
        both = [name for name in of_record if name in guess.candidates]
        if both:
            if both != of_record:
                parts[index] = f"the messages look like {' or '.join(both)}"
            return error.add(hint="; ".join(parts))
    add_hint(error, f"the messages look like {guess}")
    return error


def look(data: bytes | bytearray, start: int, stop: int) -> tuple[str, ...]:
    """The formats whose messages or records begin like these bytes; none where no pattern matches."""
    head = data[start : min(stop, start + HEAD_BYTES)]
    found = first_pattern(head)
    return tuple(
        row.name
        for row in all_rows().values()
        if found in row.signatures or any(matches(pattern, head) for pattern in row.own_patterns)
    )


def looks_like(data: bytes | bytearray, start: int, stop: int, name: str) -> str:
    """The other formats that bytes look like, `a or b`; nothing if they look like the format of this name, or none."""
    found = look(data, start, stop)
    return "" if name in found else " or ".join(found)


def hinted(error: DecodeError, data: bytes | bytearray, start: int, stop: int, name: str) -> DecodeError:
    """The error with a hint at what the bytes look like, where that is another format."""
    row = ROWS.get(name)
    if row is not None and first_pattern(data[start : min(stop, start + HEAD_BYTES)]) in row.signatures:
        return error
    found = look(data, start, stop)
    if found and name not in found:
        add_hint(error, f"{_LOOKS_LIKE}{' or '.join(found)}")
    return error
