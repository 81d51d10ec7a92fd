"""What a format is: its name, its frames, a reader of one record, and a writer of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import fields
from typing import Any, Protocol

from ..errors import EncodeError
from ..events import OF_STREAM, Event
from ..framing.frames import Frame
from ..options import ReadOptions
from .pgoutput.relations import Relations


class Writer(Protocol):
    """Turns events into messages, in order."""

    def write(self, event: Event) -> list[bytes]:
        """Returns the messages that are complete with this event; raises EncodeError."""

    def flush(self) -> list[bytes]:
        """Returns the messages that are held back, as a server sends them after a second without a new transaction."""


class Format(Protocol):
    """One byte layout, read and written. `docs/formats` has the byte tables."""

    @property
    def name(self) -> str:
        """What users call it."""

    @property
    def sentence(self) -> str:
        """What it is."""

    @property
    def relations(self) -> Relations | None:
        """The tables that messages have described and later ones only number; None if messages always name tables."""

    def fresh(self, relations: Relations | None = None) -> Format:
        """The format for one stream: itself, or where messages depend on earlier ones, one that has read none.

        relations   what is known of tables before the first message
        """

    @property
    def separator(self) -> bytes:
        """The bytes between consecutive messages; usually none."""

    def frames(self, message: bytes, at: int = 0, record: int = 0) -> Iterator[Frame]:
        """The records of a whole message, or those from a record on; raises DecodeError where the framing is broken.

        at, record  where the framing of this record begins; earlier records may come all the same
        """

    def find_end(self, data: bytes | bytearray, start: int, searched: int, seen: int = 0) -> tuple[bool, int]:
        """Where the message that begins at `start` ends: (True, one past it and its separator) or (False, how far it
        looked).

        searched    start, or how far the last call looked
        seen        one past the bytes that the last call was given
        Raises OptionError in formats whose messages never say where they end.
        """

    def read(self, message: bytes, frame: Frame, options: ReadOptions) -> Event:
        """Returns the event of one frame; raises DecodeError."""

    def says(self, event: type[Event]) -> Set[str]:
        """Returns the fields of this kind of event, beside `lsn`, that the format can express."""

    def writer(self, options: Mapping[str, Any] | None, *, encoding: str, batch_bytes: int) -> Writer:
        """Returns a writer with the server's options; raises OptionError."""


def refuse_others(event: Event, said: Set[str]) -> None:
    """Raises EncodeError for a fact of the event that the format cannot express."""
    for field in fields(event):
        if field.name not in (*OF_STREAM, *said) and getattr(event, field.name) != field.default:
            raise EncodeError(f"{field.name}: the format cannot say it")
