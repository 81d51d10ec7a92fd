"""A frame: where one record's kind and body lie in its message."""

from __future__ import annotations

from typing import NamedTuple


class Frame(NamedTuple):
    """One record of a message, without what surrounds it.

    record  index in the message
    start   first byte of the record's own bytes (binary: its kind)
    stop    one past the last
    lsn     the position in its frame, None where the framing has none
    """

    record: int
    start: int
    stop: int
    lsn: int | None
