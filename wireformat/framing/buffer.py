"""A buffer that takes bytes cut anywhere and returns whole messages."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import BadTag, DecodeError

FindEnds = Callable[[bytearray, int, int], "tuple[list[int], int, bool]"]
"""Takes data, where a message begins, and how far the data were searched. Returns the ends of the messages from there
on, how far the data were searched now, and whether more bytes are needed. It stops before anything unusual."""


class NoFraming(BadTag):
    """A message does not say where it ends, and the stream has no separators."""


class MessageBuffer:
    """Collects bytes and returns the messages that are complete.

    find_end    Format.find_end: where the first message of the bytes ends
    separator   the bytes that follow each message
    find_ends   if set, finds the ends of many messages at once; find_end then reads the rest

    Once the framing is broken, no later message can be found. `lost` then holds the error, and the bytes from the
    broken message on are returned as one message for each piece, so that the reader of the format reports them. After
    NoFraming that reader would find nothing wrong: `is_unframed` then says that the bytes are not a message.
    """

    def __init__(
        self, find_end: Callable[[bytes | bytearray, int, int, int], tuple[bool, int]], separator: bytes = b""
    ) -> None:
        self._find_end = find_end
        self._separator = separator
        self.find_ends: FindEnds | None = None
        self._data = bytearray()
        self._searched = self._seen = 0
        self.lost: DecodeError | None = None

    @property
    def is_unframed(self) -> bool:
        """Whether the bytes are not a message, because nothing says where they end."""
        return isinstance(self.lost, NoFraming)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Adds bytes, and returns the messages that are complete now."""
        data = self._data
        data += chunk
        messages: list[bytes] = []
        start = 0
        while self.lost is None and start < len(data):
            if self.find_ends is not None:
                ends, self._searched, needs_more = self.find_ends(data, start, self._searched)
                for end in ends:
                    messages.append(bytes(data[start : end - len(self._separator)]))
                    start = end
                if needs_more:
                    break
            try:
                found, self._searched = self._find_end(data, start, self._searched, self._seen)
            except DecodeError as error:
                self.lost = error
                break
            if not found:
                break
            messages.append(bytes(data[start : self._searched - len(self._separator)]))
            start = self._searched
        del data[:start]  # used bytes go once a chunk, not once a message
        self._searched -= start
        self._seen = len(data)
        if self.lost is not None:
            messages += self.close()
        return messages

    def close(self) -> list[bytes]:
        """Returns the rest as one incomplete message; nothing if there is no rest.

        Without its separator, the rest may look complete: `is_unframed` then says that it is not a message.
        """
        rest = [bytes(self._data)] if self._data else []
        if rest and self._separator and self.lost is None:
            self.lost = NoFraming(
                f"a record and {self._separator!r} after it", "the end of the stream", message_offset=0, path="record"
            )
        self._data, self._searched, self._seen = bytearray(), 0, 0
        return rest
