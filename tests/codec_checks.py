"""The one check for a codec: whole, byte by byte, with a tail, every truncation, back to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import wireformat as wf
from wireformat.formats.registry import find_format

from .accounting import account_all
from .engines import ENGINES, FORMAT, agree
from .mutations import truncations
from .support import Sample, Support

FEW_CUTS = 48
"""How many truncations of a long message are tried at each end of it, and in between."""


def check_message(support: Support, message: bytes, events: Sequence[wf.Event], **options: Any) -> None:
    """All checks of one message, whose events may be written in another way; `options` are those of the reader."""
    check_whole([*support.before, message], events, format=support.format, skip=len(support.before), **options)
    check_truncations(support, message, events, **options)
    if support.says_its_end(message):
        data = message + find_format(support.format).separator
        check_byte_by_byte(data, events, format=support.format, **options)
        if support.is_batched:
            check_tail(message, events, format=support.format, **options)


def check_whole(
    messages: Sequence[bytes], events: Sequence[wf.Event], *, format: str = FORMAT, skip: int = 0, **options: Any
) -> None:
    """Both engines give exactly these events behind the first ones, and every byte is in one place."""
    answer = agree(messages, format=format, mode="PERMISSIVE", **options)
    assert answer.events[skip:] == list(events)
    if "encoding" not in options:
        account_all(messages, answer.by_message(), format)


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


def check_tail(message: bytes, events: Sequence[wf.Event], *, format: str = FORMAT, **options: Any) -> None:
    """Bytes after a message that may be a batch change nothing of what it says, and are reported."""
    tail = b"\x2a"
    answer = agree([message + tail], format=format, mode="PERMISSIVE", **options)
    assert answer.events[:-1] == list(events)
    assert isinstance(answer.events[-1], wf.Corrupt)
    assert answer.events[-1].raw == tail
    for engine in ENGINES:
        decoder = wf.Decoder(format, engine=engine, mode="PERMISSIVE", **options)
        decoder.feed(message + tail)
        assert decoder.events() == list(events), engine
        decoder.close()
        (rest,) = decoder.events()
        assert isinstance(rest, wf.Corrupt)
        assert rest.raw == tail


def check_truncations(support: Support, message: bytes, events: Sequence[wf.Event], **options: Any) -> None:
    """Both engines say the same of every truncation. Of what may be a batch each is bad, after some of the events."""
    skip = len(support.before)
    cut = [*support.before, *_some(truncations(message))]
    answer = agree(cut, format=support.format, mode="PERMISSIVE", **options)
    by_message = answer.by_message()
    if "encoding" not in options:
        account_all(cut, by_message, support.format)
    if not (support.is_batched and support.says_its_end(message)):
        return
    for index in range(skip, len(cut)):
        *good, last = by_message[index]
        assert isinstance(last, wf.Corrupt), f"cut at {len(cut[index])}"
        assert good == list(events[: len(good)]), f"cut at {len(cut[index])}"


def check_same_bytes(support: Support, sample: Sample, events: Sequence[wf.Event]) -> None:
    """The events of one message are written as the same bytes, closed in the same way."""
    written = b"".join(rewritten(support, sample, events))
    assert written == (sample.message if sample.written is None else sample.written)


def rewritten(support: Support, sample: Sample, events: Sequence[wf.Event]) -> Iterator[bytes]:
    """The events written again, behind those that come before any."""
    options = {**support.writing, **sample.writing}
    writer = find_format(support.format).writer(options, encoding="utf-8", batch_bytes=sample.batch_bytes)
    for message in support.before:
        for event in wf.decode([message], support.format):
            assert writer.write(event) == [message]
    for event in events:
        yield from writer.write(event)
    yield from writer.flush()


def _some(cut: list[bytes]) -> list[bytes]:
    if len(cut) <= 3 * FEW_CUTS:
        return cut
    middle = cut[FEW_CUTS:-FEW_CUTS]
    return [*cut[:FEW_CUTS], *middle[:: len(middle) // FEW_CUTS + 1], *cut[-FEW_CUTS:]]
