"""Messages of test-decoding, whose prefix is written raw and whose content is as long as the size says.

    message: transactional: 1 prefix: app, sz: 5 content:hello
    streaming message: transactional: 1 prefix: app, sz: 5            without the content

The prefix may hold what looks like a size. It ends where the size after it is that of the bytes that follow; where
that is so at two places, nothing tells which is meant. Source: PostgreSQL's test_decoding.
"""

from __future__ import annotations

import re

from ..errors import BadValue, DecodeError, EncodeError, encoded
from ..events import Message
from .cursor import Cursor

MESSAGE, STREAMED = b"message: transactional: ", b"streaming message: transactional: 1 prefix: "

CONTENT = re.compile(rb", sz: ([0-9]{1,10}) content:")
"""What separates prefix and content."""

SIZE = re.compile(rb", sz: ([0-9]{1,10})")
"""What follows the prefix of a streamed message."""

_FLAGS = {b"0 prefix: ": False, b"1 prefix: ": True}


def read_message(cursor: Cursor, lsn: int | None) -> Message:
    """The event of a record that begins with MESSAGE; raises DecodeError.

    The content is bytes if it is not valid text in the encoding.
    """
    cursor.expect(MESSAGE, "record")
    flag = next((flag for flag in _FLAGS if cursor.skip(flag)), None)
    if flag is None:
        cursor.fail("'0 prefix: ' or '1 prefix: '", "transactional")
    start, stop = cursor.at, cursor.stop
    sizes = [size for size in CONTENT.finditer(cursor.data, start, stop) if size.end() + int(size[1]) == stop]
    if len(sizes) != 1:
        got = f"{len(sizes)} of them" if sizes else "none"
        raise BadValue(
            "one place where ', sz: ' and ' content:' hold the number of bytes that follow", got, **cursor.where("size")
        )
    (size,) = sizes
    _note_prefix(cursor, size)
    prefix = cursor.text(cursor.data[start : size.start()], start, "prefix")
    raw = cursor.data[size.end() : stop]
    try:
        content: str | bytes = raw.decode(cursor.encoding)
    except UnicodeDecodeError:
        content = raw
    if cursor.trace is not None:
        cursor.trace.note(size.end(), stop, "content", "as many bytes as the size says", content)
    return Message(lsn=lsn, transactional=_FLAGS[flag], prefix=prefix, content=content)


def read_streamed_message(cursor: Cursor, lsn: int | None) -> Message:
    """The event of a record that begins with STREAMED; raises DecodeError."""
    cursor.expect(STREAMED, "record")
    start = cursor.at
    at = max(cursor.data.rfind(b", sz: ", start, cursor.stop), start)
    size = SIZE.fullmatch(cursor.data, at, cursor.stop)
    if size is None:
        cursor.fail("', sz: ' and a number at the end of the record", "size", at=at, kind=BadValue)
    _note_prefix(cursor, size)
    prefix = cursor.text(cursor.data[start:at], start, "prefix")
    return Message(lsn=lsn, transactional=True, prefix=prefix, size=int(size[1]))


def _note_prefix(cursor: Cursor, size: re.Match[bytes]) -> None:
    """Notes the prefix, and what follows it up to the end of the match, from the cursor on."""
    if cursor.trace is None:
        return
    note, data = cursor.trace.note, cursor.data
    start, stop = size.span(1)
    prefix = data[cursor.at : size.start()].decode(cursor.encoding, "replace")
    note(cursor.at, size.start(), "prefix", "text up to the size that fits", prefix)
    note(size.start(), start, "size", repr(data[size.start() : start].decode("ascii")))
    note(start, stop, "size", "how many bytes the content has, in digits", int(size[1]))
    note(stop, size.end(), "content", repr(data[stop : size.end()].decode("ascii")))


def write_message(event: Message, encoding: str) -> bytes:
    """The record; without a content it is that of a streamed message. Raises EncodeError."""
    prefix = encoded(event.prefix, "prefix", encoding)
    if event.content is None:
        if not event.transactional:
            raise EncodeError("content: only a transactional message can be without one, in a streamed block")
        if not isinstance(event.size, int) or not 0 <= event.size < 10**10:
            raise EncodeError("size: expected a number of at most 10 digits where there is no content")
        text = STREAMED + prefix + b", sz: %d" % event.size
        read = read_streamed_message
    else:
        content = event.content if isinstance(event.content, bytes) else encoded(event.content, "content", encoding)
        text = (
            MESSAGE
            + b"%d prefix: " % bool(event.transactional)
            + prefix
            + b", sz: %d content:" % len(content)
            + content
        )
        read = read_message
    try:
        is_same = read(Cursor(text, 0, len(text), encoding, "strict"), event.lsn) == event
    except DecodeError:
        is_same = False
    if not is_same:
        raise EncodeError("it would be read as something else")
    return text
