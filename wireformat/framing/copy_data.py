"""Messages of PostgreSQL's replication connection: one message is one record, with or without the envelope of CopyData.

    message = record | 'w' start:u64 end:u64 time:i64 record | keepalive
    keepalive = 'k' end:u64 time:i64 reply:u8

`start` is the LSN of the frame. Source: PostgreSQL manual, "Streaming Replication Protocol", XLogData.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import ShortData
from .frames import Frame, Part, layout

ENVELOPE, KEEPALIVE = ord("w"), ord("k")

HEAD = (
    Part("envelope", "c", "'w', the envelope of CopyData"),
    Part("start", "Q", "LSN of the record, unsigned integer of 8 bytes"),
    Part("end", "Q", "end of the log on the server, unsigned integer of 8 bytes"),
    Part("time", "q", "when it was sent, microseconds since 2000-01-01, signed integer of 8 bytes"),
)
"""Before a record in an envelope."""

ENVELOPE_BYTES = layout(HEAD).size


def frames(message: bytes) -> Iterator[Frame]:
    """Yields the one frame of a message; raises ShortData if it has no record."""
    if not message:
        raise ShortData("a record", "an empty message", message_offset=0)
    if message[0] != ENVELOPE:
        yield Frame(0, 0, len(message), None)
        return
    if len(message) <= ENVELOPE_BYTES:
        got = f"{len(message)}, then the message ends"
        raise ShortData(f"{ENVELOPE_BYTES} bytes and a record", got, message_offset=0, path="envelope")
    yield Frame(0, ENVELOPE_BYTES, len(message), int.from_bytes(message[1:9], "big"))
