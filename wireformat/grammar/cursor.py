"""A position in a record: reads expected bytes and quoted texts, and locates errors."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import BadTag, BadText, DecodeError, ShortData, TrailingBytes, counted
from ..limits import SPOT_BYTES
from ..tracing import Trace


class Cursor:
    """A position in data[start:stop], which moves forward.

    encoding, errors    as for bytes.decode
    shows               whether errors may show the bytes there; not where they may be part of a cell's value
    whole               what data[start:stop] is, for errors
    trace               where the grammar notes what it reads; mostly None
    """

    __slots__ = ("at", "data", "encoding", "errors", "shows", "stop", "trace", "whole")

    def __init__(
        self,
        data: bytes,
        start: int,
        stop: int,
        encoding: str,
        errors: str,
        *,
        whole: str = "record",
        trace: Trace | None = None,
    ) -> None:
        self.trace = trace
        self.data = data
        self.at = start
        self.stop = stop
        self.encoding = encoding
        self.errors = errors
        self.shows = True
        self.whole = whole

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.at >= self.stop

    def sees(self, token: bytes) -> bool:
        """Whether these bytes follow."""
        return self.data.startswith(token, self.at, self.stop)

    def skip(self, token: bytes) -> bool:
        """Steps over these bytes if they follow; returns whether they did."""
        if not self.data.startswith(token, self.at, self.stop):
            return False
        self.at += len(token)
        if self.trace is not None:
            self.trace.note(self.at - len(token), self.at, "", repr(token.decode("latin-1")))
        return True

    def expect(self, token: bytes, path: str) -> None:
        """Steps over these bytes; raises DecodeError if others follow."""
        if not self.skip(token):
            self.fail(repr(token.decode("ascii")), path)

    def expect_end(self, expected: str, path: str) -> None:
        """Raises TrailingBytes if anything follows."""
        if self.at < self.stop:
            raise TrailingBytes(expected, counted(self.stop - self.at, "more byte"), **self.where(path))

    def quoted(self, quote: bytes, path: str) -> bytes:
        """Returns the bytes between this quote and the closing one, with doubled quotes undone; raises ShortData."""
        data, start = self.data, self.at + 1
        end = data.find(quote, start, self.stop)
        twice = quote * 2
        doubled = end >= 0 and data.startswith(twice, end, self.stop)
        if doubled:
            end = closing_quote(data, quote, quote, end, self.stop)
        if end < 0:
            raise ShortData(f"a closing {quote.decode()}", f"the end of the {self.whole}", **self.where(path))
        self.at = end + 1
        raw = data[start:end]
        return raw.replace(twice, quote) if doubled else raw

    def text(self, raw: bytes, at: int, path: str) -> str:
        """Returns bytes of the record as text; `at` is where they begin. Raises BadText."""
        text = decode_text(raw, self.encoding, self.errors, message_offset=at, path=path)
        if self.trace is not None and not self.trace.covers(at) and self.data.startswith(raw, at, self.stop):
            self.trace.note(at, at + len(raw), path, "text", text)
        return text

    def note(self, start: int, path: str, rule: str, value: Any = None) -> None:
        """Notes the bytes from `start` to here in the trace, if there is one."""
        if self.trace is not None:
            self.trace.note(start, self.at, path, rule, value)

    def rest(self, path: str) -> str:
        """Returns the rest as text."""
        start, self.at = self.at, self.stop
        if self.trace is not None:
            self.trace.note(start, self.stop, path, "all that follows")
        return self.text(self.data[start : self.stop], start, path)

    def fail(self, expected: str, path: str, *, at: int | None = None, kind: type[DecodeError] = BadTag) -> NoReturn:
        """Raises an error about the byte at the cursor, or at another position."""
        where = self.where(path, at)
        if where["message_offset"] >= self.stop:
            raise ShortData(expected, f"the end of the {self.whole}", **where)
        raise kind(expected, "other bytes", **where)

    def where(self, path: str, at: int | None = None) -> dict[str, Any]:
        """Returns the facts that an error has of a position."""
        position = self.at if at is None else at
        spot = self.data[position : self.stop][:SPOT_BYTES] if self.shows else b""
        return {"message_offset": position, "path": path, "spot": spot}


def decode_text(raw: bytes, encoding: str, errors: str, **where: Any) -> str:
    """Bytes as text; raises BadText with these facts."""
    try:
        return str(raw, encoding, errors)
    except UnicodeDecodeError as error:
        raise BadText(
            f"text in {encoding}", counted(error.end - error.start, "invalid byte"), field_offset=error.start, **where
        ) from None


def closing_quote(data: bytes, quote: bytes, escape: bytes, at: int, stop: int) -> int:
    """Returns where the first quote from `at` on is that is not escaped; -1 if there is none.

    escape   the byte before an escaped quote, or before itself: a backslash, or the quote

    A text can have millions of escapes: whole parts of it are searched, and not one escape after the other.
    """
    size = 64
    while at < stop:
        part = data[at : min(at + size, stop)]
        if at + len(part) < stop:
            part = part.rstrip(escape)  # what it escapes may follow
        unescaped = part
        for pair in {escape + escape: None, escape + quote: None}:
            unescaped = unescaped.replace(pair, bytes(2))
        found = unescaped.find(quote)
        if found >= 0:
            return at + found
        at += len(part)
        size *= 2
    return -1
