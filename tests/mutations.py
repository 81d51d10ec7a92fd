"""Valid bytes made bad: every cut, every byte changed, every length made a lie, every splice of two messages.

In a short run there are fewer of all but the cuts.
"""

from __future__ import annotations

from collections.abc import Iterator

from .examples import thinned

BYTE_LIES = (0x00, 0x01, 0x22, 0x46, 0x50, 0x7F, 0x80, 0xFF)
"""Bytes to put in the place of one: ends of ranges, a quote, F and P."""

LIES_16 = (0, 1, 0x7FFF, 0xFFFF)
LIES_32 = (0, 1, 8, 9, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF)


def truncations(message: bytes) -> list[bytes]:
    """The message cut before every byte of it."""
    return [message[:stop] for stop in range(len(message))]


@thinned
def changed_bytes(message: bytes) -> Iterator[bytes]:
    """The message with one byte changed: every bit flipped, one more, one less, and the BYTE_LIES."""
    for place, byte in enumerate(message):
        others = {*BYTE_LIES, (byte + 1) % 256, (byte - 1) % 256, *(byte ^ 1 << bit for bit in range(8))} - {byte}
        for other in sorted(others):
            yield message[:place] + bytes([other]) + message[place + 1 :]


@thinned
def overwritten_lengths(message: bytes) -> Iterator[bytes]:
    """The message with a lie of two or four bytes at every place, wherever its lengths are."""
    for width, lies in ((2, LIES_16), (4, LIES_32)):
        for place in range(len(message) - width + 1):
            true = int.from_bytes(message[place : place + width], "big")
            near = {(true + step) % 256**width for step in (-9, -1, 1, 2, 13)}
            for lie in sorted({*lies, *near} - {true}):
                yield message[:place] + lie.to_bytes(width, "big") + message[place + width :]


@thinned
def inserted_and_deleted(message: bytes) -> Iterator[bytes]:
    """The message with one byte put in, one taken out, or a piece doubled, at every place."""
    for place in range(len(message)):
        yield message[:place] + message[place + 1 :]
        yield message[: place + 5] + message[place:]
        for byte in (0x00, 0x46, 0x50, 0xFF):
            yield message[:place] + bytes([byte]) + message[place:]


@thinned
def splices(left: bytes, right: bytes, step: int = 1) -> Iterator[bytes]:
    """Every beginning of one message followed by every end of the other; step skips some."""
    for stop in range(0, len(left) + 1, step):
        for start in range(0, len(right) + 1, step):
            yield left[:stop] + right[start:]
