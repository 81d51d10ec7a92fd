"""One event as a line, in the words of the openGauss client.

The client has words for BEGIN, COMMIT and row changes of the binary style, and none for a user name; all others follow
its manner. It escapes nothing and prints NULL as "NULL". Source: formats/gaussdb, "Binary records".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..events import (
    Abort,
    Begin,
    Commit,
    Corrupt,
    Ddl,
    Delete,
    Event,
    Heartbeat,
    Insert,
    Prepare,
    Truncate,
    TupleData,
    Unknown,
    Update,
)
from ..identifiers import quote_identifier
from ..lsn import lsn_text
from ..pgtypes import type_oid


class Word(NamedTuple):
    """A part of the line: what stands before a field of the event, and how the field is printed."""

    before: str
    field: str
    text: Callable[[Any], str] = str


def client_line(event: Event) -> str:
    """The line of one event, without its line feed. A field that is None is left out with what stands before it."""
    head, words = LINES[type(event)]
    parts = [f"current_lsn: {lsn_text(event.lsn)} " if event.lsn is not None else "", head]
    for before, field, text in words:
        value = getattr(event, field)
        if value is not None:
            parts += (before, text(value))
    return "".join(parts)


def _image(image: TupleData) -> str:
    heads = _cell_heads(image.names, image.types)
    cells = [f'{head}"{"NULL" if value is None else value}"' for head, value in zip(heads, image.values, strict=True)]
    return "{" + ", ".join(cells) + "}"


@lru_cache(maxsize=256)
def _cell_heads(names: tuple[str, ...], types: tuple[str, ...]) -> list[str]:
    """What stands before each value; a stream has few tables, so few of these."""
    return [f"{quote_identifier(name)}[typid = {type_oid(type)}]: " for name, type in zip(names, types, strict=True)]


def _tables(tables: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{schema}.{table}" for schema, table in tables)


def _flag(word: str) -> Callable[[bool], str]:
    return lambda given: word if given else ""


def _bytes(raw: bytes) -> str:
    return rf"\x{raw.hex()}"


_ORIGIN = Word(" origin_id: ", "origin")
_USERNAME = Word(" username: ", "username")
_COMMIT_TIME = Word(" commit_time: ", "commit_time")
_ROW_CHANGE = (
    Word("", "table_schema"),
    Word(".", "table_name"),
    Word(" new_tuple: ", "new", _image),
    Word(" old_value: ", "old", _image),
)

LINES: dict[type[Event], tuple[str, tuple[Word, ...]]] = {
    Begin: (
        "BEGIN",
        (
            Word(" CSN: ", "csn"),
            Word(" first_lsn: ", "first_lsn", lsn_text),
            Word(" xid: ", "xid"),
            _COMMIT_TIME,
            _ORIGIN,
            _USERNAME,
        ),
    ),
    Commit: ("COMMIT ", (Word("xid: ", "xid"), _COMMIT_TIME, _ORIGIN, _USERNAME, Word(" CSN: ", "csn"))),
    Abort: ("ABORT ", (Word("xid: ", "xid"), _COMMIT_TIME)),
    Prepare: ("PREPARE ", (Word("xid: ", "xid"), _COMMIT_TIME)),
    Truncate: (
        "TRUNCATE ",
        (
            Word("", "tables", _tables),
            Word("", "restart_identity", _flag(" RESTART IDENTITY")),
            Word("", "cascade", _flag(" CASCADE")),
        ),
    ),
    Ddl: (
        "DDL",
        (
            Word(" prefix: ", "prefix"),
            Word(" relid: ", "relid"),
            Word(" cmdtype: ", "cmdtype"),
            Word(" owner: ", "owner"),
            Word(" sql: ", "sql"),
            Word(" content: ", "content"),
        ),
    ),
    Insert: ("INSERT INTO ", _ROW_CHANGE),
    Update: ("UPDATE ", _ROW_CHANGE),
    Delete: ("DELETE FROM ", _ROW_CHANGE),
    Heartbeat: (
        "HEARTBEAT",
        (Word(" wal_end: ", "wal_end"), Word(" wal_flushed: ", "wal_flushed"), Word(" time: ", "time")),
    ),
    Unknown: ("UNKNOWN", (Word(" raw: ", "raw", _bytes),)),
    Corrupt: ("CORRUPT", (Word(" error: ", "error"), Word(" raw: ", "raw", _bytes))),
}
"""Each kind of event: how its line begins, and the fields in their order."""
