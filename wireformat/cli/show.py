"""`wireformat show`: one line for each record, in the words of the openGauss client.

The client has words for BEGIN, COMMIT and row changes of the binary style, but none for a user name. Two-phase commit,
streamed blocks and messages have the words of PostgreSQL's test_decoding, and all other events follow the client's
manner. It escapes nothing and prints NULL as "NULL". Source: formats/gaussdb, "Binary records"; formats/test_decoding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from ..errors import DecodeError
from ..events import (
    Abort,
    Begin,
    Commit,
    CommitPrepared,
    Corrupt,
    Ddl,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Message,
    Origin,
    Prepare,
    Relation,
    RollbackPrepared,
    StreamAbort,
    StreamChange,
    StreamCommit,
    StreamPrepare,
    StreamStart,
    StreamStop,
    Truncate,
    TupleData,
    Type,
    Unchanged,
    Unknown,
    Update,
)
from ..formats.registry import find_format
from ..formats.text_format import TextFormat
from ..identifiers import quote_identifier
from ..lsn import lsn_text
from ..options import ReadOptions
from ..pgtypes import type_oid
from ..sources.source import message_bytes
from ..stream.reader import Located
from .decoding import Decoding
from .inputs import all_messages, find_inputs, guessed_format
from .screen import coloured, has_colours, paged, say, say_skipped, screen_line

AS_IT_IS = "latin-1"
"""An encoding that reads any byte as a character, and writes that character as the same byte."""


def show(
    paths: Sequence[str],
    *,
    format: str | None,
    column: str | None,
    encoding: str | None,
    tables: list[str] | None,
    follow: bool = False,
    pager: bool = False,
    **options: Any,
) -> None:
    """Prints the records of all inputs to standard output.

    format     None guesses the format, and reports the guess
    encoding   the encoding of the server; text is then printed in the encoding of the terminal. None prints the bytes
               of the messages unchanged
    follow     whether to continue as the last file grows
    pager      whether to show them in a pager, which gets what the terminal would

    On a terminal, a record is one line, with its kind in colour and control characters as escapes. The other options
    are those of `ReadOptions`. Raises Failed and OptionError.
    """
    out_encoding = sys.stdout.encoding
    name_text: Callable[[str], str] = str
    if encoding is None:
        encoding = out_encoding = AS_IT_IS
        tables = None if tables is None else [os.fsencode(table).decode(AS_IT_IS) for table in tables]
        name_text = _readable
    checked = ReadOptions.check(encoding=encoding, tables=tables, **options)
    found = find_format(guessed_format(paths, format, column, says_usual=sys.stderr.isatty()))
    decoding = Decoding(found, checked, name_text)
    on_screen, in_colours = sys.stdout.isatty(), has_colours()
    with paged(wanted=pager), find_inputs(paths, found, column, follow=follow) as inputs:
        for messages in all_messages(inputs):
            text_of = _texts(found, messages.messages, decoding.messages) if isinstance(found, TextFormat) else None
            for located in decoding.located(messages):
                if text_of is None or isinstance(located.event, Corrupt):
                    line = client_line(located.event).encode(out_encoding, "backslashreplace")
                else:
                    line = text_of(located)
                    if out_encoding != AS_IT_IS:
                        line = line.decode(checked.encoding, "replace").encode(out_encoding, "backslashreplace")
                if on_screen:
                    line = screen_line(line)
                if in_colours:
                    line = coloured(line, located.event.kind)
                sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()
    decoding.check()
    say_skipped(decoding.dropped)
    for complaint in decoding.complaints():
        say(complaint)


def _texts(format: TextFormat, messages: Any, first: int) -> Callable[[Located], bytes]:
    """Returns a function that gives the text of a record as it is in its message, as the client prints text styles.

    first   the index of the first message
    """
    message = -1
    texts: list[bytes] = []

    def text(located: Located) -> bytes:
        nonlocal message
        if located.message != message:
            message = located.message
            texts[:] = _good(format.texts(message_bytes(messages[message - first]) or b""))
        return texts[located.record]

    return text


def _good(texts: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the texts before broken framing, which is an event of its own."""
    with suppress(DecodeError):
        yield from texts


def _readable(name: str) -> str:
    """Returns a name whose bytes were read by AS_IT_IS, read as UTF-8."""
    return name.encode(AS_IT_IS).decode("utf-8", "backslashreplace")


class PrintedField(NamedTuple):
    """A part of the line.

    before   the text before a field of the event
    field    the name of the field
    text     returns the text of its value
    """

    before: str
    field: str
    text: Callable[[Any], str] = str


def client_line(event: Event) -> str:
    """Returns the line of one event, without a line feed. A field that is None is left out with the text before it."""
    head, words = LINES[type(event)]
    parts = [f"current_lsn: {lsn_text(event.lsn)} " if event.lsn is not None else "", head]
    for before, field, text in words:
        value = getattr(event, field)
        if value is not None:
            parts += (before, text(value))
    return "".join(parts)


def _image(image: TupleData) -> str:
    heads = _cell_heads(image.names, image.types)
    cells = [f"{head}{_value(value)}" for head, value in zip(heads, image.values, strict=True)]
    return "{" + ", ".join(cells) + "}"


def _value(value: str | Unchanged | None) -> str:
    if isinstance(value, Unchanged):
        return "unchanged-toast-datum"
    return f'"{"NULL" if value is None else value}"'


@lru_cache(maxsize=256)
def _cell_heads(names: tuple[str, ...], types: tuple[str, ...]) -> list[str]:
    """Returns the text before each value. The cache is small, because a stream has few tables."""
    return [f"{quote_identifier(name)}[typid = {type_oid(type)}]: " for name, type in zip(names, types, strict=True)]


def _tables(tables: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{schema}.{table}" for schema, table in tables)


def _flag(word: str) -> Callable[[bool], str]:
    return lambda given: word if given else ""


def _bytes(raw: bytes) -> str:
    return rf"\x{raw.hex()}"


def _content(content: str | bytes) -> str:
    return content if isinstance(content, str) else _bytes(content)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


_ORIGIN = PrintedField(" origin_id: ", "origin")
_USERNAME = PrintedField(" username: ", "username")
_COMMIT_TIME = PrintedField(" commit_time: ", "commit_time")
_COMMIT_LSN = PrintedField(" commit_lsn: ", "commit_lsn", lsn_text)
_END_LSN = PrintedField(" end_lsn: ", "end_lsn", lsn_text)
_XID = PrintedField(" xid: ", "xid")
_TABLE = (PrintedField("", "table_schema"), PrintedField(".", "table_name"))
_ROW_CHANGE = (
    *_TABLE,
    PrintedField(" new_tuple: ", "new", _image),
    PrintedField(" old_value: ", "old", _image),
    _XID,
    PrintedField(" old_is: ", "old_kind"),
    PrintedField("", "binary", lambda names: f" binary: {_names(names)}" if names else ""),
)

# Words of test_decoding.
_STREAMED = PrintedField(" TXN ", "xid")
_GID = PrintedField(" ", "gid", _literal)
_TXID = PrintedField(", txid ", "xid")
_AT = PrintedField("", "commit_time", " (at {})".format)
_PREPARED_AT = PrintedField("", "prepare_time", " (at {})".format)

LINES: dict[type[Event], tuple[str, tuple[PrintedField, ...]]] = {
    Begin: (
        "BEGIN",
        (
            PrintedField(" CSN: ", "csn"),
            PrintedField(" first_lsn: ", "first_lsn", lsn_text),
            _XID,
            _COMMIT_TIME,
            _ORIGIN,
            _USERNAME,
            _COMMIT_LSN,
            _END_LSN,
            PrintedField(" gid: ", "gid", _literal),
            PrintedField(" prepare_time: ", "prepare_time"),
        ),
    ),
    Commit: (
        "COMMIT ",
        (
            PrintedField("xid: ", "xid"),
            _COMMIT_TIME,
            _ORIGIN,
            _USERNAME,
            PrintedField(" CSN: ", "csn"),
            _COMMIT_LSN,
            _END_LSN,
        ),
    ),
    Abort: ("ABORT ", (PrintedField("xid: ", "xid"), _COMMIT_TIME)),
    Prepare: (
        "PREPARE ",
        (PrintedField("xid: ", "xid"), _COMMIT_TIME, PrintedField(" gid: ", "gid", _literal), _PREPARED_AT, _END_LSN),
    ),
    CommitPrepared: ("COMMIT PREPARED", (_GID, _TXID, _AT, _COMMIT_LSN, _END_LSN)),
    RollbackPrepared: (
        "ROLLBACK PREPARED",
        (_GID, _TXID, _AT, PrintedField(" prepare_time: ", "prepare_time"), _END_LSN),
    ),
    StreamStart: (
        "opening a streamed block for transaction",
        (_STREAMED, PrintedField("", "first_segment", _flag(", its first"))),
    ),
    StreamStop: ("closing a streamed block for transaction", (_STREAMED,)),
    StreamChange: ("streaming change for", (_STREAMED,)),
    StreamAbort: ("aborting streamed (sub)transaction", (_STREAMED, PrintedField(" subxid: ", "subxid"), _AT)),
    StreamCommit: ("committing streamed transaction", (_STREAMED, _AT, _COMMIT_LSN, _END_LSN)),
    StreamPrepare: ("preparing streamed transaction", (_GID, _TXID, _PREPARED_AT, _END_LSN)),
    Message: (
        "message:",
        (
            PrintedField(" transactional: ", "transactional", lambda given: str(int(given))),
            PrintedField(" prefix: ", "prefix"),
            PrintedField(", sz: ", "size"),
            _XID,
            PrintedField(" content:", "content", _content),
        ),
    ),
    Relation: (
        "RELATION ",
        (
            *_TABLE,
            PrintedField(" relation_id: ", "relation_id"),
            PrintedField(" replica_identity: ", "replica_identity"),
            PrintedField(" columns: ", "columns", _names),
            PrintedField(" type_oids: ", "type_oids", _numbers),
            PrintedField(" typmods: ", "typmods", _numbers),
            PrintedField(" key_columns: ", "key_columns", _names),
            _XID,
        ),
    ),
    Type: (
        "TYPE ",
        (PrintedField("", "namespace"), PrintedField(".", "name"), PrintedField(" type_oid: ", "type_oid"), _XID),
    ),
    Origin: ("ORIGIN ", (PrintedField("", "origin"),)),
    Truncate: (
        "TRUNCATE ",
        (
            PrintedField("", "tables", _tables),
            PrintedField("", "restart_identity", _flag(" RESTART IDENTITY")),
            PrintedField("", "cascade", _flag(" CASCADE")),
            _XID,
        ),
    ),
    Ddl: (
        "DDL",
        (
            PrintedField(" prefix: ", "prefix"),
            PrintedField(" relid: ", "relid"),
            PrintedField(" cmdtype: ", "cmdtype"),
            PrintedField(" owner: ", "owner"),
            PrintedField(" sql: ", "sql"),
            PrintedField(" content: ", "content"),
        ),
    ),
    Insert: ("INSERT INTO ", _ROW_CHANGE),
    Update: ("UPDATE ", _ROW_CHANGE),
    Delete: ("DELETE FROM ", _ROW_CHANGE),
    Heartbeat: (
        "HEARTBEAT",
        (
            PrintedField(" wal_end: ", "wal_end"),
            PrintedField(" wal_flushed: ", "wal_flushed"),
            PrintedField(" time: ", "time"),
            PrintedField(" reply: ", "reply", lambda given: str(int(given))),
        ),
    ),
    Unknown: ("UNKNOWN", (PrintedField(" raw: ", "raw", _bytes),)),
    Corrupt: ("CORRUPT", (PrintedField(" error: ", "error"), PrintedField(" raw: ", "raw", _bytes))),
}
"""For each kind of event: the beginning of its line, and its fields in order."""
