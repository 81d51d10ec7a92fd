"""The one check for a codec: whole, byte by byte, with a tail, every truncation, back to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import wireformat as wf
from wireformat.formats.registry import find_format

from .accounting import EVERYTHING, account_all
from .engines import ENGINES, FORMAT, agree, read
from .mutations import truncations

MANY = 1 << 40
"""More bytes than any batch has: nothing is closed by size."""

FEW_CUTS = 48
"""How many truncations of a long message are tried at each end of it, and in between."""


def check_message(message: bytes, events: Sequence[wf.Event], *, encoding: str = "utf-8") -> None:
    """All checks of one message that the encoder would write as it is."""
    check_whole([message], events, encoding=encoding)
    check_byte_by_byte(message, events, encoding=encoding)
    check_tail(message, events, encoding=encoding)
    check_truncations(message, events, encoding=encoding)
    check_same_bytes(message, events, encoding=encoding)


def check_whole(messages: Sequence[bytes], events: Sequence[wf.Event], *, encoding: str = "utf-8") -> None:
    """Both engines give exactly these events."""
    for engine in ENGINES:
        assert read(messages, engine, encoding=encoding) == list(events), engine


def check_byte_by_byte(data: bytes, events: Sequence[wf.Event], *, format: str = FORMAT, **options: Any) -> None:
    """A decoder that is fed single bytes gives these events, all of them before it is closed."""
    check_pieces([data[place : place + 1] for place in range(len(data))], events, format=format, **options)


def check_pieces(pieces: Sequence[bytes], events: Sequence[wf.Event], *, format: str = FORMAT, **options: Any) -> None:
    """A decoder that is fed these pieces of whole messages gives these events, all of them before it is closed."""
    for engine in ENGINES:
        decoder = wf.Decoder(format, engine=engine, **options)
        found: list[wf.Event] = []
        for piece in pieces:
            decoder.feed(piece)
            found += decoder.events()
        assert found == list(events), engine
        decoder.close()
        assert decoder.events() == []


def check_tail(message: bytes, events: Sequence[wf.Event], *, encoding: str = "utf-8") -> None:
    """Bytes after the message change nothing of what it says, and are reported."""
    tail = b"\x2a"
    answer = agree([message + tail], encoding=encoding, mode="PERMISSIVE")
    assert answer.events[:-1] == list(events)
    assert isinstance(answer.events[-1], wf.Corrupt)
    assert answer.events[-1].raw == tail
    for engine in ENGINES:
        decoder = wf.Decoder(FORMAT, engine=engine, encoding=encoding, mode="PERMISSIVE")
        decoder.feed(message + tail)
        assert decoder.events() == list(events), engine
        decoder.close()
        (rest,) = decoder.events()
        assert isinstance(rest, wf.Corrupt)
        assert rest.raw == tail


def check_truncations(message: bytes, events: Sequence[wf.Event], *, encoding: str = "utf-8") -> None:
    """Every truncation is bad, in both engines in the same words, after a beginning of the events."""
    cut = _some(truncations(message))
    answer = agree(cut, encoding=encoding, mode="PERMISSIVE")
    by_message = answer.by_message()
    if encoding == "utf-8":
        account_all(cut, by_message)
    for index in range(len(cut)):
        *good, last = by_message[index]
        assert isinstance(last, wf.Corrupt), f"cut at {len(cut[index])}"
        assert good == list(events[: len(good)]), f"cut at {len(cut[index])}"


def check_same_bytes(message: bytes, events: Sequence[wf.Event], *, encoding: str = "utf-8") -> None:
    """The events of one message are written as the same bytes, closed in the same way."""
    assert b"".join(rewritten(message, events, encoding=encoding)) == message


def rewritten(message: bytes, events: Sequence[wf.Event], *, encoding: str = "utf-8") -> Iterator[bytes]:
    """The events written again; the last record closes the message by size, unless it was closed by timeout."""
    by_timeout = message.endswith(b"P\0\0\0\0")
    batch_bytes = MANY if by_timeout else 25 + len(message) - 2
    options = {**EVERYTHING[FORMAT], "sending-batch": 1}
    writer = find_format(FORMAT).writer(options, encoding=encoding, batch_bytes=batch_bytes)
    for event in events:
        yield from writer.write(event)
    yield from writer.flush()


def _some(cut: list[bytes]) -> list[bytes]:
    if len(cut) <= 3 * FEW_CUTS:
        return cut
    middle = cut[FEW_CUTS:-FEW_CUTS]
    return [*cut[:FEW_CUTS], *middle[:: len(middle) // FEW_CUTS + 1], *cut[-FEW_CUTS:]]
