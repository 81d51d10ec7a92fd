"""A buffer: bytes cut anywhere in, whole messages out."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import BadTag, DecodeError

FindEnds = Callable[[bytearray, int, int], "tuple[list[int], int, bool]"]
"""(data, where a message begins, how far it has been searched) to the ends of messages from there on, how far they have
been searched then, and whether more bytes must come to go on. It stops before what is unusual."""


class NoFraming(BadTag):
    """A message that does not say where it ends, in a stream of messages that are not separated."""


class MessageBuffer:
    """Collects bytes and gives the messages that are complete.

    find_end    Format.find_end: where the first message of the bytes ends
    separator   what follows each message and is no part of it
    find_ends   finds many at once, where it is set; find_end then reads what it leaves
    Once the framing is broken no later message can be found; `lost` then holds the error, and all bytes from the
    broken message on are given as they are, each as one message, so that their reader reports them. After NoFraming
    its reader would find nothing wrong: `is_unframed` says that they are no message.
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
        """Whether the bytes are no message because nothing says where they end."""
        return isinstance(self.lost, NoFraming)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add bytes and take out the messages that are complete now."""
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
        """What is left, as one message that is not complete; nothing if nothing is left.

        Without its separator it may look complete and not be: `is_unframed` then says that it is no message.
        """
        rest = [bytes(self._data)] if self._data else []
        if rest and self._separator and self.lost is None:
            self.lost = NoFraming(
                f"a record and {self._separator!r} after it", "the end of the stream", message_offset=0, path="record"
            )
        self._data, self._searched, self._seen = bytearray(), 0, 0
        return rest
